"""`gguf:FILE` and `part=lm`: language models with their heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise.errors import InputError, MissingDataError
from likewise.networks.sources.language import language_kind
from tests.language.models import TEXTS, causal, saved
from tests.networks.helpers import refused

gguf = pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """A Llama of one block with eight-bit weights, as llama.cpp writes them."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
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


def test_a_file_of_llama_cpp_is_read_with_its_head_or_without(file) -> None:
    whole: Any = likewise.network(f"gguf:{file},part=lm")
    assert type(whole).__name__ == "LlamaForCausalLM"
    assert language_kind(whole) == "causal"
    packed = {tensor.name: tensor for tensor in gguf.GGUFReader(str(file)).tensors}["blk.0.ffn_down.weight"]
    values = gguf.quants.dequantize(packed.data, packed.tensor_type)
    assert np.array_equal(whole.model.layers[0].mlp.down_proj.weight.detach().numpy(), values)
    bare = likewise.network(f"gguf:{file}")
    assert type(bare).__name__ == "LlamaModel"
    view = likewise.extract(f"gguf:{file}", ["ab a", "a ab b"], "embedding", progress=False)
    assert view.shape == (2, 32)


def test_a_file_that_is_none_of_its_kind_is_refused(file, tmp_path) -> None:
    other = tmp_path / "x.gguf"
    other.write_bytes(b"PK\x03\x04")
    assert refused(lambda: likewise.network(f"gguf:{other}")) == (
        f"{other} is no file of GGUF. Give one that llama.cpp reads."
    )
    assert refused(lambda: likewise.network("gguf:nowhere.gguf"), MissingDataError) == (
        "there is no file 'nowhere.gguf'. Give the path of a file: gguf:PATH.gguf."
    )
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:400])
    assert f"gguf:{cut}" in refused(lambda: likewise.network(f"gguf:{cut}"))


def test_an_address_names_a_language_model_by_its_part(tmp_path) -> None:
    address = saved(causal(words=False), tmp_path / "lm")
    whole: Any = likewise.network(f"{address},part=lm")
    with torch.no_grad():
        logits = whole(**whole.tokenize(TEXTS[:2])).logits
    assert logits.shape[2] == whole.config.vocab_size
    encoder: Any = likewise.network(address)
    encoder.save_pretrained(tmp_path / "encoder")
    with pytest.raises(InputError) as error:
        likewise.network(f"hf:{tmp_path / 'encoder'},part=lm")
    assert str(error.value) == (
        f"hf:{tmp_path / 'encoder'},part=lm names no language model: its config.json says 'LlamaModel'. Leave part out."
    )
