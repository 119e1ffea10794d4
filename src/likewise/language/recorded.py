"""What a language model says of a probe, as it is kept in a recording, and two of those side by side.

Per token the loss of the true one and the 64 most likely tokens with their probabilities. KL divergence is then taken
over the tokens that both keep and one bucket for all others: never more than the true one, since merging outcomes can
only bring distributions closer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from likewise._base.arrays import Array
from likewise.comparison.recordings.recording import Recording
from likewise.data import Data
from likewise.language.reading import WINDOW, Run, batches_of, check_kinds, log_probabilities, pieces_of
from likewise.language.result import Side, TokenAnswers
from likewise.language.texts import read_texts, texts_of
from likewise.networks.forward import eval_mode
from likewise.networks.sources.language import language_kind
from likewise.views.show import Show

KEPT = 64  # tokens per position
LEAST = 1e-6  # probability of the rest: less is what rounding leaves of 1


def record_tokens(net: nn.Module, name: str, data: Data, show: Show, *, seed: int = 0) -> dict[str, Array]:
    """What a language model says of every token of the texts."""
    from likewise.language.hidden import hide

    kind = language_kind(net) or "causal"
    tokens = read_texts(net, texts_of(data), WINDOW, decoder=kind == "seq2seq")
    hidden = hide(net, tokens, seed) if kind == "masked" else None
    columns: dict[str, list[Array]] = {}
    with eval_mode(net, show.device) as ready:
        run = Run(ready, name, tokens, kind, 1, hidden)
        for texts, places, facts in batches_of([run], show):
            piece = run.logits.of(run.inputs(texts))
            for some in pieces_of(places, run.logits.vocabulary):
                side = log_probabilities(run, piece, places[some], run.logits.vocabulary)
                truth = facts[2][some]
                top = side.topk(min(KEPT, side.shape[1]), dim=1)
                values = {"text": facts[0][some], "position": facts[1][some], "token": truth}
                values |= {"loss": -side.gather(1, truth[:, None].to(side.device))[:, 0].float()}
                values |= {"top": top.indices.to(torch.int32), "log_p": top.values.float()}
                for key, value in values.items():
                    columns.setdefault(key, []).append(value.cpu().numpy())
    joined = {key: np.concatenate(parts) for key, parts in columns.items()}
    order = np.lexsort((joined["position"], joined["text"]))
    joined = {key: value[order] for key, value in joined.items()}
    for key in ("text", "position", "token"):
        joined[key] = joined[key].astype(np.int32)
    joined["cut"] = np.array([tokens.cut])
    return joined | ({} if tokens.bytes is None else {"bytes": np.array(tokens.bytes)})


def answers_of(a: Recording, b: Recording, names: tuple[str, str], decode: Any = None) -> TokenAnswers:
    """What two recorded language models say, token by token."""
    one, other = a.answers, b.answers
    kinds = [str(side.about.get("language", "causal")) for side in (a, b)]
    check_kinds(names, kinds)
    shared = all(np.array_equal(one[key], other[key]) for key in ("text", "position", "token"))
    sides = [_side(answers) for answers in (one, other)]
    kl = _divergence(one, other) if shared else None
    token = one["token"].astype(np.int64) if shared else None
    return TokenAnswers(names, a.data, a.n, kinds[0], sides[0], sides[1], kl=kl, token=token, decode=decode)


def _side(answers: Any) -> Side:
    sizes = answers["bytes"].tolist() if "bytes" in answers else None
    top = answers["top"][:, 0].astype(np.int64)
    loss = answers["loss"].astype(np.float64)
    return Side(
        answers["text"].astype(np.int64), answers["position"].astype(np.int64), loss, top, sizes, int(answers["cut"][0])
    )


def _divergence(one: Any, other: Any) -> Array:
    """KL divergence over the tokens that both keep, and one bucket for the rest.

    Summed as p (ln p/q + q/p - 1), whose second half adds up to 0: no term is negative, and what single precision does
    to the logarithms counts by its square.
    """
    found = np.empty(len(one["top"]))
    for row in range(len(found)):
        _, left, right = np.intersect1d(one["top"][row], other["top"][row], assume_unique=True, return_indices=True)
        logs = [one["log_p"][row, left].astype(np.float64), other["log_p"][row, right].astype(np.float64)]
        log_p, log_q = (np.append(some, np.log(max(1 - np.exp(some).sum(), LEAST))) for some in logs)
        gaps = log_p - log_q
        found[row] = (np.exp(log_p) * (gaps + np.expm1(-gaps))).sum()
    return found
