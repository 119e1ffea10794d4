"""Phases of learning on curves whose course is known, of both kinds, and since when the kind was certain."""

from __future__ import annotations

import statistics
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.classes import Phases, phases
from likewise.classes.learning.phases import surge_end
from tests.classes.helpers import few, refusals

PARTS = np.concatenate([np.linspace(0, 1, 11), np.linspace(0.97, 0.7, 10), np.full(39, 0.7)])
UNSURE = "cannot tell yet: "


def bad(end: float, fall: int = 30, length: int = 400) -> np.ndarray:
    """As with a learning rate that is far too high: an early top, a fall, and slow growth."""
    growth = np.linspace(0.1, end, length - 7 - fall)
    return np.concatenate([np.linspace(0.2, 0.8, 7), np.linspace(0.7, 0.1, fall), growth])


test_an_error_is_a_sentence = refusals(
    (lambda: phases(range(9), [1, 2, 3]), "a curve is one number per epoch, got (9,) for 3 epochs."),
    (lambda: phases("rest"), "a curve is one number per epoch, got 'rest'."),
    (lambda: phases([1, 2, 3], ["a", "b", "c"]), "epochs are ['a', 'b', 'c']. Give whole numbers."),
    (lambda: phases([1, 2, 3], [1, 1, 2]), "epochs are [1, 1, 2]. Give them in rising order, each once."),
)


def by_loops(curve: list[float]) -> tuple[str, int | None, int | None]:
    """The rule in plain loops: the kind, and the two epochs at which it ends or turns."""
    n = len(curve)
    if n < 20:
        return "short", None, None
    smooth = [statistics.median([curve[max(i - 1, 0)], curve[i], curve[min(i + 1, n - 1)]]) for i in range(n)]
    noise = 1.4826 * statistics.median(abs(b - a) for a, b in pairwise(curve)) / 2**0.5
    tail = max(2, n // 5)
    needed, level = max(tail, 10), statistics.median(smooth[-tail:])
    least = max(4 * noise, 0.25 * (max(smooth) - min(smooth)), 1e-9)
    begin, lowest = 0, None
    for i in range(n):
        if max(smooth[: i + 1]) - smooth[i] > least and level - smooth[i] > least:
            lowest = i if lowest is None or smooth[i] < smooth[lowest] else lowest
    if lowest is not None:
        regrown = smooth[lowest] + 0.95 * (level - smooth[lowest])
        took = next(i for i in range(lowest, n) if smooth[i] >= regrown) - lowest
        if took > needed:
            return "growth", lowest, None
        begin = lowest
    top = max(smooth[begin:])
    climb = top - smooth[begin]
    if climb <= max(4 * noise, 1e-9):
        return "no climb", None, None
    surge = next(i for i in range(begin, n) if smooth[i] >= smooth[begin] + 0.95 * climb)
    if surge >= n - tail:
        return "climbing", None, None
    rest = surge
    for i in range(n):
        if abs(smooth[i] - level) > 0.1 * climb:
            rest = max(surge, i + 1)
    if rest > n - needed:
        return "restless", surge, None
    third = (n - rest) // 3
    low = min(statistics.median(curve[rest : rest + third]), statistics.median(curve[rest + third : n - third]))
    bends = [abs(curve[i + 1] - 2 * curve[i] + curve[i - 1]) for i in range(rest + 1, n - 1)]
    wobble = 1.4826 * statistics.median(bends) / 6**0.5
    growth = statistics.median(curve[n - third :]) - low
    if top - level > 0.25 * climb and growth > max(6 * wobble / third**0.5, 0.005 * climb):
        return "growing again", surge, None
    return "refinement", surge, max(surge, rest - 1)


def random_curve(seed: int) -> np.ndarray:
    """A curve of either kind, or of none, with some noise."""
    draw = np.random.default_rng(seed)
    length, kind = int(draw.integers(15, 90)), seed % 6
    t = np.arange(length)
    good = 1 - np.exp(-t / draw.uniform(1, 8))
    curve = {
        0: good - draw.uniform(0, 0.6) * (1 - np.exp(-np.maximum(t - 8, 0) / draw.uniform(3, 20))),
        1: bad(draw.uniform(0.2, 1.2), int(draw.integers(3, 20)), max(length, 40)),
        2: good,
        3: np.full(length, 0.5),
        5: np.linspace(0, 1, length),
        4: np.concatenate([[0.6, 0.3], 0.3 + 0.6 * good])[:length],
    }[kind]
    return np.asarray(curve + draw.choice([0, 0.005, 0.05]) * draw.normal(size=len(curve)))


def test_phases_are_those_of_plain_loops() -> None:
    seen = set()
    for seed in range(100):
        curve = random_curve(seed)
        kind, first, second = by_loops(curve.tolist())
        found = phases(curve)
        seen.add(kind)
        if kind == "growth":
            assert (found.kind, found.drop_end, found.surge_end) == ("growth", first, None)
        elif kind == "refinement":
            assert (found.kind, found.surge_end, found.refinement_end) == ("refinement", first, second)
        else:
            assert (found.kind, found.surge_end, found.certain_from) == (None, first, None)
            assert found.reason.startswith("no clear phases: " if kind == "no climb" else UNSURE)
    assert seen == {"short", "growth", "no climb", "climbing", "restless", "growing again", "refinement"}


def test_a_kind_is_certain_from_the_first_epoch_after_which_it_stays() -> None:
    for seed in range(0, 100, 7):
        curve = random_curve(seed)
        kinds = [by_loops(curve[: length + 1].tolist())[0] for length in range(len(curve))]
        certain = len(kinds) - 1
        while certain > 0 and kinds[certain - 1] == kinds[-1]:
            certain -= 1
        told = kinds[-1] in ("growth", "refinement")
        assert phases(curve).certain_from == (certain if told else None), seed


def test_surge_refinement_and_rest_are_told_apart() -> None:
    # The median of three takes the peak down to 0.97: 95 % of that, 0.9215, is reached by epoch 10.
    # A tenth of the climb around 0.7 ends at 0.797: epoch 16 is at 0.82, epoch 17 at 0.79.
    # Rest from epoch 17 has lasted ten epochs at epoch 26.
    found = phases(PARTS)
    assert found == Phases(10, 16, certain_from=26)
    assert (found.kind, found.clear, found.drop_end) == ("refinement", True, None)
    assert str(found) == "surge to epoch 10, refinement to epoch 16, then rest (certain from epoch 26)"


@few
@given(st.floats(0.01, 100), st.floats(-10, 10))
def test_phases_do_not_depend_on_the_scale_of_the_curve(scale: float, shift: float) -> None:
    assert phases(scale * PARTS + shift) == phases(PARTS)


def test_phases_are_told_in_the_numbers_of_the_epochs() -> None:
    found = phases(PARTS, range(100, 100 + 2 * len(PARTS), 2))
    assert (found.surge_end, found.refinement_end, found.certain_from) == (120, 132, 152)
    holes = np.insert(PARTS, 5, np.nan)
    assert phases(holes, [0, 1, 2, 3, 4, 99, *range(5, 60)]) == phases(PARTS)


def test_one_odd_epoch_is_no_top() -> None:
    odd = PARTS.copy()
    odd[40] = 5.0
    found, usual = phases(odd), phases(PARTS)
    assert (found.surge_end, found.refinement_end) == (usual.surge_end, usual.refinement_end)


def test_a_curve_that_only_climbs_and_stays_has_no_refinement() -> None:
    # 1 - exp(-x / 3) is 95 % of the way at x = 3 ln 20 = 8.99
    found = phases(1 - np.exp(-np.arange(60) / 3))
    assert (found.surge_end, found.refinement_end) == (9, 9)
    assert str(found) == f"surge to epoch 9, then rest (certain from epoch {found.certain_from})"


@pytest.mark.parametrize("end", [0.6, 1.2], ids=["below its first top", "above it"])
def test_a_curve_that_falls_and_grows_slowly_is_of_the_other_kind(end: float) -> None:
    curve = bad(end)
    found = phases(curve)
    assert (found.kind, found.drop_end, found.clear) == ("growth", 36, False)
    assert str(found) == f"drop to epoch 36, then slow growth (certain from epoch {found.certain_from})"
    assert found.certain_from is not None
    for length in range(1, found.certain_from + 1):
        before = phases(curve[:length])
        assert (before.kind, before.reason[: len(UNSURE)]) == (None, UNSURE), length


def test_slow_growth_inside_the_band_of_rest_is_no_rest() -> None:
    """A fall, then growth by a thousandth per epoch: within 10 % of the climb for a long time."""
    curve = np.concatenate([np.linspace(0, 0.8, 7), np.linspace(0.7, 0.3, 5), 0.3 + 0.001 * np.arange(60)])
    assert str(phases(curve)) == (
        "cannot tell yet: surge to epoch 5, then a fall, after which the curve has begun to grow again"
    )
    assert phases(np.concatenate([curve, 0.36 + 0.001 * np.arange(300)])).kind == "growth"


def test_a_quick_dip_before_the_surge_is_passed_over() -> None:
    curve = np.concatenate([[0.7, 0.3, -0.3], PARTS])
    assert phases(curve) == Phases(13, 19, certain_from=29)


def test_the_end_of_the_surge_is_told_before_the_kind_is() -> None:
    ends = [surge_end(PARTS[:length]) for length in range(1, 61)]
    assert ends[:19] == [None] * 19
    assert set(ends[19:]) == {10}
    assert phases(PARTS[:20]).kind is None


def test_a_verdict_of_rest_needs_ten_epochs_of_it() -> None:
    verdicts = {length: phases(PARTS[:length]) for length in range(1, 60)}
    assert min(length for length, found in verdicts.items() if found.clear) == 27  # rest begins at 17
    assert all(found.clear for length, found in verdicts.items() if length >= 27)


@pytest.mark.parametrize("curve", [np.full(30, 0.4), np.linspace(1, 0, 30)], ids=["flat", "falling"])
def test_a_curve_that_does_not_climb_has_no_phases(curve: np.ndarray) -> None:
    found = phases(curve)
    assert (found.surge_end, found.refinement_end, found.kind) == (None, None, None)
    assert str(found) == "no clear phases: the curve does not climb from where it started"


@pytest.mark.parametrize("length", [8, 30, 100])
def test_noise_is_no_surge(length: int) -> None:
    draw = np.random.default_rng(0)
    found = [phases(draw.normal(size=length)) for _ in range(200)]
    assert sum(one.surge_end is not None or one.kind is not None for one in found) < 0.05 * 200


def test_some_noise_does_not_hide_the_phases() -> None:
    for seed in range(10):
        noisy = PARTS + 0.01 * np.random.default_rng(seed).normal(size=len(PARTS))
        found = phases(noisy)
        assert found.surge_end == pytest.approx(10, abs=1)
        assert found.refinement_end == pytest.approx(16, abs=1)
        assert phases(bad(0.6, length=100) + 0.01 * np.random.default_rng(seed).normal(size=100)).kind == "growth"


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        (PARTS[:10], "10 epochs are recorded, 20 are needed"),
        ([*PARTS[:7], *[np.nan] * 20], "7 epochs are recorded, 20 are needed"),
        ([], "0 epochs are recorded, 20 are needed"),
        (np.linspace(0, 1, 40), "the curve was still climbing when the record ended"),
        ([*PARTS[:11], *np.linspace(0.9, 0.1, 9)], "surge to epoch 9, then not 10 epochs of rest yet"),
        (PARTS[:25], "surge to epoch 10, then not 10 epochs of rest yet"),
    ],
    ids=["short", "holes", "empty", "climbing", "falling at the end", "short rest"],
)
def test_what_cannot_be_told_has_a_reason(curve: np.ndarray, said: str) -> None:
    found = phases(curve)
    assert str(found) == UNSURE + said
    assert (found.kind, found.certain_from) == (None, None)
