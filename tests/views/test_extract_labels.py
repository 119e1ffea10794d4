"""Labels are kept only where data and network have the same classes, and counted as the network does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise import measures, wordnet
from likewise.data import Data
from likewise.errors import InputError
from likewise.networks import train
from likewise.networks.class_names import record_classes
from likewise.views.extract import extract
from likewise.wordnet import ClassNames
from tests.networks.helpers import PETS, Blind, named, pets, refused
from tests.views.helpers import _tiny, shown


def answers(names: tuple[str, ...], order: list[int], store: Path | None = None) -> Any:
    draw = torch.Generator().manual_seed(3)
    net = Blind(4)
    nn.init.normal_(net.fc.weight, generator=draw)
    net.fc.weight.data, net.fc.bias.data = net.fc.weight.data[order], net.fc.bias.data[order]
    record_classes(net, ClassNames(tuple(names[i] for i in order)))
    return extract(net, pets(names[:3]), name="".join(map(str, order)), store=store)


def test_labels_of_other_classes_are_not_kept_and_what_needs_them_says_why() -> None:
    net = named(4, ("tench", "goldfish", "shark", "ray"))
    views = [extract(net, pets(), name=name) for name in ("one", "other")]
    assert views[0].outputs.labels is None
    reason = (
        "the labels of 'pets' do not fit 'one': of its 3 classes, 'cat', 'dog', 'fish' are not surely "
        "among the network's 4 ('tench', 'goldfish', 'shark' and 1 more). Name them as the network "
        "does, or by WordNet id."
    )
    assert views[0].unlabelled == reason
    for score in (
        measures.accuracy_difference,
        measures.error_consistency,
        measures.same_mistake,
        measures.disagreement_normalised,
    ):
        assert refused(lambda score=score: score(*views)) == (
            f"the true labels of 'one' and 'other' are not known: {reason} Or pass labels=... that "
            "count as the network does."
        )
    assert measures.disagreement(*views) == 0  # needs no labels


def test_a_network_without_names_takes_labels_only_of_as_many_classes() -> None:
    assert extract(Blind(3), pets()).outputs.labels.tolist() == pets().labels.tolist()
    view = extract(Blind(5), pets(), name="net")
    assert view.outputs.labels is None
    assert view.unlabelled == (
        "the labels of 'pets' do not fit 'net': it has 3 classes ('cat', 'dog', 'fish'), and the "
        "network answers with 5 numbers that have no names. Use a network of these classes."
    )


def test_labels_are_carried_over_to_the_networks_own_order() -> None:
    net = named(4, ("Fish", "newt", "Dog", "Cat"), favourite=3)
    view = extract(net, pets())
    assert view.outputs.labels.tolist() == [3, 2, 0] * 3
    accuracy = (view.outputs.predictions == view.outputs.labels).float().mean()
    assert float(accuracy) == pytest.approx(1 / 3)  # it always says cat


def test_classes_are_found_by_id_and_by_another_word() -> None:
    net = Blind(1000)
    record_classes(net, wordnet.listed("imagenet1k"))
    data = pets(("n02123045", "goldfish", "Tinca tinca"))
    assert extract(net, data).outputs.labels.tolist() == [281, 1, 0] * 3


def test_ten_classes_are_not_ten_others(tmp_path: Path) -> None:
    digits, fashion = tuple("0123456789"), wordnet.classes("fashion-mnist").names
    images = torch.rand(20, 3, 2, 2)
    cifar = Data("cifar10", "image", images, np.arange(20) % 10, wordnet.classes("cifar10").names)
    for other in (digits, fashion):
        assert extract(named(10, other), cifar).outputs.labels is None
    assert extract(named(10, cifar.classes), cifar).outputs.labels is not None


@pytest.mark.parametrize("form", [list, torch.utils.data.DataLoader])
def test_a_dataset_of_torch_brings_its_classes(form: Any) -> None:
    class Folder(torch.utils.data.Dataset[Any]):
        classes = PETS

        def __len__(self) -> int:
            return 6

        def __getitem__(self, i: int) -> Any:
            if i >= 6:
                raise IndexError
            return torch.rand(3, 2, 2), i % 3

    data = Folder() if form is list else torch.utils.data.DataLoader(Folder(), batch_size=3)
    net = named(3, ("fish", "cat", "dog"))
    assert extract(net, data).outputs.labels.tolist() == [1, 2, 0] * 2
    assert extract(Blind(1000), data).outputs.labels is None
    part = torch.utils.data.Subset(Folder(), [1, 2])
    assert extract(net, part).outputs.labels.tolist() == [2, 0]


def test_labels_and_their_reason_come_back_from_a_store(tmp_path: Path) -> None:
    turned = named(3, ("fish", "cat", "dog"))
    for _ in range(2):  # made, then found
        view = extract(turned, pets(), store=tmp_path)
        assert view.outputs.labels.tolist() == [1, 2, 0] * 3
        assert view.classes == ClassNames(("fish", "cat", "dog"))
    other = extract(turned, pets(("ape", "bee", "cow")), store=tmp_path)
    assert other.outputs.labels is None
    assert "'ape', 'bee', 'cow'" in other.unlabelled
    # the same weights, now said to be of other classes
    record_classes(turned, ClassNames(("dog", "cat", "fish")))
    assert extract(turned, pets(), store=tmp_path).outputs.labels.tolist() == [1, 0, 2] * 3


def test_a_header_holds_many_long_names(tmp_path: Path) -> None:
    names = tuple(f"{i} {'long ' * 40}" for i in range(150))
    net = named(150, names)
    view = extract(net, pets(names[:3], name="n" * 200), store=tmp_path)
    assert view.classes == ClassNames(names)
    lost = extract(net, pets(tuple(f"{'x' * 240}{i}" for i in range(3))), store=tmp_path)
    assert lost.outputs.labels is None
    assert lost.unlabelled.startswith("the labels of 'pets' do not fit")


@pytest.mark.parametrize("stored", [False, True])
def test_the_same_network_with_its_outputs_in_another_order_is_the_same(stored: bool, tmp_path: Path) -> None:
    place = tmp_path if stored else None
    one, other = (answers((*PETS, "newt"), order, place) for order in ([0, 1, 2, 3], [2, 3, 0, 1]))
    assert measures.disagreement(one, other) == 0
    assert measures.jsd(one, other) == pytest.approx(0, abs=1e-6)
    assert measures.error_consistency(one, other) == 1
    assert measures.accuracy_difference(one, other) == 0
    assert measures.same_mistake(one, other) == 1
    assert measures.class_alignment(one, other) == pytest.approx(1, abs=1e-6)
    given = one.outputs.labels
    consistency = measures.get("error-consistency", labels=given)
    assert consistency(one, other) == 1
    assert likewise.calibrate(one, other, consistency, permutations=20).value == 1


def test_networks_of_other_classes_are_not_compared_by_their_answers() -> None:
    one = answers((*PETS, "newt"), [0, 1, 2, 3])
    other = answers(("ape", "bee", "cow", "newt"), [3, 2, 1, 0])
    for score in (measures.disagreement, measures.jsd, measures.class_alignment):
        assert refused(lambda score=score: score(one, other)) == (
            "'0123' and '3210' answer with 4 classes each, but not the same: 'cat', 'dog', 'fish' of "
            "the first are not surely among 'newt', 'cow', 'bee' and 1 more of the second. Only "
            "networks with the same classes can be compared by their outputs."
        )


def test_inputs_are_shuffled_within_classes_whatever_their_order() -> None:
    one, other = (answers((*PETS, "newt"), order) for order in ([0, 1, 2, 3], [2, 3, 0, 1]))
    assert one.outputs.labels.tolist() != other.outputs.labels.tolist()
    options: dict[str, Any] = {"permutations": 20, "within": "labels", "progress": False}
    assert likewise.calibrate(one, other, "cka", **options).value == pytest.approx(1)
    lost = extract(Blind(5), pets(), name="net")
    assert refused(lambda: likewise.calibrate(lost, lost, "cka", **options)) == (
        "within='labels' needs the true labels of the inputs, and no view has them: "
        f"{lost.unlabelled} Pass within=<one label per input>, or views with Outputs(logits, labels)."
    )


def test_an_inspection_counts_classes_as_the_network_does(tmp_path: Path) -> None:
    data = pets()
    train("zoo:mlp", data, epochs=2, out=tmp_path / "run", keep_epochs=True)
    turned = Data("turned", "image", data.inputs, 2 - data.labels, PETS[::-1])
    one, other = (
        likewise.classes.inspect(tmp_path / "run", shown, train=shown, progress=False) for shown in (data, turned)
    )
    assert one.classes == other.classes == PETS
    assert one.curves().equals(other.curves())
    other = pets(("cat", "dog", "newt"))
    assert "'newt' are not surely among the network's 3" in refused(
        lambda: likewise.classes.inspect(tmp_path / "run", other, progress=False)
    )


def test_an_inspection_is_held_against_a_list_by_id(tmp_path: Path) -> None:
    ids = [wordnet.classes("mini-imagenet").wnids[i] for i in (7, 3, 5)]
    data = pets(wnids=tuple(ids))
    train("zoo:mlp", data, epochs=1, out=tmp_path / "run", keep_epochs=True)
    found = likewise.classes.inspect(tmp_path / "run", data, reference="mini-imagenet", progress=False)
    assert found.reference is not None
    np.testing.assert_array_equal(found.reference.values, wordnet.similarity(ids))


def test_a_folder_of_pets_has_no_labels_for_imagenet(vision: None, tmp_path: Path) -> None:
    import timm
    from PIL import Image

    for number, name in enumerate(PETS):
        (tmp_path / name).mkdir()
        for i in range(2):
            Image.new("RGB", (64, 64), (60 * i, 80 * number, 9)).save(tmp_path / name / f"{i}.png")
    nets = [timm.create_model("test_resnet", pretrained=False) for _ in range(2)]
    shown = {"data": f"imagefolder:{tmp_path}", "progress": False}
    with pytest.raises(InputError, match="'cat', 'dog', 'fish' are not surely among the network's"):
        likewise.compare(*nets, "error-consistency", **shown)
    both = likewise.compare(dict(zip("ab", nets, strict=True)), ["cka", "error-consistency"], **shown)
    assert 0 <= both["cka"].values[0, 1] <= 1
    assert np.isnan(both["error-consistency"].values[0, 1])


@pytest.mark.parametrize("folder", [False, True], ids=["in memory", "in a folder"])
@pytest.mark.parametrize(
    ("labels", "what"),
    [
        (torch.tensor([0, -100, 2, 1]), "numbers from -100 to 2"),
        (torch.tensor([[0, 1]] * 4), "int64 of shape (4, 2)"),
        (torch.rand(4).bfloat16(), "bfloat16 of shape (4,)"),
    ],
)
def test_labels_that_are_no_classes_cost_no_rows(labels: Tensor, what: str, folder: bool, tmp_path: Path) -> None:
    batches = [{"input": torch.rand(4, 8), "labels": labels}]
    store = tmp_path if folder else None
    sentence = (
        f"the labels for 'Sequential' must be 4 whole numbers from 0, got {what}. Its outputs are kept without labels."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(sentence)}$"):
        view = shown(_tiny(), batches, "0", store=store)
    assert view.n == 4
    assert view.outputs.labels is None


@pytest.mark.parametrize(
    "labels",
    [["good", "bad"], [torch.zeros(2, 3), torch.zeros(2, 5)], [torch.tensor(1), torch.tensor(2)]],
    ids=["words", "as many as tokens", "one a batch"],
)
def test_what_stands_in_the_place_of_labels_costs_no_rows(labels: list) -> None:
    batches = [{"input": torch.rand(2, 8), "labels": value} for value in labels]
    view = shown(_tiny(), batches, "0")
    assert view.n == 4
    assert view.outputs.labels is None


def test_targets_in_half_precision_are_no_labels() -> None:
    view = shown(_tiny(), [(torch.rand(4, 8), torch.rand(4).bfloat16())], "0")
    assert view.outputs.labels is None


@pytest.mark.parametrize("folder", [False, True], ids=["in memory", "in a folder"])
def test_an_infinite_answer_costs_no_rows(folder: bool, tmp_path: Path) -> None:
    class Masked(nn.Module):
        def forward(self, rows: Tensor) -> Tensor:
            return rows.masked_fill(rows > 0.99, -torch.inf)

    net, rows = nn.Sequential(nn.Identity(), Masked()), torch.rand(10, 3) / 2
    rows[7, 1] = 1
    sentence = "'Sequential' answers with numbers that are not finite. Its rows are kept without outputs."
    store = tmp_path if folder else None
    with pytest.warns(UserWarning, match=sentence):
        view = shown(net, rows, "0", store=store, batch_size=5)
    assert view.outputs is None
    assert torch.equal(view.values, rows)
    with (
        pytest.warns(UserWarning, match=sentence),
        pytest.raises(InputError, match="has NaN or infinite entries in 1 of 10 rows"),
    ):
        shown(net, rows, "logits", store=store)
