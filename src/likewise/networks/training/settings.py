"""What a training is made of: its settings, the optimiser, and the learning rate at every moment.

The learning rate is a function of how far the training is, not a counter that is stepped: one
that goes on after being killed needs to know nothing but where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import nn

from likewise._base.hashing import value_digest
from likewise.errors import InputError, did_you_mean

Schedule = Literal["cosine", "step", "plateau", "constant"] | Callable[[float], float]
_OPTIMISERS = {"sgd": 0.1, "adam": 1e-3, "adamw": 1e-3}  # and the learning rate each starts with
_AT_LEAST_0 = ("lr", "momentum", "weight_decay", "decay", "warmup", "mixup", "cutmix", "clip")
_SCHEDULES = ("cosine", "step", "plateau", "constant")


@dataclass(frozen=True)
class Settings:
    """Everything that decides which weights a training ends with, besides network and data."""

    epochs: int
    seed: int = 0
    batch_size: int = 128
    optimiser: str = "sgd"
    lr: float | None = None
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: Schedule = "cosine"
    milestones: tuple[float, ...] = (0.5, 0.75)
    decay: float = 0.1
    warmup: float = 0.0
    label_smoothing: float = 0.0
    augment: tuple[Any, ...] = ()
    mixup: float = 0.0
    cutmix: float = 0.0
    clip: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.optimiser not in _OPTIMISERS:
            raise InputError(_no_such("optimiser", self.optimiser, list(_OPTIMISERS)))
        if not callable(self.schedule) and self.schedule not in _SCHEDULES:
            raise InputError(_no_such("schedule", self.schedule, _SCHEDULES))
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}. Give at least 1.")
        for name in _AT_LEAST_0:
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}. Give 0 or more.")
        if not 0 <= self.label_smoothing <= 1:
            raise InputError(f"label_smoothing is {self.label_smoothing}. Give a share, 0 to 1.")

    @property
    def rate(self) -> float:
        """The learning rate before warm-up and schedule."""
        return self.lr if self.lr is not None else _OPTIMISERS[self.optimiser]

    def record(self) -> dict[str, Any]:
        """The settings as plain values; functions by their name and a hash of their code."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if not callable(value):
        return value
    return f"{getattr(value, '__name__', type(value).__name__)} {value_digest(value)[:8]}"


def _no_such(kind: str, name: object, known: Sequence[str]) -> str:
    hint = did_you_mean(str(name), known)
    return f"no {kind} named {name!r}.{hint} There are {', '.join(known)}."


def make_optimiser(net: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """The optimiser over everything that may be trained."""
    parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
    if not parameters:
        raise InputError(f"{type(net).__name__} has nothing to train. Set requires_grad on some parameters.")
    rate, decay = settings.rate, settings.weight_decay
    if settings.optimiser == "sgd":
        return torch.optim.SGD(
            parameters,
            lr=rate,
            momentum=settings.momentum,
            weight_decay=decay,
            nesterov=settings.momentum > 0,
        )
    kind = torch.optim.Adam if settings.optimiser == "adam" else torch.optim.AdamW
    return kind(parameters, lr=rate, weight_decay=decay)


def rate_at(settings: Settings, epochs_done: float, losses: Sequence[float]) -> float:
    """The learning rate after so many epochs (a fraction within one); `losses` is for plateaus.

    >>> settings = Settings(epochs=10, lr=1.0, warmup=2)
    >>> [round(rate_at(settings, e, []), 3) for e in (0, 1, 2, 5, 10)]
    [0.0, 0.488, 0.905, 0.5, 0.0]
    """
    share = epochs_done / settings.epochs
    warm = min(1.0, epochs_done / settings.warmup) if settings.warmup else 1.0
    if callable(settings.schedule):
        factor = settings.schedule(share)
    elif settings.schedule == "cosine":
        factor = 0.5 * (1 + math.cos(math.pi * share))
    elif settings.schedule == "step":
        factor = settings.decay ** sum(share >= mark for mark in settings.milestones)
    elif settings.schedule == "plateau":
        factor = settings.decay ** plateaus(losses)
    else:
        factor = 1.0
    return settings.rate * warm * factor


def plateaus(losses: Sequence[float], wait: int = 10) -> int:
    """How often the loss failed to reach a new low for `wait` epochs together.

    >>> plateaus([3, 2, 2, 2, 1, 1, 1], wait=2)
    2
    """
    count, since, best = 0, 0, math.inf
    for loss in losses:
        since = 0 if loss < best else since + 1
        best = min(best, loss)
        if since == wait:
            count, since = count + 1, 0
    return count


def waited(losses: Sequence[float]) -> int:
    """How many epochs ago the loss was lowest."""
    return len(losses) - 1 - losses.index(min(losses)) if losses else 0
