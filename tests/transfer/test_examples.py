"""Adversarial examples of one network: packed within their bound, stored batch by batch, made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor, nn

import likewise
from likewise import attacks
from likewise.attacks.registry import Adversarial
from likewise.data import Data
from likewise.errors import DamagedStoreWarning, ForwardError, InputError, OptionError
from likewise.transfer.classifiers import classifier
from likewise.transfer.examples import AttackSettings, Examples, make_examples, pack, resized_for, unpack
from likewise.work.store import Store
from tests.conftest import refused
from tests.transfer.helpers import WORDS, Bag, digits, trained

EPS = 8 / 255
pixels = arrays(np.float32, (3, 12), elements=st.floats(0, 1, width=32))
changes = arrays(np.float32, (3, 12), elements=st.floats(-1, 1, width=32))


@settings(max_examples=60, deadline=None)
@given(pixels, changes)
def test_packed_images_leave_neither_the_bound_nor_the_range(clean: np.ndarray, change: np.ndarray) -> None:
    start = torch.from_numpy(clean)
    moved = (start + torch.from_numpy(change) * EPS).clamp(0, 1)
    again = unpack(pack(moved, start), start)
    for norm, rounding in ((float("inf"), 0.0), (2, 12**0.5 * 2**-24)):  # of adding 12 values to the clean ones
        bound = torch.linalg.vector_norm(moved - start, ord=norm, dim=1)
        assert bool((torch.linalg.vector_norm(again - start, ord=norm, dim=1) <= bound + rounding).all())
    assert 0 <= float(again.min()) <= float(again.max()) <= 1
    assert float((again - moved).abs().max()) <= EPS * 2**-11 + 2**-22  # half a step of half precision, twice


def noisy(eps: float) -> tuple[Tensor, Tensor]:
    """Digits, and the same with every value moved by up to `eps`, a third of them by all of it."""
    clean = digits().inputs[:]
    draw = torch.Generator().manual_seed(0)
    noise = (torch.rand(clean.shape, generator=draw) * 3 - 1.5).clamp(-1, 1) * eps
    return clean, (clean + noise).clamp(0, 1)


@pytest.mark.parametrize("eps", [1 / 255, 2 / 255, 8 / 255, 0.15])
def test_kept_examples_are_those_made_but_for_a_thousandth_of_a_grey_level(eps: float) -> None:
    clean, moved = noisy(eps)
    packed = pack(moved, clean)
    assert {name: value.dtype for name, value in packed.items()} == {"change": torch.float16, "scale": torch.float32}
    lost = 255 * (unpack(packed, clean) - moved)
    assert float(lost.abs().mean()) < 0.08 * 255 * eps / 1000
    assert abs(float((lost * (moved - clean).sign()).mean())) < 1e-4 * (
        1 + 16 * eps
    )  # nor nearer to the clean image on the whole
    as_images = 255 * (moved.half().float() - moved)
    assert float(as_images.abs().mean()) > float(lost.abs().mean()) * (3 if eps > 0.1 else 8)


def test_images_of_whole_steps_are_kept_as_bytes() -> None:
    clean = digits().inputs[:]
    steps = ((clean * 255).round() + 8).clamp(0, 255) / 255
    packed = pack(steps, clean)
    assert packed["images"].dtype == torch.uint8
    assert torch.equal(unpack(packed), steps)
    assert torch.equal(unpack(pack(clean, clean), clean), clean)  # nothing changed


def test_a_patch_leaves_the_rest_of_the_image_as_it_is() -> None:
    clean = torch.full((1, 1, 4, 4), 0.3)
    moved = clean.clone()
    moved[..., 0, 0] = 0.7123
    assert torch.equal(unpack(pack(moved, clean, sparse=True)), moved)


def test_examples_fit_another_size_and_number_of_channels() -> None:
    images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    assert resized_for(images, (3, 8, 8)) is images
    expected = nn.functional.interpolate(images, (5, 6), mode="bilinear", antialias=True)
    torch.testing.assert_close(resized_for(images, (3, 5, 6)), expected)
    grey = resized_for(images, (1, 8, 8))
    weights = torch.tensor([0.299, 0.587, 0.114])
    torch.testing.assert_close(grey[:, 0], torch.einsum("nchw,c->nhw", images, weights))
    assert torch.equal(resized_for(grey, (3, 8, 8)), grey.expand(-1, 3, -1, -1))


def recipe(attack: str = "pgd", *, seed: int = 0, batch_size: int = 16, **options: Any) -> AttackSettings:
    return AttackSettings.of(attack, {"eps": 0.1, "iterations": 3} | options, seed, batch_size)


def examples(net: nn.Module, how: AttackSettings, folder: Path, data: Data | None = None, name: str = "a") -> Examples:
    with Store(folder) as store, classifier(name, net, data or digits()) as shown:
        *_, found = make_examples(shown, how, store.artifacts("adversarial"))
    assert isinstance(found, Examples)
    return found


def test_examples_are_what_the_attack_gives_batch_by_batch(tmp_path: Path) -> None:
    net, data = trained(), digits()
    found = list(examples(net, recipe(), tmp_path).batches())
    assert [len(batch) for batch in found] == [16, 16, 8]
    for start, batch in zip((0, 16, 32), found, strict=True):
        rows = slice(start, start + 16)
        clean = data.inputs[rows]
        expected = attacks.pgd(
            net, clean, data.labels[rows], eps=0.1, iterations=3, relative_step=0.1, random_start=True, seed=start
        ).images
        assert torch.equal(batch, unpack(pack(expected, clean), clean))
        assert float((batch - expected).abs().max()) <= 0.1 * 2**-11 + 2**-22
        assert float((batch - clean).abs().max()) <= 0.1 + 1e-6


def test_the_papers_attack_is_the_default() -> None:
    plain = AttackSettings.of("pgd", {}, 0, 64).options
    assert (plain["eps"], plain["iterations"], plain["random_start"], plain["norm"]) == (EPS, 50, True, "Linf")
    images, labels = digits().inputs[:8], digits().labels[:8]
    paper = attacks.pgd(trained(), images, labels, eps=EPS, iterations=50, relative_step=0.1, random_start=True)
    assert torch.equal(attacks.pgd(trained(), images, labels).images, paper.images)


OTHERS: dict[str, Any] = {"norm": "L2", "search": "differential-evolution", "generator": nn.Sigmoid()}


@pytest.mark.parametrize("name", attacks.names())
def test_an_option_of_an_attack_changes_itself_alone(name: str) -> None:
    defaults = {option: value for option, value in attacks.get(name).options.items() if option != "seed"}
    assert AttackSettings.of(name, {}, 0, 64).options == defaults
    assert defaults.get("eps", EPS) == EPS
    for option, value in defaults.items():
        if option in ("targeted", "early_stop"):
            continue  # refused
        usual = not value if isinstance(value, bool) else 1 if value is None else value * 2
        other = OTHERS.get(option, usual)
        assert AttackSettings.of(name, {option: other}, 0, 64).options == defaults | {option: other}


def count_attacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that PGD is run on from now."""
    sizes: list[int] = []
    run = attacks.pgd.run

    def counted(net: nn.Module, images: Tensor, labels: Tensor | None = None, **options: Any) -> Adversarial:
        sizes.append(len(images))
        return run(net, images, labels, **options)

    monkeypatch.setattr(AttackSettings, "run", _run_of(counted))
    return sizes


def _run_of(function: Any) -> Any:
    def run(self: AttackSettings, net: Any, images: Tensor, labels: Tensor, start: int) -> tuple[Tensor, Tensor]:
        found = function(net.net, images, labels, **{**self.options, "seed": self.seed + start})
        return found.images, found.stalled

    return run


def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = count_attacks(monkeypatch)
    first = examples(trained(), recipe(), tmp_path)
    assert sizes == [16, 16, 8]
    assert examples(trained(), recipe(), tmp_path).keys == first.keys
    assert sizes == [16, 16, 8]
    first.folder.path(first.keys[1]).unlink()
    examples(trained(), recipe(), tmp_path)
    assert sizes == [16, 16, 8, 16]
    for path in first.folder.folder.iterdir():  # the clean images of all batches
        if path.stem not in first.keys:
            path.unlink()
    assert refused(lambda: list(first.batches())) == f"examples of 'a' are gone from {first.folder.folder}. Run again."
    again = examples(trained(), recipe(), tmp_path)
    assert sizes == [16, 16, 8, 16, 16, 16, 8]
    assert [batch.shape[0] for batch in again.batches()] == [16, 16, 8]


def test_clean_images_are_stored_once_for_networks_that_are_shown_the_same(tmp_path: Path) -> None:
    first, second = (examples(trained(seed=seed), recipe(), tmp_path) for seed in (0, 3))
    assert len(list(first.folder.folder.iterdir())) == 3 + 3 + 3
    assert not set(first.keys) & set(second.keys)


def test_examples_that_an_earlier_version_kept_in_half_precision_are_made_anew(tmp_path: Path) -> None:
    how = recipe()
    assert how.facts()["rules"] == 2
    search = AttackSettings.of("threshold", {}, 0, 16).facts()["rules"]
    assert search == 1  # were kept as bytes, and are read as before
    old = {"images": (digits().inputs[:16] * 255).round().byte(), "stalled": torch.zeros(16)}
    assert torch.equal(unpack(old), old["images"].float() / 255)


def test_a_damaged_batch_is_named_and_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examples(trained(), recipe(), tmp_path)
    before = list(found.batches())
    path = found.folder.path(found.keys[2])
    path.write_bytes(path.read_bytes()[:-2] + b"??")
    sizes = count_attacks(monkeypatch)
    with pytest.warns(DamagedStoreWarning) as told:
        examples(trained(), recipe(), tmp_path)
    assert str(told[0].message) == f"{path} does not match its checksum; it is computed anew."
    assert sizes == [8]
    assert torch.equal(list(found.batches())[2], before[2])


@pytest.mark.parametrize(
    "other",
    [
        {"how": recipe(eps=0.2)},
        {"how": recipe(seed=1)},
        {"how": recipe("fgsm", iterations=None)},
        {"how": recipe(batch_size=20)},
        {"net": trained(seed=3)},
        {"data": digits(39)},
        {"data": Data("other labels", "image", digits().inputs[:], (digits().labels + 1) % 10, digits().classes)},
    ],
    ids=["eps", "seed", "attack", "batch size", "network", "images", "labels"],
)
def test_whatever_examples_depend_on_makes_them_others(tmp_path: Path, other: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"net": trained(), "how": recipe(), "data": digits()}
    first = examples(asked["net"], asked["how"], tmp_path, asked["data"])
    asked |= other
    second = examples(asked["net"], asked["how"], tmp_path, asked["data"])
    assert not set(first.keys) & set(second.keys)


def test_names_do_not_matter(tmp_path: Path) -> None:
    one = examples(trained(), recipe(), tmp_path, name="a")
    assert one.key == examples(trained(), recipe(), tmp_path, name="b").key


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"eps": 0.0}, InputError, "eps is 0.0, and nothing changes within that. Give a number above 0, like 8/255."),
        ({"eps": -1.0}, InputError, "eps is -1.0, and nothing changes within that. Give a number above 0, like 8/255."),
        (
            {"targeted": True},
            InputError,
            "targeted is refused here: examples are led away from the true classes. Leave it out.",
        ),
        (
            {"early_stop": True},
            InputError,
            "early_stop is refused here: examples that barely fool their source fool nothing else. Leave it out.",
        ),
    ],
)
def test_what_makes_no_examples_is_refused(
    tmp_path: Path, options: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    assert refused(lambda: examples(trained(), recipe(**options), tmp_path), kind) == sentence


def test_an_option_that_the_attack_lacks_is_refused() -> None:
    with pytest.raises(OptionError) as error:
        recipe("fgsm", iterations=3)
    assert str(error.value).startswith("fgsm has no option 'iterations'.")


class Detached(nn.Module):
    """A network whose answers have no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.net = trained()

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images.detach())


class Forward(torch.autograd.Function):
    """A step that can be taken in one direction only."""

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        return images.clone()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        raise RuntimeError("no way back")


class OneWay(Detached):
    """A network whose own code fails once it is asked for a gradient."""

    def forward(self, images: Tensor) -> Tensor:
        return self.net(Forward.apply(images))


class Sure(nn.Module):
    """A network that answers with probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.net = trained()

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images).softmax(dim=1)


class Infinite(nn.Module):
    """A network whose gradient is not a number, though its answers are."""

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)[:, :10]
        return flat + 0 * (flat - flat).sqrt()


def test_networks_that_cannot_be_attacked_are_named(tmp_path: Path) -> None:
    assert refused(lambda: examples(OneWay(), recipe(), tmp_path), ForwardError) == (
        "pgd cannot run on 'a': RuntimeError: no way back. Choose another attack, or leave that network out."
    )
    assert refused(lambda: examples(Detached(), recipe(), tmp_path)) == (
        "the answers of Detached have no gradient, so nothing says how to change the images. Give a network that "
        "computes them from the images in torch, without detach or numpy."
    )
    assert refused(lambda: examples(Sure(), recipe(), tmp_path)) == (
        "'a' answers with probabilities, whose gradients vanish, not with logits. Give the network without its softmax."
    )
    assert refused(lambda: examples(Infinite(), recipe(exact=True), tmp_path)) == (
        "the gradient of Infinite is not finite for 16 of 16 images. Attack another network, or leave those images out."
    )


def test_texts_are_refused(tmp_path: Path) -> None:
    assert (
        refused(lambda: examples(Bag(), recipe(), tmp_path, WORDS))
        == "'words' holds text inputs, and attacks change images. Give images."
    )


def test_images_out_of_range_are_refused_before_any_attack() -> None:
    assert refused(lambda: Data("bright", "image", digits().inputs[:] * 255, digits().labels, digits().classes)) == (
        "the images of 'bright' run from 0 to 255, not within [0, 1]. Divide bytes by 255, and leave normalisation to "
        "the network."
    )


def test_an_attack_of_ones_own_is_known_by_its_code(tmp_path: Path) -> None:
    def declare(shade: float) -> AttackSettings:
        @attacks.attack(name="shade", norm="Linf", source="by hand")
        def shaded(net: nn.Module, images: Tensor, labels: Tensor | None = None) -> Adversarial:
            """Every image darker."""
            return Adversarial(images * shade, torch.zeros(len(images)), torch.zeros(len(images)))

        try:
            return AttackSettings.of("shade", {}, 0, 16)
        finally:
            attacks.ATTACKS.remove("shade")

    one, same, other = (examples(trained(), declare(shade), tmp_path) for shade in (0.5, 0.5, 0.25))
    assert one.keys == same.keys
    assert not set(one.keys) & set(other.keys)
    assert float(next(other.batches()).max()) <= 0.25 + 1e-6


def test_a_network_is_left_as_it_was(tmp_path: Path) -> None:
    net = trained().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    examples(net, recipe(), tmp_path)
    assert net.training
    assert all(weight.requires_grad for weight in net.parameters())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_a_network_that_counts_its_classes_otherwise_is_attacked_at_its_own_labels(tmp_path: Path) -> None:
    from likewise.networks.class_names import record_classes
    from likewise.wordnet import ClassNames

    net, turned, order = trained(), trained(), torch.arange(9, -1, -1)
    with torch.no_grad():
        turned.fc.weight.copy_(turned.fc.weight[order])
        turned.fc.bias.copy_(turned.fc.bias[order])
    record_classes(turned, ClassNames(tuple(reversed(likewise.dataset("digits").classes))))
    how = recipe(exact=True)
    for one, other in zip(
        examples(net, how, tmp_path).batches(), examples(turned, how, tmp_path).batches(), strict=True
    ):
        assert float((one - other).abs().max()) < 0.05 * 0.1  # the same but for the order of sums
