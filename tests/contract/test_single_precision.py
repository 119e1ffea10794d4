"""Every measure in single precision: within a thousandth of its value in double, on hard inputs and real networks."""

import functools
import warnings

import numpy as np
import pytest
import torch

import likewise
from likewise.measures.numerics.algebra import tolerance
from likewise.measures.registry import MEASURES
from likewise.measures.representation import Representation
from likewise.views import Activations
from tests.conftest import refused

CONFOUNDER = np.random.default_rng(1).normal(size=(400, 3))
FORMS = [form for m in MEASURES if m.info.on == "representation" for form in (m, *m.variants.values())]
SLOW = 200  # inputs from which holes of point clouds take too long for a test


def related(n, d, e, *, noise=0.5, rank=6, seed=0):
    """Two networks that share `rank` directions."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, rank))
    return tuple(hidden @ rng.normal(size=(rank, w)) + noise * rng.normal(size=(n, w)) for w in (d, e))


def turned(x):
    return 3 * x @ np.linalg.qr(np.random.default_rng(2).normal(size=(x.shape[1],) * 2))[0] + 1


def uneven_rows(x):
    return x * np.random.default_rng(3).standard_t(2, size=(len(x), 1))


def dead_and_repeated(x):
    x = np.hstack([x, x[:, :2] + x[:, 2:4], np.zeros((len(x), 2))])
    x[5] = 0
    return x


def twins(x):
    x = x.copy()
    x[len(x) // 2 :] = x[: len(x) - len(x) // 2]
    return x


DESIGNS = {
    "plain": lambda: related(60, 8, 8),
    "one neuron": lambda: related(40, 1, 1, rank=1),
    "one beside many": lambda: related(40, 1, 30, rank=1),
    "five inputs": lambda: related(5, 3, 2, rank=2),
    "wide": lambda: related(30, 80, 60),
    "square": lambda: related(40, 40, 40, rank=12),
    "one more input than neurons": lambda: related(41, 40, 39, rank=12),
    "positive": lambda: [np.maximum(v, 0) for v in related(60, 12, 12)],
    "low rank": lambda: related(60, 12, 10, noise=0.0, rank=4),
    "nearly low rank": lambda: related(60, 12, 10, noise=1e-4, rank=4),
    "uneven neurons": lambda: [v * np.logspace(0, 5, v.shape[1]) for v in related(60, 10, 10)],
    "dead and repeated neurons": lambda: [dead_and_repeated(v) for v in related(60, 8, 9)],
    "far from zero": lambda: [v + 1e4 for v in related(60, 10, 12)],
    "farther": lambda: [v + 1e6 for v in related(60, 10, 12)],
    "wide and far from zero": lambda: [v + 1e3 for v in related(30, 80, 60)],
    "large and small": lambda: [v * s for v, s in zip(related(60, 9, 6), (1e12, 1e-12), strict=True)],
    "extreme scales": lambda: [v * s for v, s in zip(related(60, 9, 6), (1e-150, 1e150), strict=True)],
    "few whole numbers": lambda: [np.rint(v).clip(-1, 1) for v in related(60, 5, 4)],
    "every input twice": lambda: [twins(v) for v in related(60, 10, 10)],
    "heavy tails": lambda: [uneven_rows(v) for v in related(60, 10, 10)],
    "one huge input": lambda: [np.vstack([v, 1e5 * v[:1]]) for v in related(60, 10, 10)],
    "the same": lambda: [related(60, 8, 8)[0]] * 2,
    "turned": lambda: [(x := related(60, 8, 8)[0]), turned(x)],
    "nearly the same": lambda: [(x := related(60, 8, 8)[0]), x + 1e-4 * related(60, 8, 8, seed=1)[0]],
    "unrelated": lambda: [related(60, 8, 8)[0], related(60, 8, 8, seed=1)[0]],
    "many entries": lambda: [np.maximum(v, 0).astype(np.float32) for v in related(400, 200, 170, rank=30)],
}


def score(measure, rows, precision):
    views = [Activations(values, name=name, precision=precision) for values, name in zip(rows, "xy", strict=True)]
    bound = measure.bind(confounder=CONFOUNDER[: len(rows[0])]) if measure.missing_options else measure
    try:
        return float(likewise.compare(*views, bound))
    except (likewise.errors.UndefinedError, likewise.errors.InputError) as error:
        return str(error)


def strays(rows):
    """The measures whose score in single precision is not that in double: by a thousandth, or a refusal by another."""
    for measure in FORMS:
        if measure.info.family == "topology" and len(rows[0]) > SLOW:
            continue
        double, single = (score(measure, rows, precision) for precision in ("double", "single"))
        if isinstance(double, str) or isinstance(single, str):
            if double != single:
                yield measure.key, double, single
        elif abs(single - double) > 1e-3 * abs(double) + 1e-12:
            yield measure.key, double, single


@pytest.mark.parametrize("design", DESIGNS)
def test_single_precision_keeps_to_a_thousandth_of_double(design) -> None:
    assert list(strays(list(DESIGNS[design]()))) == []


@functools.cache
def real_rows():
    from tests.conftest import data_root

    weights = data_root("cifar10_resnets")
    networks = {f"r{depth}": f"zoo:resnet{depth}@{weights / f'resnet{depth}.safetensors'}" for depth in (20, 32)}
    views = likewise.extract(networks, "cifar10:test[:300]", progress=False)
    return [view.values for view in views.values()]


def test_single_precision_keeps_to_a_thousandth_of_double_on_real_networks(real_data) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(strays(real_rows())) == []


def test_a_score_says_its_precision() -> None:
    x, y = (Activations(values, precision="single") for values in related(60, 8, 8))
    score = likewise.compare(x, y, "procrustes")
    assert score.precision == "single"
    assert repr(score).endswith("0 with itself, single precision)")
    assert score.to_frame()["precision"].tolist() == ["single"]
    ranks = likewise.compare(x, y, "rsa")  # order is decided in double precision
    assert ranks.precision == "double"
    assert "precision" not in repr(ranks)
    matrices = likewise.compare({"x": x, "y": y}, ["procrustes", "rsa"], progress=False)
    assert [matrix.about.get("arithmetic") for matrix in matrices.values()] == ["single", None]


def test_a_view_in_single_precision_takes_the_other_with_it() -> None:
    x, y = related(60, 8, 8)
    assert likewise.compare(Activations(x, precision="single"), y, "procrustes").precision == "single"


def test_a_store_does_not_mix_precisions(tmp_path) -> None:
    rows = related(60, 8, 8)
    scores = []
    for precision in ("double", "single", "double"):
        views = {name: Activations(v, precision=precision) for name, v in zip("xy", rows, strict=True)}
        scores.append(likewise.compare(views, "procrustes", store=tmp_path, progress=False)["x", "y"])
    assert scores[0] == scores[2] != scores[1]


def test_nulls_and_intervals_in_single_precision_are_those_in_double() -> None:
    rows = related(60, 8, 8)
    pairs = [[Activations(v, precision=precision) for v in rows] for precision in ("double", "single")]
    for key in ("cka-debiased", "mean-cca", "rsa"):
        double, single = (likewise.calibrate(*pair, key, permutations=19) for pair in pairs)
        assert single.p == double.p
        assert single.null_mean == pytest.approx(double.null_mean, rel=1e-3)
        low = [likewise.bootstrap(*pair, key).low for pair in pairs]
        assert low[1] == pytest.approx(low[0], rel=1e-3)


def test_an_unknown_precision_is_refused() -> None:
    assert refused(lambda: Activations([[1.0], [2.0]], precision="half")) == (
        "the precision of the input must be 'double' or 'single', got 'half'."
    )


def test_tolerances_are_the_same_power_of_the_rounding() -> None:
    for value in (1e-4, 1e-13):
        assert tolerance(value, torch.float64) == value
    assert tolerance(2.0**-52, torch.float32) == pytest.approx(2.0**-23)
    assert tolerance(2.0**-26, torch.float32) == pytest.approx(2.0**-11.5)


def test_faster_products_of_fewer_digits_are_not_used_unasked() -> None:
    view = Activations(np.random.default_rng(0).normal(size=(600, 200)).astype(np.float32))
    assert Representation(view).uses_float32
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")  # products in TF32 on a GPU: three digits
        assert not Representation(view).uses_float32
    finally:
        torch.set_float32_matmul_precision(before)


def test_an_input_far_larger_than_all_others_leaves_sums_their_digits() -> None:
    x, y = (values.astype(np.float32) for values in related(1500, 64, 64, rank=10))
    x[7] = y[7] = 1e6
    expected = likewise.compare(x.astype(np.float64), y.astype(np.float64), "cka")
    assert likewise.compare(x, y, "cka") == pytest.approx(expected, rel=1e-9)
