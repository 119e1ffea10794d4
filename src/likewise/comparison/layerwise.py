"""`layerwise`: every layer of one network against every layer of another.

Debiased CKA is computed while both networks run, batch by batch, and keeps no activations at all.
Every other measure takes the layers as views, from memory or mapped from a store.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise import __version__
from likewise._base.progress import Progress
from likewise.comparison.arguments import check_choices, choices_of, seeded
from likewise.comparison.pairs import score_items
from likewise.data import Data, as_data
from likewise.data.objects import read_once
from likewise.errors import InputError
from likewise.matrices.layers import LayerMatrix
from likewise.measures.function import Measure
from likewise.measures.minibatch import SMALLEST_BATCH, MinibatchCKA
from likewise.measures.registry import select
from likewise.measures.representation import Representation
from likewise.measures.saturation import saturated
from likewise.networks import recipe, unwrapped
from likewise.networks.forward import transform_for
from likewise.networks.names import named_networks, network_and_name, untrained_networks
from likewise.views import Activations
from likewise.views.batches import Batch, batches, check_batch_size, known_length
from likewise.views.extract import data_name, extract
from likewise.views.watcher import Watcher

STREAMED = "cka-debiased"
BATCH = 512  # inputs that debiased CKA is taken of at a time, where nobody says how many
Reasons = dict[tuple[str, str], str]


def layerwise(
    a: str | nn.Module | Mapping[str, str | nn.Module],
    b: str | nn.Module | None = None,
    data: Any = None,
    *,
    measure: Any = STREAMED,
    layers: str | Sequence[str] | Mapping[str, str | Sequence[str]] = "blocks",
    head: str | Mapping[str, str] | None = None,
    reduce: str | None = None,
    transform: Any = None,
    batch_size: int | None = None,
    device: Any = None,
    dtype: str | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> LayerMatrix:
    """How alike every layer of network `a` is to every layer of `b` (or of itself), on data.

    Two networks under names of yours are given as a mapping, as in `layerwise({"before": a, "after": b}, data=data)`:
    tables and pictures then carry these names. Two modules of one class are told apart by a number.

    `cka-debiased`, the default, is computed batch by batch in one pass over both networks: the
    memory needed is that of one batch (of 512 inputs, or `batch_size`), and the value nears the whole-data one with
    the number of inputs, sooner with larger batches. Data and arrays are shown in an order drawn from `seed`,
    since batches of one class alone would mislead; other iterables as they come. Any other measure
    takes all activations at once, from a `store` where one is given. Where no `reduce` is named,
    maps are kept whole ("flatten") and words averaged ("mean"), since texts differ in length.
    `head` names the classifier, for `penultimate`, where it cannot be found; it, `layers` and `transform` may be by
    network, as in `layers={"gpt2": "h.*", "llama": "layers.*"}`. `dtype` is the precision networks run in, and
    `transform` how images are shown, as in `extract`. Whatever the batch, a network is shown as many inputs at once as
    fit in memory.
    Undefined pairs are NaN, their reasons in `reasons`.

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> layerwise(net, data=torch.randn(50, 4), layers="all")
    LayerMatrix('Sequential', 'Sequential', 3 x 3, measure='cka-debiased')
    """
    if data is None:
        raise InputError(_without_data(b))
    check_batch_size(batch_size)
    bound = _one_measure(measure, seed)
    inputs = as_data(data)
    sides = _sides(_named_sides(a, b), inputs, layers, head, transform)
    how = reduce or ("mean" if is_text(inputs) else "flatten")
    if bound.key == STREAMED:
        batch_size = batch_size or BATCH
        shown = [transform_for(side.net, inputs, repr(side.name), side.transform) for side in sides]
        run: dict[str, Any] = {"device": device, "dtype": dtype, "automatic": True}
        watchers = [Watcher(s.inside, s.layers, how, label=repr(s.name), head=s.head, **run) for s in sides]
        values, names, reasons = _stream(watchers, shown, batch_size, seed, progress)
        recipes = [getattr(getattr(each, "inputs", None), "recipe", "") for each in shown]
        saturation: Reasons = {}  # debiased CKA says something at any width
    else:
        inputs = read_once(inputs) if isinstance(inputs, Iterator) else inputs
        run = {"batch_size": batch_size, "device": device, "dtype": dtype, "progress": progress}
        views = [
            extract(s.net, inputs, s.layers, how, store, name=s.name, head=s.head, transform=s.transform, **run)
            for s in sides
        ]
        values, names, reasons = _pairwise(views, bound)
        recipes = [next(iter(part.values())).about.get("transform", "") for part in views]
        saturation = _saturation(views, bound, values)
    facts = {"reduction": how, "batch_size": batch_size, "seed": seed, "precision": dtype}
    facts |= {"transform": "; ".join(dict.fromkeys(filter(None, recipes)))}
    facts |= {"untrained": ", ".join(untrained_networks(_untrained_names(a, b), own_names=not isinstance(a, Mapping)))}
    facts |= {"commit": "; ".join(made.commit for made in (recipe(s.net) for s in sides) if made and made.commit)}
    return LayerMatrix(
        sides[0].name,
        sides[-1].name,
        names[0],
        names[-1],
        values,
        bound.key,
        _about(inputs, **facts),
        reasons,
        saturation,
        bound.info.larger_is,
        bound.info.bounds,
    )


@dataclass(frozen=True)
class _Side:
    """One of the two networks, and what was chosen for it."""

    net: nn.Module
    name: str
    layers: list[str]
    head: str | None
    transform: Any

    @property
    def inside(self) -> nn.Module:
        """The network past its own normalisation, where a transform of the person's does that."""
        return self.net if self.transform is None else unwrapped(self.net)


def _named_sides(a: Any, b: Any) -> list[tuple[str | None, Any]]:
    """One or two networks, each with the name it was given; None where it goes by its own."""
    if isinstance(a, Mapping):
        if b is not None or not 1 <= len(a) <= 2:
            raise InputError(
                f"layerwise takes two networks, and was given a mapping of {len(a)}{' and another' * (b is not None)}. "
                "Put both into one mapping."
            )
        return [(str(name), net) for name, net in a.items()]
    networks = [a] if b is None or b is a else [a, b]
    if all(isinstance(net, nn.Module) for net in networks):
        names = [network_and_name(net)[1] for net in networks]
        if len(names) > len(set(names)):
            return list(named_networks(networks).items())
    return [(None, net) for net in networks]


def _untrained_names(a: Any, b: Any) -> Mapping[str, Any]:
    return a if isinstance(a, Mapping) else {"a": a, "b": b}


def _sides(named: list[tuple[str | None, Any]], inputs: Any, layers: Any, head: Any, transform: Any) -> list[_Side]:
    """The networks, built to the measure of the data, each with its layers, classifier and transform."""
    networks = [net for _, net in named]
    called = {name: net for name, net in named if name} or named_networks(networks)
    nets = [network_and_name(net, name, data=inputs) for name, net in named]
    check_choices(called, head=head, layers=layers, transform=transform)
    addresses = [name for _, name in nets]
    own = (choices_of(choice, list(called), addresses) for choice in (layers, head, transform))
    return [_Side(net, name, _as_list(asked), *rest) for (net, name), asked, *rest in zip(nets, *own, strict=True)]


def _as_list(layers: str | Sequence[str] | None) -> list[str]:
    return ["blocks"] if layers is None else [layers] if isinstance(layers, str) else list(layers)


def _without_data(b: Any) -> str:
    remedy = "Pass data, as in data='cifar10:test[:2000]'."
    if b is None:
        return f"no data to show the networks. {remedy}"
    inside = unwrapped(b) if isinstance(b, nn.Module) else b
    given = repr(b) if isinstance(b, str) else f"a {type(inside).__name__}"
    return f"no data to show the networks: the second argument, {given}, is another network. {remedy}"


def _one_measure(measure: Any, seed: int) -> Measure:
    """The measure that is meant, before any network has to run."""
    found = select(measure, on=("representation", "outputs"))
    if len(found) > 1:
        raise InputError(f"layerwise takes one measure and was given {len(found)}. Call it once per measure.")
    if found[0].info.on == "outputs":
        raise InputError(
            f"{found[0].name} looks at what a network answers, which is the same for all its "
            "layers. Choose a measure of representations, or use likewise.compare."
        )
    return seeded(found[0], seed)


def is_text(data: Any) -> bool:
    """Whether data holds texts."""
    if isinstance(data, Data):
        return data.domain == "text"
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first[0] if isinstance(first, tuple) and first else first, str)


def _stream(
    watchers: list[Watcher], shown: list[Any], batch_size: int, seed: int, progress: bool
) -> tuple[np.ndarray, list[list[str]], Reasons]:
    sums = MinibatchCKA()
    total = -(-(known_length(shown[0]) or 0) // batch_size)
    with ExitStack() as stack:
        bar = stack.enter_context(Progress(total, "layer by layer", shown=progress))
        for watcher in watchers:
            stack.enter_context(watcher)
        for number, own in enumerate(paired_batches(watchers, shown, batch_size, seed), start=1):
            seen = [watcher.see(batch, number).rows for watcher, batch in zip(watchers, own, strict=True)]
            check_rows(seen, [watcher.label for watcher in watchers], number)
            for part in _parts([list(rows.values()) for rows in seen], own[0], batch_size, seed):
                sums.add(part[0], part[1] if len(part) > 1 else None)
            bar.advance()
    values, names = sums.values().numpy(), [watcher.layers for watcher in watchers]
    sides = zip([watchers[0], watchers[-1]], [names[0], names[-1]], sums.faults(), strict=True)
    faults = [
        [f"{name!r} of {watcher.label} {fault}" if fault else "" for name, fault in zip(layers, own, strict=True)]
        for watcher, layers, own in sides
    ]
    reasons = {
        (row, column): faults[0][i] or faults[1][j]
        for i, row in enumerate(names[0])
        for j, column in enumerate(names[-1])
        if faults[0][i] or faults[1][j]
    }
    return values, names, reasons


def paired_batches(watchers: list[Watcher], shown: list[Any], batch_size: int, seed: int) -> Iterator[list[Batch]]:
    """One batch per network, of the same inputs: one for all where all are shown the same."""
    places = [watcher.place for watcher in watchers]
    if all(data is shown[0] for data in shown):
        for batch in _merge_small(batches(shown[0], batch_size, shuffle=seed, device=places[0])):
            yield [batch] * len(watchers)
        return
    pairs = zip(shown, places, strict=True)
    own = [_merge_small(batches(data, batch_size, shuffle=seed, device=place)) for data, place in pairs]
    yield from map(list, zip(*own, strict=True))


def check_rows(seen: list[dict[str, Tensor]], labels: list[str], number: int) -> None:
    """Refuse what is not finite, and layers whose rows are not the same things."""
    every = [(f"{n!r} of {label}", r) for rows, label in zip(seen, labels, strict=True) for n, r in rows.items()]
    for label, rows in every:
        if not rows.sum().isfinite() and not rows.isfinite().all():
            bad = int((~rows.isfinite()).any(dim=1).sum())
            raise InputError(
                f"{label} has NaN or infinite entries in {bad} of {len(rows)} rows of batch "
                f"{number}. Drop or repair the inputs they come from."
            )
    _check_counts([(label, len(rows)) for label, rows in every])


def _check_counts(counts: list[tuple[str, int]]) -> None:
    first, n = counts[0]
    other = next((found for found in counts if found[1] != n), None)
    if other is not None:
        raise InputError(
            f"{first} gives {n} rows and {other[0]} gives {other[1]}, so their rows are not the "
            "same inputs. Choose reduce='flatten' or 'mean', or layers with equal maps."
        )


def _pairwise(
    views: Sequence[Mapping[str, Activations]], measure: Measure
) -> tuple[np.ndarray, list[list[str]], Reasons]:
    """The measure for every pair; what follows from one layer alone is computed once for it."""
    _check_counts([(repr(view.name), view.n) for part in views for view in part.values()])
    left = [Representation(view) for view in views[0].values()]
    right = left if len(views) == 1 else [Representation(view) for view in views[1].values()]
    names = [list(part) for part in views]
    values, reasons = np.full((len(left), len(right)), np.nan), {}
    items = [(0, i, j) for i in range(len(left)) for j in range(len(right))]
    for (_, i, j), result in score_items(items, [measure], left, right):
        values[i, j] = result.value
        if result.reason:
            reasons[names[0][i], names[-1][j]] = result.reason
    return values, names, reasons


def _saturation(views: Sequence[Mapping[str, Activations]], measure: Measure, values: np.ndarray) -> Reasons:
    """Pairs of layers whose score any layers of their widths would get; not a layer with itself."""
    if measure.saturation is None:
        return {}
    left, right = list(views[0].items()), list(views[-1].items())
    found = {
        (row, column): saturated(measure.saturation, float(values[i, j]), (one.n, one.d, other.d))
        for i, (row, one) in enumerate(left)
        for j, (column, other) in enumerate(right)
        if one is not other
    }
    return {pair: reason for pair, reason in found.items() if reason}


def _merge_small(steps: Iterable[Batch]) -> Iterator[Batch]:
    """The batches, with one too small for HSIC1 joined to the one before it."""
    last: Batch | None = None
    for batch in steps:
        if last is not None and min(last.size, batch.size) < SMALLEST_BATCH:
            last = Batch(_join(last.inputs, batch.inputs), None, last.start)
            continue
        if last is not None:
            yield last
        last = batch
    if last is not None:
        yield last


def _parts(rows: list[list[Tensor]], batch: Batch, batch_size: int, seed: int) -> Iterator[list[list[Tensor]]]:
    """A graph comes in one batch however large it is: its nodes in parts of the batch size."""
    if batch.rows is None or batch.size <= batch_size:
        yield rows
        return
    order = torch.randperm(batch.size, generator=torch.Generator().manual_seed(seed))
    for part in order.tensor_split(-(-batch.size // batch_size)):
        yield [[values[part] for values in layers] for layers in rows]


def _join(first: Any, second: Any) -> Any:
    if isinstance(first, Tensor) and first.shape[1:] == second.shape[1:]:
        return torch.cat([first, second])
    if isinstance(first, list):
        return [*first, *second]
    if isinstance(first, dict) and all(first[k].shape[1:] == second[k].shape[1:] for k in first):
        return {key: torch.cat([first[key], second[key]]) for key in first}
    raise InputError(
        f"a batch of fewer than {SMALLEST_BATCH} inputs cannot be joined to the one before it, since "
        f"their inputs differ in size. Choose batches of at least {SMALLEST_BATCH}."
    )


def _about(data: Any, **facts: Any) -> dict[str, str]:
    """What is recorded of a run: everything that is known."""
    probe = getattr(data, "probe", None)
    known = {"data": data_name(data), "probe": probe if isinstance(probe, str) else "", **facts}
    known |= {"likewise": __version__, "torch": torch.__version__}
    return {key: str(value) for key, value in known.items() if value not in (None, "")}
