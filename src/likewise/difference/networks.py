"""`diff`: what changed between a network and a fine-tuned, quantised, pruned or re-trained copy of it.

Both are shown the same inputs. Layers, weights, answers and attacks are compared, each in its own file, and `Diff` puts
the results into words. Thresholds make it a regression test: what misses one is in `failures`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Unpack

from torch import nn

from likewise._base.progress import warn
from likewise.comparison.compare import compare
from likewise.comparison.recordings.recording import any_recording
from likewise.data import Data, as_data
from likewise.data.inputs import data_name, domain_of
from likewise.data.objects import read_once
from likewise.difference.answers import answer_changes
from likewise.difference.inputs import previews
from likewise.difference.language_models.blockwise import blockwise_diff
from likewise.difference.language_models.whole import language_diff, language_models
from likewise.difference.layers import layer_changes
from likewise.difference.recorded import recorded_change
from likewise.difference.result import Check, Diff, Transfer
from likewise.difference.weights import weight_changes
from likewise.errors import InputError, brief
from likewise.language.blockwise.blocks import are_larger_than_memory
from likewise.measures.function import Measure
from likewise.measures.registry import select
from likewise.measures.workspace import parse_memory
from likewise.networks.inputs.normalisation import (
    Normalised,
    normalised_by,
    noted,
    transform_of,
    typed_values,
    unwrapped,
)
from likewise.networks.names import named_networks, network_and_name
from likewise.networks.sources.language import NoLanguageModelError
from likewise.transfer import one_sided
from likewise.views import Activations
from likewise.views.extract import extract_network
from likewise.views.show import Show, ShowOptions, options_for_worker
from likewise.work.tasks import Call, check_plain, run_calls

MEASURES = ("cka-debiased", "disagreement")
ATTACKED, STEPS = 100, 10  # inputs that are attacked by default, and steps of the attack
SMALL = 64  # pixels per side up to which an attack takes seconds
PREVIEWS = 12  # flips that are kept with their inputs


def diff(
    a: Any,
    b: Any = None,
    data: Any = None,
    *,
    names: Sequence[str] | None = None,
    layers: str | Sequence[str] | None = None,
    transfer: bool | int | None = None,
    fail_under: Mapping[str, float] | None = None,
    fail_over: Mapping[str, float] | None = None,
    seed: int = 0,
    memory: str | int | None = None,
    blockwise: bool | None = None,
    **show: Unpack[ShowOptions],
) -> Diff:
    """What changed from one network to another, on data: layers, weights, answers, classes, attacks, a verdict.

    Args:
        a: An address or a module; or a list or mapping of two.
        b: The fine-tuned, quantised, pruned or re-trained one.
        data: What both are shown; with labels, accuracies and attacks are compared too.
        names: What the two are called, if not by their addresses.
        layers: Names or globs of the layers to look at; by default all where the two have the same ones, else blocks.
        transfer: Attack `a` and show `b` the examples: how many inputs, True for 100, False for none. By default 100
            of labelled images up to 64 pixels wide, since an attack of larger ones takes minutes.
        fail_under: `{measure: least value}`, of the last hidden layer or the answers.
        fail_over: `{measure: largest value}`.
        seed: Draws the order of the inputs and the start of attacks.
        memory: The most that layers of one batch may take, such as "4GB"; by default two thirds of what is free. Where
            they take more, it is shown again for the rest of them.
        blockwise: Whether language models of `hf:` are read block by block, each weight once for all texts, so that one
            block of each and the hidden states of the texts are in memory. By default where both do not fit.
        **show: How networks are shown (see `Show`). By default `reduce` is "flatten", and "mean" for texts.

    Returns:
        The changes; what misses a threshold is in `failures`, and `ok` says whether none does.

    Raises:
        InputError: There is no data, or not two networks.

    Example:
        >>> import copy, torch, likewise
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> change = likewise.diff(net, copy.deepcopy(net), torch.randn(50, 4), fail_under={"cka-debiased": 0.95})
        >>> change.verdict, change.ok
        ('identical', True)
    """
    options = Show.only("diff", show, long=True, data=data)
    if options.engine is not None:
        check_plain("diff", a=a, b=b, data=data)
        keywords: dict[str, Any] = {
            "names": names,
            "layers": layers,
            "transfer": transfer,
            "seed": seed,
            "memory": memory,
            "blockwise": blockwise,
        }
        keywords |= {"fail_under": fail_under, "fail_over": fail_over, **options_for_worker(show)}
        task = Call("the difference", diff, (a, b, data), keywords)
        result: Diff = run_calls([task], options.with_engine().engine, "comparing", progress=options.progress)[0]
        return result
    if any_recording(a, b):
        limits = _limits(under=fail_under, over=fail_over)
        if blockwise:
            raise InputError("a network is whole where it is recorded. Leave blockwise out.")
        kept: dict[str, Any] = {"names": names, "layers": layers, "transfer": transfer, "memory": memory}
        return recorded_change(a, b, data, show=show, limits=limits, **kept)
    named = _two_networks(a, b, names)
    if data is None:
        raise InputError("no data to show the networks. Pass data, as in data='cifar10:test[:1000]'.")
    if transfer is not None and not isinstance(transfer, bool) and transfer < 0:
        raise InputError(f"transfer is {transfer}. Give how many inputs to attack, or 0 for none.")
    limits = _limits(under=fail_under, over=fail_over)
    inputs = data if isinstance(data, Mapping) else as_data(data)
    inputs = read_once(inputs) if isinstance(inputs, Iterator) else inputs
    large = blockwise is None and domain_of(inputs) == "text" and are_larger_than_memory(list(named.values()))
    if blockwise or large:
        with suppress(*([] if blockwise else [NoLanguageModelError])):  # a classifier is shown texts, too
            return blockwise_diff(named, inputs, options, layers, limits, _scores, seed)
    models = language_models(named, inputs, options.device)
    if models is not None:
        options = replace(options, data=inputs)
        return language_diff(models, inputs, options, layers, limits, _scores, seed, parse_memory(memory))
    _refuse_tokens([measure for measure, _, _ in limits])
    choices = replace(options, data=inputs).per_network(named)
    shown = {name: choices[name].for_network(network) for name, network in named.items()}
    nets = {
        name: network_and_name(network, name, data=inputs, device=options.device)[0]
        for name, (network, _) in shown.items()
    }
    shows = [show for _, show in shown.values()]
    if all(show.transform is None for show in shows):
        nets = _normalised_alike(nets)
    views = [extract_network(net, show, name) for (name, net), show in zip(nets.items(), shows, strict=True)]
    answers = answer_changes(views[0], views[1], inputs.classes if isinstance(inputs, Data) else ())
    scores, reasons = _scores(views, [measure.key for measure, _, _ in limits])
    changes = layer_changes(nets, shows, layers, seed, parse_memory(memory))
    fooled = _transfer(nets, options, inputs, transfer, seed)
    flips = () if isinstance(answers, str) else answers.flips[:PREVIEWS]
    return Diff(
        names=(views[0].name, views[1].name),
        data=data_name(inputs),
        n=views[0].n,
        looked_at=_looked_at(views),
        scores=scores,
        reasons=reasons,
        layers=tuple(changes),
        weights=weight_changes(*nets.values()),
        answers=answers,
        transfer=fooled,
        inputs=tuple(previews(inputs, [flip.row for flip in flips])),
        checks=tuple(
            Check(measure.key, side, limit, scores[measure.key], reasons.get(measure.key, ""))
            for measure, side, limit in limits
        ),
    )


def _normalised_alike(nets: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """A copy that lost the normalisation of its original is shown what that is, and a sentence says so."""
    wrappers = {name: unwrapped(net, keep_normalisation=True) for name, net in nets.items()}
    known = [name for name, net in wrappers.items() if isinstance(net, Normalised)]
    unknown = [
        name
        for name, net in wrappers.items()
        if name not in known
        and transform_of(nets[name]) is None
        and noted(nets[name], "normalisation") in (None, "unknown")
    ]
    kinds = {(kind.__module__, kind.__qualname__) for kind in (type(unwrapped(net)) for net in nets.values())}
    if len(kinds) > 1 or len(known) != 1 or len(unknown) != 1:  # by name, since a file is run anew for each of them
        return nets
    original = wrappers[known[0]]
    mean, std = (getattr(original, name).flatten().tolist() for name in ("mean", "std"))
    warn(
        f"nothing says how images are normalised for {unknown[0]!r}: it is shown what {known[0]!r} is, by mean "
        f"{typed_values('mean', mean)} and std {typed_values('std', std)}. Where it was trained otherwise, add "
        "',mean=,std=' to its address."
    )
    return nets | {unknown[0]: normalised_by(nets[unknown[0]], mean, std)}


def _two_networks(a: Any, b: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """The two networks by name."""
    several = isinstance(a, (Mapping, list, tuple))
    networks = (list(a.values()) if isinstance(a, Mapping) else list(a)) if several else [a, b]
    if len(networks) != 2 or (several and b is not None) or (b is None and not several):
        count = len(networks) if several else 1
        raise InputError(f"diff takes two networks, and was given {count + (several and b is not None)}. Give two.")
    for network in networks:
        if not isinstance(network, (str, nn.Module)):
            raise InputError(f"diff takes two networks, and was given {brief(network)}. Give addresses or modules.")
    called = list(names if names is not None else a if isinstance(a, Mapping) else named_networks(networks))
    if len(called) != 2 or called[0] == called[1]:
        raise InputError(f"two different names are needed, got {brief(names)}. Leave names out, or give two.")
    return dict(zip(map(str, called), networks, strict=True))


def _refuse_tokens(measures: Sequence[Measure]) -> None:
    """Refuse thresholds of next tokens for networks that are no language models."""
    names = [measure.key for measure in measures if measure.info.on == "networks"]
    if names:
        raise InputError(
            f"{names[0]} looks at what language models say of texts, and these networks or this data are not of the "
            "kind. Choose a measure of layers or answers."
        )


def _limits(**thresholds: Mapping[str, float] | None) -> list[tuple[Measure, str, float]]:
    """The measure, the side and the limit of every threshold."""
    limits = []
    for side, values in thresholds.items():
        for name, limit in (values or {}).items():
            measures = select(name)
            if len(measures) > 1:
                raise InputError(f"a threshold is for one measure, and {name!r} stands for {len(measures)}. Name them.")
            limits.append((measures[0], side, float(limit)))
    return limits


def _scores(views: Sequence[Activations], measures: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
    """Of `MEASURES` and more: the scores of two views, and why some are undefined."""
    a, b = (view.name for view in views)
    default = MEASURES if all(view.outputs is not None for view in views) else MEASURES[:1]
    matrices = compare({view.name: view for view in views}, list(dict.fromkeys([*default, *measures])), progress=False)
    reasons = {key: matrix.reasons[a, b] for key, matrix in matrices.items() if (a, b) in matrix.reasons}
    return {key: matrix[a, b] for key, matrix in matrices.items()}, reasons


def _looked_at(views: Sequence[Activations]) -> str:
    """The layer of the scores, with what the embedding of each network is where they are not the same."""
    layer, sources = str(views[0].about["layer"]), [view.about.get("embedding") for view in views]
    if sources[0] == sources[1]:
        return layer
    return " and ".join(
        f"{source or view.about['layer']} of {view.name}" for view, source in zip(views, sources, strict=True)
    )


def _transfer(
    nets: Mapping[str, nn.Module], show: Show, data: Any, count: bool | int | None, seed: int
) -> Transfer | str:
    """How far adversarial examples made from the first fool both, or why that was not computed."""
    reason = "images are shown by a transform of yours" if show.transform is not None else _no_attack(data, count)
    if reason:
        return reason
    images = data[: ATTACKED if count is None or count is True else int(count)]
    options: dict[str, Any] = {"seed": seed, "device": show.device, "progress": show.progress, "iterations": STEPS}
    try:
        rates = one_sided({"attacked": next(iter(nets.values()))}, dict(nets), images, "pgd", **options)
    except InputError as error:
        if count is not None:
            raise
        return str(error).rstrip(".")
    itself, other = (rate / 100 for rate in rates.percent)
    return Transfer("pgd", STEPS, itself, other, rates.counts[1], rates.counts[0])


def _no_attack(data: Any, count: bool | int | None) -> str:
    if count is False or count == 0:
        return "it was not asked for"
    if not isinstance(data, Data) or domain_of(data) != "image":
        return "the data is no labelled images"
    if data.labels is None:
        return "the images have no labels"
    width = max(getattr(data.inputs, "shape", (0, 0, 0))[2:], default=0)
    if count is None and not 0 < width <= SMALL:
        return f"images wider than {SMALL} pixels take minutes; transfer=True or --transfer 100 asks for it"
    return ""
