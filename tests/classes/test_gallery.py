"""Everything there is to see of one inspection: what is drawn, of which epochs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import likewise
from likewise import classes
from likewise.classes.pictures.gallery import epochs_shown
from likewise.errors import OptionError
from tests.classes.helpers import TEXTS, refusals

TRAIN, TEST = "digits:train[:100]", "digits:test[:60]"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gallery") / "run"
    likewise.train("zoo:mlp,hidden=8", TRAIN, validation=TEST, out=folder, epochs=3, lr=0.05, keep_epochs=True)
    return folder


def inspected(run: Any, **options: Any) -> classes.Inspector:
    return classes.inspect(run, TEST, progress=False, **options)


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [(range(31), [1, 3, 10, 30]), ([1], [1]), ([0], [0]), ([0, 5], [5]), (range(401), [1, 7, 54, 400])],
)
def test_four_epochs_are_shown_from_the_first_to_the_last(numbers: Any, shown: list[int]) -> None:
    assert epochs_shown(list(numbers)) == shown


def test_everything_is_drawn_of_the_epochs_that_are_shown(run: Path, tmp_path: Path) -> None:
    inspector = inspected(run, train=TRAIN, out=tmp_path, pictures=True, shown=[0, 3], attack=True)
    names = {path.name for path in tmp_path.iterdir() if path.suffix in (".png", ".html", ".csv")}
    kinds = ("confusion", "confusion_adversarial", "features", "weights")
    assert names == {"curves.csv", "curves.png", "film.html", "joint.png", "templates.csv", "templates.png"} | {
        *(f"matrices-{kind}.png" for kind in kinds),
        "mistakes-0000.png",
        "mistakes-0003.png",
    }
    frame = inspector.curves()
    assert frame["fooling_rate"].notna().tolist() == [True, False, False, True]
    table = pd.read_csv(tmp_path / "templates.csv", index_col="epoch")
    for epoch in (0, 3):
        for split, data in (("train", TRAIN), ("test", TEST)):
            view = likewise.extract(str(run / "epochs" / f"{epoch:04d}.safetensors"), data, progress=False)
            found = classes.templates(view.values, view.outputs.labels, view.outputs.predictions)
            row = table.loc[epoch, [f"{split}_right", f"{split}_wrong", f"{split}_mistakes"]]
            assert row.tolist() == pytest.approx([found.right, found.wrong, found.mistakes])


def test_loss_and_learning_rate_are_those_of_the_training(run: Path) -> None:
    history = likewise.train(
        "zoo:mlp,hidden=8", TRAIN, validation=TEST, out=run, epochs=3, lr=0.05, keep_epochs=True
    ).history
    frame = inspected(run).curves()
    for name in ("loss", "validation_loss", "lr"):
        assert frame[name].tolist()[1:] == [record[name] for record in history]
        assert pd.isna(frame[name].loc[0])


def test_an_epoch_that_was_not_attacked_is_attacked_when_it_is_shown(run: Path, tmp_path: Path) -> None:
    assert "fooling_rate" not in inspected(run, out=tmp_path).curves()
    later = inspected(run, out=tmp_path, attack={"eps": 0.1}, shown=[2]).curves()
    alone = inspected([run / "epochs" / "0002.safetensors"], attack={"eps": 0.1}).curves()
    assert later["fooling_rate"].notna().tolist() == [False, False, True, False]
    assert later["fooling_rate"].loc[2] == alone["fooling_rate"].loc[1]


def test_train_matrices_are_aligned_with_meaning() -> None:
    inspector = classes.Inspector("cifar10")
    labels = [n % 10 for n in range(60)]
    answers = [(n * 7 + n // 10) % 10 for n in range(60)]
    features = [[float(n % 10 == k) + 0.1 * ((n * k) % 7) for k in range(6)] for n in range(60)]
    for split in ("test", "train"):
        inspector.update(answers, labels, features, split=split)
    report = inspector.report()
    found = inspector.matrices(1)
    for name, kind in (("sai_ccsm_scsm_train", "confusion_train"), ("sai_tncsm_scsm_train", "features_train")):
        assert inspector.reference is not None
        assert report[name] == pytest.approx(float(classes.alignment(found[kind], inspector.reference)))


def inspect_texts() -> None:
    classes.inspect(["zoo:mlp"], TEXTS, attack={"eps": 0.1})


def report_also() -> None:
    classes.Inspector(3).report(also={"lss": 1.0})


test_an_error_is_a_sentence = refusals(
    (
        lambda: inspected(["zoo:mlp"], pictures=True),
        "pictures are written to a folder. Pass out=.",
    ),
    (
        lambda: inspected(["zoo:mlp"], shown=[7]),
        "epoch 7 cannot be shown. There are: 1.",
    ),
    (lambda: inspected(["zoo:mlp"], shown=7), "shown is 7. Give a list of epochs."),
    (
        lambda: inspected(["zoo:mlp"], attack="pgd"),
        "attack is 'pgd'. Give options of PGD, as in attack={'eps': 0.05}.",
    ),
    (inspect_texts, "'words' holds text data, which cannot be attacked. Leave out attack."),
    (
        lambda: classes.Inspector(3, attack={"esp": 0.1}),
        "pgd has no option 'esp'. Did you mean 'eps'? Its options are eps, step, relative_step, iterations, "
        "norm, random_start, targeted, early_stop, seed, exact.",
        OptionError,
    ),
    (
        lambda: classes.Inspector(3, attack={"eps": -1.0}),
        "eps is -1.0, and nothing changes within that. Give a number above 0, like 8/255.",
    ),
    (lambda: classes.Inspector(3).report(also=5), "also is 5. Give numbers by name, as in also={'loss': 0.5}."),
    (
        lambda: classes.Inspector(3).report(also={"lr": "low"}),
        "also is {'lr': 'low'}. Give numbers, as in also={'loss': 0.5}.",
    ),
    (report_also, "also has no number 'lss'. Did you mean 'loss'? It takes loss, validation_loss, lr."),
)
