"""What a training is made of: its settings, the optimiser, and the learning rate at every moment.

A setting is a field of `Settings`, with its help beside it: `likewise.train` takes it as a keyword and
`likewise train` as an option. `SettingsDict` repeats names and types for editors and type checkers, which
cannot read them off a dataclass; a test holds the two together.

The learning rate is a function of how far the training is, not a counter that is stepped: one that is
resumed needs to know nothing but where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypedDict

import torch
from torch import nn

from likewise._base.hashing import value_digest
from likewise._base.registry import parse_options
from likewise.errors import InputError, OptionError, brief, check_seed, did_you_mean
from likewise.networks.training.augment import Augment

Schedule = Literal["cosine", "linear", "step", "plateau", "constant"] | Callable[[float], float]
OPEN_ENDED = ("plateau", "constant")  # schedules whose rates do not depend on how many epochs there will be
_OPTIMISERS = {"sgd": 0.1, "adam": 1e-3, "adamw": 1e-3}  # and the learning rate each starts with


def _linear(settings: Settings, epochs_done: float, losses: Sequence[float]) -> float:
    falling = settings.epochs - settings.warmup  # from the end of the warm-up, at the full rate, to 0
    return min(1.0, (settings.epochs - epochs_done) / falling) if falling > 0 else 1.0


# factors of the learning rate, from the settings, the epochs that are done, and their losses
_SCHEDULES: dict[str, Callable[[Settings, float, Sequence[float]], float]] = {
    "cosine": lambda settings, done, losses: 0.5 * (1 + math.cos(math.pi * (done / settings.epochs))),
    "linear": _linear,
    "step": lambda settings, done, losses: (
        settings.decay ** sum(done / settings.epochs >= mark for mark in settings.milestones)
    ),
    "plateau": lambda settings, done, losses: settings.decay ** plateaus(losses),
    "constant": lambda settings, done, losses: 1.0,
}


def setting(default: Any, help: str, **facts: Any) -> Any:
    """A field of `Settings`.

    `minimum` and `choices` are checked (a function may stand for a choice), and `only_for`, the values of another
    setting without which it has no effect; `option` is its type as an option of the command, where that is another.
    """
    return field(default=default, metadata={"help": help, **facts})


@dataclass(frozen=True)
class Settings:
    """Everything that decides which weights a training ends with, besides network and data.

    Attributes:
        epochs: How often all the data is shown.
        seed: Same seed, same weights.
        batch_size: Inputs in one step.
        optimiser: "sgd", "adam" or "adamw".
        lr: Learning rate; 0.1 for sgd, 0.001 else.
        momentum: Of sgd.
        weight_decay: Pull of the weights towards 0.
        schedule: "cosine", "linear", "step", "plateau", "constant", or a function from the share of the training that
            is done to a factor of the rate.
        milestones: Shares of all epochs after which the schedule "step" lowers the rate.
        decay: Factor by which "step" and "plateau" lower the rate.
        warmup: Epochs until the full learning rate.
        label_smoothing: Share given to all classes.
        augment: "flip", "crop", "resized-crop", "cutout", "noise"; through torchvision "rotation", "blur", "jitter",
            "perspective", "affine"; functions of a batch and a generator; or several.
        mixup: Alpha of mixup; 0 is off.
        cutmix: Alpha of cutmix; 0 is off.
        adversarial: Options of an attack, as in `dict(attack="pgd", eps=8/255, iterations=10)`: train on examples it
            makes of every batch from the network as it is then; loss and accuracy of the record are those on them.
        clip: Largest norm of the gradient.
        patience: Stop after so many epochs without a lower validation loss.
        evaluate_every: Validate after so many steps too (`evaluations` of the record).
        keep_best: End with the weights of the best validation accuracy, of ties the first: `best_step` of the last
            record with one.
    """

    epochs: int = setting(10, "How often all the data is shown.", minimum=1)
    seed: int = setting(0, "Same seed, same weights.", minimum=0)
    batch_size: int = setting(128, "Inputs in one step.", minimum=1)
    optimiser: str = setting("sgd", "sgd, adam or adamw.", choices=tuple(_OPTIMISERS))
    lr: float | None = setting(None, "Learning rate; 0.1 for sgd, 0.001 else.", minimum=0)
    momentum: float = setting(0.9, "Of sgd.", minimum=0, only_for=("optimiser", ("sgd",)))
    weight_decay: float = setting(5e-4, "Pull of the weights towards 0.", minimum=0)
    schedule: Schedule = setting(  # noqa: RUF009
        "cosine", "cosine, linear, step, plateau or constant.", choices=tuple(_SCHEDULES), option=str
    )
    milestones: Sequence[float] = setting(
        (0.5, 0.75),
        "Shares of all epochs after which the schedule 'step' lowers the rate.",
        option=list[float],
        only_for=("schedule", ("step",)),
    )
    decay: float = setting(
        0.1,
        "Factor by which 'step' and 'plateau' lower the rate.",
        minimum=0,
        only_for=("schedule", ("step", "plateau")),
    )
    warmup: float = setting(0.0, "Epochs until the full learning rate.", minimum=0)
    label_smoothing: float = setting(0.0, "Share given to all classes.")
    augment: str | Sequence[str | Augment] = setting(
        (),
        "flip, crop, resized-crop, cutout, noise, rotation, blur, jitter, perspective or affine; may be repeated.",
        option=list[str],
    )
    mixup: float = setting(0.0, "Alpha of mixup; 0 is off.", minimum=0)
    cutmix: float = setting(0.0, "Alpha of cutmix; 0 is off.", minimum=0)
    adversarial: str | Mapping[str, Any] | None = setting(
        None, "Train on attacked inputs: attack=pgd,eps=8/255.", option=str | None
    )
    clip: float | None = setting(None, "Largest norm of the gradient.", minimum=0)
    patience: int | None = setting(None, "Stop after so many epochs without a lower loss.", minimum=1)
    evaluate_every: int | None = setting(None, "Validate after so many steps too, not only after epochs.", minimum=1)
    keep_best: bool = setting(False, "End with the weights of the best validation accuracy, not with the last.")

    def __post_init__(self) -> None:
        augment = (self.augment,) if isinstance(self.augment, str) else tuple(self.augment)
        object.__setattr__(self, "augment", augment)
        object.__setattr__(self, "milestones", tuple(self.milestones))
        object.__setattr__(self, "adversarial", _attack(self.adversarial))
        for one in fields(self):
            _check(one.name, getattr(self, one.name), one.metadata)
            self._check_use(one.name, one.default, one.metadata)
        if not all(0 < share < 1 for share in self.milestones):
            raise InputError(f"milestones are {brief(self.milestones)}. Give shares of all epochs, between 0 and 1.")
        if self.warmup > self.epochs:
            raise InputError(f"warmup is {self.warmup:g} epochs, and there are {self.epochs}. Give at most as many.")
        check_seed(self.seed)
        if not 0 <= self.label_smoothing <= 1:
            raise InputError(f"label_smoothing is {self.label_smoothing}. Give a share, 0 to 1.")
        if self.adversarial is not None and (self.mixup or self.cutmix):
            raise InputError(
                "mixed inputs have no one label to be led away from. Leave out adversarial, or mixup and cutmix."
            )

    def _check_use(self, name: str, default: Any, facts: Mapping[str, Any]) -> None:
        """Refuse what another setting makes useless."""
        other, values = facts.get("only_for", (name, None))
        if values is not None and getattr(self, name) != default and getattr(self, other) not in values:
            raise InputError(
                f"{name} is for the {other} {' or '.join(map(repr, values))}, and it is {brief(getattr(self, other))}. "
                f"Leave {name} out."
            )

    @property
    def rate(self) -> float:
        """The learning rate before warm-up and schedule."""
        return self.lr if self.lr is not None else _OPTIMISERS[self.optimiser]

    def override(self, changes: Mapping[str, Any], also: Sequence[str] = ()) -> Settings:
        """These settings but for some.

        Args:
            changes: Other values, by name.
            also: Names that a misspelt one may have meant.
        """
        names = [one.name for one in fields(self)]
        for name in changes:
            if name not in names:
                hint = did_you_mean(name, [*names, *also])
                raise OptionError(f"a training has no setting {name!r}.{hint} It has {', '.join(names)}.")
        return replace(self, **changes)

    def record(self) -> dict[str, Any]:
        """The settings as plain values; functions by their name and a hash of their code."""
        return {name: _plain(value) for name, value in asdict(self).items()}


class SettingsDict(TypedDict, total=False):
    """The fields of `Settings` as keywords of a function."""

    epochs: int
    seed: int
    batch_size: int
    optimiser: str
    lr: float | None
    momentum: float
    weight_decay: float
    schedule: Schedule
    milestones: Sequence[float]
    decay: float
    warmup: float
    label_smoothing: float
    augment: str | Sequence[str | Augment]
    mixup: float
    cutmix: float
    adversarial: str | Mapping[str, Any] | None
    clip: float | None
    patience: int | None
    evaluate_every: int | None
    keep_best: bool


def _check(name: str, value: Any, facts: Mapping[str, Any]) -> None:
    choices, minimum = facts.get("choices"), facts.get("minimum")
    if choices is not None and not callable(value) and value not in choices:
        hint = did_you_mean(str(value), choices)
        raise InputError(f"no {name} named {value!r}.{hint} There are {', '.join(choices)}.")
    if minimum is not None and value is not None and not minimum <= value < math.inf:
        raise InputError(f"{name} is {value}. Give {'0 or more' if minimum == 0 else f'at least {minimum}'}.")


def _attack(options: Any) -> dict[str, Any] | None:
    """The options of adversarial training, typed or as a mapping."""
    if isinstance(options, str):
        return parse_options(options, "adversarial")
    if options is None or isinstance(options, Mapping):
        return None if options is None else dict(options)
    raise InputError(f"adversarial is {brief(options)}. Give options, as in dict(attack='pgd', eps=8/255).")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    if not callable(value):
        return value
    return f"{getattr(value, '__name__', type(value).__name__)} {value_digest(value)[:8]}"


def make_optimiser(net: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """The optimiser over everything that may be trained."""
    parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
    if not parameters:
        raise InputError(f"{type(net).__name__} has nothing to train. Set requires_grad on some parameters.")
    common: dict[str, Any] = {"lr": settings.rate, "weight_decay": settings.weight_decay}
    if settings.optimiser == "sgd":
        return torch.optim.SGD(parameters, momentum=settings.momentum, nesterov=settings.momentum > 0, **common)
    return (torch.optim.Adam if settings.optimiser == "adam" else torch.optim.AdamW)(parameters, **common)


def rate_at(settings: Settings, epochs_done: float, losses: Sequence[float]) -> float:
    """The learning rate after so many epochs (a fraction within one); `losses` is for plateaus.

    >>> settings = Settings(epochs=10, lr=1.0, warmup=2)
    >>> [round(rate_at(settings, e, []), 3) for e in (0, 1, 2, 5, 10)]
    [0.0, 0.488, 0.905, 0.5, 0.0]
    """
    warm = min(1.0, epochs_done / settings.warmup) if settings.warmup else 1.0
    if callable(settings.schedule):
        factor = settings.schedule(epochs_done / settings.epochs)
    else:
        factor = _SCHEDULES[settings.schedule](settings, epochs_done, losses)
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


def epochs_since_lowest(losses: Sequence[float]) -> int:
    """How many epochs ago the loss was lowest."""
    return len(losses) - 1 - losses.index(min(losses)) if losses else 0
