"""The difference of two language models: layers and weights as of any two networks, and what they say of every token.

Layers are those of the networks without their heads, which give a number per word of the vocabulary and token; weights
are those of all of it. Where the two are in different precisions, what the precision alone changes is measured on a
copy of the first, and a layer or an answer counts as changed where it moves more than that.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from likewise.data import Data
from likewise.data.inputs import data_name, domain_of
from likewise.difference.inputs import previews
from likewise.difference.language_models.tokens import token_changes, token_score
from likewise.difference.layers import LayerChange, layer_changes
from likewise.difference.result import Check, Diff
from likewise.difference.rounding import precision_of, with_floors
from likewise.difference.weights import WeightChange, weight_changes
from likewise.errors import InputError
from likewise.language import TokenAnswers
from likewise.language.networks import as_language_model
from likewise.language.reading import compare_tokens
from likewise.measures.function import Measure
from likewise.networks.sources.language import encoder_of
from likewise.views import Activations
from likewise.views.extract import extract_network
from likewise.views.show import Show

Limits = Sequence[tuple[Measure, str, float]]
FEWEST = 4  # texts that debiased CKA needs


def language_models(networks: Mapping[str, Any], data: Any, device: Any) -> dict[str, nn.Module] | None:
    """The networks with their heads, where both are language models and are shown texts; else None."""
    if domain_of(data) != "text":
        return None
    loaded = {}
    for name, network in networks.items():
        net = as_language_model(network, device=device)
        if net is None:
            return None
        loaded[name] = net
    return loaded


def check_texts(data: Any) -> None:
    """Refuse fewer texts than layers can be compared over."""
    count = len(data["input_ids"] if isinstance(data, Mapping) else data)
    if count < FEWEST:
        raise InputError(
            f"there {'is 1 text' if count == 1 else f'are {count} texts'}, and layers are compared over at least "
            f"{FEWEST}. Give more, or cut a long one into several; likewise.language.answers compares the words of "
            "fewer."
        )


def language_diff(
    nets: Mapping[str, nn.Module],
    data: Any,
    show: Show,
    layers: Any,
    limits: Limits,
    scores: Any,
    seed: int,
    memory: int,
) -> Diff:
    """What changed from one language model to another; `scores` gives those of measures of two views."""
    check_texts(data)
    encoders = {name: encoder_of(net) for name, net in nets.items()}
    show = replace(show, data=data, reduce=show.reduce or "mean")
    views = [extract_network(net, show, name, outputs=False) for name, net in encoders.items()]
    changes = layer_changes(encoders, [show, show], layers, seed, memory)
    answers = compare_tokens(list(nets.values()), list(nets), data, show, seed=seed)
    floors, rounding = _rounding(list(nets.values()), data, show, layers, seed, memory)
    return summed_up(
        views, with_floors(changes, floors), weight_changes(*nets.values()), answers, rounding, data, limits, scores
    )


def summed_up(
    views: Sequence[Activations],
    layers: tuple[LayerChange, ...],
    weights: WeightChange,
    answers: TokenAnswers,
    rounding: float,
    data: Any,
    limits: Limits,
    scores: Any,
) -> Diff:
    """The difference, of what was seen of both networks."""
    tokens = token_changes(answers, rounding)
    on_views = [measure.key for measure, _, _ in limits if measure.info.on != "networks"]
    values, reasons = scores(views, on_views)
    for measure, _, _ in limits:
        if measure.info.on == "networks":
            values[measure.key], reasons[measure.key] = token_score(tokens, measure)
    reasons = {key: reason for key, reason in reasons.items() if reason}
    rows = [text.row for text in tokens.changed]
    return Diff(
        names=(views[0].name, views[1].name),
        data=data_name(data),
        n=answers.n,
        looked_at=str(views[0].about["layer"]),
        scores=values,
        reasons=reasons,
        layers=layers,
        weights=weights,
        answers="they answer with tokens",
        transfer="the data is no labelled images",
        inputs=tuple(previews(data, rows)) if isinstance(data, Data) else (),
        checks=tuple(
            Check(measure.key, side, limit, values[measure.key], reasons.get(measure.key, ""))
            for measure, side, limit in limits
        ),
        tokens=tokens,
    )


def _rounding(
    nets: Sequence[nn.Module], data: Any, show: Show, layers: Any, seed: int, memory: int
) -> tuple[dict[str, float], float]:
    """What the lower precision of one alone changes: per layer, and in KL divergence; nothing where they agree."""
    precisions = [precision_of(net) for net in nets]
    if show.dtype is not None or precisions[0] == precisions[1]:
        return {}, 0.0
    full = max(range(2), key=lambda i: torch.finfo(precisions[i]).bits)
    rounded = copy.deepcopy(nets[full]).to(precisions[1 - full])
    pair = {"whole": nets[full], "rounded": rounded}
    show = replace(show, progress=False)
    encoders = {name: encoder_of(net) for name, net in pair.items()}
    floors = {change.layer: change.change for change in layer_changes(encoders, [show, show], layers, seed, memory)}
    answers = compare_tokens(list(pair.values()), list(pair), data, show, seed=seed)
    return floors, 0.0 if answers.kl is None else float(answers.kl.mean())
