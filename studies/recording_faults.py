"""Faults in one tensor of a network, found with the old network gone: is the layer named?

Networks: ResNet-20 on CIFAR-10, MiniLM and SmolLM2 on sentences of SST-2. Noise of a share of a tensor's deviation, in
float32 and in bfloat16 recorded in bfloat16. `python -m studies.recording_faults DATA SMOLLM [NETWORK ...]` prints one
row per fault, of the networks that are named or of all.
"""

from __future__ import annotations

import copy
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import likewise
from likewise._base.optional import prepare_torchvision

FLOAT, HALF = (1e-3, 1e-2, 0.1, 0.3), (0.05, 0.2, 1.0)


def tensors(net: nn.Module) -> list[str]:
    """The matrices and kernels of a network."""
    kinds = (nn.Linear, nn.Conv2d)
    return [name for name, module in net.named_modules() if isinstance(module, kinds) and "pooler" not in name]


@torch.no_grad()
def with_noise(net: Any, name: str, size: float, seed: int) -> Any:
    """A copy with noise on one tensor."""
    net = copy.deepcopy(net)
    weight = net.get_submodule(name).weight
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(seed))
    weight.add_((size * weight.float().std() * noise).to(weight.dtype))
    return net


def cases(data: Path, smollm: str) -> Iterator[tuple[str, Callable[[], Any], Any, int]]:
    """Name, network, probe and number of faults."""
    images = likewise.dataset("cifar10:test[:100]")
    weights = next((data / "cifar10_resnets").glob("*20*.safetensors"))
    texts = [text for text in likewise.dataset("sst2:dev").inputs if len(text.split()) > 4]
    yield "ResNet-20", lambda: likewise.network(f"zoo:resnet20@{weights}"), images, 20
    yield "MiniLM", lambda: likewise.network("zoo:minilm"), texts[:60], 16
    yield "SmolLM2", lambda: likewise.network(f"hf:{smollm},part=lm"), texts[:24], 14


def main(data: str, smollm: str, *only: str) -> None:
    """Print one row per fault."""
    prepare_torchvision()
    named = total = 0
    for label, make, probe, count in cases(Path(data), smollm):
        if only and label not in only:
            continue
        net = make()
        places = tensors(likewise.networks.unwrapped(net))
        for half in (False, True):
            base = copy.deepcopy(net).to(torch.bfloat16) if half else net
            sizes = HALF if half else FLOAT
            with tempfile.TemporaryDirectory() as folder:
                path = likewise.record(base, probe, name="old", progress=False).save(Path(folder) / "old")
                print(f"# {label}, {'bfloat16' if half else 'float32'}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
                for k in range(count // 2):
                    place, size = places[(11 * k + 3) % len(places)], sizes[k % len(sizes)]
                    inside = likewise.networks.unwrapped(base)
                    broken = with_noise(inside, place, size, k)
                    if inside is not base:
                        whole = copy.deepcopy(base)
                        whole.net = broken
                        broken = whole
                    if hasattr(inside, "tokenize"):
                        broken.tokenize = inside.tokenize
                    change = likewise.diff(path, broken, probe, progress=False)
                    first = "none" if change.first_moved is None else change.first_moved.layer
                    right = place.endswith(first) and [name for name, _ in change.weights.changed] != []
                    named, total = named + right, total + 1
                    weight = change.weights.changed[0] if change.weights.changed else ("none", 0.0)
                    row = [
                        label,
                        half,
                        place,
                        f"{size:g}: {first}",
                        weight[0],
                        f"{weight[1]:.2g}",
                        change.verdict,
                        right,
                    ]
                    print(*row, flush=True)
    print(f"{named} of {total} named")


if __name__ == "__main__":
    main(*sys.argv[1:])
