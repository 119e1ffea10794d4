"""Tiny language models and texts for tests: random weights, a vocabulary of the words of the texts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
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


def tiny_gguf(path: Path) -> Path:
    """Write a Llama of one block with eight-bit weights, as llama.cpp does."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    for name, value in {
        "context_length": 64,
        "embedding_length": 32,
        "block_count": 1,
        "feed_forward_length": 64,
        "head_count": 2,
        "head_count_kv": 2,
        "vocab_size": 40,
        "rope_dimension_count": 16,
    }.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    letters = [chr(97 + i) for i in range(26)]
    tokens = ["<|endoftext|>", *letters, "Ġ", "ab", "Ġa", *(f"<{i}>" for i in range(10))]
    writer.add_token_list(tokens)
    writer.add_token_types([3, *[1] * 29, *[3] * 10])
    writer.add_token_merges(["a b", "Ġ a"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    draw = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (40, 32), "output": (40, 32), "blk.0.ffn_down": (32, 64)}
    shapes |= {f"blk.0.{name}": (32, 32) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {f"blk.0.{name}": (64, 32) for name in ("ffn_gate", "ffn_up")}
    for name, shape in shapes.items():
        values = draw.normal(size=shape).astype(np.float32)
        packed = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(f"{name}.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
