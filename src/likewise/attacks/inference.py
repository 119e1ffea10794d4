"""A faster copy of a network for attacks: batch norms folded into the layers before them, channels last.

An attack asks for the gradient of its images alone, so the weights may be rewritten as long as the answers stay.
Which batch norm reads which layer is taken from the graph of a real pass, never from the order of names. The copy is
used where its answers agree; rounding differs, so a gradient near zero may change its sign.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from likewise.networks.forward import logits

AGREE = 1e-4  # of the largest distance of a logit from the mean of its row
_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
Pairs = list[tuple[nn.Module, nn.Module]]


def fast(net: nn.Module, images: Tensor) -> tuple[nn.Module, Tensor]:
    """A faster copy of a network in evaluation mode, and what the network answers to the images.

    The network itself is returned where it cannot be copied, has nothing to gain, or the copy answers otherwise.
    """
    answers, pairs = _trace(net, images)
    maps = any(isinstance(module, nn.Conv2d) for module in net.modules())
    for layout in (torch.channels_last, torch.contiguous_format) if maps else (torch.contiguous_format,):
        if not pairs and layout is torch.contiguous_format:
            break
        try:
            copy = _copy(net, pairs, layout)
            with torch.no_grad():
                alike = agree(logits(copy, images), answers)
        except Exception:  # whatever hinders the copy, the network itself can be attacked
            continue
        if alike:
            return copy, answers
    return net, answers


def layout(net: nn.Module, images: Tensor) -> torch.memory_format:
    """How images best lie in memory for a network: channels last, if its weights do and its answers stay."""
    last = torch.channels_last
    maps = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    if not any(module.weight.is_contiguous(memory_format=last) for module in maps):
        return torch.contiguous_format
    try:
        with torch.no_grad():
            alike = agree(logits(net, images.contiguous(memory_format=last)), logits(net, images))
    except Exception:  # a network that takes its images for rows as they lie in memory
        return torch.contiguous_format
    return last if alike else torch.contiguous_format


def agree(answers: Tensor, expected: Tensor) -> bool:
    """Whether logits are the same but for rounding."""
    scale = (expected - expected.mean(dim=1, keepdim=True)).abs().max()
    return answers.shape == expected.shape and bool((answers - expected).abs().max() <= AGREE * scale)


def _trace(net: nn.Module, images: Tensor) -> tuple[Tensor, Pairs]:
    """The answers, and each layer whose output one batch norm reads and nothing else does."""
    outputs: list[tuple[nn.Module, Any]] = []
    inputs: list[tuple[nn.Module, Any]] = []

    def layer_ran(layer: nn.Module, _: Any, output: Tensor) -> None:
        if output.ndim == 2 or not isinstance(layer, nn.Linear):  # else a batch norm would count along another axis
            outputs.append((layer, output.grad_fn))

    def norm_ran(norm: nn.Module, args: tuple[Tensor, ...], _: Any) -> None:
        inputs.append((norm, args[0].grad_fn if args else None))

    handles = [module.register_forward_hook(layer_ran) for module in net.modules() if _is_foldable(module)]
    handles += [module.register_forward_hook(norm_ran) for module in net.modules() if _rest(module) is not None]
    try:
        answers = logits(net, images.detach().requires_grad_(True))
    finally:
        for handle in handles:
            handle.remove()
    readers, runs = _readers(answers.grad_fn), Counter(module for module, _ in [*outputs, *inputs])
    layers = {node: layer for layer, node in outputs if runs[layer] == 1 and readers[node] == 1}
    pairs = [(layers[node], norm) for norm, node in inputs if runs[norm] == 1 and node in layers]
    return answers.detach(), pairs


def _readers(last: Any) -> Counter[Any]:
    """How many operations read the output of each operation that led to the last one."""
    readers: Counter[Any] = Counter()
    left = [] if last is None else [last]
    while left:
        for node, _ in left.pop().next_functions:
            if node is not None:
                readers[node] += 1
                if readers[node] == 1:
                    left.append(node)
    return readers


def _is_foldable(layer: nn.Module) -> bool:
    """Whether a layer is a plain product with its weight, of exactly that class and seen by nobody."""
    return type(layer) in _LAYERS and not _has_hooks(layer)


def _rest(norm: Any) -> tuple[nn.Module, ...] | None:
    """What is left to do of a batch norm that is folded, None where it cannot be."""
    if getattr(norm, "running_mean", None) is None or _has_hooks(norm):
        return None
    if type(norm) in _NORMS:
        return ()
    if (type(norm).__module__, type(norm).__name__) == ("timm.layers.norm_act", "BatchNormAct2d"):
        return (norm.drop, norm.act)
    return None


def _has_hooks(module: nn.Module) -> bool:
    return any(getattr(module, kind) for kind in _HOOKS)


def _copy(net: nn.Module, pairs: Pairs, layout: torch.memory_format) -> nn.Module:
    memo: dict[int, Any] = {}
    copy = deepcopy(net, memo)
    for layer, norm in pairs:
        _fold(memo[id(layer)], memo[id(norm)])
    copy.requires_grad_(False)
    return copy.to(memory_format=layout)  # type: ignore[call-overload]


def _fold(layer: Any, norm: Any) -> None:
    """Let a layer do what the batch norm after it does: w' = w s, b' = (b - mean) s + shift, s = scale / deviation."""
    scale = torch.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight
    bias = -norm.running_mean if layer.bias is None else layer.bias - norm.running_mean
    shift = bias * scale if norm.bias is None else bias * scale + norm.bias
    weight = layer.weight * scale.view(-1, *[1] * (layer.weight.ndim - 1))
    layer.weight, layer.bias = (nn.Parameter(value.detach(), requires_grad=False) for value in (weight, shift))
    norm.forward = nn.Sequential(*(_rest(norm) or ())).forward
