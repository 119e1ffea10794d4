"""The table of attacks without gradients: counted as the paper counts, and among what was right."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from likewise import attacks
from likewise.errors import InputError, OptionError
from likewise.transfer import robustness, success
from tests.transfer.helpers import digits, zoo

pytest.importorskip("cma")
FEW: dict[str, Any] = {"thresholds": (2, 40), "generations": (1, 2), "population": 6, "progress": False}


def test_rows_count_what_is_wrong_after_the_attack_and_what_was_before(tmp_path: Path) -> None:
    data, net = digits()[:7], next(iter(zoo().values()))
    table = robustness(net, data, store=tmp_path, batch_size=5, **FEW)
    assert table[["attack", "threshold", "generations"]].values.tolist() == [
        [name, size, count] for name in ("pixel", "threshold") for size in (2, 40) for count in (1, 2)
    ]
    assert (table["images"] == 7).all()
    images, labels = next(iter(data.batches(7)))
    with torch.no_grad():
        wrong = (net.eval()(images).argmax(dim=1) != labels).numpy()
    assert (table["wrong_before"] == wrong.sum()).all()
    for row in table.itertuples():
        option = {"pixel": "pixels"}.get(row.attack, row.attack)
        after = []
        for start in range(0, 7, 5):  # as they are stored, each batch by its own seed
            part = slice(start, start + 5)
            how = {option: row.threshold, "generations": row.generations, "population": 6, "seed": start}
            moved = attacks.get(row.attack)(net, images[part], labels[part], **how)
            with torch.no_grad():
                after.append((net(moved.images).argmax(dim=1) != labels[part]).numpy())
        fooled = np.concatenate(after)
        assert row.fooled == fooled.sum()
        assert row.rate == (fooled & ~wrong).sum() / (~wrong).sum()
        assert row.low <= row.rate <= row.high
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert robustness(net, data, store=tmp_path, batch_size=5, **FEW).equals(table)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == files


def test_nested_attacks_spare_what_smaller_or_shorter_ones_fooled(monkeypatch: pytest.MonkeyPatch) -> None:
    data, net = digits()[:12], next(iter(zoo().values()))
    numbers = {image.numpy().tobytes(): number for number, image in enumerate(data.inputs[:])}
    shown: dict[tuple[str, int, int], set[int]] = {}
    missed: dict[tuple[str, int, int], set[int]] = {}

    def watched(network: Any, part: Any, name: str, **options: Any) -> Any:
        found = success(network, part, name, **options)
        key = name, options[{"pixel": "pixels"}.get(name, name)], options["generations"]
        listed = [numbers[image.numpy().tobytes()] for image in part.inputs[:]]
        shown[key] = set(listed)
        missed[key] = {listed[row] for row in np.flatnonzero(found.after == found.labels)}
        return found

    how: dict[str, Any] = {"thresholds": (20, 4, 40), "generations": (1, 6), "population": 8, "progress": False}
    plain = robustness(net, data, **how)
    monkeypatch.setattr(import_module("likewise.transfer.success_rates"), "success", watched)
    nested = robustness(net, data, nested=True, **how)
    same = ["attack", "threshold", "generations", "images", "wrong_before"]
    assert nested[same].equals(plain[same])
    for row in nested.itertuples():
        left = set(range(12))
        for size in (4, 20, 40):
            for count in (1, 6):
                if size <= row.threshold and count <= row.generations:
                    key = row.attack, size, count
                    if (size, count) == (row.threshold, row.generations):
                        assert shown.get(key, set()) == left
                    left &= missed.get(key, left)
        assert row.fooled == 12 - len(left)
        assert row.low <= row.rate <= row.high
    assert min(map(len, shown.values())) < 12
    # attacks that stand alone may miss what a smaller one found, and the draws of what is left differ
    assert (nested["fooled"] - plain["fooled"]).between(-1, 2).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"attacks": ("pgd",)}, "'pgd' is no attack with thresholds. Choose 'pixel', 'threshold'."),
        ({"attacks": ()}, "no attack is named. Choose 'pixel', 'threshold'."),
        ({"thresholds": ()}, "thresholds is empty. Give at least one number."),
        ({"generations": ()}, "generations is empty. Give at least one number."),
    ],
)
def test_what_gives_no_row_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        robustness(next(iter(zoo().values())), digits(), **options)
    assert str(error.value) == sentence


def test_a_misspelt_keyword_is_refused_with_the_nearest() -> None:
    misspelt: dict[str, Any] = {"sed": 1}
    with pytest.raises(OptionError) as error:
        robustness(next(iter(zoo().values())), digits(), **misspelt)
    assert str(error.value) == (
        "pixel has no option 'sed'. Did you mean 'seed'? Its options are pixels, search, generations, population, seed."
    )
