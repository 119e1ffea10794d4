"""`likewise.diff`: a network and a changed copy of it; what changed is found, and named."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.errors import InputError, UnknownNameError
from likewise.networks import unwrapped
from tests.difference.copies import digits, fitted, with_noise
from tests.helpers import sentence

NAMES = ("base", "new")


def difference(a: Any, b: Any, data: Any = None, **options: Any) -> Any:
    how = {"names": NAMES, "transfer": False, "progress": False} | options
    return likewise.diff(a, b, digits() if data is None else data, **how)


def test_a_copy_is_identical_and_says_so() -> None:
    found = difference(fitted(), fitted(), fail_under={"cka-debiased": 1 - 1e-9}, fail_over={"disagreement": 0})
    assert found.verdict == "identical"
    assert found.ok
    assert found.findings()["layers"] == "all 6 give the same numbers."
    assert found.findings()["weights"] == "0 of 6 tensors differ."
    assert found.findings()["answers"] == "0 of 300 flip: 0 % [0 %, 1.3 %]."
    assert str(found).splitlines()[0] == "base → new on digits:test[:300] (300 inputs): identical"


def test_weights_in_another_order_of_neurons_are_no_change_of_the_answers() -> None:
    """Neurons of the second layer are permuted: its numbers differ, what it sees does not."""
    net, order = fitted(), torch.randperm(48, generator=torch.Generator().manual_seed(2))
    other = fitted()
    with torch.no_grad():
        other[3].weight.copy_(net[3].weight[order])
        other[3].bias.copy_(net[3].bias[order])
        other[5].weight.copy_(net[5].weight[:, order])
    found = difference(net, other)
    assert found.verdict == "close"
    assert found.first_moved.layer == "3"
    assert found.first_diverged is None
    assert all(layer.likeness > 1 - 1e-6 for layer in found.layers)
    assert found.layers[-1].change < 1e-5  # the answers


@pytest.mark.parametrize("layer", ["1", "3", "5"])
def test_noise_on_the_weights_of_a_layer_names_that_layer(layer: str) -> None:
    found = difference(fitted(), with_noise(fitted(), layer, 0.1))
    assert found.first_moved.layer == layer
    assert [name for name, _ in found.weights.changed] == [f"{layer}.weight"]
    assert found.weights.changed[0][1] == pytest.approx(0.1, rel=0.1)
    before = [each.change for each in found.layers if int(each.layer) < int(layer)]
    assert before == [0.0] * int(layer)
    assert f"{layer} is the first to change (by" in found.findings()["layers"]


def test_a_little_noise_is_close_and_much_of_it_is_not() -> None:
    net = fitted()
    verdicts = [difference(net, with_noise(net, "3", share)).verdict for share in (1e-9, 0.02, 0.2, 20)]
    assert verdicts == ["equal but for rounding", "close", "changed", "different"]


def test_half_of_the_weights_pruned_are_counted_as_zeros() -> None:
    from torch.nn.utils import prune

    net = fitted()
    for layer in (net[1], net[3]):
        prune.l1_unstructured(layer, "weight", amount=0.5)
    found = difference(fitted(), net)
    changed = dict(found.weights.changed)
    assert list(changed) == ["1.weight", "3.weight"]
    assert found.weights.other == 0
    pruned, total = 64 * 96 + 96 * 48, sum(value.numel() for value in fitted().parameters())
    assert found.weights.zeros == pytest.approx((0, pruned / 2 / total), abs=0.005)  # no input lights some neurons
    assert found.first_moved.layer == "1"


def test_a_quantised_copy_changes_from_its_first_layer_on_and_diverges_nowhere() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch will move it to another package
        net = torch.ao.quantization.quantize_dynamic(fitted(), {nn.Linear}, dtype=torch.qint8)
    found = difference(fitted(), net)
    assert found.answers.disagreement < 0.1
    assert found.first_moved.layer == "1"
    assert found.first_diverged is None
    assert (found.weights.shared, found.weights.other) == (6, 0)  # also those that torch packs


def test_activations_that_are_quantised_too_are_read() -> None:
    if "x86" not in torch.backends.quantized.supported_engines:
        pytest.skip("this torch has no quantised layers for this processor")
    quantization = torch.ao.quantization
    base = nn.Sequential(quantization.QuantStub(), *copy.deepcopy(fitted()), quantization.DeQuantStub()).eval()
    net = copy.deepcopy(base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch will move it to another package
        net.qconfig = quantization.get_default_qconfig("x86")
        quantization.prepare(net, inplace=True)
        net(next(digits().batches(300))[0])
        quantization.convert(net, inplace=True)
    found = difference(base, net)
    assert found.verdict in ("close", "changed")
    assert (found.first_moved.layer, found.first_diverged) == ("0", None)
    assert found.answers.disagreement < 0.1


def test_networks_of_different_kinds_are_compared_by_their_most_similar_layers() -> None:
    torch.manual_seed(0)
    other = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(64, 30), nn.Tanh()), nn.Linear(30, 10))
    found = difference(fitted(), other)
    assert not found.same_layers
    assert found.findings()["layers"].startswith("the networks are of different kinds, so each layer is compared ")
    assert found.verdict == "different"


def test_flips_are_the_inputs_whose_answer_changes_and_the_surest_come_first() -> None:
    net, other = fitted(), with_noise(fitted(), "3", 0.2)
    found = difference(net, other)
    images, labels = digits().inputs[:], digits().labels
    with torch.no_grad():
        before, after = net(images).softmax(dim=1), other(images).softmax(dim=1)
    p, q = before.argmax(dim=1), after.argmax(dim=1)
    flips = found.answers.flips
    assert sorted(flip.row for flip in flips) == (p != q).nonzero()[:, 0].tolist()
    assert [flip.margin for flip in flips] == sorted((flip.margin for flip in flips), reverse=True)
    first = flips[0]
    row = first.row
    assert (first.before, first.after, first.truth) == (str(int(p[row])), str(int(q[row])), str(int(labels[row])))
    one, two = before[row, p[row]] - before[row, q[row]], after[row, q[row]] - after[row, p[row]]
    assert first.margin == pytest.approx(float(min(one, two)), abs=1e-6)
    assert found.answers.accuracy == (
        pytest.approx(float((p == labels).float().mean())),
        pytest.approx(float((q == labels).float().mean())),
    )
    assert np.allclose(found.inputs[0][..., 0], images[row, 0])


def test_a_class_that_is_forgotten_drifts_and_no_other_does() -> None:
    other = fitted()
    with torch.no_grad():
        other[5].bias[3] -= 100
    found = difference(fitted(), other)
    drifting = [each.name for each in found.answers.classes if each.sure]
    assert drifting == ["3"]
    three = found.answers.classes[0]
    labels = digits().labels
    assert three.count == int((labels == 3).sum())
    assert three.after == 0
    assert found.findings()["classes"].startswith("drifting more than the others: 3 (")
    assert found.answers.p < 1e-3  # it is right less often, significantly


def test_attacks_on_the_first_fool_a_copy_just_as_often() -> None:
    found = difference(fitted(), fitted(), digits()[:40], transfer=30)
    assert found.transfer.count <= 30
    assert found.transfer.itself == found.transfer.other > 0
    share, count = found.transfer.itself, found.transfer.right
    assert round(share * count) == pytest.approx(share * count)  # of the inputs it is right on
    assert found.findings()["attacks"].startswith(
        f"pgd examples (10 steps) made from base fool it on {100 * share:.1f} % ["
    )
    assert f"of the {count} inputs it classifies correctly, and" in found.findings()["attacks"]
    assert found.findings()["attacks"].endswith(f"of the {found.transfer.count} that both do.")


def test_data_without_labels_is_compared_without_accuracies() -> None:
    found = difference(fitted(), with_noise(fitted(), "3", 0.2), digits().inputs[:], transfer=None)
    assert found.answers.accuracy is None
    assert "accuracy" not in found.findings()
    assert found.findings()["attacks"] == "not compared: the data is no labelled images."
    assert all(np.isnan(each.before) for each in found.answers.classes)
    assert found.inputs[0].shape == (8, 8, 3)


def test_thresholds_are_kept_or_missed_by_the_value_of_the_measure() -> None:
    net, other = fitted(), with_noise(fitted(), "3", 0.2)
    found = difference(net, other, fail_under={"cka-debiased": 0.999, "jaccard[k=5]": 0}, fail_over={"Disagreement": 0})
    cka, share = found.scores["cka-debiased"], found.scores["disagreement"]
    views = [likewise.extract(each, digits(), progress=False) for each in (net, other)]
    assert cka == pytest.approx(likewise.compare(*views), abs=1e-12)
    assert share == found.answers.disagreement
    assert not found.ok
    assert found.failures == [f"cka-debiased = {cka:.4g} is under 0.999", f"disagreement = {share:.4g} is over 0"]
    assert [check.ok for check in found.checks] == [False, True, False]


def test_what_is_undefined_misses_its_threshold() -> None:
    constant = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, 10))
    with torch.no_grad():
        constant[1].bias.fill_(-1e3)
    found = difference(constant, copy.deepcopy(constant), fail_under={"cka-debiased": 0.5})
    assert found.failures[0].startswith("cka-debiased is undefined, so it cannot be compared with 0.5: ")
    assert found.to_dict()["scores"]["cka-debiased"] is None
    maps = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    found = difference(maps, copy.deepcopy(maps), reduce="mean", fail_over={"disagreement": 0.1})
    assert found.failures[0].startswith("disagreement is undefined, so it cannot be compared with 0.1: ")


class Text(nn.Module):
    """Counts letters, and answers by their number."""

    def __init__(self, shift: float = 0.0) -> None:
        super().__init__()
        self.embed, self.answer = nn.Embedding(128, 6), nn.Linear(6, 2)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for value in self.parameters():
                value.copy_(torch.randn(value.shape, generator=generator))
            self.answer.bias += torch.tensor([shift, 0.0])

    def tokenize(self, texts: list[str]) -> dict[str, torch.Tensor]:
        codes = [[min(ord(letter), 127) for letter in text.ljust(12)[:12]] for text in texts]
        return {"input_ids": torch.tensor(codes)}

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.answer(self.embed(input_ids).mean(dim=1))


def test_texts_that_flip_are_shown_as_text_and_never_as_markup() -> None:
    texts = [f"<i>{word}|{i}</i>" for i, word in enumerate(["good", "bad", "fine", "dull"] * 5)]
    data = likewise.data.Data("<script>x", "text", texts, [0, 1] * 10, ("no", "`yes`"))
    found = difference(Text(), Text(-2.0), data, names=("<img src=x onerror=alert(1)>", "b|c"))
    assert found.answers.flips
    assert found.inputs[0] == texts[found.answers.flips[0].row]
    page, markdown = found._repr_html_(), found.to_markdown()
    for text in ("<i>", "<script>", "<img src=x"):
        assert text not in page
        assert text not in markdown
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "b\\|c" in markdown
    widths = {line.count(" | ") for line in markdown.splitlines() if line.startswith("| ")}
    assert widths == {1, 2, 4}  # no name ends a cell


def test_a_summary_is_written_as_markdown_numbers_and_a_picture(tmp_path: Path) -> None:
    found = difference(fitted(), with_noise(fitted(), "3", 0.2), fail_over={"disagreement": 0.001})
    paths = found.write(tmp_path / "out")
    assert [path.name for path in paths] == ["diff.md", "diff.json", "diff.png"]
    markdown = paths[0].read_text()
    assert markdown.startswith("### base → new: changed\n\nOn digits:test\\[:300\\], 300 inputs.\n")
    assert "| ❌ | disagreement = " in markdown
    assert "![layers and flips](diff.png)" in markdown
    numbers = json.loads(paths[1].read_text())
    assert numbers["first_moved"] == "3"
    assert numbers["scores"]["disagreement"] == found.answers.disagreement
    assert len(numbers["layers"]) == 6
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    figure = found.plot()
    titles = [axis.get_title() for axis in figure.axes[1:]]
    assert titles == [f"{flip.before} → {flip.after}" for flip in found.answers.flips[:12]]


def test_a_notebook_shows_the_images_that_flip() -> None:
    page = difference(fitted(), with_noise(fitted(), "3", 0.2))._repr_html_()
    assert page.count("<img src='data:image/png;base64,") == 8


def test_every_line_fits_a_terminal() -> None:
    found = difference(fitted(), with_noise(fitted(), "3", 0.2), fail_under={"cka-debiased": 0.1})
    assert max(map(len, str(found).splitlines())) <= 80


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    net = fitted()
    assert sentence(InputError, likewise.diff, net, net) == (
        "no data to show the networks. Pass data, as in data='cifar10:test[:1000]'."
    )
    assert sentence(InputError, difference, net, np.zeros((2, 2))) == (
        "diff takes two networks, and was given an array of shape (2, 2). Give addresses or modules."
    )
    assert sentence(InputError, difference, net, net, names=("a", "a")) == (
        "two different names are needed, got ('a', 'a'). Leave names out, or give two."
    )
    assert sentence(UnknownNameError, difference, net, net, fail_under={"ckaa": 1}) == (
        "no measure named 'ckaa'. Did you mean 'cka'?"
    )
    assert sentence(InputError, difference, net, net, fail_under={"cca": 1}).startswith(
        "a threshold is for one measure, and 'cca' stands for "
    )


# ResNet-20 as published, on 64 test images of CIFAR-10.


@pytest.fixture
def resnet(real_data: Path) -> nn.Module:
    weights = real_data / "cifar10_resnets" / "resnet20.safetensors"
    if not weights.exists():
        pytest.skip(f"{weights} is not there: set LIKEWISE_DATA")
    return likewise.network(f"zoo:resnet20@{weights}")


def test_noise_in_a_published_network_names_the_layer(resnet: nn.Module) -> None:
    found = difference(resnet, with_noise(resnet, "layer2.1.conv2", 0.3), "cifar10:test[:64]")
    assert found.first_moved.layer == "layer2.1.conv2"
    assert found.verdict in ("close", "changed")


def test_a_published_network_is_close_to_itself_quantised_and_changed_by_pruning(resnet: nn.Module) -> None:
    from torch.nn.utils import prune

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch will move it to another package
        quantised = torch.ao.quantization.quantize_dynamic(copy.deepcopy(resnet), {nn.Linear}, dtype=torch.qint8)
    found = difference(resnet, quantised, "cifar10:test[:64]")
    assert (found.verdict, found.first_moved.layer, found.answers.disagreement) == ("close", "fc", 0.0)
    assert (found.weights.other, [name for name, _ in found.weights.changed]) == (0, ["fc.weight"])
    assert 0 < found.weights.changed[0][1] < 0.02  # whole numbers up to 127
    pruned = copy.deepcopy(resnet)
    parts = [(part, "weight") for part in pruned.modules() if isinstance(part, (nn.Conv2d, nn.Linear))]
    prune.global_unstructured(parts, pruning_method=prune.L1Unstructured, amount=0.8)
    found = difference(resnet, pruned, "cifar10:test[:64]")
    assert found.verdict in ("changed", "different")
    assert found.first_moved.layer == "conv1"
    assert found.weights.zeros[1] == pytest.approx(0.79, abs=0.02)
    assert found.first_diverged is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_copy_in_half_precision_is_close_and_changes_from_the_first_layer_on(
    resnet: nn.Module, dtype: torch.dtype
) -> None:
    found = difference(resnet, copy.deepcopy(resnet).to(dtype), "cifar10:test[:24]")
    assert (found.verdict, found.first_moved.layer, found.first_diverged) == ("close", "conv1", None)
    assert all(flip.margin < torch.finfo(dtype).eps * 8 for flip in found.flips)
    assert found.weights.shared == len(unwrapped(resnet).state_dict())
    rounding = torch.finfo(dtype).eps / 2
    assert max(change for _, change in found.weights.changed) < rounding


def test_a_copy_that_lost_its_normalisation_is_shown_what_the_original_is(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    original = likewise.network("zoo:lenet", data=digits(), seed=3)
    weights = {name: value.half() for name, value in unwrapped(original).state_dict().items()}
    save_file(weights, tmp_path / "half.safetensors")
    address = f"zoo:lenet,size=8,channels=1@{tmp_path / 'half.safetensors'}"
    mean, std = (float(getattr(original, name)) for name in ("mean", "std"))
    with pytest.warns(UserWarning, match="nothing says how") as caught:
        changes = difference(original, address)
    assert [str(warning.message) for warning in caught] == [
        f"nothing says how images are normalised for 'new': it is shown what 'base' is, by mean {mean:.9g} and std "
        f"{std:.9g}. Where it was trained otherwise, add ',mean=,std=' to its address."
    ]
    assert (changes.verdict, changes.first_moved.layer) == ("close", "features.0")
    assert max(change for _, change in changes.weights.changed) < torch.finfo(torch.float16).eps
    plain = copy.deepcopy(unwrapped(original))
    assert difference(plain, copy.deepcopy(plain)).verdict == "identical"  # nothing is known of either
