"""What the numbers are that a network answers with: the one place where that is asked.

A network says so by an attribute, `answers = "probabilities"` or `"lengths"`; one without it answers with logits.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

from torch import nn

from likewise.errors import InputError, did_you_mean
from likewise.networks.inputs.normalisation import unwrapped

Answers = Literal["logits", "probabilities", "lengths"]
ANSWERS: tuple[str, ...] = get_args(Answers)


def answers_with(net: nn.Module) -> Answers:
    """What a network answers with: `logits`, `probabilities` that sum to one, or `lengths` in [0, 1] that do not.

    >>> answers_with(nn.Linear(2, 2))
    'logits'
    """
    declared = getattr(unwrapped(net), "answers", "logits")
    return check_answers(declared) if isinstance(declared, str) else "logits"


def check_answers(given: str) -> Answers:
    """One of the three kinds of answers, or a sentence that names them."""
    if given not in ANSWERS:
        raise InputError(
            f"networks do not answer with {given!r}.{did_you_mean(str(given), ANSWERS)} Give {', '.join(ANSWERS[:-1])} "
            f"or {ANSWERS[-1]}."
        )
    return cast(Answers, given)
