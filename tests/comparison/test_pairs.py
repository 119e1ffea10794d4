"""Many pairs from one product: the numbers of the loop over pairs, with its reasons, in little memory."""

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.comparison import pairs
from likewise.errors import InputError, UndefinedError
from likewise.measures.numerics import kernels
from likewise.work.store import Store
from tests.comparison.test_blocks import Inline

RNG = np.random.default_rng(0)
M, N, D = 36, 60, 7
SHARED = RNG.normal(size=(N, D))


def networks(dtype="float64", m=M, n=N, d=D):
    """Networks that are alike to a degree, as a trained zoo is."""
    shared = np.resize(SHARED, (n, d))
    views = [np.maximum(shared @ RNG.normal(size=(d, d)) + RNG.normal(size=(n, d)), 0) for _ in range(m)]
    return {f"n{i}": view.astype(dtype) for i, view in enumerate(views)}


def odd_networks():
    """Some that need a closer look."""
    views = networks(m=8)
    views["constant"] = np.full((N, 3), 2.0)
    views["nearly n0"] = views["n0"] * (1 + 1e-9)
    views["huge"] = 1e200 * views["n1"]
    views["large row"] = np.where(np.arange(N)[:, None] == 4, 1e8, views["n2"])
    views["wide"] = RNG.normal(size=(N, 2 * N))
    views["one neuron"] = RNG.normal(size=(N, 1))
    views["single"] = views["n3"].astype("float32")
    views["offset"] = views["n4"] + 1e6
    return views


def forms():
    published = [measures.get(name) for name in measures.names()]
    every = [form for measure in published for form in (measure, *measure.variants.values())]
    return [form for form in every if form.info.matrix is not None]


def alone(measure, x, y, names):
    """Score and reason of a pair that is computed alone."""
    try:
        return measure(*(likewise.Activations(v, name=n) for v, n in zip((x, y), names, strict=True))), ""
    except (UndefinedError, InputError) as error:
        return np.nan, str(error)


@pytest.fixture
def products(monkeypatch):
    """How many networks stood on either side of every product."""
    sizes = []

    def multiply(kernel, left, right=()):
        sizes.append((len(left), len(right)))
        return kernels.multiply(kernel, left, right)

    monkeypatch.setattr(pairs, "multiply", multiply)
    return sizes


@pytest.mark.parametrize("measure", forms(), ids=lambda measure: measure.key)
def test_odd_networks_get_the_scores_and_reasons_of_single_pairs(measure, products, monkeypatch) -> None:
    monkeypatch.setattr("likewise.comparison.pairs._cross_is_cheaper", lambda *_: False)
    views = odd_networks()
    matrix = likewise.compare(views, measure, progress=False)
    assert products
    for a in views:
        for b in views:
            if list(views).index(a) < list(views).index(b):
                value, reason = alone(measure, views[a], views[b], (a, b))
                assert matrix[a, b] == pytest.approx(value, rel=1e-8, abs=1e-8, nan_ok=True), (a, b)
                assert matrix.reasons.get((a, b), "") == reason


def test_every_measure_with_a_kernel_has_a_form_for_many_pairs() -> None:
    every = [measures.get(name) for name in measures.names()]
    assert {m.name for m in every if m.info.kernels} == {m.name for m in every if m.info.matrix}
    assert {m.name for m in forms()} >= {"cka", "cka-debiased", "cka-rbf", "rsa", "distance-correlation"}


def debiased(views):
    """Debiased CKA in a few lines: half of every centred matrix is a row, and all pairs are one product."""
    n, rows = len(next(iter(views.values()))), []
    for view in views.values():
        x = view.astype("float64") - view.mean(axis=0, dtype="float64")
        gram = x @ x.T
        np.fill_diagonal(gram, 0)
        sums = gram.sum(axis=0)
        gram -= (sums[:, None] + sums) / (n - 2) - sums.sum() / (n - 1) / (n - 2)
        rows.append(gram[np.triu_indices(n, 1)])
    products = np.array(rows) @ np.array(rows).T
    return products / np.sqrt(np.multiply.outer(products.diagonal(), products.diagonal()))


@pytest.mark.parametrize(("dtype", "digits"), [("float64", 1e-12), ("float32", 1e-6)])
@pytest.mark.parametrize(("n", "d"), [(200, 30), (60, 150)])
def test_all_pairs_are_those_of_a_few_numpy_lines(dtype, digits, n, d, products) -> None:
    views = networks(dtype, n=n, d=d)
    matrix = likewise.compare(views, "cka-debiased", progress=False)
    assert products == [(M, 0)]
    assert matrix.values == pytest.approx(debiased(views), abs=digits)


def test_nearly_equal_networks_keep_the_digits_of_single_precision(products) -> None:
    x = RNG.normal(size=(400, 40))
    views = {str(i): (x + 1e-4 * RNG.normal(size=x.shape)).astype("float32") for i in range(M)}
    matrix = likewise.compare(views, ["cka", "cka-debiased"], progress=False)
    assert products == [(M, 0)]
    assert matrix["cka-debiased"].values == pytest.approx(debiased(views), abs=1e-6)
    assert matrix["cka"]["0", "1"] == pytest.approx(measures.cka(views["0"], views["1"]), abs=1e-6)


def test_networks_that_do_not_fit_together_come_in_tiles(products) -> None:
    views = networks("float32", n=300, d=40)
    whole = likewise.compare(views, ["cka-debiased", "distance-correlation"], progress=False)
    products.clear()
    tiled = likewise.compare(views, ["cka-debiased", "distance-correlation"], memory="10MB", progress=False)
    assert len(products) > 10  # that of two groups holds few networks
    for name, matrix in whole.items():
        assert tiled[name].values == pytest.approx(matrix.values, abs=2e-7 if name == "cka-debiased" else 1e-12)


def test_double_and_single_precision_meet_in_tiles_of_their_own(products) -> None:
    views = networks("float32", n=200, d=30) | {f"d{i}": v for i, v in enumerate(networks(m=4, n=200, d=30).values())}
    matrix = likewise.compare(views, "cka-debiased", progress=False)
    assert products == [(M, 0), (M, 4), (4, 0)]
    assert matrix.values == pytest.approx(debiased(views), abs=2e-7)


def test_a_store_is_filled_in_batches_and_new_networks_bring_their_own_pairs(tmp_path, products, monkeypatch) -> None:
    monkeypatch.setattr("likewise.comparison.schedule.BATCH", 50)
    views = networks(n=20)
    before = dict(list(views.items())[:-5])
    likewise.compare(before, "cka-debiased", store=tmp_path, progress=False)
    with Store(tmp_path) as store:
        assert len(store) == 31 * 30 // 2
    products.clear()
    resumed = likewise.compare(views, "cka-debiased", store=tmp_path, progress=False)
    assert products == [(M - 1, 5)]
    with Store(tmp_path) as store:
        assert len(store) == M * (M - 1) // 2
    assert resumed.values == pytest.approx(debiased(views), abs=1e-12)
    products.clear()
    again = likewise.compare(views, "cka-debiased", store=tmp_path, progress=False)
    assert not products
    assert np.array_equal(again.values, resumed.values)


def test_workers_score_the_same(tmp_path) -> None:
    views = odd_networks() | networks(m=20)
    names = ["cka-debiased", "rsa", "rsm-difference", "procrustes"]
    here, there = (likewise.compare(views, names, engine=engine, progress=False) for engine in (None, Inline()))
    for name, matrix in here.items():
        assert there[name].values == pytest.approx(matrix.values, rel=1e-9, abs=1e-9, nan_ok=True)
        assert there[name].reasons == matrix.reasons


def test_views_of_different_inputs_are_refused() -> None:
    probes = [None, "p", "q"] + [None] * M
    views = [likewise.Activations(v, probe=p) for v, p in zip(networks(m=len(probes)).values(), probes, strict=True)]
    with pytest.raises(InputError) as caught:
        likewise.compare({f"n{i}": view for i, view in enumerate(views)}, "cka", progress=False)
    assert str(caught.value) == (
        "cannot compare 'n1' with 'n2': they were shown different inputs (60 of 'p', 60 of 'q'). "
        "Extract both on one probe; data that is shuffled or augmented anew is another each time."
    )
