"""Every error and every warning of class similarity, whole, and what is left standing after it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file
from torch import nn

from likewise import classes
from likewise.attacks import pgd
from likewise.classes import (
    ClassSimilarity,
    Inspector,
    alignment,
    from_confusion,
    from_features,
    from_logits,
    from_weights,
    from_wordnet,
)
from likewise.classes.adapters.lightning import logits_and_labels
from likewise.data import Data
from likewise.errors import InputError, LikewiseError, StoreError, UnknownNameError

METRICS = ("cosine", "ssim", "mse", "mae", "pearson", "spearman")
NAMES = ("cat", "dog", "ship")
WEIGHTS = np.array([[1.0, 0.2, 0.1], [0.9, 0.3, 0.3], [-1.0, 0.0, 0.5]])
NET = from_weights(WEIGHTS, NAMES)
PATHS = from_wordnet(["cat.n.01", "dog.n.01", "ship.n.01"], names=NAMES)
LOGITS, LABELS = np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 1])
IMAGES = Data("three", "image", torch.rand(3, 1, 4, 4), [0, 1, 2], NAMES)
TEXTS = Data("words", "text", ["a", "b", "c"], [0, 1, 2], NAMES)
EYE = np.eye(3, dtype=int)


def refused(error: type[LikewiseError], act: Callable[..., Any], *given: Any, **named: Any) -> str:
    with pytest.raises(error) as caught:
        act(*given, **named)
    return str(caught.value)


def warned(act: Callable[..., Any], *given: Any, **named: Any) -> tuple[Any, list[str]]:
    """What it gives, and its warnings, all of which must point here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = act(*given, **named)
    assert {warning.filename for warning in caught} == {__file__}
    return found, [str(warning.message) for warning in caught]


def confused(*given: Any, **named: Any) -> None:
    Inspector(3).update(*given, **named)


SENTENCES: dict[str, tuple[type[LikewiseError], Callable[[], Any]]] = {
    # a matrix
    "a class similarity matrix is square, one row and one column per class, at least two; got (2, 3).": (
        InputError,
        lambda: ClassSimilarity(np.zeros((2, 3))),
    ),
    "a class similarity matrix is square, one row and one column per class, at least two; got (1, 1).": (
        InputError,
        lambda: ClassSimilarity([[1.0]]),
    ),
    "no kind of class similarity named 'weigths'. Did you mean 'weights'?": (
        UnknownNameError,
        lambda: ClassSimilarity(np.eye(2), kind="weigths"),
    ),
    "3 classes need as many WordNet ids, got 1. Give None for a class that has none.": (
        InputError,
        lambda: ClassSimilarity(np.eye(3), wnids=["n02084071"]),
    ),
    "3 classes need 3 names, got 2.": (InputError, lambda: ClassSimilarity(np.eye(3), ["a", "b"])),
    "no class named 'catt'. Did you mean 'cat'?": (UnknownNameError, lambda: NET["catt", "dog"]),
    "no class named 'horse'.": (UnknownNameError, lambda: NET.only(["cat", "horse"])),
    # its makers
    "weights must be (classes, width), got (3,). Pass one row per class.": (
        InputError,
        lambda: from_weights([1.0, 2.0, 3.0]),
    ),
    "weights must be (classes, width), got (4, 3, 3, 3). Pass one row per class.": (
        InputError,
        lambda: from_weights(np.ones((4, 3, 3, 3))),
    ),
    "the matrix of weights holds str32 entries, not numbers. Pass an array of one numeric type.": (
        InputError,
        lambda: from_weights([["a", "b"], ["c", "d"]]),
    ),
    "Sequential has no classifier that could be found: it has no layers with weights. Name the layer "
    "yourself: head='name' where it is asked for, or net.head_layer = 'name'.": (
        InputError,
        lambda: from_weights(nn.Sequential(nn.ReLU())),
    ),
    "Sequential has no classifier that could be found: its last layer with weights, '0', is a Conv2d. "
    "Name the layer yourself: head='name' where it is asked for, or net.head_layer = 'name'.": (
        InputError,
        lambda: from_weights(nn.Sequential(nn.Conv2d(3, 4, 3))),
    ),
    "Sequential has no layer named '9'.": (
        UnknownNameError,
        lambda: from_weights(nn.Sequential(nn.Linear(3, 4)), head="9"),
    ),
    "a confusion matrix is square, one row per true class; got (2, 3). Or pass labels and predictions.": (
        InputError,
        lambda: from_confusion(np.zeros((2, 3))),
    ),
    "a confusion matrix is square, one row per true class; got (4,). Or pass labels and predictions.": (
        InputError,
        lambda: from_confusion([0, 1, 2, 1]),
    ),
    "a confusion matrix holds counts; some entries are negative or not finite.": (
        InputError,
        lambda: from_confusion([[1, -1], [0, 2]]),
    ),
    "predictions must be 3 whole numbers from 0, got int64 of shape (2,). Give one class index per input.": (
        InputError,
        lambda: from_confusion([0, 1, 1], [0, 1]),
    ),
    "there are no labels and no predictions. Give one of each per input.": (
        InputError,
        lambda: from_confusion(np.zeros(0, int), np.zeros(0, int)),
    ),
    "predictions must be 2 whole numbers from 0, got float64 of shape (2,). Give one class index per input.": (
        InputError,
        lambda: from_confusion([0, 1], [0.5, 1.0]),
    ),
    "labels must be whole numbers from 0 to 2, got numbers from 0 to 3. Give one class index per input.": (
        InputError,
        lambda: from_confusion([0, 3], [0, 1], NAMES),
    ),
    "predictions must be 2 whole numbers from 0, got numbers from -1 to 0. Give one class index per input.": (
        InputError,
        lambda: from_confusion([0, 1], [0, -1]),
    ),
    "labels must be 4 whole numbers from 0, got int64 of shape (3,). Give one class index per input.": (
        InputError,
        lambda: from_features(np.ones((4, 2)), [0, 1, 1]),
    ),
    "features must be (inputs, width), got (0, 2). Give one row per input.": (
        InputError,
        lambda: from_features(np.ones((0, 2)), np.zeros(0, int)),
    ),
    "labels must be 2 whole numbers from 0 to 2, got numbers from 1 to 3. Give one class index per input.": (
        InputError,
        lambda: from_features(np.ones((2, 2)), [1, 3], NAMES),
    ),
    "logits must be (inputs, classes), at least two inputs; got (1, 3).": (
        InputError,
        lambda: from_logits(np.ones((1, 3))),
    ),
    "'words' carries no WordNet ids. Name its classes yourself: from_wordnet(['dog.n.01', ...], names=...).": (
        InputError,
        lambda: from_wordnet(TEXTS),
    ),
    "no synset 'catt.n.01' in WordNet 3.0. Did you mean 'catty.n.01'?": (
        UnknownNameError,
        lambda: from_wordnet(["catt.n.01", "cat.n.01"]),
    ),
    "the noun 'mouse' has 4 senses in WordNet 3.0: mouse.n.01 (a kind of rodent.n.01), shiner.n.01 (a "
    "kind of bruise.n.01), mouse.n.03 (a kind of person.n.01), mouse.n.04 (a kind of "
    "electronic_device.n.01). Give the name or the id of the one that is meant.": (
        InputError,
        lambda: from_wordnet(["mouse", "cat.n.01"]),
    ),
    "no measure of WordNet named 'paht'. Known are path, wup, lch. Did you mean 'path'?": (
        UnknownNameError,
        lambda: from_wordnet("cifar10", measure="paht"),
    ),
    # two matrices
    "NCSM and SCSM hold the same classes in different orders. Put them in one: b.only(a.classes).": (
        InputError,
        lambda: alignment(NET, PATHS.only(["ship", "cat", "dog"])),
    ),
    "NCSM is over 3 classes and SCSM over 2. Only matrices of the same classes can be compared; choose "
    "them with .only(classes).": (InputError, lambda: alignment(NET, PATHS.only(["cat", "dog"]))),
    "NCSM and SCSM are over different classes: 'ship' is in one only. Only matrices of the same classes "
    "can be compared.": (
        InputError,
        lambda: alignment(NET, ClassSimilarity(np.eye(3), ["cat", "dog", "car"], "wordnet")),
    ),
    "no metric named 'spaerman'. Did you mean 'spearman'? There are cosine, ssim, mse, mae, pearson, spearman.": (
        UnknownNameError,
        lambda: alignment(NET, PATHS, "spaerman"),
    ),
    "permutations is 0. Give at least 1.": (InputError, lambda: alignment(NET, PATHS, permutations=0)),
    # indices
    "quantile is 0.05. Give one from 0.5 to 1.": (InputError, lambda: classes.wsi(NET, 0.05)),
    "the similarity is over 3 classes and the confusion matrix over 2. Both must hold the same classes.": (
        InputError,
        lambda: classes.idm(NET, [[1, 1], [1, 1]]),
    ),
    "steps can be counted in a path similarity only, and this is NCSM. Give from_wordnet(..., measure='path').": (
        InputError,
        lambda: classes.hierarchical_distance(LOGITS, LABELS, NET),
    ),
    "logits must be (inputs, 3), got (4, 2). Give one row per input.": (
        InputError,
        lambda: classes.hierarchical_distance(LOGITS[:, :2], LABELS, PATHS),
    ),
    "k is 4. Give 1 to 3, the number of classes.": (
        InputError,
        lambda: classes.hierarchical_distance(LOGITS, LABELS, PATHS, k=4),
    ),
    "no sample was counted, so there is nothing to draw from.": (
        InputError,
        lambda: classes.interval(np.zeros((2, 2)), np.trace),
    ),
    "level is 1.5 and resamples 500. Give 0 < level < 1 and at least 1.": (
        InputError,
        lambda: classes.interval(EYE, np.trace, level=1.5),
    ),
    "a curve is one number per epoch, got (9,) for 3 epochs.": (
        InputError,
        lambda: classes.phases(range(9), [1, 2, 3]),
    ),
    "predictions must be 4 whole numbers from 0, got int64 of shape (3,). Give one class index per input.": (
        InputError,
        lambda: classes.templates(LOGITS, LABELS, LABELS[:3]),
    ),
    # the inspector
    "an inspector needs at least two classes. Give their names or their number.": (
        InputError,
        lambda: Inspector(["cat"]),
    ),
    "every_n_epochs is 0. Give at least 1.": (InputError, lambda: Inspector(3, every_n_epochs=0)),
    "adversarial_every is -1. Give at least 1.": (InputError, lambda: Inspector(3, adversarial_every=-1)),
    "the reference has no class that is surely 'newt'; it has 'cat', 'dog', 'ship'. Classes are "
    "matched by WordNet id or by name, never by position: name them as it does, or give one WordNet "
    "id per class.": (InputError, lambda: Inspector(["dog", "cat", "newt"], reference=PATHS)),
    "the reference 'cifar10' has no class that is surely '0', '1', '2' and 7 more; it has 'airplane', "
    "'automobile', 'bird' and 7 more. Classes are matched by WordNet id or by name, never by position: "
    "name them as it does, or give one WordNet id per class.": (InputError, lambda: Inspector(10, reference="cifar10")),
    "split is 'valid'. Give 'test', 'train' or 'adversarial'.": (
        InputError,
        lambda: confused(LOGITS, LABELS, split="valid"),
    ),
    "a batch is logits (n, 3) or predictions (n,) with labels (n,), got (4, 2) and (4,).": (
        InputError,
        lambda: confused(LOGITS[:, :2], LABELS),
    ),
    "a batch is logits (n, 3) or predictions (n,) with labels (n,), got (4, 3) and (3,).": (
        InputError,
        lambda: confused(LOGITS, LABELS[:3]),
    ),
    "predictions must be 4 whole numbers from 0 to 2, got float64 of shape (4,). Give one class index per input.": (
        InputError,
        lambda: confused(LABELS / 2, LABELS),
    ),
    "labels must be 4 whole numbers from 0 to 2, got numbers from 1 to 4. Give one class index per input.": (
        InputError,
        lambda: confused(LOGITS, [1, 2, 4, 1]),
    ),
    "predictions must be 4 whole numbers from 0 to 2, got numbers from 0 to 5. Give one class index per input.": (
        InputError,
        lambda: confused([0, 1, 2, 5], LABELS),
    ),
    "features must be (inputs, width) with one row per label, got (3, 2) for 4 labels.": (
        InputError,
        lambda: confused(LOGITS, LABELS, np.ones((3, 2))),
    ),
    "epoch 7 was not kept. There are: none.": (InputError, lambda: Inspector(3).matrices(7)),
    "no curve named 'wsi_max'. There are none.": (InputError, lambda: Inspector(3).phases()),
    "no checkpoint was given. Give a training's folder, or its checkpoints in order.": (
        InputError,
        lambda: classes.inspect([], IMAGES),
    ),
    "the step returned neither logits and labels nor logits beside a batch of (inputs, labels). Return "
    "{'logits': ..., 'labels': ...} from it, or say where they are: inspector.lightning(get=lambda "
    "outputs, batch: (logits, labels)).": (
        InputError,
        lambda: logits_and_labels(torch.tensor(0.5), (torch.ones(4, 2), torch.ones(4))),
    ),
    # pictures
    "there are no templates to draw. Give at least one.": (InputError, lambda: classes.histogram({})),
    "there is no matrix to draw. Give at least one.": (InputError, lambda: classes.matrices({})),
    "none of the curves asked for was reported. See inspector.curves().columns.": (
        InputError,
        lambda: classes.curves({"": pd.DataFrame({"loss": [1.0]})}, columns=["accurcy"]),
    ),
    "no epoch was reported yet, so there is nothing to animate.": (
        InputError,
        lambda: classes.animate(Inspector(3), "film.html"),
    ),
    "no image of 'three' is misclassified: there is nothing to show.": (
        InputError,
        lambda: classes.mistakes(IMAGES, [0, 1, 2], NET),
    ),
    "count is 0. Give at least 1.": (InputError, lambda: classes.mistakes(IMAGES, [0, 1, 1], NET, count=0)),
    "predictions must be 3 whole numbers from 0 to 2, got int64 of shape (2,). Give one class index per input.": (
        InputError,
        lambda: classes.mistakes(IMAGES, [0, 1], NET),
    ),
    "'words' holds no images but text data. Give image data.": (
        InputError,
        lambda: classes.mistakes(TEXTS, [0, 1, 1], NET),
    ),
    "'three' has 3 classes and the similarity 2. Both must hold the same classes.": (
        InputError,
        lambda: classes.mistakes(IMAGES, [0, 1, 1], NET.only(["cat", "dog"])),
    ),
    "an attack needs images as floats between 0 and 1. Scale them first.": (
        InputError,
        lambda: pgd(nn.Flatten(), torch.full((1, 1, 2, 2), 1.5)),
    ),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_error_is_a_sentence(sentence: str) -> None:
    error, act = SENTENCES[sentence]
    assert refused(error, act) == sentence


def test_classes_without_names_are_not_laid_over_named_ones() -> None:
    nameless = from_weights(WEIGHTS)
    assert refused(InputError, lambda: alignment(nameless, PATHS)) == (
        "the classes of NCSM have no names and those of SCSM do, first 'cat'. Position does not say "
        "which is which: name them where it is made, as in from_weights(net, classes=...)."
    )
    assert alignment(nameless, from_weights(WEIGHTS)) == pytest.approx(1)


@pytest.mark.parametrize("images", [torch.full((1, 1, 2, 2), -0.1), torch.ones(1, 1, 2, 2).int()])
def test_only_images_between_0_and_1_are_attacked(images: torch.Tensor) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    assert refused(InputError, pgd, net, images) == (
        "an attack needs images as floats between 0 and 1. Scale them first."
    )
    assert net.training


# What is undefined


def test_a_class_without_samples_leaves_a_row_of_zeros_in_the_confusion() -> None:
    found, said = warned(from_confusion, [[3, 1, 0], [0, 0, 0], [0, 0, 2]], classes=NAMES)
    assert said == ["no sample of 'dog' was classified: its row of the confusion matrix is zero."]
    assert found.values.tolist() == [[1, 0.25, 0], [0, 1, 0], [0, 0, 1]]
    _, said = warned(from_confusion, [0, 5], [0, 1])
    assert said == ["no sample of '1', '2', '3' and 1 more was classified: its row of the confusion matrix is zero."]


def test_a_class_without_samples_has_no_mean_feature() -> None:
    found, said = warned(from_features, WEIGHTS[:2], [0, 2], NAMES)
    assert said == [
        "the similarity of 'dog' is undefined: it has no sample, or its mean feature is zero, or not finite."
    ]
    assert np.isnan(found.values).tolist() == [
        [False, True, False],
        [True] * 3,
        [False, True, False],
    ]


def test_a_logit_that_never_changes_correlates_with_nothing() -> None:
    logits = [[0.1, 1.0, 3.0], [0.1, 2.0, 2.0], [0.1, 4.0, 1.0]]  # the mean of three 0.1 is not 0.1
    found, said = warned(from_logits, logits, NAMES)
    assert said == ["the similarity of 'cat' is undefined: its logit is the same for every input, or not finite."]
    assert np.isnan(found.values[0]).all()
    assert np.isfinite(found.values[1:, 1:]).all()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_weight_row_without_direction_is_undefined_and_nothing_is_raised(value: float) -> None:
    weights = WEIGHTS.copy()
    weights[1] = value
    found, said = warned(from_weights, weights, NAMES, wnids=PATHS.wnids)
    assert said == ["the similarity of 'dog' is undefined: its weights are all zero, or not finite."]
    assert repr(found) == "ClassSimilarity(NCSM, 3 classes, 5 entries undefined)"
    assert found["cat", "ship"] == NET["cat", "ship"]
    for metric in METRICS:
        agreement = alignment(found, PATHS, metric, permutations=5)
        assert math.isnan(agreement)
        assert math.isnan(agreement.z)
        assert math.isnan(agreement.p)
        assert math.isnan(agreement.calibrated)
    assert math.isnan(classes.wsi(found).mean)
    assert math.isnan(classes.idm(found, [[1, 0, 0], [1, 1, 0], [0, 0, 1]]))
    assert sorted(found.order()) == sorted(NAMES)
    assert found.closest("dog") == []
    _, said = warned(Inspector(NAMES, reference=PATHS).report, weights)
    assert said[0].startswith("the similarity of 'dog' is undefined: ")


# Files


def test_a_file_that_holds_no_class_similarity(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    sentence = f"{path} holds no class similarity. Give a file that ClassSimilarity.save wrote."
    path.write_bytes(b"something else")
    assert refused(StoreError, ClassSimilarity.load, path) == sentence
    save_file({"values": np.eye(3)}, path)
    assert refused(StoreError, ClassSimilarity.load, path) == sentence
    path.write_bytes(NET.save(path).read_bytes()[:-8])
    assert refused(StoreError, ClassSimilarity.load, path) == sentence


def reported(out: Path | None, epochs: int = 2) -> Inspector:
    inspector = Inspector(NAMES, reference=PATHS, out=out)
    for _ in range(epochs):
        inspector.update(LOGITS, LABELS)
        inspector.report(WEIGHTS)
    return inspector


def test_a_folder_with_another_inspection_is_left_alone(tmp_path: Path) -> None:
    reported(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert refused(InputError, Inspector, ["cat", "dog", "car"], out=tmp_path) == (
        f"{tmp_path} holds an inspection of other classes (3, first 'cat'). Give another folder."
    )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("damage", ["cut", "emptied", "another file"])
def test_a_damaged_epoch_is_named(tmp_path: Path, damage: str) -> None:
    reported(tmp_path)
    path = tmp_path / "0002.safetensors"
    if damage == "another file":
        save_file({"fc.weight": np.eye(3)}, path)
    else:
        path.write_bytes(path.read_bytes()[:-9] if damage == "cut" else b"")
    assert refused(StoreError, Inspector, NAMES, out=tmp_path) == (
        f"{path} is no epoch of an inspection, or it is damaged. Remove it, or give another folder."
    )
    path.unlink()
    assert list(Inspector(NAMES, out=tmp_path).curves().index) == [1]


def test_a_folder_without_epochs_is_refused(tmp_path: Path) -> None:
    assert refused(InputError, classes.inspect, tmp_path, IMAGES) == (
        f"{tmp_path} keeps no epochs. Train with keep_epochs (likewise train --keep-epochs), or give the "
        "checkpoints themselves."
    )


def test_a_film_ends_in_html_or_gif(tmp_path: Path) -> None:
    inspector = reported(None)
    assert refused(InputError, classes.animate, inspector, tmp_path / "film.mp4") == (
        "film.mp4 must end in .html or .gif."
    )
    assert refused(InputError, classes.animate, inspector, tmp_path / "film.gif", epochs=[9]) == (
        "epoch 9 was not kept. There are: 1, 2."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["html", "gif"])
def test_epochs_without_a_matrix_make_no_film(tmp_path: Path, ending: str) -> None:
    inspector = Inspector(NAMES)
    warned(inspector.report)
    assert refused(InputError, classes.animate, inspector, tmp_path / f"film.{ending}") == (
        "these epochs have no matrix in common, so there is nothing to animate."
    )


def test_reports_from_a_checkpoint_come_without_matrices() -> None:
    inspector = Inspector(NAMES)
    inspector.load_state_dict(reported(None).state_dict())
    assert list(inspector.curves().index) == [1, 2]
    assert refused(InputError, inspector.matrices, 1) == "epoch 1 was not kept. There are: none."


def test_an_unknown_curve_lists_those_there_are() -> None:
    inspector = Inspector(NAMES)
    inspector.update(LOGITS, LABELS)
    inspector.report()
    assert refused(InputError, inspector.phases, "wsi") == (
        "no curve named 'wsi'. There are samples, errors, accuracy."
    )


# What an epoch survives


@pytest.mark.parametrize("kept", [True, False], ids=["in a folder", "in memory"])
def test_an_empty_epoch_has_weights_but_no_mistakes(tmp_path: Path, kept: bool) -> None:
    out = tmp_path if kept else None
    inspector = reported(out, epochs=1)
    first = inspector.curves().loc[1]
    report, said = warned(inspector.report, WEIGHTS)
    assert said == ["epoch 2 is empty: no test batch was counted, so its mistakes are unknown."]
    assert report["wsi_max"] == first["wsi_max"]
    assert report["sai_ncsm_scsm"] == first["sai_ncsm_scsm"]
    again = Inspector(NAMES, reference=PATHS, out=out) if kept else inspector
    assert math.isnan(again.curves().loc[2, "accuracy"])
    assert math.isnan(again.curves().loc[2, "widm_errors"])
    pd.testing.assert_series_equal(again.curves().loc[1], first)
    assert sorted(again.matrices(1)) == ["confusion", "weights"]
    assert sorted(again.matrices(2)) == ["weights"]


def test_an_epoch_with_nothing_at_all_does_not_close_the_folder(tmp_path: Path) -> None:
    warned(Inspector(NAMES, out=tmp_path).report)
    again = Inspector(NAMES, out=tmp_path)
    assert (again.next_epoch, again.matrices(1)) == (2, {})


@pytest.mark.parametrize(
    "batch",
    [
        (LOGITS, LABELS + 1),
        (LOGITS, LABELS[:2]),
        (LOGITS, LABELS, np.ones((3, 2))),
    ],
    ids=["labels", "lengths", "rows of features"],
)
def test_a_refused_batch_leaves_no_trace(batch: tuple[Any, ...]) -> None:
    inspector, other = reported(None, epochs=1), reported(None, epochs=1)
    with pytest.raises(InputError):
        inspector.update(*batch, split="train")
    for one in (inspector, other):
        one.update(LOGITS, LABELS, WEIGHTS[LABELS])
    with pytest.raises(InputError):
        inspector.update(*batch, split="test")
    for one in (inspector, other):
        one.update(LOGITS, LABELS, WEIGHTS[LABELS])
        one.report(WEIGHTS)
    pd.testing.assert_frame_equal(inspector.curves(), other.curves())
    assert inspector.curves().loc[2, "samples"] == 8


def test_features_of_another_layer_are_refused() -> None:
    inspector = Inspector(NAMES)
    inspector.update(LOGITS, LABELS, np.ones((4, 2)))
    assert refused(InputError, inspector.update, LOGITS, LABELS, np.ones((4, 5))) == (
        "features are 5 wide, and those of the batches before 2. Give those of one layer."
    )
    assert inspector.report()["samples"] == 4


def test_outputs_that_are_nan_are_left_out_and_counted() -> None:
    inspector = Inspector(NAMES)
    logits = np.array(LOGITS)
    logits[[0, 3], 1] = np.nan  # of the four, the first is right and the last is wrong
    features = np.array(WEIGHTS[LABELS])
    features[[0, 3]] = np.nan
    inspector.update(LOGITS, LABELS, WEIGHTS[LABELS])
    _, said = warned(inspector.update, logits, LABELS, features)
    assert said == ["2 of 4 outputs of a batch are NaN: they are left out of this epoch."]
    report = inspector.report(WEIGHTS)
    assert (report["left_out"], report["samples"], report["errors"]) == (2, 6, 1)
    assert np.isfinite(inspector.matrices(1)["features"].values).all()
    inspector.update(LOGITS, LABELS)
    assert "left_out" not in inspector.report(WEIGHTS)


def test_an_infinite_logit_is_an_answer() -> None:
    inspector = Inspector(NAMES)
    inspector.update(np.where(LOGITS == 1, np.inf, LOGITS), LABELS)
    assert inspector.report()["accuracy"] == 0.75


def test_a_network_without_a_classifier_can_be_reported_after_all() -> None:
    inspector = Inspector(NAMES)
    inspector.update(LOGITS, LABELS)
    with pytest.raises(InputError):
        inspector.report(nn.Sequential(nn.ReLU()))
    assert inspector.report()["samples"] == 4


def test_arrays_that_cannot_be_written_are_counted() -> None:
    inspector = Inspector(NAMES)
    logits = LOGITS.copy()
    logits.setflags(write=False)
    inspector.update(logits, LABELS)
    assert inspector.report()["accuracy"] == 0.75


# What the classes are called


def test_data_with_a_class_name_that_repeats_goes_on_where_it_stopped(tmp_path: Path) -> None:
    # ImageNet has the crane that is a bird and the one that lifts
    cranes = ("n02012849", "n02009912", "n03126707")
    data = Data("birds", "image", IMAGES.inputs, [0, 1, 2], ("crane", "egret", "crane"), cranes)
    inspector = Inspector(data, out=tmp_path)
    assert inspector.classes == inspector.reference.classes == ("crane", "egret", "crane#2")
    inspector.update(LOGITS, LABELS)
    inspector.report(WEIGHTS)
    assert Inspector(data, out=tmp_path).next_epoch == 2


def test_a_reference_stands_beside_classes_given_as_a_matrix() -> None:
    assert Inspector(NET).reference is NET
    assert Inspector(NET, reference=PATHS).reference is PATHS
