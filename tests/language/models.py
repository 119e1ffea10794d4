"""Tiny language models and texts for tests: random weights, a vocabulary of the words of the texts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch

import likewise
from likewise._base.optional import prepare_torchvision

prepare_torchvision()
TEXTS: list[str] = likewise.dataset("sentences:test[:24]").inputs


@cache
def tokenizer() -> Any:
    """Words of the texts as tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + sorted({word for text in TEXTS for word in text.split()})
    inside = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    inside.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inside.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(tokenizer_object=inside, **names)


def causal(seed: int = 0, *, noise: float = 0.0, words: bool = True, **options: Any) -> Any:
    """A Llama of two layers; `noise` is added to a matrix of the second, in units of its deviation."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64}
    torch.manual_seed(seed)
    net = LlamaForCausalLM(
        LlamaConfig(vocab_size=len(tokenizer()), bos_token_id=2, eos_token_id=3, **sizes | options)
    ).eval()
    with torch.no_grad():
        net.lm_head.weight.mul_(30)  # distributions that are not all the same
        weight = net.model.layers[1].mlp.down_proj.weight
        weight.add_(noise * weight.std() * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    return likewise.network(net, tokenizer=tokenizer()) if words else net


def saved(net: Any, folder: Path) -> str:
    """The address of a network that was written to a folder, with its tokenizer."""
    net.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return f"hf:{folder}"


def log_probabilities(net: Any, ids: torch.Tensor) -> torch.Tensor:
    """What a network says after every token of one text."""
    with torch.no_grad():
        return net(ids[None]).logits[0].double().log_softmax(-1)
