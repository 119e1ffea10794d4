"""`layerwise`: every layer of one network against every layer of another.

Debiased CKA is computed while both networks run, batch by batch, and keeps no activations at all.
Every other measure takes the layers as views, from memory or mapped from a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from likewise import __version__
from likewise.comparison.arguments import permutations_of, seeded, with_options
from likewise.comparison.null import layer_nulls
from likewise.comparison.pairs import score_items
from likewise.comparison.recordings.comparing import layerwise_recorded
from likewise.comparison.recordings.recording import any_recording
from likewise.comparison.significance import calibrate_layers
from likewise.comparison.streaming.layer_groups import CHUNK, Limits
from likewise.comparison.streaming.layer_rows import check_counts, check_rows, chunks, paired_rows
from likewise.comparison.units import units_of
from likewise.data import Data, as_data
from likewise.data.inputs import data_name
from likewise.data.objects import read_once
from likewise.errors import InputError, brief
from likewise.matrices.labelled import ACCURACIES
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.uncertainty import NO_NULL
from likewise.measures.function import Measure
from likewise.measures.numerics.minibatch import Grams, MinibatchCKA
from likewise.measures.registry import select
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace, parse_memory
from likewise.networks import recipe, unwrapped
from likewise.networks.forward import transform_for
from likewise.networks.names import address_of, named_networks, network_and_name, untrained_networks
from likewise.networks.unknown_normalisation import check_normalisation
from likewise.views import Activations
from likewise.views.activations import accuracies
from likewise.views.extract import extract_network
from likewise.views.hooks import nearest
from likewise.views.layer_pass import Tally
from likewise.views.recorder import Recorder
from likewise.views.reduction import BY_POSITION
from likewise.views.show import Show, options_for_worker
from likewise.work.tasks import Call as Task
from likewise.work.tasks import check_plain, run_calls

STREAMED = "cka-debiased"
BATCH = 512  # inputs that debiased CKA is taken of at a time, where nobody says how many
Reasons = dict[tuple[str, str], str]


def layerwise(
    a: Any,
    b: Any = None,
    data: Any = None,
    *,
    measure: Any = None,
    layers: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None = "blocks",
    calibrate: bool | int = False,
    seed: int = 0,
    memory: str | int | None = None,
    clusters: Any = None,
    series: bool = False,
    **options: Any,
) -> LayerMatrix:
    """How alike every layer of a network is to every layer of another (or of itself), on data.

    `cka-debiased`, the default, is computed batch by batch while both networks run: the memory needed is that of all
    layers for one batch, and at most `memory`; the value nears the whole-data one with the number of inputs, sooner
    with larger batches. Data and arrays are shown in an order drawn from `seed`, since batches of one class alone would
    mislead; other iterables as they come. Any other measure takes all activations at once, from a `store` where there
    is one.

    Args:
        a: An address or a module; or a list or mapping of two, whose names tables and pictures then carry.
        b: The other network; by default `a` itself.
        data: What both are shown, such as "cifar10:test[:2000]".
        measure: A name such as "cka", a key or a measure. By default "cka-debiased".
        layers: Names, globs, "all" or "blocks"; or by network, as in `{"gpt2": "blocks", "llama": "layers.[02468]"}`.
            The `*` of a glob crosses dots: "layers.*" has every module within the layers.
        calibrate: Compare scores, and the most alike layers of all, with those of shuffled inputs: `extra` and
            `maximum` of the matrix. A number asks for that many shuffles instead of 200; those of "cka-debiased" are
            within batches.
        seed: Draws the order of the inputs, and shuffles.
        memory: The most to hold at a time, such as "4GB"; by default two thirds of what is free. Where the layers of
            one batch take more, it is shown again for the rest of them: "cka-debiased" is the same, and takes longer.
        clusters: One label per input, for `calibrate`: inputs of one clip or text change places as a whole, as in
            `compare`. With it or `series`, "cka-debiased" too takes all activations at once.
        series: Whether inputs are one time series, which `calibrate` then shifts.
        **options: The measure's own options, and how networks are shown (see `Show`). By default `reduce` is "flatten",
            and "mean" for texts, since they differ in length; `batch_size` is 512 for "cka-debiased".

    Returns:
        The matrix; undefined pairs are NaN, with their reasons in `reasons`.

    Raises:
        InputError: There is no data, or not one or two networks.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> layerwise(net, data=torch.randn(50, 4), layers="all")
        LayerMatrix('Sequential', 'Sequential', 3 x 3, measure='cka-debiased')
    """
    if any_recording(a, b):
        unused = {"layers": None if layers == "blocks" else layers, "calibrate": calibrate}
        unused |= {"clusters": clusters, "series": series}
        return layerwise_recorded(a, b, measure, options, unused, memory, data=data)
    show, rest = Show.read("layerwise", options, long=True, data=data, layers=layers)
    if show.engine is not None:
        check_plain("layerwise", a=a, b=b, data=data)
        keywords = {"measure": measure, "layers": layers, "calibrate": calibrate, "seed": seed, "memory": memory}
        keywords |= {"clusters": clusters, "series": series}
        task = Task("the comparison of layers", layerwise, (a, b, data), keywords | options_for_worker(options))
        result: LayerMatrix = run_calls([task], show.with_engine().engine, "comparing layers", progress=show.progress)[
            0
        ]
        return result
    if data is None:
        raise InputError(_without_data(b))
    networks = _two_networks(a, b)
    bound = _one_measure(with_options(layerwise, STREAMED if measure is None else measure, rest), seed)
    shuffles = permutations_of(calibrate)
    if shuffles:
        _check_null(networks, bound)
    together = clusters is not None or series is not False
    if together and not shuffles:
        raise InputError("clusters and series are for chance. Pass calibrate=True too.")
    streamed = bound.key == STREAMED and not together
    if streamed and show.store is not None:
        raise InputError(f"{STREAMED} is computed batch by batch and keeps no activations. Leave store out.")
    inputs = as_data(data)
    sides = _sides(networks, inputs, show)
    reduction = show.reduce or ("mean" if is_text(inputs) else "flatten")
    units = ""
    if streamed:
        size: int | None = show.batch_size or BATCH
        limit, batched = parse_memory(memory), replace(show, data=inputs, reduce=reduction, batch_size=size)
        values, nulls, names, reasons, recipes, shares = _stream(sides, batched, seed, shuffles, limit)
        saturation: Reasons = {}  # debiased CKA says something at any width
    else:
        size = show.batch_size
        inputs = read_once(inputs) if isinstance(inputs, Iterator) else inputs
        views = [
            extract_network(side.net, replace(side.show, data=inputs, reduce=reduction), side.name) for side in sides
        ]
        values, names, reasons = _pairwise(views, bound, memory)
        nulls = None
        if shuffles:
            every = [view for layer_views in views for view in layer_views.values()]
            moved = units_of(every, bound, clusters=clusters, series=series)
            nulls, units = layer_nulls(views, bound, moved, shuffles, seed, parse_memory(memory)), moved.words
        ones = [next(iter(layer_views.values())) for layer_views in views]
        recipes = [one.about.get("transform", "") for one in ones]
        shares = dict(accuracies({side.name: one for side, one in zip(sides, ones, strict=True)}))
        saturation = _saturation(views, bound, values)
    facts = {"reduction": reduction, "batch_size": size, "seed": seed, "precision": show.dtype, "units": units}
    facts |= {"transform": "; ".join(dict.fromkeys(filter(None, recipes)))}
    own_names = not any(name for name, _ in networks)
    untrained = {name or str(index): net for index, (name, net) in enumerate(networks)}
    facts |= {"untrained": ", ".join(untrained_networks(untrained, own_names=own_names))}
    origins = (recipe(side.net) for side in sides)
    facts |= {"commit": "; ".join(origin.commit for origin in origins if origin and origin.commit)}
    known = {name: share for name, share in shares.items() if share is not None}
    return LayerMatrix(
        sides[0].name,
        sides[-1].name,
        names[0],
        names[-1],
        values,
        bound.key,
        _about(inputs, **facts) | ({ACCURACIES: known} if known else {}),
        reasons,
        saturation,
        bound.info.larger_is,
        bound.info.bounds,
        *calibrate_layers(values, nulls, bound, names),
    )


@dataclass(frozen=True)
class _Side:
    """One of the two networks, and how it is shown."""

    net: nn.Module
    name: str
    show: Show


def _two_networks(a: Any, b: Any) -> list[tuple[str | None, Any]]:
    """One or two networks, each with the name it was given; None where it goes by its own."""
    several = isinstance(a, (Mapping, list, tuple))
    if several and (b is not None or not 1 <= len(a) <= 2):
        kind = "mapping" if isinstance(a, Mapping) else "list"
        raise InputError(
            f"layerwise takes two networks, and was given a {kind} of {len(a)}{' and another' * (b is not None)}. "
            f"Put both into one {kind}."
        )
    networks = list(a.values() if isinstance(a, Mapping) else a) if several else [a] if b is None or b is a else [a, b]
    for network in networks:
        if not isinstance(network, (str, nn.Module)):
            raise InputError(f"layerwise takes networks, and was given {brief(network)}. Pass addresses or modules.")
    if isinstance(a, Mapping):
        return [(str(name), network) for name, network in a.items()]
    if all(isinstance(network, nn.Module) for network in networks):
        names = [network_and_name(network)[1] for network in networks]
        if len(names) > len(set(names)):
            return list(named_networks(networks).items())
    return [(None, network) for network in networks]


def _sides(named: list[tuple[str | None, Any]], inputs: Any, show: Show) -> list[_Side]:
    """The networks, sized for the data, each with its layers, classifier and transform."""
    called = {name: net for name, net in named if name} or named_networks([net for _, net in named])
    sides = []
    for (name, network), options in zip(named, show.per_network(called).values(), strict=True):
        normalised, choice = options.for_network(network)
        net, title = network_and_name(normalised, name or address_of(network), data=inputs, device=show.device)
        layers = [layer for layer, _ in unwrapped(net).named_modules() if layer]
        if choice.head is not None and choice.head not in layers:
            raise InputError(
                f"{title!r} has no layer {choice.head!r} to be its head.{nearest(str(choice.head), layers)}"
            )
        if choice.transform is None:
            check_normalisation(net, inputs, repr(title), show.device)
        sides.append(_Side(net, title, replace(choice, layers=_as_list(choice.layers))))
    return sides


def _check_null(networks: list[Any], measure: Measure) -> None:
    if len(networks) < 2:
        raise InputError("layers of one network are always alike. Leave calibrate out, or name another network.")
    if not measure.info.paired:
        raise InputError(f"{measure.key} has no null: {NO_NULL} Leave calibrate out, or choose another measure.")


def _as_list(layers: Any) -> list[str]:
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
    measures = select(measure, on=("representation", "outputs"))
    if len(measures) > 1:
        raise InputError(f"layerwise takes one measure and was given {len(measures)}. Call it once per measure.")
    if measures[0].info.on == "outputs":
        raise InputError(
            f"{measures[0].name} looks at what a network answers, which is the same for all its "
            "layers. Choose a measure of representations, or use likewise.compare."
        )
    return seeded(measures[0], seed)


def is_text(data: Any) -> bool:
    """Whether data holds texts."""
    if isinstance(data, Data):
        return data.domain == "text"
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first[0] if isinstance(first, tuple) and first else first, str)


def _stream(
    sides: list[_Side], show: Show, seed: int, shuffles: int, memory: int
) -> tuple[np.ndarray, np.ndarray | None, list[list[str]], Reasons, list[str], dict[str, float | None]]:
    """Debiased CKA of all pairs of layers, its null, layers, why some have none, how images were shown, accuracies."""
    by_position = show.reduce in BY_POSITION
    if shuffles and by_position and is_text(show.data):
        raise InputError("texts have unequally many tokens, which cannot change places. Choose reduce='mean'.")
    inputs = [transform_for(side.net, show.data, repr(side.name), side.show.transform) for side in sides]
    recorders = [
        Recorder(side.net, side.name, replace(side.show, reduce=show.reduce), room=memory // CHUNK) for side in sides
    ]
    sums, grams, counts = MinibatchCKA(shuffles, seed), list[Grams](), list[tuple[str, int]]()
    size = show.batch_size or BATCH
    tallies = [Tally(recorder.network, data, recorder.label) for recorder, data in zip(recorders, inputs, strict=True)]
    limits = Limits(memory, gram_copies=3 if shuffles else 1)  # a shuffle moves rows and columns
    for rows, batch, number, is_last in paired_rows(recorders, inputs, size, seed, show.progress, limits, tallies):
        counts = check_rows(rows, [recorder.label for recorder in recorders], number, counts)
        each = counts[0][1] // batch.size if by_position else 1
        if batch.rows is not None:  # a graph, whose nodes come at once
            for chunk in chunks([list(layers.values()) for layers in rows], batch, size, seed):
                sums.add(chunk[0], chunk[1] if len(chunk) > 1 else None, rows_per_input=each)
            counts = []
            continue
        grams = grams or [Grams(recorder.layers) for recorder in recorders]
        for side_grams, layers in zip(grams, rows, strict=True):
            for name in list(layers):
                side_grams.add(name, layers.pop(name))
        if is_last:
            sums.add_sides(*(side_grams.side() for side_grams in grams), rows_per_input=each)
            grams, counts = [], []
    names = [recorder.layers for recorder in recorders]
    ends = zip([recorders[0], recorders[-1]], [names[0], names[-1]], sums.faults(), strict=True)
    faults = [
        [f"{name!r} of {recorder.label} {fault}" if fault else "" for name, fault in zip(layers, reasons, strict=True)]
        for recorder, layers, reasons in ends
    ]
    undefined = {
        (row, column): faults[0][i] or faults[1][j]
        for i, row in enumerate(names[0])
        for j, column in enumerate(names[-1])
        if faults[0][i] or faults[1][j]
    }
    recipes = [getattr(getattr(data, "inputs", None), "recipe", "") for data in inputs]
    shares = {side.name: tally.share for side, tally in zip(sides, tallies, strict=True)}
    nulls = sums.nulls().numpy() if shuffles else None
    return sums.values().numpy(), nulls, names, undefined, recipes, shares


def _pairwise(
    views: Sequence[Mapping[str, Activations]], measure: Measure, memory: str | int | None
) -> tuple[np.ndarray, list[list[str]], Reasons]:
    """The measure for every pair; what follows from one layer alone is computed once for it."""
    check_counts([(repr(view.name), view.n) for layer_views in views for view in layer_views.values()])
    workspace = None if memory is None else Workspace(parse_memory(memory), networks=sum(map(len, views)))
    left, right = ([Representation(view, workspace) for view in side.values()] for side in (views[0], views[-1]))
    right = left if len(views) == 1 else right
    names = [list(layer_views) for layer_views in views]
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
    reasons = {
        (row, column): measure.saturated(float(values[i, j]), (one.n, one.d, other.d))
        for i, (row, one) in enumerate(left)
        for j, (column, other) in enumerate(right)
        if one is not other
    }
    return {pair: reason for pair, reason in reasons.items() if reason}


def _about(data: Any, **facts: Any) -> dict[str, str]:
    """What is recorded of a run: everything that is known."""
    probe = getattr(data, "probe", None)
    record = {"data": data_name(data), "probe": probe if isinstance(probe, str) else "", **facts}
    record |= {"likewise": __version__, "torch": torch.__version__}
    return {key: str(value) for key, value in record.items() if value not in (None, "")}
