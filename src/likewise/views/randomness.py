"""Networks that answer at random: found by passing a few inputs twice, named, and run from a seed.

An autoencoder that masks a random part of each image does so in evaluation mode too, as does dropout that was not told
of it. What such a network gives is one draw; from a seed it is at least the same draw every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.progress import warn
from likewise.errors import InputError, LikewiseError
from likewise.networks import recipe, unwrapped
from likewise.networks.inputs.normalisation import note, noted

_NOTE = "answers at random"


@contextmanager
def run_from_seed(seed: int, device: torch.device | None) -> Iterator[None]:
    """Draw from a seed of torch meanwhile; its generators are as they were afterwards."""
    on_gpu = device is not None and device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.manual_seed(seed)
        yield


def answers_at_random(
    ask: Callable[[], Sequence[Tensor]], net: nn.Module, device: torch.device | None, label: str
) -> bool:
    """Whether a pass that `ask` runs gives other numbers when it is run again, which a warning then says.

    Raises:
        InputError: It does so from one seed too.
    """
    try:
        with run_from_seed(0, device):
            change = _change(ask(), ask())
        again = []
        for _ in range(2 if change else 0):
            with run_from_seed(0, device):
                again.append(ask())
    except LikewiseError:  # a few inputs alone may not do
        return False
    if not change:
        return False
    what = f"the same inputs, shown again, give numbers that differ by {change:.2g} times their size"
    if _change(*again):
        raise InputError(
            f"{label} does not repeat its answers: {what}, also from one seed of torch. Have its forward pass keep no "
            "state and draw nothing."
        )
    warn(
        f"{label} answers at random: {what}. It is run from a fixed seed, so that results are those of one draw. "
        f"{_remedy(net)}"
    )
    return True


@contextmanager
def repeatable(
    ask: Callable[[], Sequence[Tensor]], net: nn.Module, device: torch.device | None, label: str
) -> Iterator[None]:
    """Have a network that answers at random, which is said once, draw the same in every pass meanwhile."""
    if noted(net, _NOTE) is None:
        note(net, _NOTE, answers_at_random(ask, net, device, label))
    if not noted(net, _NOTE):
        yield
        return
    draws: list[ExitStack] = []

    def begin(*_: Any) -> None:
        draws.append(ExitStack())
        draws[-1].enter_context(run_from_seed(0, device))

    def end(*_: Any) -> None:
        draws.pop().close()

    hooks = [net.register_forward_pre_hook(begin, prepend=True), net.register_forward_hook(end, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _change(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """The largest relative difference, 0 where it may be rounding or is undefined."""
    largest = 0.0
    for x, y in zip(one, other, strict=True):
        change = float((x - y).norm() / x.norm()) if x.shape == y.shape else math.inf
        if change > max(largest, math.sqrt(torch.finfo(x.dtype).eps)):
            largest = change
    return largest


def _remedy(net: nn.Module) -> str:
    """How to have a network draw nothing, as far as that is known."""
    origin, config = recipe(net), getattr(unwrapped(net), "config", None)
    masked: Any = getattr(config, "mask_ratio", None)
    if origin is not None and masked:
        return f"Have it mask nothing: '{origin.network},mask_ratio=0.0'."
    if masked == 0:
        return "Its patches come in a random order: choose reduce='mean' or 'cls', which are the same in any order."
    return "Have it draw nothing in evaluation mode; dropout, for one, takes training=self.training."
