"""The layers of one or two networks on the same inputs, batch by batch, as rows that can be compared.

`layerwise` and `diff` read them. Batches are the same inputs in the same order for both networks; one too small for
HSIC1 is joined to the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from likewise._base.progress import Progress
from likewise.comparison.streaming.layer_groups import Limits, grouped_rows
from likewise.data.inputs import to_device
from likewise.errors import InputError
from likewise.measures.numerics.minibatch import SMALLEST_BATCH
from likewise.views.batches import Batch, batches, known_length
from likewise.views.layer_pass import Tally
from likewise.views.recorder import Recorder


def paired_rows(
    recorders: list[Recorder],
    inputs: list[Any],
    batch_size: int,
    seed: int,
    progress: bool,
    limits: Limits,
    tallies: Sequence[Tally] = (),
    aliases: Mapping[str, str] | None = None,
) -> Iterator[tuple[list[dict[str, Tensor]], Batch, int, bool]]:
    """The layers of one or two networks batch by batch, as `grouped_rows` gives them, with the batch and its number."""
    total = -(-(known_length(inputs[0]) or 0) // batch_size)
    with ExitStack() as stack:
        bar = stack.enter_context(Progress(total, "layer by layer", show=progress))
        for recorder in recorders:
            stack.enter_context(recorder)
        for number, group in enumerate(_paired_batches(recorders, inputs, batch_size, seed), start=1):
            is_first = True
            for records, is_last in grouped_rows(recorders, group, number, limits, aliases):
                for tally, record, batch in zip(tallies if is_first else (), records, group, strict=False):
                    tally.add(record.answer, batch.labels)
                yield [record.rows for record in records], group[0], number, is_last
                is_first = False
            bar.advance()


def _paired_batches(recorders: list[Recorder], inputs: list[Any], batch_size: int, seed: int) -> Iterator[list[Batch]]:
    """One batch per network, of the same inputs: one for all where all are shown the same."""
    devices = [recorder.input_device for recorder in recorders]
    if all(data is inputs[0] for data in inputs):
        for batch in _merge_small(batches(inputs[0], batch_size, shuffle=seed, device=devices[0])):
            yield [replace(batch, inputs=to_device(batch.inputs, device)) for device in devices]
        return
    pairs = zip(inputs, devices, strict=True)
    streams = [_merge_small(batches(data, batch_size, shuffle=seed, device=device)) for data, device in pairs]
    yield from map(list, zip(*streams, strict=True))


def check_rows(
    recorded: list[dict[str, Tensor]], labels: list[str], number: int, earlier: Sequence[tuple[str, int]] = ()
) -> list[tuple[str, int]]:
    """Refuse what is not finite, and layers whose rows are not the same things: those `earlier` ones included."""
    every = [(f"{n!r} of {label}", r) for rows, label in zip(recorded, labels, strict=True) for n, r in rows.items()]
    for label, rows in every:
        if not rows.sum().isfinite() and not rows.isfinite().all():
            bad = int((~rows.isfinite()).any(dim=1).sum())
            raise InputError(
                f"{label} has NaN or infinite entries in {bad} of {len(rows)} rows of batch "
                f"{number}. Drop or repair the inputs they come from."
            )
    counts = [*earlier, *((label, len(rows)) for label, rows in every)]
    check_counts(counts)
    return counts


def check_counts(counts: list[tuple[str, int]]) -> None:
    """Refuse layers with different numbers of rows."""
    first, n = counts[0]
    other = next((count for count in counts if count[1] != n), None)
    if other is not None:
        raise InputError(
            f"{first} gives {n} rows and {other[0]} gives {other[1]}, so their rows are not the "
            "same inputs. Choose reduce='flatten' or 'mean', or layers with equal maps."
        )


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


def chunks(rows: list[list[Tensor]], batch: Batch, batch_size: int, seed: int) -> Iterator[list[list[Tensor]]]:
    """A graph comes in one batch however large it is: its nodes in chunks of the batch size."""
    if batch.rows is None or batch.size <= batch_size:
        yield rows
        return
    order = torch.randperm(batch.size, generator=torch.Generator().manual_seed(seed))
    for chunk in order.tensor_split(-(-batch.size // batch_size)):
        yield [[values[chunk] for values in layers] for layers in rows]


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
