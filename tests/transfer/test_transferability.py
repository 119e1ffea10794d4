"""SAT over many networks, of a new one against a zoo, and during a training."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta
from torch import Tensor, nn

import likewise
from likewise import attacks
from likewise.data import Data
from likewise.errors import InputError, OptionError, UndefinedError
from likewise.matrices.shares import difference
from likewise.networks.inputs.normalisation import Normalised, note
from likewise.transfer import answers, during, one_sided, sat
from likewise.transfer.examples import pack, resized_for, unpack
from tests.conftest import refused
from tests.helpers import ends_when
from tests.transfer.helpers import FIVE, QUICK, Constant, Small, digits, five, trained, zoo

OPTIONS: dict[str, Any] = {"eps": 0.15, "iterations": 4, "relative_step": 0.1}


def shown(source: nn.Module, target: nn.Module) -> list[int]:
    """What one network answers to the examples of another, by a plain loop."""
    data, found = digits(), []
    for start in range(0, len(data), 16):
        clean = data.inputs[start : start + 16]
        labels = data.labels[start : start + 16]
        moved = attacks.pgd(source, clean, labels, **OPTIONS, seed=5 + start).images
        with torch.no_grad():
            found += target(unpack(pack(moved, clean), clean)).argmax(dim=1).tolist()
    return found


def test_sat_is_what_a_plain_loop_over_pairs_and_images_gives() -> None:
    nets, labels = zoo(), digits().labels.tolist()
    matrix = sat(nets, digits(), seed=5, batch_size=16, **QUICK)
    clean = {name: net(digits().inputs[:]).argmax(dim=1).tolist() for name, net in nets.items()}
    for a in nets:
        for b in nets:
            both = [x for x in range(40) if clean[a][x] == labels[x] == clean[b][x]]
            from_a, from_b = shown(nets[a], nets[b]), shown(nets[b], nets[a])
            fooled = sum(from_a[x] != labels[x] for x in both)
            back = sum(from_b[x] != labels[x] for x in both)
            i, j = "abc".index(a), "abc".index(b)
            assert matrix.counts[i, j] == len(both)
            assert matrix.rates[i, j] == pytest.approx(fooled / len(both), abs=1e-12)
            expected = math.log(max(0.01, 100 * (fooled + back) / (2 * len(both))))
            assert matrix[a, b] == pytest.approx(expected, abs=1e-12)
    assert len({round(value, 3) for value in matrix.values.flatten()}) > 3  # not all the same
    assert matrix.symmetric
    assert (matrix.measure, matrix.larger_is) == ("sat", "more alike")
    assert matrix.accuracies.tolist() == [0.975, 0.975, 0.975]


PUBLISHED = {
    "resnet20": "resnet20@{}/cifar10_resnets/resnet20",
    "resnet32": "resnet32@{}/cifar10_resnets/resnet32",
    "chenyaofo": "resnet20-b@{}/cifar10_models_extra/resnet20_chenyaofo",
    "ehanw": "resnet20-b@{}/cifar10_models_extra/resnet20_ehanw",
}


def attacked(net: nn.Module, images: Tensor, labels: Tensor, eps: float, steps: int) -> Tensor:
    """PGD by hand: steps of a tenth of eps from a random start, of images as made, not as stored."""
    noise = torch.rand(images.shape, generator=torch.Generator().manual_seed(0))
    moved = (images + (2 * noise - 1) * eps).clamp(0, 1)
    for _ in range(steps):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(net(moved), labels, reduction="sum"), moved)
        moved = (moved.detach() + 0.1 * eps * slope.sign() - images).clamp(-eps, eps).add(images).clamp(0, 1)
    return moved


def test_published_networks_have_the_counts_of_a_plain_loop_stored_or_not(real_data: Path, tmp_path: Path) -> None:
    data, eps, steps = likewise.dataset("cifar10:test[:24]"), 2 / 255, 2
    nets = {
        name: likewise.network(f"zoo:{address.format(real_data)}.safetensors") for name, address in PUBLISHED.items()
    }
    images, labels = data.inputs[:], data.labels
    with torch.no_grad():
        right = {name: net.eval()(images).argmax(dim=1) == labels for name, net in nets.items()}
    hits, counts = np.zeros((2, 4, 4), dtype=int)
    for i, source in enumerate(nets):
        examples = attacked(nets[source], images, labels, eps, steps)
        for j, target in enumerate(nets):
            with torch.no_grad():
                wrong = nets[target](examples).argmax(dim=1) != labels
            hits[i, j] = int((wrong & right[source] & right[target]).sum())
            counts[i, j] = int((right[source] & right[target]).sum())
    for store in (None, tmp_path, tmp_path):  # made, made and stored, read
        found = sat(nets, data, eps=eps, iterations=steps, exact=True, store=store, progress=False)
        np.testing.assert_array_equal(found.counts, counts)
        np.testing.assert_array_equal(np.rint(found.rates * found.counts), hits)
    assert len({*hits[~np.eye(4, dtype=bool)].tolist()}) >= 3
    assert hits[~np.eye(4, dtype=bool)].max() < counts.min()


def test_the_diagonal_is_the_success_on_the_network_itself_as_measured() -> None:
    matrix = sat(zoo(), digits(), **QUICK)
    rates = np.diag(matrix.rates)
    assert ((rates > 0) & (rates < 1)).all()  # a weak attack: nothing was set to ln 100
    np.testing.assert_allclose(np.diag(matrix.values), np.log(100 * rates))


def test_arrays_of_images_and_labels_are_data_too() -> None:
    images, labels = digits().inputs[:], digits().labels
    expected = sat(zoo(), digits(), **QUICK)
    for data in ((images, labels), (images.numpy(), labels.numpy()), torch.utils.data.TensorDataset(images, labels)):
        matrix = sat(zoo(), data, **QUICK)
        np.testing.assert_array_equal(matrix.counts, expected.counts)
        np.testing.assert_array_equal(matrix.rates, expected.rates)


def test_a_store_changes_nothing_and_spares_every_pass_the_next_time(tmp_path: Path) -> None:
    plain = sat(zoo(), digits(), **QUICK)
    first = sat(zoo(), digits(), store=tmp_path, **QUICK)
    np.testing.assert_array_equal(plain.predictions, first.predictions)
    inputs: list[int] = []
    nets = zoo()
    for net in nets.values():
        net.register_forward_pre_hook(lambda _, given: inputs.append(len(given[0])))
    # hooks are part of a network, so they are there the first time too
    sat(nets, digits(), store=tmp_path / "hooked", **QUICK)
    inputs.clear()
    again = sat(nets, digits(), store=tmp_path / "hooked", **QUICK)
    assert (
        len(inputs) == 3 * 1 + 3 * 2 + 0
    )  # one input each time a network is opened, four to see that it can be attacked
    np.testing.assert_array_equal(again.predictions, first.predictions)


def test_a_network_more_takes_one_attack_more(tmp_path: Path) -> None:
    sat(zoo(), digits(), store=tmp_path, **QUICK)
    chunks = {path.name for path in (tmp_path / "adversarial").iterdir()}
    sat({**zoo(), "d": trained(seed=2, steps=80)}, digits(), store=tmp_path, **QUICK)
    more = {path.name for path in (tmp_path / "adversarial").iterdir()} - chunks
    assert (len(chunks), len(more)) == (3 + 1, 1)  # one batch each, and one of clean images for all


def test_the_order_of_the_networks_does_not_matter() -> None:
    matrix = sat(zoo(), digits(), **QUICK)
    turned = sat(dict(reversed(zoo().items())), digits(), **QUICK)
    np.testing.assert_array_equal(turned.reordered("abc").values, matrix.values)


def test_options_and_seed_are_recorded_and_matter() -> None:
    first = sat(zoo(), digits(), **QUICK)
    assert first.about["attack"] == "pgd"
    assert first.about["options"]["eps"] == 0.15
    assert (first.about["data"], first.about["seed"], first.about["n"]) == ("digits:test[:40]", 0, 40)
    other = sat(zoo(), digits(), seed=1, **QUICK)
    assert not np.array_equal(first.rates, other.rates)
    weaker = sat(zoo(), digits(), **{**QUICK, "eps": 0.02})
    assert weaker.rates.mean() < first.rates.mean()


class Larger(nn.Module):
    """A network of digits that takes them at twice their size."""

    def __init__(self) -> None:
        super().__init__()
        self.net = trained()

    def forward(self, images: Tensor) -> Tensor:
        assert images.shape[2:] == (16, 16)
        return self.net(nn.functional.avg_pool2d(images, 2))


def test_examples_are_resized_for_networks_of_another_size() -> None:
    from likewise.networks.inputs.normalisation import record_transform
    from likewise.networks.inputs.transforms import Transform, as_batch

    large = Larger()
    record_transform(
        large,
        Transform(lambda images: as_batch([i.resize((16, 16)) for i in images], 1), "twice", (16, 16), channels=1),
    )
    data = Data(
        "digits as bytes", "image", (digits().inputs[:] * 255).round().byte(), digits().labels, digits().classes
    )
    with pytest.warns(UserWarning, match="images of 8 × 8 are enlarged to 16 × 16 for 'large', by its own transform"):
        matrix = sat({"small": trained(seed=3), "large": large}, data, **QUICK)
    found = matrix.predictions[0, 1].tolist()
    clean = data.inputs[:]
    moved = attacks.pgd(trained(seed=3), clean, data.labels, **OPTIONS).images
    example = resized_for(unpack(pack(moved, clean), clean), (1, 16, 16))
    assert found == large(example).argmax(dim=1).tolist()
    assert matrix.rates[1, 0] > 0


def test_normalisation_is_inside_the_network_and_the_attack_in_pixels() -> None:
    net = trained()
    scaled = trained()
    with torch.no_grad():  # takes 4 (x - 0.5), and undoes it in its first layer
        scaled.hidden.bias += 0.5 * scaled.hidden.weight.sum(dim=1)
        scaled.hidden.weight /= 4
    wrapped = Normalised(scaled, [0.5], [0.25])
    matrix = sat({"net": net, "wrapped": wrapped}, digits(), exact=True, **QUICK)
    np.testing.assert_allclose(matrix.rates, matrix.rates[0, 0], atol=1e-9)


def test_a_wide_gap_of_accuracies_is_told() -> None:
    nets = {"good": trained(), "poor": trained(steps=2)}
    with pytest.warns(UserWarning, match="SAT partly measures accuracy") as told:
        sat(nets, digits(), **QUICK)
    accuracies = [
        100 * float((net(digits().inputs[:]).argmax(dim=1) == digits().labels).float().mean()) for net in nets.values()
    ]
    ends = ", ".join(f"{100 * end:.0f}" for end in difference(accuracies[0] / 100, accuracies[1] / 100, 40))
    assert str(told[0].message) == (
        f"clean accuracies differ by {accuracies[0] - accuracies[1]:.1f} points [{ends}], from {accuracies[1]:.1f} % "
        f"of 'poor' to {accuracies[0]:.1f} % of 'good': with more than 4, SAT partly measures accuracy. Compare "
        "networks of like accuracy."
    )


def test_two_networks_that_know_no_input_in_common_are_an_error_and_among_more_undefined() -> None:
    nets = {"zero": Constant(0), "one": Constant(1)}
    reason = "no input is classified correctly by both, so nothing can be fooled. Show them inputs they know."
    assert (
        refused(lambda: sat(nets, digits(), **QUICK), UndefinedError)
        == f"SAT is undefined for 'zero' and 'one': {reason}"
    )
    with pytest.warns(UserWarning, match="clean accuracies differ"):
        matrix = sat({**nets, "good": trained()}, digits(), **QUICK)
    assert math.isnan(matrix["zero", "one"])
    assert matrix.reasons["zero", "one"] == f"sat is undefined for 'zero' and 'one': {reason}"
    assert np.isfinite(matrix.values).sum() == 7
    assert math.isnan(matrix.interval("zero", "one").low)


@pytest.mark.parametrize(
    ("networks", "data", "options", "sentence"),
    [
        (
            ["zoo:mlp"],
            "digits:test[:4]",
            {},
            "SAT compares networks with each other, and 1 was given. Give at least two.",
        ),
        (
            ["zoo:mlp", "zoo:lenet"],
            torch.rand(4, 1, 8, 8),
            {},
            "the data is an array of shape (4, 1, 8, 8), which has no labels, and they are needed to know what an "
            "attack leads away from. Give an address, (images, labels), or likewise.data.Data(name, domain, inputs, "
            "labels, classes).",
        ),
        (
            ["zoo:mlp", "zoo:lenet"],
            "digits:test[:4]",
            {"eps": 0},
            "eps is 0, and nothing changes within that. Give a number above 0, like 8/255.",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(networks: Any, data: Any, options: dict[str, Any], sentence: str) -> None:
    assert refused(lambda: sat(networks, data, progress=False, **options)) == sentence


def test_two_networks_are_given_one_by_one_or_together() -> None:
    a, b = zoo()["a"], zoo()["b"]
    values = [
        found.values
        for found in (sat(a, b, digits(), **QUICK), sat(a, b, data=digits(), **QUICK), sat([a, b], digits(), **QUICK))
    ]
    for other in values[1:]:
        np.testing.assert_array_equal(other, values[0])
    assert answers(a, b, digits(), progress=False).names == answers([a, b], data=digits(), progress=False).names


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: sat(trained(), trained()),
            "sat needs labelled data to show networks. Pass data=, like data='cifar10:test[:500]'.",
        ),
        (
            lambda: sat(["zoo:mlp"], "zoo:lenet", digits()),
            "sat takes sat(networks, data) or sat(a, b, data), and got several networks and 'zoo:lenet' beside them. "
            "Put all networks into one list or mapping.",
        ),
        (lambda: sat(zoo(), digits(), layers="fc"), "sat has no use for layers. Leave it out."),
        (
            lambda: one_sided(trained(), zoo(), digits(), dtype="float16"),
            "one_sided has no use for dtype. Leave it out.",
        ),
        (lambda: answers(zoo(), digits(), head="fc"), "answers has no use for head. Leave it out."),
        (
            lambda: answers(zoo(), digits(), batchsize=3),
            "answers has no option 'batchsize'. Did you mean 'batch_size'?",
        ),
        (lambda: sat(zoo(), digits(), batch_size=0), "batch_size is 0. Give at least 1."),
    ],
)
def test_what_a_verb_has_no_use_for_is_refused(call: Callable[[], Any], sentence: str) -> None:
    assert refused(call, (InputError, OptionError)) == sentence


def test_an_option_of_an_attack_may_be_called_much_like_one_of_showing() -> None:
    assert sat(zoo(), digits(), eps=0.15, iterations=2, step=0.05, progress=False).values.shape == (3, 3)


def test_what_was_attacked_before_a_failure_is_kept(tmp_path: Path) -> None:
    class Odd(Small):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images) + (0 * (images - images).sqrt()).flatten(1)[:, :10]

    odd = Odd()
    odd.load_state_dict(trained(seed=3).state_dict())
    with pytest.raises(InputError, match="the gradient of Odd is not finite for 40 of 40 images"):
        sat({"a": trained(), "odd": odd}, digits(), store=tmp_path, exact=True, **QUICK)
    assert len(list((tmp_path / "adversarial").glob("*.safetensors"))) == 1 + 1  # and its clean images


def test_a_new_network_is_held_against_a_zoo_by_one_attack(tmp_path: Path) -> None:
    others = {"b": zoo()["b"], "c": zoo()["c"]}
    whole = sat(zoo(), digits(), **QUICK)
    row = one_sided({"a": zoo()["a"]}, others, digits(), store=tmp_path, **QUICK)
    assert row.network == "a"
    assert dict(row) == {name: pytest.approx(math.log(100 * whole.rates[0, j])) for j, name in ((1, "b"), (2, "c"))}
    assert row.counts == (whole.counts[0, 1], whole.counts[0, 2])
    hits = [round(float(whole.rates[0, j] * whole.counts[0, j])) for j in (1, 2)]
    for position, (hit, count) in enumerate(zip(hits, row.counts, strict=True)):  # the interval of Jeffreys
        ends = np.log(100 * beta.ppf([0.025, 0.975], hit + 0.5, count - hit + 0.5))
        assert (row.low[position], row.high[position]) == pytest.approx(tuple(ends), abs=1e-9)
    assert len(list((tmp_path / "adversarial").iterdir())) == 1 + 1  # and its clean images


def test_a_new_network_has_a_family(tmp_path: Path) -> None:
    from likewise.analysis import clusters

    names = [f"n{i}" for i in range(4)]
    alike = np.kron(np.eye(2), np.ones((2, 2))) + 1
    families = clusters(likewise.SimilarityMatrix(names, alike), 2)
    row = one_sided(trained(), {name: trained(seed=i) for i, name in enumerate(names)}, digits(), **QUICK)
    assert row.network == "Small"
    assert families.assign(row) == families.labels[0]  # n0 is the same network


@pytest.mark.parametrize(
    ("new", "others", "sentence"),
    [
        ("zoo:mlp", [], "the zoo is empty. Give at least one network to compare the new one with."),
        (["zoo:mlp", "zoo:mlp"], ["zoo:mlp"], "one network is compared with a zoo, and 2 were given. Give one."),
    ],
)
def test_a_row_of_nothing_is_refused(new: Any, others: Any, sentence: str) -> None:
    assert refused(lambda: one_sided(new, others, digits(), **QUICK)) == sentence


def test_every_epoch_of_a_training_is_held_against_the_last(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train = "digits:train[:300]"
    likewise.train("zoo:mlp", train, epochs=3, out=run, keep_epochs=True, validation=None, progress=False)
    frame = during(run, digits(), batch_size=16, **QUICK)
    assert frame["epoch"].tolist() == [0, 1, 2, 3]
    files = [run / "epochs" / f"{number:04d}.safetensors" for number in range(4)]
    with pytest.warns(UserWarning, match="clean accuracies differ"):
        whole = sat({path.stem: str(path) for path in files}, digits(), batch_size=16, **QUICK)
    np.testing.assert_allclose(frame["sat"], whole.values[:, 3])
    np.testing.assert_allclose(frame["low"], whole.intervals().low[:, 3])
    np.testing.assert_allclose(frame["high"], whole.intervals().high[:, 3])
    np.testing.assert_array_equal(frame["count"], whole.counts[:, 3])
    np.testing.assert_array_equal(frame["accuracy"], whole.accuracies)


def test_one_network_has_no_course(tmp_path: Path) -> None:
    assert refused(lambda: during("zoo:mlp", digits(), **QUICK)) == (
        "zoo:mlp has one network only. Give a training's folder with kept epochs (--keep-epochs)."
    )


SCRIPT = """
import functools, sys, warnings
from pathlib import Path
import numpy as np
from likewise import attacks
from likewise.transfer import sat
from tests.transfer.helpers import FIVE, five

run, log = attacks.pgd.run, Path(sys.argv[2])

@functools.wraps(run)
def logged(net, images, labels=None, **options):
    with log.open("a") as file:
        file.write(f"{images.sum():.4f} {next(net.parameters()).sum():.4f}\\n")
    return run(net, images, labels, **options)

object.__setattr__(attacks.pgd, "run", logged)
warnings.simplefilter("ignore")
np.save(sys.argv[3], sat(*five(), store=sys.argv[1], **FIVE).predictions)
"""
BATCHES = 5  # of each network


def test_a_run_killed_in_its_fourth_network_repeats_no_attack_and_gives_the_same_matrix(tmp_path: Path) -> None:
    store, log, script = tmp_path / "store", tmp_path / "log.txt", tmp_path / "run.py"
    script.write_text(SCRIPT)
    half = 3 * BATCHES + 2
    ending = tmp_path / "ending.py"
    ending.write_text(ends_when(store, "adversarial/*.safetensors", half + BATCHES) + SCRIPT)
    command = [sys.executable, str(script), str(store), str(log), str(tmp_path / "found.npy")]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    killed = subprocess.run([sys.executable, str(ending), *command[2:]], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    kept, begun = _stored(store), log.read_text().splitlines()
    assert kept == half
    subprocess.run(command, env=environment, check=True)
    attacked = log.read_text().splitlines()
    again = attacked[len(begun) :]
    assert len(again) == 5 * BATCHES - kept
    assert not set(again) & set(begun[:kept])  # but for the batch that was under way, none a second time
    with warnings.catch_warnings(action="ignore"):  # of their accuracies
        whole = sat(*five(), **FIVE)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), whole.predictions)


def _stored(store: Path) -> int:
    """How many batches of examples there are, beside those of clean images, which are there with the first network."""
    return len(list((store / "adversarial").glob("*.safetensors"))) - BATCHES if store.exists() else 0


class Dropping(Small):
    """Dropout that does not know of evaluation mode, as it is often written."""

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(nn.functional.dropout(self.norm(self.hidden(images.flatten(1))).relu(), 0.3))


def test_a_network_that_draws_is_named_once_and_attacked_in_one_draw(tmp_path: Path) -> None:
    def pair() -> dict[str, nn.Module]:
        drops = Dropping().eval()
        drops.load_state_dict(trained(seed=0).state_dict())
        note(drops, "normalisation", "as trained here")
        return {"drops": drops, "a": trained(seed=3)}

    found, stored = [], []
    for store in (None, tmp_path, tmp_path):
        nets, before = pair(), torch.get_rng_state()
        with pytest.warns(UserWarning, match="answers at random") as said:
            found.append(sat(nets, digits(), store=store, **QUICK))
        assert torch.equal(torch.get_rng_state(), before)
        sentences = [str(entry.message) for entry in said if "at random" in str(entry.message)]
        assert len(sentences) == 1
        assert sentences[0].startswith("'drops' answers at random: the same inputs, shown again, give numbers that ")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = answers(nets, digits(), progress=False)
        np.testing.assert_array_equal(again.logits, found[-1].answers.logits)
        stored.append(sorted(tmp_path.rglob("*.safetensors")))
    assert stored[1] == stored[2]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].predictions, other.predictions)
    assert found[0].rates[0, 0] > found[0].rates[1, 0]  # the gradient is that of the draw that is attacked
    images = torch.rand(4, 1, 8, 8)
    assert not torch.equal(nets["drops"](images), nets["drops"](images))  # left as it was
