"""The success of attacks on the network they were made for, one by one and as a table."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from likewise import attacks
from likewise.errors import OptionError, UndefinedError
from likewise.matrices.shares import wilson
from likewise.transfer import robustness, sat, success
from tests.conftest import refused
from tests.transfer.helpers import QUICK, Constant, digits, trained, zoo


def test_success_is_the_share_of_inputs_known_before_that_are_wrong_after() -> None:
    net, data = trained(), digits()
    found = success({"a": net}, data, **QUICK)
    images, labels = data.inputs[:], data.labels
    moved = attacks.pgd(net, images, labels, eps=0.15, iterations=4, relative_step=0.1).images
    right = net(images).argmax(dim=1) == labels
    wrong = net(moved).argmax(dim=1) != labels
    assert found.count == int(right.sum())
    assert found.rate == int((right & wrong).sum()) / int(right.sum())
    assert found.rate == pytest.approx(sat(zoo(), data, **QUICK).rates[0, 0], abs=1e-12)
    expected = binomtest(int((right & wrong).sum()), found.count).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert str(found).startswith(f"pgd fools a on {found.rate:.1%} of 39 inputs it classifies correctly [")


def test_pictures_are_of_inputs_that_were_fooled_and_within_the_bound(tmp_path: Path) -> None:
    found = success({"a": trained()}, digits(), pictures=3, **{**QUICK, "eps": 0.3})
    assert len(found.rows) == 3
    for place, row in enumerate(found.rows):
        assert found.before[row] == found.labels[row] != found.after[row]
        assert torch.equal(found.clean[place], digits().inputs[:][row])
    assert float((found.adversarial - found.clean).abs().max()) <= 0.3 + 1e-6
    with torch.no_grad():
        assert trained()(found.adversarial).argmax(dim=1).tolist() == found.after[list(found.rows)].tolist()
    figure = found.plot(tmp_path / "examples.png")
    assert len(figure.axes) == 9
    assert (tmp_path / "examples.png").exists()
    titles = [ax.get_title() for ax in figure.axes[:3]]
    assert titles[0] == digits().classes[found.before[found.rows[0]]]
    assert titles[2] == digits().classes[found.after[found.rows[0]]]


def test_early_stop_is_allowed_where_nothing_is_to_transfer() -> None:
    whole = success({"a": trained()}, digits(), **QUICK)
    early = success({"a": trained()}, digits(), early_stop=True, **QUICK)
    np.testing.assert_allclose(early.rate, whole.rate, atol=0.06)


def test_a_network_that_knows_nothing_and_several_networks_are_refused() -> None:
    data = digits()[(digits().labels != 0).nonzero()[:, 0]]
    assert (
        refused(lambda: success({"zero": Constant(0)}, data, **QUICK), UndefinedError)
        == "'zero' classifies no input correctly, so nothing can be fooled. Show it others."
    )
    assert (
        refused(lambda: success(zoo(), digits(), **QUICK))
        == "one network is attacked at a time, and 3 were given. Give one."
    )


def test_an_interval_at_the_ends_stays_within_0_and_1() -> None:
    assert wilson(0.0, 10)[0] == 0
    assert wilson(1.0, 10)[1] == pytest.approx(1, abs=1e-12)


needs_cma = pytest.mark.skipif(find_spec("cma") is None, reason="the search by CMA-ES needs cma")
FEW: dict[str, Any] = {"thresholds": (2, 40), "generations": (1, 2), "population": 6, "progress": False}


@needs_cma
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


@needs_cma
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
    assert refused(lambda: robustness(next(iter(zoo().values())), digits(), **options)) == sentence


def test_a_misspelt_keyword_is_refused_with_the_nearest() -> None:
    misspelt: dict[str, Any] = {"sed": 1}
    assert refused(lambda: robustness(next(iter(zoo().values())), digits(), **misspelt), OptionError) == (
        "robustness has no option 'sed'. Did you mean 'seed'?"
    )
