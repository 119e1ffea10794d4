"""compare(): matrices over many networks."""

import math
import subprocess
import sys

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.measures.numerics.kernels import Distance
from likewise.measures.pair import Pair
from likewise.measures.registry import select
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace
from likewise.views import Activations, Outputs
from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))

RNG = np.random.default_rng(11)
HIDDEN = RNG.normal(size=(90, 6))
VIEWS = {
    name: np.maximum(HIDDEN @ RNG.normal(size=(6, d)) + 0.6 * RNG.normal(size=(90, d)), 0)
    for name, d in zip("abcd", (10, 10, 14, 120), strict=True)
}
MEASURES = select(["all", "resi"])


@pytest.mark.parametrize("memory", [None, "10MB"])
def test_a_matrix_of_all_measures_equals_pair_by_pair(memory) -> None:
    """With little memory nothing n x n is kept and tensors move to disk; the numbers stay."""
    result = likewise.compare(VIEWS, MEASURES, memory=memory, progress=False)
    assert set(result) == {m.key for m in MEASURES}
    for measure in MEASURES:
        matrix = result[measure.key]
        for p in VIEWS:
            for q in VIEWS:
                try:
                    expected = measure(VIEWS[p], VIEWS[q])
                except likewise.errors.UndefinedError:
                    assert np.isnan(matrix[p, q])
                    assert matrix.reasons[p, q]
                    continue
                tolerance = 1e-6 if memory else 1e-7
                assert matrix[p, q] == pytest.approx(expected, rel=tolerance, abs=1e-6), (
                    p,
                    q,
                    measure.key,
                )


@pytest.mark.parametrize("n", [2, 3, 7, 90])
@pytest.mark.parametrize("once", [True, False])
def test_half_a_symmetric_matrix_stands_for_all_of_it(n, once) -> None:
    rows = [VIEWS[name][:n] for name in "ac"]
    workspace = Workspace(once=once)
    a, b = (Representation(Activations(r), workspace) for r in rows)
    table = Pair(a, b).table(Distance())
    x, y = (np.linalg.norm(r[:, None] - r, axis=2) for r in rows)
    assert table.dot(a, b) == pytest.approx((x * y).sum())
    assert table.dot(b, b) == pytest.approx((y * y).sum())
    assert table.sums[a.key].tolist() == pytest.approx(x.sum(axis=1))
    assert table.diagonals[a.key].tolist() == [0] * n
    assert workspace.find((a.key, Representation.gram.key)) is not None  # so small that it is no burden


def test_asymmetric_measures_fill_both_triangles() -> None:
    matrix = likewise.compare(VIEWS, "linear-regression")
    assert matrix["a", "c"] != matrix["c", "a"]
    assert matrix["c", "a"] == pytest.approx(measures.linear_regression(VIEWS["c"], VIEWS["a"]))


def test_one_measure_gives_a_matrix_several_give_a_mapping() -> None:
    one = likewise.compare(VIEWS, "OrthProc")
    assert isinstance(one, likewise.SimilarityMatrix)
    assert (one.measure, one.names) == ("procrustes", ("a", "b", "c", "d"))
    assert list(one.to_frame().columns) == list("abcd")
    several = likewise.compare(VIEWS, measure=["cka", measures.get("jaccard", k=3)])
    assert list(several) == ["cka", "jaccard[k=3]"]
    frame = several.to_frame()
    columns = ["a", "b", "measure", "value", "larger_is", "reason", "saturated"]
    assert list(frame.columns) == columns
    assert len(frame) == 2 * 16
    assert several["Jaccard"].measure == "jaccard[k=3]"


def test_the_sets_are_what_they_say() -> None:
    resi = likewise.compare({k: VIEWS[k] for k in "ab"}, "resi")
    assert len(resi) == 23
    assert all(key.endswith("[resi]") for key in resi)
    assert set(likewise.compare(VIEWS, "statistics")) == set(measures.names("statistics"))


def test_a_plain_function_is_a_measure() -> None:
    def gap(x, y):
        return float(x.mean() - y.mean())

    matrix = likewise.compare(VIEWS, gap)
    assert matrix["a", "b"] == pytest.approx(VIEWS["a"].mean() - VIEWS["b"].mean())
    assert matrix["b", "a"] == pytest.approx(-matrix["a", "b"])


def test_one_undefined_pair_never_stops_the_others() -> None:
    views = {**VIEWS, "dead": np.ones((90, 5))}
    result = likewise.compare(views, ["cka", "jaccard", "procrustes-size"])
    frame = result.to_frame()
    bad = frame[frame.reason != ""]
    assert set(bad.measure) == {"cka", "jaccard"}
    assert set(bad.a) | set(bad.b) == {*"abcd", "dead"}
    assert bad.reason.iloc[0] == (
        "'dead' is constant: all 90 rows are the same, so there is nothing to compare. Look at another layer."
    )
    assert frame[frame.reason == ""].value.notna().all()
    assert np.isnan(result["cka"]["dead", "dead"])  # not even with itself
    assert result["procrustes-size"]["dead", "dead"] == 0


def test_a_decomposition_that_fails_leaves_one_score_undefined() -> None:
    def fragile(x, y):
        return float(np.linalg.cholesky(x[:3, :3] - 10 * np.eye(3))[0, 0])

    views = {name: np.random.default_rng(i).normal(size=(20, 3)) for i, name in enumerate("ab")}
    result = likewise.compare(views, ["cka", fragile])
    assert math.isfinite(result["cka"]["a", "b"])
    assert math.isnan(result["fragile"]["a", "b"])
    assert "a decomposition failed (Matrix is not positive definite)" in (result["fragile"].reasons["a", "b"])


def test_functional_measures_join_where_views_have_outputs() -> None:
    labels = RNG.integers(0, 3, size=90)
    views = {name: Activations(v, outputs=Outputs(v[:, :3] + np.eye(3)[labels], labels)) for name, v in VIEWS.items()}
    result = likewise.compare(views, "all")
    assert {"cka", "disagreement", "same-mistake"} <= set(result)
    expected = measures.disagreement(views["a"].outputs.logits, views["b"].outputs.logits)
    assert result["disagreement"]["a", "b"] == expected


def test_a_third_network_reuses_what_the_first_two_computed(monkeypatch) -> None:
    """Per-network work happens once per network, however many pairs and measures."""
    import torch

    counts = {"eigh": 0, "qr": 0}
    for name in counts:
        original = getattr(torch.linalg, name)

        def counted(*given, name=name, original=original, **options):
            counts[name] += 1
            return original(*given, **options)

        monkeypatch.setattr(torch.linalg, name, counted)
    views = {str(i): np.random.default_rng(i).normal(size=(60, 90)) for i in range(6)}
    likewise.compare(views, ["procrustes", "angular-shape", "mean-cca", "linear-regression"])
    assert counts["qr"] == 6  # one a network, not one a pair or measure
    assert counts["eigh"] <= 15


@pytest.mark.parametrize("engine", ["processes:2"])
def test_other_processes_give_the_same_numbers(engine) -> None:
    here = likewise.compare(VIEWS, ["cka", "rsa", "linear-regression", "jaccard"])
    there = likewise.compare(VIEWS, ["cka", "rsa", "linear-regression", "jaccard"], engine=engine)
    for name, matrix in here.items():
        assert there[name].values == pytest.approx(matrix.values, rel=1e-9)


def test_any_executor_is_an_engine() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        there = likewise.compare(VIEWS, "cka", engine=pool)
    assert there.values == pytest.approx(likewise.compare(VIEWS, "cka").values, rel=1e-9)


def test_seeds_reach_measures_that_draw() -> None:
    views = {k: VIEWS[k] for k in "ab"}
    rtd = measures.get("rtd", batch=20, trials=2)
    first, again, other = (likewise.compare(views, rtd, seed=s)["a", "b"] for s in (0, 0, 1))
    assert first == again != other


def test_importing_likewise_stays_light() -> None:
    code = (
        "import sys, likewise; heavy = {'torch', 'sklearn', 'pandas', 'matplotlib', 'scipy', 'numpy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_comparing_arrays_leaves_out_the_statistics_of_scipy() -> None:
    """It takes a second to import, in every worker too, and only some later questions need it."""
    code = (
        "import sys, numpy as np, likewise; x = np.random.default_rng(0).normal(size=(3, 20, 4));"
        "likewise.compare(list(x), ['cka', 'rsa', 'pwcca'], progress=False); print('scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_public_name_is_there() -> None:
    for name in likewise.__all__:
        assert getattr(likewise, name) is not None
    assert set(likewise.__all__) <= set(dir(likewise))


def test_networks_are_compared_by_address(tmp_path) -> None:
    networks = ["zoo:lenet,seed=0", "zoo:lenet,seed=1", "zoo:mlp,seed=0"]
    result = likewise.compare(networks, ["cka", "disagreement"], data="digits:test[:80]", store=tmp_path / "s")
    assert result["cka"].names == ("lenet,seed=0", "lenet,seed=1", "mlp,seed=0")
    data = likewise.dataset("digits:test[:80]")
    views = [likewise.extract(likewise.network(a, data=data), data, progress=False) for a in networks]
    assert result["cka"].values[0, 2] == pytest.approx(measures.cka(views[0], views[2]), abs=1e-9)
    expected = measures.disagreement(views[0], views[1])
    assert result["disagreement"].values[0, 1] == pytest.approx(expected)
    again = likewise.compare(networks, "cka", data="digits:test[:80]", store=tmp_path / "s")
    assert np.array_equal(again.values, result["cka"].values)


def test_two_modules_give_a_score() -> None:
    a, b = (likewise.network("zoo:mlp,size=8,channels=1", seed=seed) for seed in (0, 1))
    score = likewise.compare(a, b, measure="cka", data="digits:test[:60]")
    assert isinstance(score, likewise.Score)
    assert 0 < score < 1


def test_a_network_without_data_asks_for_it() -> None:
    with pytest.raises(ValueError, match="zoo:lenet is a network") as caught:
        likewise.compare(["zoo:lenet", "zoo:mlp"], "cka")
    assert str(caught.value) == (
        "zoo:lenet is a network, and compare needs to know what to show it. Pass data=, like "
        "data='cifar10:test[:1000]'."
    )


def test_memory_engines_and_counts() -> None:
    assert sentence(ValueError, likewise.compare, {"a": X}, "cka", memory="lots") == (
        "memory='lots' is not a size. Write it like '4GB' or '500MB'."
    )
    assert sentence(ValueError, likewise.compare, {"a": X}, "cka", engine="spark") == (
        "no engine named 'spark'. There are dask, processes, ray and slurm."
    )
    assert sentence(ValueError, likewise.calibrate, X, X, "cka", permutations=0) == (
        "permutations must be a whole number of at least 1, got 0."
    )
    assert sentence(ValueError, likewise.compare, X) == (
        "compare needs two arrays or networks, or a list or mapping of them; it was given an array "
        "of shape (30, 5) alone."
    )


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("key", ["mutual-knn", "jaccard", "rank-similarity", "second-order-cosine", "cknna"])
def test_neighbours_are_found_without_keeping_a_matrix_of_all_pairs_of_inputs(key, many, monkeypatch) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 300, 8))
    expected = [
        likewise.compare({"a": x, "b": y}, [key, "rsa"], progress=False)[key].values[0, 1],
        float(likewise.compare(x, y, key, memory="10MB")),
    ]
    for matrix in (Representation.gram, Representation._cosines):
        monkeypatch.setattr(matrix, "compute", lambda rep: pytest.fail("a matrix that is read once is kept"))
    if many:
        score = likewise.compare({"a": x, "b": y, "c": x}, key, progress=False).values[0, 1]
    else:
        score = float(likewise.compare(x, y, key))
    assert expected == pytest.approx([score, score], rel=1e-12)
