"""`diff`: what changed between a network and a fine-tuned, quantised, pruned or re-trained copy of it.

Both are shown the same inputs. Layers, weights, answers and attacks are looked at in turn, each in a file of its own,
and `Diff` puts them into words. Thresholds make it a regression test: what misses one is in `failures`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from likewise.comparison.compare import compare
from likewise.data import Data, as_data
from likewise.data.inputs import domain_of
from likewise.data.objects import read_once
from likewise.difference.answers import answer_changes
from likewise.difference.inputs import shown_inputs
from likewise.difference.layers import layer_changes
from likewise.difference.result import Check, Diff, Transfer
from likewise.difference.weights import weight_changes
from likewise.errors import InputError, brief
from likewise.measures.registry import select
from likewise.networks.names import named_networks, network_and_name
from likewise.transfer import one_sided
from likewise.views import Activations
from likewise.views.extract import data_name, extract_without_note

MEASURES = ("cka-debiased", "disagreement")
ATTACKED, STEPS = 100, 10  # inputs that are attacked where nobody says how many, and steps of the attack
SMALL = 64  # pixels of a side, up to which an attack takes seconds
SHOWN = 12  # flips that are kept with their inputs


def diff(
    a: str | nn.Module,
    b: str | nn.Module,
    data: Any = None,
    *,
    names: Sequence[str] | None = None,
    layers: str | Sequence[str] | None = None,
    head: str | None = None,
    reduce: str | None = None,
    transfer: bool | int | None = None,
    fail_under: Mapping[str, float] | None = None,
    fail_over: Mapping[str, float] | None = None,
    batch_size: int | None = None,
    device: Any = None,
    seed: int = 0,
    progress: bool = True,
) -> Diff:
    """What changed from network `a` to network `b`, on data: layers, weights, answers, classes, attacks, a verdict.

    a, b        addresses or modules: a network, and a fine-tuned, quantised, pruned or re-trained one
    data        what both are shown; with labels, accuracies and attacks are compared too
    names       what the two are called, if not by their addresses
    layers      names or globs of the layers to look at; all of them where the two have the same ones, else blocks
    head        the classifier, where it cannot be found
    reduce      how maps and tokens become rows; "flatten" if not said, "mean" for text
    transfer    attack `a` and show `b` the examples: how many inputs, True for 100, False for none. If not said, 100
                of labelled images up to 64 pixels wide, since an attack of larger ones takes minutes
    fail_under  `{measure: least value}`, of the last hidden layer or the answers
    fail_over   `{measure: largest value}`

    What misses a threshold is in `failures` of the result; `ok` says whether none does.

    >>> import copy, torch, likewise
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> found = likewise.diff(net, copy.deepcopy(net), torch.randn(50, 4), fail_under={"cka-debiased": 0.95})
    >>> found.verdict, found.ok
    ('identical', True)
    """
    if data is None:
        raise InputError("no data to show the networks. Pass data, as in data='cifar10:test[:1000]'.")
    limits = [("under", fail_under or {}), ("over", fail_over or {})]
    asked = _measures(limits)
    inputs = as_data(data)
    inputs = read_once(inputs) if isinstance(inputs, Iterator) else inputs
    called = _names(a, b, names)
    nets = [network_and_name(each, name, data=inputs)[0] for each, name in zip((a, b), called, strict=True)]
    views = [
        extract_without_note(
            net,
            inputs,
            None,
            reduce,
            None,
            batch_size=batch_size,
            device=device,
            dtype=None,
            name=name,
            head=head,
            transform=None,
            progress=progress,
        )
        for net, name in zip(nets, called, strict=True)
    ]
    how: dict[str, Any] = {"reduce": reduce, "batch_size": batch_size, "device": device, "seed": seed}
    answers = answer_changes(views[0], views[1], inputs.classes if isinstance(inputs, Data) else ())
    scores, reasons = _scores(views, [m for m in (*MEASURES, *asked) if m != "disagreement" or _answered(views)])
    changes = layer_changes(nets[0], nets[1], inputs, called, chosen=layers, progress=progress, **how)
    fooled = _transfer(nets, inputs, called, transfer, device, seed, progress)
    flips = () if isinstance(answers, str) else answers.flips[:SHOWN]
    return Diff(
        names=called,
        data=data_name(inputs),
        n=views[0].n,
        looked_at=str(views[0].about["layer"]),
        scores=scores,
        reasons=reasons,
        layers=tuple(changes),
        weights=weight_changes(*nets),
        answers=answers,
        transfer=fooled,
        inputs=tuple(shown_inputs(inputs, [flip.row for flip in flips])),
        checks=tuple(_checks(limits, scores, reasons)),
    )


def _names(a: Any, b: Any, names: Sequence[str] | None) -> tuple[str, str]:
    for each in (a, b):
        if not isinstance(each, (str, nn.Module)):
            raise InputError(f"diff takes two networks, and was given {brief(each)}. Give addresses or modules.")
    found = list(named_networks([a, b]) if names is None else names)
    if len(found) != 2 or found[0] == found[1]:
        raise InputError(f"two different names are needed, got {brief(names)}. Leave names out, or give two.")
    return str(found[0]), str(found[1])


def _measures(limits: Sequence[tuple[str, Mapping[str, float]]]) -> list[str]:
    """The measures that have a threshold, all of them known."""
    wanted = list(dict.fromkeys(name for _, each in limits for name in each))
    for name in wanted:
        found = select(name, on=("representation", "outputs"))
        if len(found) > 1:
            raise InputError(f"a threshold is for one measure, and {name!r} stands for {len(found)}. Name them.")
    return [select(name)[0].key for name in wanted]


def _answered(views: Sequence[Activations]) -> bool:
    return all(view.outputs is not None for view in views)


def _scores(views: Sequence[Activations], measures: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
    a, b = (view.name for view in views)
    found = compare({view.name: view for view in views}, list(dict.fromkeys(measures)), progress=False)
    reasons = {key: matrix.reasons[a, b] for key, matrix in found.items() if (a, b) in matrix.reasons}
    return {key: matrix[a, b] for key, matrix in found.items()}, reasons


def _checks(
    limits: Sequence[tuple[str, Mapping[str, float]]], scores: Mapping[str, float], reasons: Mapping[str, str]
) -> Iterator[Check]:
    for side, wanted in limits:
        for name, limit in wanted.items():
            key = select(name)[0].key
            yield Check(key, side, float(limit), scores[key], reasons.get(key, ""))


def _transfer(
    nets: Sequence[nn.Module],
    data: Any,
    names: tuple[str, str],
    asked: bool | int | None,
    device: Any,
    seed: int,
    progress: bool,
) -> Transfer | str:
    """How far examples made from the first fool both, or why that was not looked at."""
    reason = _unfit(data, asked)
    if reason:
        return reason
    count = ATTACKED if asked is None or asked is True else int(asked)
    zoo = dict(zip(names, nets, strict=True))
    how: dict[str, Any] = {"seed": seed, "device": device, "progress": progress, "iterations": STEPS}
    try:
        found = one_sided({"attacked": nets[0]}, zoo, data[:count], "pgd", **how)
    except InputError as error:
        if asked is not None:
            raise
        return str(error).rstrip(".")
    itself, other = (rate / 100 for rate in found.percent)
    return Transfer("pgd", STEPS, itself, other, found.counts[1])


def _unfit(data: Any, asked: bool | int | None) -> str:
    if asked is False or asked == 0:
        return "it was not asked for"
    if not isinstance(data, Data) or domain_of(data) != "image":
        return "the data is no labelled images"
    if data.labels is None:
        return "the images have no labels"
    width = max(getattr(data.inputs, "shape", (0, 0, 0))[2:], default=0)
    if asked is None and not 0 < width <= SMALL:
        return f"images wider than {SMALL} pixels take minutes; transfer=True or --transfer 100 asks for it"
    return ""
