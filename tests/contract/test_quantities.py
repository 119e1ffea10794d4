"""What is declared of each quantity holds: in another order, for some of the rows, the other way round."""

import sys

import numpy as np
import pytest
import torch

from likewise.measures import Pair, Representation
from likewise.measures.numerics.kernels import Gaussian
from likewise.measures.registry import MEASURES
from likewise.measures.resampling import Permuted, Subset
from likewise.measures.workspace import Quantity, Workspace, quantity
from likewise.views import Activations

RNG = np.random.default_rng(0)
VIEWS = {
    "narrow": Activations(RNG.normal(size=(60, 6)) + 0.5),
    "wide": Activations(RNG.normal(size=(24, 40)) + 0.5),
    "single precision": Activations((RNG.normal(size=(1100, 60)) + 0.5).astype(np.float32)),
    "of extreme scale": Activations((RNG.normal(size=(60, 6)) + 0.5) * 1e200),
    "with neurons far apart": Activations(RNG.normal(size=(60, 6)) * 10.0 ** np.arange(-3, 3)),
}
OPTIONS = {
    "_lists": [(5, "cosine"), (5, "euclidean"), (5, "inner"), (5, "reference")],
    "_inner_at": [(5, False), (5, True)],
    "_estimated_trace": [(256, 0)],
    "_kernel_matrix": [(Gaussian(0.5),)],
    "_common": [(5, "cosine")],
    "_cloud": [(20, 2, 0, 1)],
}


def declared():
    """Every quantity of the measures, with each choice of its options."""
    MEASURES.names()
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("likewise.measures")]
    spaces = [vars(module) for module in modules]
    spaces += [vars(kind) for space in list(spaces) for kind in space.values() if isinstance(kind, type)]
    found = {repr(each): each for space in spaces for each in space.values() if isinstance(each, Quantity)}
    return [(each, options) for each in found.values() for options in OPTIONS.get(each.__name__, [()])]


QUANTITIES = [(each, options) for each, options in declared() if ".resampling." not in repr(each)]
OF_PAIRS = [
    (each, options)
    for each, options in QUANTITIES
    if next(iter(each.compute.__annotations__.values())) == "Pair" or "Pair." in repr(each)
]
OF_NETWORKS = [each for each in QUANTITIES if each not in OF_PAIRS]


def named(cases):
    return [pytest.param(*case, id=" ".join(map(str, (case[0].__name__, *case[1], *case[2:])))) for case in cases]


def parts(value):
    return value if isinstance(value, tuple) else (value,)


def turned(name, value):
    """What of a value does not depend on the turn that a decomposition leaves open."""
    if name in ("compact", "centred", "_span", "_raw_span", "_unit_rows"):
        return (value @ value.mT if value.numel() else value,)
    if name in ("compact_mean", "_joint_triangle"):
        return (torch.linalg.vector_norm(value),)
    if name == "covariance":
        return (torch.linalg.eigvalsh(value),)
    if "whitening" in name and value.numel():
        return (torch.linalg.eigvalsh(value @ value.T),)
    if name == "spectrum":
        scales, vectors, basis = value
        return scales, (basis @ basis.T if basis.numel() else vectors * scales @ vectors.T)
    if name == "canonical":
        left, rho, right = value
        return rho, left * rho @ right.T
    return parts(value)


def assert_same(name, one, other):
    for a, b in zip(turned(name, one), turned(name, other), strict=True):
        assert isinstance(a, str) or np.shape(a) == np.shape(b)
        if isinstance(a, str | bool) or getattr(a, "dtype", None) in (torch.int64, torch.int32):
            assert a == b if isinstance(a, str | bool) else torch.equal(a, b)
            continue
        a, b = (torch.as_tensor(part, dtype=torch.float64) for part in (a, b))
        size = float(b.abs().max()) if b.numel() else 0.0
        # the order decides which noise each node of a graph meets
        loose = {"float32_centred": 1e-5, "float32_energy": 1e-5, "_estimated_trace": 5e-3}.get(name, 1e-9)
        assert float((a - b).abs().max() if b.numel() else 0.0) <= loose * size


def never(*arguments):
    raise AssertionError("computed anew")


def check_permuted(each, options, view, monkeypatch):
    """The quantity of permuted rows follows from that of the rows, and is what a computation gives."""
    order = np.random.default_rng(1).permutation(view.n)
    index = torch.from_numpy(order)
    rep = Representation(view, Workspace(resampled=True))
    each(rep, *options)
    permuted = Permuted(rep, index)
    with monkeypatch.context() as patch:
        patch.setattr(each, "compute", never)
        derived = each(permuted, *options)
    fresh = each(Representation(Activations(view.values[order]), Workspace(resampled=True)), *options)
    if each.__name__ == "_lists":  # the ties are used up
        derived, fresh = derived[:1], fresh[:1]
    assert_same(each.__name__, derived, fresh)


def exists(each, kind):
    """Whether a quantity is asked for of such a network."""
    if each.__name__ == "float32_energy":
        return kind == "single precision"
    if each.__doc__ == "The symmetric inverse root of the covariance.":
        return kind != "wide"
    return True


ORDERED = [(*case, kind) for case in OF_NETWORKS for kind in VIEWS if case[0].permuted and exists(case[0], kind)]


@pytest.mark.parametrize(("each", "options", "kind"), named(ORDERED))
def test_what_is_declared_of_another_order_is_what_a_computation_gives(each, options, kind, monkeypatch) -> None:
    check_permuted(each, options, VIEWS[kind], monkeypatch)


@pytest.mark.parametrize(("each", "options"), named([case for case in OF_NETWORKS if not case[0].permuted]))
def test_what_is_not_declared_is_computed_anew_in_another_order(each, options, monkeypatch) -> None:
    view = VIEWS["wide"]
    rep = Representation(view, Workspace(resampled=True))
    each(rep, *options)
    with monkeypatch.context() as patch:
        patch.setattr(each, "compute", never)
        with pytest.raises(AssertionError, match="computed anew"):
            each(Permuted(rep, torch.arange(view.n)), *options)


@pytest.mark.parametrize("kind", ["narrow", "wide"])
@pytest.mark.parametrize(("each", "options"), named([case for case in OF_NETWORKS if exists(case[0], "wide")]))
def test_what_is_declared_of_some_rows_is_what_a_computation_gives(each, options, kind, monkeypatch) -> None:
    view = VIEWS[kind]
    rows = np.sort(np.random.default_rng(1).permutation(view.n)[:20])
    rep = Representation(view, Workspace(resampled=True))
    each(rep, *options)
    some = Subset(rep, torch.from_numpy(rows))
    with monkeypatch.context() as patch:
        patch.setattr(each, "compute", never)
        if not each.subset:
            with pytest.raises(AssertionError, match="computed anew"):
                each(some, *options)
            return
        derived = each(some, *options)
    assert_same(each.__name__, derived, each(Representation(Activations(view.values[rows])), *options))


@pytest.mark.parametrize(("each", "options"), named(OF_PAIRS))
def test_what_is_declared_of_the_swapped_pair_is_what_a_computation_gives(each, options, monkeypatch) -> None:
    views = VIEWS["narrow"], Activations(RNG.normal(size=(60, 4)))
    a, b = (Representation(view) for view in views)
    pair = Pair(a, b)
    each(pair, *options)
    with monkeypatch.context() as patch:
        patch.setattr(each, "compute", never)
        if not each.swapped:
            with pytest.raises(AssertionError, match="computed anew"):
                each(pair.swapped, *options)
            return
        derived = each(pair.swapped, *options)
    assert_same(each.__name__, derived, each(Pair(b, a), *options))


def test_every_behaviour_is_among_the_declared() -> None:
    assert {each.permuted for each, _ in OF_NETWORKS} >= {"same", "rows", "both", None}
    assert {each.swapped for each, _ in OF_PAIRS} == {"transposed", "reversed", None}
    assert len(OF_NETWORKS) > 40
    assert len(OF_PAIRS) > 8


@pytest.mark.parametrize("behaviour", ["same", "rows"])
def test_a_quantity_that_lies_is_caught(behaviour, monkeypatch) -> None:
    @quantity(permuted=behaviour)
    def steps(rep):
        """Distances from each row to the next."""
        return (rep.values[1:] - rep.values[:-1]).norm(dim=1)

    with pytest.raises((AssertionError, IndexError)):
        check_permuted(steps, (), VIEWS["narrow"], monkeypatch)


def test_options_left_out_are_those_of_the_default() -> None:
    calls = []

    @quantity
    def power(rep, exponent, scale=2.0):
        calls.append((exponent, scale))
        return scale * float(rep.values.abs().max()) ** exponent

    rep = Representation(VIEWS["narrow"])
    assert power(rep, 1) == power(rep, 1, 2.0) == 2 * float(rep.values.abs().max())
    assert power(rep, 2) != power(rep, 1)
    assert calls == [(1, 2.0), (2, 2.0)]


def test_distances_are_computed_once_for_all_orders(monkeypatch) -> None:
    rep = Representation(VIEWS["narrow"], Workspace(resampled=True))
    index = torch.randperm(60, generator=torch.Generator().manual_seed(0))
    first = Permuted(rep, index).distances
    with monkeypatch.context() as patch:
        patch.setattr(Representation.distances, "compute", never)
        again = Permuted(rep, index.flip(0)).distances
    assert torch.equal(first.flip(0).flip(1), again)
