"""`layerwise`: every layer of one network against every layer of another.

Debiased CKA is computed while both networks run, batch by batch, and keeps no activations at all.
Every other measure takes the layers as views, from memory or mapped from a store.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise import __version__
from likewise._minibatch import SMALLEST, MinibatchCKA
from likewise._progress import Progress
from likewise._registry import normal
from likewise.errors import InputError, UndefinedError
from likewise.layer_matrix import LayerMatrix
from likewise.views import Activations
from likewise.views.batches import Batch, batches, known_length
from likewise.views.extraction import as_data, data_name, extract, resolved
from likewise.views.watching import Watcher

STREAMED = "cka-debiased"


def layerwise(
    a: str | nn.Module,
    b: str | nn.Module | None = None,
    data: Any = None,
    *,
    measure: str = STREAMED,
    layers: str | Sequence[str] = "blocks",
    reduce: str | None = "flatten",
    batch_size: int = 512,
    device: Any = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> LayerMatrix:
    """How alike every layer of network `a` is to every layer of `b` (or of itself), on data.

    `cka-debiased`, the default, is computed batch by batch in one pass over both networks: the
    memory needed is that of one batch, and the value nears the whole-data one with the number of
    inputs, sooner with larger batches. Data and arrays are shown in an order drawn from `seed`,
    since batches of one class alone would mislead; other iterables as they come. Any other measure
    takes all activations at once, from a `store` where one is given.

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> layerwise(net, data=torch.randn(50, 4), layers="all")
    LayerMatrix('Sequential', 'Sequential', 3 x 3, measure='cka-debiased')
    """
    if data is None:
        raise InputError(
            "no data to show the networks. Pass data, as in data='cifar10:test[:2000]'."
        )
    nets = [resolved(a)] if b is None or b is a else [resolved(a), resolved(b)]
    shown = as_data(data)
    wanted = [layers] if isinstance(layers, str) else list(layers)
    if normal(measure) == STREAMED:
        watchers = [Watcher(m, wanted, reduce, label=repr(n), device=device) for m, n in nets]
        values, names = _streamed(watchers, shown, batch_size, seed, progress)
    else:
        views = [
            extract(m, shown, wanted, reduce, store, batch_size=batch_size, device=device, name=n,
                    progress=progress) for m, n in nets
        ]  # fmt: skip
        values, names = _pairwise(views, measure)
    about = _about(shown, reduce, batch_size, seed)
    return LayerMatrix(nets[0][1], nets[-1][1], names[0], names[-1], values, measure, about)


def _streamed(
    watchers: list[Watcher], data: Any, batch_size: int, seed: int, progress: bool
) -> tuple[np.ndarray, list[list[str]]]:
    sums = MinibatchCKA()
    total = -(-(known_length(data) or 0) // batch_size)
    with ExitStack() as stack:
        bar = stack.enter_context(Progress(total, "layer by layer", shown=progress))
        for watcher in watchers:
            stack.enter_context(watcher)
        steps = _large_enough(batches(data, batch_size, shuffle=seed, device=watchers[0].place))
        for number, batch in enumerate(steps, start=1):
            rows = [list(watcher.see(batch, number).rows.values()) for watcher in watchers]
            for part in _parts(rows, batch, batch_size, seed):
                sums.add(part[0], part[1] if len(part) > 1 else None)
            bar.advance()
    return sums.values().numpy(), [list(watcher.chosen or ()) for watcher in watchers]


def _pairwise(
    views: Sequence[Mapping[str, Activations]], measure: str
) -> tuple[np.ndarray, list[list[str]]]:
    """The measure for every pair; what follows from one layer alone is computed once for it."""
    from likewise import measures
    from likewise.measures.pair import Pair
    from likewise.measures.representation import Representation

    score = measures.get(measure).score
    left = [Representation(view) for view in views[0].values()]
    right = left if len(views) == 1 else [Representation(view) for view in views[1].values()]
    values = np.full((len(left), len(right)), np.nan)
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            # an undefined pair stays NaN: it does not cost the others
            with suppress(UndefinedError):
                values[i, j] = score(Pair(one, other))
    return values, [list(part) for part in views]


def _large_enough(steps: Iterable[Batch]) -> Iterator[Batch]:
    """The batches, with one too small for HSIC1 joined to the one before it."""
    held: Batch | None = None
    for batch in steps:
        if held is not None and min(held.size, batch.size) < SMALLEST:
            held = Batch(_joined(held.inputs, batch.inputs), None, held.start)
            continue
        if held is not None:
            yield held
        held = batch
    if held is not None:
        yield held


def _parts(
    rows: list[list[Tensor]], batch: Batch, batch_size: int, seed: int
) -> Iterator[list[list[Tensor]]]:
    """A graph comes in one batch however large it is: its nodes in parts of the size wished for."""
    if batch.rows is None or batch.size <= batch_size:
        yield rows
        return
    order = torch.randperm(batch.size, generator=torch.Generator().manual_seed(seed))
    for part in order.tensor_split(-(-batch.size // batch_size)):
        yield [[values[part] for values in layers] for layers in rows]


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, Tensor) and first.shape[1:] == second.shape[1:]:
        return torch.cat([first, second])
    if isinstance(first, list):
        return [*first, *second]
    if isinstance(first, dict) and all(first[k].shape[1:] == second[k].shape[1:] for k in first):
        return {key: torch.cat([first[key], second[key]]) for key in first}
    raise InputError(
        f"a batch of fewer than {SMALLEST} inputs cannot be joined to the one before it, since "
        f"their inputs differ in size. Choose batches of at least {SMALLEST}."
    )


def _about(data: Any, reduce: str | None, batch_size: int, seed: int) -> dict[str, str]:
    probe = getattr(data, "probe", None)
    known = {
        "data": data_name(data),
        "probe": probe if isinstance(probe, str) else "",
        "reduction": reduce or "none",
        "batch_size": str(batch_size),
        "seed": str(seed),
        "likewise": __version__,
        "torch": torch.__version__,
    }
    return {key: value for key, value in known.items() if value}
