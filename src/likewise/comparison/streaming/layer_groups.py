"""Rows of many layers of one batch within a limit of memory.

Every input of a batch is compared with every other, so a layer needs the rows of all of them at once; but no two layers
are needed at once. Where the rows of all layers would not fit, the networks are shown the batch several times, and each
time some of the layers are kept: the numbers are the same, and time is paid instead of memory. A layer that is too
large by itself comes in parts of its columns, since inner products are sums over columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.views.batches import Batch
from likewise.views.recorder import BatchRows, Recorder, batch_order, join_rows

Group = dict[str, slice]  # layers, and which of their columns
CHUNK = 8  # the share of the memory that the rows of one chunk may take


@dataclass(frozen=True)
class Limits:
    """How many bytes may be held, and how often the Gram matrices of all layers of a batch are among them."""

    memory: int
    gram_copies: int = 0


def grouped_rows(
    recorders: Sequence[Recorder],
    batches: Sequence[Batch],
    number: int,
    limits: Limits,
    aliases: Mapping[str, str] | None = None,
) -> Iterator[tuple[list[BatchRows], bool]]:
    """The rows of one batch of one or two networks, some layers at a time, and whether they are the last.

    A layer that both networks have comes from both at once; `aliases` are those of the second that are looked at, under
    their names in the first. It comes whole unless its Gram matrix is kept until the batch is over. Rows are let go
    when the next ones are asked for.
    """
    prepared = [recorder.prepare(batch) for recorder, batch in zip(recorders, batches, strict=True)]
    streams = [recorder.chunks(batch, number) for recorder, batch in zip(recorders, prepared, strict=True)]
    first = [next(stream) for stream in streams]
    names = [{name: name for name in recorder.layers} for recorder in recorders]
    names[1:] = names[1:] if aliases is None else [dict(aliases)]
    totals = [batch.total for batch in prepared]
    groups = layer_groups([_renamed(*pair) for pair in zip(first, names, strict=True)], totals, limits)
    for index, group in enumerate(groups):
        if index:
            streams = [recorder.chunks(batch, number) for recorder, batch in zip(recorders, prepared, strict=True)]
        records = []
        for layers, stream in zip(names, streams, strict=True):
            if index and not group.keys() & set(layers.values()):
                records.append(BatchRows())
                continue
            chunks = chain([first.pop(0)], stream) if first else stream
            total = totals[len(records)]
            records.append(_collected((_only(chunk, layers, group) for chunk in chunks), total))
        yield records, index == len(groups) - 1
        for record in records:
            record.rows.clear()


def _collected(chunks: Iterable[BatchRows], total: int) -> BatchRows:
    """The rows of all chunks, of each layer in one piece from the start: small pieces would stay with the process."""
    rows: dict[str, Tensor] = {}
    rest: list[BatchRows] = []
    ends: dict[str, int] = {}
    for chunk in chunks:
        if chunk.total == total and chunk.positions is None:
            return chunk
        for name in list(chunk.rows):
            values = chunk.rows.pop(name)
            if name not in rows:
                rows[name] = values.new_empty(round(len(values) * total / chunk.total), values.shape[1])
            end = ends.get(name, 0) + len(values)
            if end > len(rows[name]):  # texts have unequally many tokens
                rows[name] = torch.cat([rows[name], values.new_empty(end - len(rows[name]), values.shape[1])])
            rows[name][end - len(values) : end] = values
            ends[name] = end
        rest.append(chunk)
    order = batch_order(rest)
    for name in rows:
        values = rows[name][: ends[name]]
        rows[name] = values if order is None else values[order.to(values.device)]
    return BatchRows(rows, join_rows(rest).answer, total=total)


def _renamed(chunk: BatchRows, names: Mapping[str, str]) -> BatchRows:
    rows = {names[name]: rows for name, rows in chunk.rows.items() if name in names}
    return BatchRows(rows, chunk.answer, total=chunk.total)


def _only(chunk: BatchRows, names: Mapping[str, str], group: Group) -> BatchRows:
    """The layers of a group under their new names; the others are let go at once."""
    whole, rows = slice(None), {}
    for name, values in chunk.rows.items():
        part = group.get(names.get(name, ""))
        if part is not None:
            rows[names[name]] = values if part == whole else values[:, part].clone()
    chunk.rows.clear()
    return BatchRows(rows, chunk.answer, total=chunk.total, positions=chunk.positions)


def layer_groups(first: Sequence[BatchRows], totals: Sequence[int], limits: Limits) -> list[Group]:
    """The layers in groups whose rows fit in memory, by the rows of the first inputs of each network.

    Beside them there is room for a chunk and for a copy of one layer, which is what work on it takes.
    """
    shares = [total / chunk.total for chunk, total in zip(first, totals, strict=True)]
    memory = limits.memory - _gram_bytes(first, shares, limits)
    sizes: dict[str, float] = {}
    widths: dict[str, int] = {}
    for chunk, share in zip(first, shares, strict=True):
        for name, rows in chunk.rows.items():
            sizes[name] = sizes.get(name, 0) + rows.nbytes * share
            widths[name] = max(widths.get(name, 0), rows.shape[1])
    room = memory - 2 * memory / CHUNK  # of one chunk, and the next
    groups: list[Group] = [{}]
    rows_held = largest = 0.0
    for name, size in sizes.items():
        parts = min(math.ceil(2 * size / room), widths[name]) if limits.gram_copies and 2 * size > room else 1
        step = math.ceil(widths[name] / parts)
        for start in range(0, widths[name], step):
            part = size / parts
            if groups[-1] and (name in groups[-1] or rows_held + part + max(largest, part) > room):
                groups.append({})
                rows_held = largest = 0.0
            groups[-1][name] = slice(None) if parts == 1 else slice(start, start + step)
            rows_held, largest = rows_held + part, max(largest, part)
    return groups


def _gram_bytes(first: Sequence[BatchRows], shares: Sequence[float], limits: Limits) -> int:
    """What the Gram matrices of all layers of a batch take; refused where that is most of the memory."""
    counts = [len(rows) * share for chunk, share in zip(first, shares, strict=True) for rows in chunk.rows.values()]
    needed, memory = int(limits.gram_copies * sum(8 * count**2 for count in counts)), limits.memory
    if needed > memory / 2:
        n = round(first[0].total * shares[0])
        fewer = int(n * math.sqrt(memory / 2 / needed))
        raise InputError(
            f"the Gram matrices of {len(counts)} layers for batches of {n} inputs take {needed / 1e6:,.0f} MB, more "
            f"than half of memory={memory / 1e6:,.0f}MB. Choose batch_size={fewer}, fewer layers, or more memory."
        )
    return needed
