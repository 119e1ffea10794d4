"""Copies of a language model, each changed in a known way: does `diff` say so, and name the right layer?

The base is SmolLM2-135M in a folder of transformers. Copies: eight and four bits per group of 32 weights, magnitude
pruning, noise on one matrix, bfloat16, a LoRA and its merge. `python -m studies.language_copies FOLDER TEXTS [NAMES]`
prints one row per copy, of those that are named or of all, and how far KL divergence is from a plain loop over whole
logits, both text by text.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import likewise
from likewise import language
from likewise._base.optional import prepare_torchvision

LAYER = 12
TEXTS = 60


def linear_weights(net: Any) -> Iterator[nn.Parameter]:
    """The matrices of all blocks."""
    for block in net.model.layers:
        for module in block.modules():
            if isinstance(module, nn.Linear):
                yield module.weight


def rounded(weight: Tensor, bits: int) -> Tensor:
    """A matrix with so many bits per weight, one scale per group of 32."""
    groups = weight.reshape(-1, 32)
    scale = groups.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (torch.round(groups / scale) * scale).reshape(weight.shape)


@torch.no_grad()
def quantised(net: Any, bits: int) -> Any:
    """A copy whose matrices are rounded."""
    net = copy.deepcopy(net)
    for weight in linear_weights(net):
        weight.copy_(rounded(weight, bits))
    return net


@torch.no_grad()
def pruned(net: Any, share: float) -> Any:
    """A copy without the smallest weights of every matrix."""
    net = copy.deepcopy(net)
    for weight in linear_weights(net):
        limit = np.quantile(weight.abs().numpy(), share)
        weight[weight.abs() < limit] = 0
    return net


@torch.no_grad()
def noisy(net: Any, size: float) -> Any:
    """A copy with noise on one matrix, in units of its deviation."""
    net = copy.deepcopy(net)
    weight = net.model.layers[LAYER].mlp.down_proj.weight
    weight.add_(size * weight.std() * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))
    return net


def tuned(net: Any, texts: list[str], steps: int) -> Any:
    """A LoRA on the queries and values of the later half, tuned on texts."""
    import peft

    torch.manual_seed(0)
    later = [*range(len(net.model.layers) // 2, len(net.model.layers))]
    settings = peft.LoraConfig(
        r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], layers_to_transform=later, task_type="CAUSAL_LM"
    )
    adapted = peft.get_peft_model(copy.deepcopy(net), settings)
    optimiser = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=1e-3)
    for step in range(steps):
        tokens = net.tokenize(texts[8 * step : 8 * step + 8])
        labels = tokens["input_ids"].masked_fill(tokens["attention_mask"] == 0, -100)
        adapted(**tokens, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return adapted.eval()


@torch.no_grad()
def by_loop(a: Any, b: Any, texts: list[str]) -> list[float]:
    """KL divergence at every token over whole logits, each text alone."""
    found = []
    for text in texts:
        ids = a.tokenize([text])["input_ids"]
        p, q = (net(input_ids=ids).logits[0, :-1].double().log_softmax(-1) for net in (a, b))
        found += (p.exp() * (p - q)).sum(dim=1).tolist()
    return found


def main(folder: str, table: str, *only: str) -> None:
    """Print one row per copy, of those that are named or of all."""
    prepare_torchvision()
    texts = [text for text in likewise.dataset(table).inputs if len(text.split()) > 4]
    shown, training = texts[:TEXTS], texts[TEXTS:]
    base: Any = likewise.network(f"hf:{folder},part=lm")
    lora = tuned(base, training, 40) if not only or any("LoRA" in name for name in only) else None
    copies: dict[str, Callable[[], Any]] = {
        "the same": lambda: copy.deepcopy(base),
        "bfloat16": lambda: copy.deepcopy(base).to(torch.bfloat16),
        "8 bits": lambda: quantised(base, 8),
        "4 bits": lambda: quantised(base, 4),
        "pruned 30 %": lambda: pruned(base, 0.3),
        "noise .001": lambda: noisy(base, 0.001),
        "noise .1": lambda: noisy(base, 0.1),
        "LoRA": lambda: lora,
        "LoRA, merged": lambda: copy.deepcopy(lora).merge_and_unload(),
    }
    print("| copy | verdict | first to change | KL [95 %] | same top | perplexity | loop | seconds |")
    for name in only or copies:
        make = copies[name]
        net, start = make(), time.process_time()
        net = likewise.network(net, tokenizer=base.tokenize)
        change = likewise.diff(base, net, shown, names=["base", name], progress=False)
        seconds = time.process_time() - start
        few = language.answers(base, net, shown[:12], batch_size=1, progress=False)
        apart = np.abs(few.kl - np.array(by_loop(base, net, shown[:12]))).max()
        tokens, first = change.tokens, change.first_moved
        row = [name, change.verdict, "none" if first is None else first.layer, tokens.statistics["kl"]]
        row += [
            f"{tokens.statistics['same-top'].value:.3f}",
            f"{tokens.perplexity[0]:.2f} → {tokens.perplexity[1]:.2f}",
        ]
        print(f"| {' | '.join(map(str, [*row, f'{apart:.1e}', f'{seconds:.0f}']))} |", flush=True)
        if name in ("4 bits", "LoRA"):
            print(change, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
