"""Published definitions against independent oracles: plain loops, or another library."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

import likewise
from likewise import measures

RNG = np.random.default_rng(7)
HIDDEN = RNG.normal(size=(70, 6))


def network(d, noise=0.7):
    return np.maximum(HIDDEN @ RNG.normal(size=(6, d)) + noise * RNG.normal(size=(70, d)), 0) + 0.1


X, Y = network(9), network(12)


def centred(v):
    return v - v.mean(axis=0)


def unit(v):
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def orthonormal(v):
    return scipy.linalg.orth(v)


def canonical(x, y):
    """Canonical correlations by the generalised eigenvalue problem, not by bases."""
    x, y = centred(x), centred(y)
    a, b, c = x.T @ x, y.T @ y, x.T @ y
    eigenvalues = scipy.linalg.eigh(c @ np.linalg.solve(b, c.T), a, eigvals_only=True)
    return np.sqrt(np.sort(np.clip(eigenvalues, 0, 1))[::-1])


def test_svcca_keeps_the_components_that_explain_99_percent():
    kept = []
    for v in (X, Y):
        u, s, _ = np.linalg.svd(centred(v), full_matrices=False)
        share = np.cumsum(s**2) / np.sum(s**2)
        kept.append((u * s)[:, : int(np.argmax(share >= 0.99)) + 1])
    narrow, wide = sorted(kept, key=lambda v: v.shape[1])
    assert measures.svcca(X, Y) == pytest.approx(canonical(narrow, wide).mean(), abs=1e-9)


def test_mean_cca_is_the_mean_of_canonical_correlations():
    assert measures.mean_cca(X, Y) == pytest.approx(canonical(X, Y).mean(), abs=1e-9)


def pwcca_by_hand(x, y):
    """Morcos et al.: weights from the canonical variates h_i of the smaller side and its neurons."""
    x, y = centred(x), centred(y)
    a, b, c = x.T @ x, y.T @ y, x.T @ y
    squares, directions = scipy.linalg.eigh(c @ np.linalg.solve(b, c.T), a)
    weights = []
    for direction in directions.T:
        h = x @ direction
        weights.append(sum(abs(h @ neuron) for neuron in x.T) / np.linalg.norm(h))
    return np.average(np.sqrt(np.clip(squares, 0, 1)), weights=weights)


@pytest.mark.parametrize(("n", "d"), [(300, 40), (60, 90)])
@pytest.mark.parametrize("name", ["mean-cca", "svcca", "pwcca", "eos", "gulp", "linear-regression", "shape", "riemann"])
def test_rounding_of_single_precision_adds_no_directions(name, n, d):
    """Neurons that depend on one another, as networks give them: what remains is noise, not rank."""
    rng = np.random.default_rng(n)
    hidden, weights = rng.normal(size=(n, 8)), rng.normal(size=(8, d))
    other = rng.normal(size=(n, 6)) + hidden[:, :6]
    given = hidden.astype("f") @ weights.astype("f") + np.float32(3)
    exact = measures.get(name)(hidden @ weights + 3, other)
    assert measures.get(name)(given, other) == pytest.approx(exact, rel=1e-4)


def test_single_precision_keeps_small_directions_that_are_real():
    rng = np.random.default_rng(0)
    scales = np.logspace(0, -5, 6)
    x = (rng.normal(size=(200, 6)) * scales).astype("f")
    y = (x + 1e-9 * rng.normal(size=x.shape)).astype("f")
    assert measures.mean_cca(x, y) == pytest.approx(1, abs=1e-6)
    assert measures.eos(x, rng.normal(size=(200, 6))) < 0.2  # of 6 directions, not of 1


def test_pwcca_weights_by_canonical_variates_of_the_smaller_side():
    assert measures.pwcca(X, Y) == pytest.approx(pwcca_by_hand(X, Y), abs=1e-9)
    assert measures.pwcca(Y, X) == pytest.approx(pwcca_by_hand(X, Y), abs=1e-9)


def test_pwcca_takes_the_first_side_when_widths_are_equal():
    other = network(9)
    assert measures.pwcca(X, other) == pytest.approx(pwcca_by_hand(X, other), abs=1e-9)
    assert measures.pwcca(other, X) == pytest.approx(pwcca_by_hand(other, X), abs=1e-9)


def test_rsm_difference_is_the_frobenius_norm():
    gap = cdist(X, X) - cdist(Y, Y)
    assert measures.rsm_difference(X, Y) == pytest.approx(math.sqrt((gap**2).sum()), rel=1e-9)
    reference = measures.get("rsm-difference", variant="resi")(X, Y)
    assert reference == pytest.approx(np.linalg.norm(gap, 2), rel=1e-9)


def test_the_spectral_norm_is_found_by_iteration_too():
    x, y = np.random.default_rng(0).normal(size=(2, 300, 5))
    gap = cdist(x, x) - cdist(y, y)
    assert measures.get("RSMDiff", variant="resi")(x, y) == pytest.approx(np.linalg.norm(gap, 2), rel=1e-8)


def gulp_by_hand(x, y, ridge):
    """tr of products of regularised projections, with explicit inverses."""
    n = len(x)
    x, y = (centred(v) / np.linalg.norm(centred(v)) * math.sqrt(n) for v in (x, y))
    sx, sy, sxy = x.T @ x / n, y.T @ y / n, x.T @ y / n
    px, py = (np.linalg.inv(s + ridge * np.eye(len(s))) for s in (sx, sy))
    square = np.trace(px @ sx @ px @ sx) + np.trace(py @ sy @ py @ sy) - 2 * np.trace(px @ sxy @ py @ sxy.T)
    return math.sqrt(square)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.1])
def test_gulp_is_the_distance_with_the_root(ridge):
    expected = gulp_by_hand(X, Y, ridge)
    assert measures.get("gulp", ridge=ridge)(X, Y) == pytest.approx(expected, rel=1e-8)


def test_gulp_of_rank_two_against_full_rank_stays_possible():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 10))
    full = rng.normal(size=(60, 10))
    u, v = orthonormal(centred(flat)), orthonormal(centred(full))
    expected = math.sqrt(2 + 10 - 2 * np.linalg.norm(u.T @ v) ** 2)
    assert measures.gulp(flat, full) == pytest.approx(expected, rel=1e-9)


def test_eos_is_divided_by_the_larger_rank():
    flat = Y @ RNG.normal(size=(12, 4)) @ RNG.normal(size=(4, 12))
    u, v = orthonormal(X), orthonormal(flat)
    expected = np.linalg.norm(u.T @ v) ** 2 / 9
    assert measures.eos(X, flat) == pytest.approx(expected, rel=1e-9)
    assert measures.eos(flat, flat) == pytest.approx(1, abs=1e-9)


def test_uniformity_is_on_the_sphere_without_the_diagonal():
    numbers = [math.log(np.mean(np.exp(-2 * pdist(unit(v)) ** 2))) for v in (X, Y)]
    assert measures.uniformity_difference(X, Y) == pytest.approx(abs(numbers[0] - numbers[1]), abs=1e-12)


def test_linear_regression_projects_with_a_rank_tolerance():
    flat = np.hstack([Y, Y[:, :3] + Y[:, 3:6]])  # three dependent neurons
    fitted = centred(flat) @ np.linalg.lstsq(centred(flat), centred(X), rcond=1e-10)[0]
    expected = np.linalg.norm(fitted) ** 2 / np.linalg.norm(centred(X)) ** 2
    assert measures.linear_regression(X, flat) == pytest.approx(expected, abs=1e-9)


def neighbours(v, k):
    """Nearest by cosine, the point itself left out, ties by input order."""
    near = np.round(unit(v) @ unit(v).T, 12)
    np.fill_diagonal(near, -np.inf)
    return [np.argsort(-row, kind="stable")[:k] for row in near]


def second_order_by_hand(x, y, k):
    cosines = [unit(v) @ unit(v).T for v in (x, y)]
    scores = []
    for i, (left, right) in enumerate(zip(neighbours(x, k), neighbours(y, k), strict=True)):
        union = sorted({*left, *right})
        p, q = cosines[0][i, union], cosines[1][i, union]
        scores.append(p @ q / np.linalg.norm(p) / np.linalg.norm(q))
    return np.mean(scores)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_second_order_cosine_takes_similarities_not_distances(k):
    expected = second_order_by_hand(X, Y, k)
    assert measures.get("2nd-Cos", k=k)(X, Y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 4, 10])
def test_neighbour_measures_never_count_the_point_itself(k):
    x, y = np.repeat(X[:30], 2, axis=0), np.repeat(Y[:30], 2, axis=0)  # every point twice
    x, y = x[::-1].copy(), y[::-1].copy()
    jaccard, mutual = [], []
    for left, right in zip(neighbours(x, k), neighbours(y, k), strict=True):
        shared = len({*left} & {*right})
        jaccard.append(shared / len({*left} | {*right}))
        mutual.append(shared / k)
    assert measures.get("jaccard", k=k)(x, y) == pytest.approx(np.mean(jaccard), abs=1e-12)
    assert measures.get("mutual-knn", k=k)(x, y) == pytest.approx(np.mean(mutual), abs=1e-12)


def test_rank_similarity_by_a_plain_loop():
    scores = []
    for left, right in zip(neighbours(X, 10), neighbours(Y, 10), strict=True):
        common = {*left} & {*right}
        places = [(list(left).index(j) + 1, list(right).index(j) + 1) for j in common]
        total = sum(2 / ((1 + abs(r - s)) * (r + s)) for r, s in places)
        scores.append(total / sum(1 / i for i in range(1, len(common) + 1)) if common else 0)
    assert measures.rank_similarity(X, Y) == pytest.approx(np.mean(scores), abs=1e-12)


def imd_by_hand(x, y):
    traces = []
    for v in (x, y):
        gaps = cdist(v, v)
        np.fill_diagonal(gaps, np.inf)
        graph = np.zeros_like(gaps)
        for i, row in enumerate(gaps):
            graph[i, np.argsort(row)[:5]] = 1
        graph = np.maximum(graph, graph.T)
        root = np.diag(graph.sum(axis=1) ** -0.5)
        eigenvalues = np.linalg.eigvalsh(np.eye(len(v)) - root @ graph @ root)
        traces.append([np.exp(-t * eigenvalues).sum() for t in np.logspace(-1, 1, 256)])
    times = np.logspace(-1, 1, 256)
    weights = np.exp(-2 * (times + 1 / times))
    return 1e6 / len(x) * max(weights * abs(np.subtract(*traces)))


def test_imd_is_the_same_twice_and_equals_the_full_decomposition():
    assert measures.imd(X, Y) == pytest.approx(imd_by_hand(X, Y), rel=1e-9)
    stochastic = measures.get("imd", mode="stochastic", seed=3)
    assert stochastic(X, Y) == stochastic(X, Y)
    assert stochastic(X, Y) == pytest.approx(imd_by_hand(X, Y), rel=1e-2)


def hsic1(k, l):
    """Song et al. 2012, equation 5, entry by entry."""
    n = len(k)
    k, l = k.copy(), l.copy()
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    one = np.ones(n)
    total = np.trace(k @ l) + one @ k @ one * (one @ l @ one) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * (one @ k @ l @ one)) / (n * (n - 3))


def debiased_by_hand(x, y):
    k, l = x @ x.T, y @ y.T
    return hsic1(k, l) / math.sqrt(hsic1(k, k) * hsic1(l, l))


@pytest.mark.parametrize("wide", [False, True])
def test_debiased_cka_is_the_ratio_of_unbiased_hsic(wide):
    x, y = RNG.normal(size=(2, 40, 90 if wide else 12)) + 3
    y = y + x[:, : y.shape[1]]
    assert measures.cka_debiased(x, y) == pytest.approx(debiased_by_hand(x, y), abs=1e-10)


def test_minibatch_cka_is_a_ratio_of_sums_never_a_mean_of_ratios():
    sums = np.zeros(3)
    for start in range(0, 70, 25):
        k, l = (v[start : start + 25] @ v[start : start + 25].T for v in (X, Y))
        sums += len(k) * np.array([hsic1(k, l), hsic1(k, k), hsic1(l, l)])
    expected = sums[0] / math.sqrt(sums[1] * sums[2])
    assert measures.get("cka-minibatch", batch=25)(X, Y) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("bandwidth", [0.2, 0.5, 2.0])
def test_rbf_cka_with_the_median_distance(bandwidth):
    h = np.eye(70) - 1 / 70
    kernels = []
    for v in (X, Y):
        width = bandwidth * np.median(pdist(v))
        kernels.append(h @ np.exp(-(cdist(v, v) ** 2) / (2 * width**2)) @ h)
    k, l = kernels
    expected = (k * l).sum() / np.linalg.norm(k) / np.linalg.norm(l)
    assert measures.get("cka-rbf", bandwidth=bandwidth)(X, Y) == pytest.approx(expected, rel=1e-4)


def test_deconfounded_cka_is_cka_of_what_the_inputs_do_not_explain():
    inputs = RNG.normal(size=(70, 5)) + HIDDEN[:, :5]
    grams = [(centred(v) @ centred(v).T).ravel() for v in (X, Y, inputs)]
    left, right = (g - grams[2] * (g @ grams[2]) / (grams[2] @ grams[2]) for g in grams[:2])
    expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    score = measures.get("cka-deconfounded", confounder=inputs)
    assert score(X, Y) == pytest.approx(expected, abs=1e-10)


def test_pnka_is_the_cosine_of_each_row_of_the_gram_matrices():
    k, l = (centred(v) @ centred(v).T for v in (X, Y))
    points = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(k, l, strict=True)]
    assert likewise.pointwise(X, Y) == pytest.approx(points, abs=1e-12)
    assert measures.pnka(X, Y) == pytest.approx(np.mean(points), abs=1e-12)


def test_nbs_and_procrustes_by_matrix_square_roots():
    k, l = (centred(v) @ centred(v).T for v in (X, Y))
    root = scipy.linalg.sqrtm(k).real
    fidelity = np.trace(scipy.linalg.sqrtm(root @ l @ root).real)
    size = math.sqrt(np.trace(k) * np.trace(l))
    assert measures.nbs(X, Y) == pytest.approx(fidelity / size, rel=1e-5)
    bures = math.sqrt(np.trace(k) + np.trace(l) - 2 * fidelity)
    assert measures.get("bures")(X, Y) == pytest.approx(bures, rel=1e-4)


def partly_whitened(x, alpha):
    """Williams et al. 2021: X (alpha I + (1 - alpha) (Xᵀ X)^-1/2), X centred."""
    x = x - x.mean(axis=0)
    squares, vectors = np.linalg.eigh(x.T @ x)
    return x @ (vectors * (alpha + (1 - alpha) / np.sqrt(squares))) @ vectors.T


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("scale", [1e-3, 1, 40])
def test_the_shape_metric_whitens_in_part_as_published(alpha, scale):
    x, y = (partly_whitened(v, alpha) for v in (scale * X, Y))
    cosine = np.linalg.norm(x.T @ y, "nuc") / np.linalg.norm(x) / np.linalg.norm(y)
    found = measures.get("shape", alpha=alpha)(scale * X, Y)
    assert found == pytest.approx(np.arccos(cosine), rel=1e-9)
    free = measures.get("shape", variant="scale-free", alpha=alpha)
    assert free(scale * X, Y) == pytest.approx(free(X, Y), rel=1e-9)


def test_the_shape_metric_goes_from_cca_to_procrustes():
    angle = measures.angular_shape(X, Y)
    assert measures.get("shape", alpha=1)(X, Y) == pytest.approx(angle, rel=1e-9)
    # at alpha 0 both sides are white: the cosine is the sum of correlations over sqrt(rank rank')
    expected = math.acos(canonical(X, Y).sum() / math.sqrt(9 * 12))
    assert measures.get("shape", alpha=0)(X, Y) == pytest.approx(expected, rel=1e-9)


def test_soft_matching_equals_the_assignment_for_equal_widths():
    other = network(9)
    costs = cdist(centred(X).T, centred(other).T) ** 2
    expected = math.sqrt(costs[linear_sum_assignment(costs)].sum() / 9)
    assert measures.soft_matching(X, other) == pytest.approx(expected, rel=1e-9)


def test_soft_matching_of_different_widths_equals_the_assignment_of_copies():
    x, y = X[:, :4], Y[:, :6]  # widths 4 and 6: copies of 3 and 2 give 12 equal neurons each
    left, right = np.repeat(centred(x), 3, axis=1), np.repeat(centred(y), 2, axis=1)
    costs = cdist(left.T, right.T) ** 2
    expected = math.sqrt(costs[linear_sum_assignment(costs)].sum() / 12)
    assert measures.soft_matching(x, y) == pytest.approx(expected, rel=1e-9)


def test_riemann_by_full_generalised_eigenvalues():
    shrunk = []
    for v in (X, Y):
        k = centred(v) @ centred(v).T
        shrunk.append(0.9 * k * 70 / np.trace(k) + 0.1 * np.eye(70))
    eigenvalues = scipy.linalg.eigh(*shrunk, eigvals_only=True)
    expected = math.sqrt(sum(math.log(v) ** 2 for v in eigenvalues))
    assert measures.riemann(X, Y) == pytest.approx(expected, rel=1e-8)


def test_ridge_predicts_inputs_it_was_not_fitted_on():
    rng = np.random.default_rng(0)
    source = rng.normal(size=(200, 10))
    target = source @ rng.normal(size=(10, 7))
    assert measures.ridge_predictivity(target, source) > 0.999
    noise = rng.normal(size=(200, 7))
    assert -0.1 < measures.ridge_predictivity(noise, source) < 0.02
    assert measures.linear_regression(noise, source) > 0.03  # in sample, noise looks explained


def neighbour_mask(gram, k):
    hollow = gram - np.diag(np.full(len(gram), np.inf))
    near = np.argsort(-hollow, axis=1)[:, :k]
    mask = np.zeros_like(gram)
    np.put_along_axis(mask, near, 1, axis=1)
    return mask


CKNNA_CASES = [(X, Y), (unit(X), unit(Y)), (X + 5, Y - 3)]


@pytest.mark.parametrize(("x", "y"), CKNNA_CASES)
def test_cknna_is_the_papers_equation(x, y):
    k = 8
    grams = [v @ v.T for v in (x, y)]
    masks = [neighbour_mask(g, k) for g in grams]
    rows = [g - g.mean(axis=1, keepdims=True) for g in grams]

    def alignment(a, b):
        return (masks[a] * masks[b] * rows[a] * rows[b]).sum()

    expected = alignment(0, 1) / math.sqrt(alignment(0, 0) * alignment(1, 1))
    assert measures.get("cknna", k=k)(x, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("x", "y"), CKNNA_CASES)
def test_cknna_has_the_authors_code_as_a_variant(x, y):
    k, n = 8, 70
    grams = [v @ v.T for v in (x, y)]
    masks = [neighbour_mask(g, k) for g in grams]

    def hsic(a, b):  # Song et al. 2012, equation 5, of matrices that are not symmetric
        first, second = (masks[a] * masks[b] * grams[c] for c in (a, b))
        whole = first.sum() * second.sum() / ((n - 1) * (n - 2))
        middle = 2 * (first @ second).sum() / (n - 2)
        return ((first * second.T).sum() + whole - middle) / (n * (n - 3))

    for a, b in ((0, 1), (1, 0)):
        expected = hsic(a, b) / (math.sqrt(hsic(a, a) * hsic(b, b)) + 1e-6)
        found = measures.get("cknna", variant="platonic", k=k)((x, y)[a], (x, y)[b])
        assert found == pytest.approx(expected, rel=1e-9)


def test_rsa_and_distance_correlation_by_scipy():
    # rounded, so that inputs with one active neuron each tie in fact as they do in truth
    left, right = (np.corrcoef(v)[np.triu_indices(70, 1)].round(12) for v in (X, Y))
    assert measures.rsa(X, Y) == pytest.approx(scipy.stats.spearmanr(left, right)[0], abs=1e-10)
    a, b = (cdist(v, v) for v in (X, Y))
    a, b = (g - g.mean(0) - g.mean(1)[:, None] + g.mean() for g in (a, b))
    expected = math.sqrt((a * b).mean() / math.sqrt((a * a).mean() * (b * b).mean()))
    assert measures.distance_correlation(X, Y) == pytest.approx(expected, abs=1e-10)


def test_rtd_takes_up_to_500_inputs_as_its_authors_do():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 130, 3))
    alone = measures.get("rtd", batch=130)(x, y)
    assert measures.rtd(x, y) == alone  # all of them, once
    assert measures.rtd.defaults["batch"] == 500
    few = measures.get("rtd", batch=40, trials=3)
    assert few(x, y) < alone / 2  # the sum of bars grows with the inputs


def test_rtd_sees_a_ring_that_the_other_network_fills():
    pytest.importorskip("ripser")
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    arcs = np.stack([np.cos(angle / 2), np.sin(angle / 2)], axis=1)  # half a ring: no hole
    assert measures.rtd(ring, ring) == pytest.approx(0, abs=1e-6)
    shaken = ring + 0.01 * np.random.default_rng(0).normal(size=ring.shape)
    assert measures.rtd(ring, arcs) > 5 * measures.rtd(ring, shaken)


# Functional measures, on six inputs and three classes by hand.
LABELS = np.array([0, 1, 2, 0, 1, 2])
FIRST, SECOND = (np.eye(3)[c] * 4.0 for c in ([0, 1, 2, 0, 2, 1], [0, 1, 1, 1, 2, 0]))


def test_functional_measures_by_hand():
    # right: first on 0-3 (4/6), second on 0, 1 (2/6); they differ on inputs 2, 3, 5
    assert measures.get("accuracy-difference", labels=LABELS)(FIRST, SECOND) == pytest.approx(2 / 6)
    assert measures.disagreement(FIRST, SECOND) == pytest.approx(3 / 6)
    # errors 1/3 and 2/3: from |1/3 - 2/3| = 1/3 to min(1, 1) = 1, so (1/2 - 1/3) / (2/3)
    normalised = measures.get("disagreement-normalised", labels=LABELS)
    assert normalised(FIRST, SECOND) == pytest.approx(1 / 4)
    # both right on 2, both wrong on 2: observed 4/6; expected 2/3 1/3 + 1/3 2/3 = 4/9
    kappa = measures.get("error-consistency", labels=LABELS)
    assert kappa(FIRST, SECOND) == pytest.approx((4 / 6 - 4 / 9) / (5 / 9))
    # both wrong on inputs 4 (both say 2) and 5 (1 and 0)
    assert measures.get("same-mistake", labels=LABELS)(FIRST, SECOND) == pytest.approx(1 / 2)


def test_jsd_is_scipys_in_base_two():
    from scipy.spatial.distance import jensenshannon

    logits = RNG.normal(size=(2, 50, 5)) * 3
    p, q = (np.exp(v) / np.exp(v).sum(axis=1, keepdims=True) for v in logits)
    expected = np.mean([jensenshannon(a, b, base=2) ** 2 for a, b in zip(p, q, strict=True)])
    assert measures.jsd(*logits) == pytest.approx(expected, abs=1e-12)


def test_ranks_share_their_mean_among_ties():
    from likewise.measures.ranks import average_ranks

    values = np.random.default_rng(0).integers(-9, 10, size=500) / 9
    assert average_ranks(values.copy()) == pytest.approx(scipy.stats.rankdata(values), abs=0)
    apart = np.random.default_rng(1).uniform(-1, 1, size=500)
    assert average_ranks(apart.copy()) == pytest.approx(scipy.stats.rankdata(apart), abs=0)
    assert average_ranks(np.full(7, 0.3)) == pytest.approx(np.full(7, 4.0), abs=0)
