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
from tests.language.models import TEXTS, causal, saved, tiny_gguf
from tests.networks.helpers import refused

gguf = pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


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
