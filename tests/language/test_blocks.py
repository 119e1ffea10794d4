"""Networks read block by block against the same read whole; how often every weight is read; what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from likewise import language
from likewise.errors import InputError, MissingDataError
from likewise.language.blockwise import blocks
from likewise.networks.sources.shards import Shards
from tests.helpers import sentence as refusal
from tests.language.models import TEXTS, causal, saved, tokenizer

SIZES: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
WHOLE = "Leave blockwise out, or say blockwise=False: it is read whole."


def in_shards(net: Any, folder: Path) -> str:
    """The address of a network that was written in several files."""
    net.save_pretrained(folder, max_shard_size="10KB")
    tokenizer().save_pretrained(folder)
    assert len(list(folder.glob("*.safetensors"))) > 1
    return f"hf:{folder}"


def gpt2(seed: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    tokens: dict[str, Any] = {"vocab_size": len(tokenizer()), "bos_token_id": 2, "eos_token_id": 3}
    return GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=3, n_head=2, n_positions=64, **tokens))


def gemma2(seed: int) -> Any:
    """One with layers of two kinds of attention, a scaled embedding, and a cap on its logits."""
    from transformers import Gemma2Config, Gemma2ForCausalLM

    torch.manual_seed(seed)
    more: dict[str, Any] = {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4}
    more["final_logit_softcapping"] = 0.5
    return Gemma2ForCausalLM(Gemma2Config(vocab_size=len(tokenizer()), **SIZES, **more))


def bert(seed: int) -> Any:
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(seed)
    return BertForMaskedLM(BertConfig(vocab_size=len(tokenizer()), **SIZES))


def llama(seed: int) -> Any:
    return causal(noise=2.0 * seed)


def by_blocks(a: str, b: str, **options: Any) -> Any:
    return language.answers(a, b, TEXTS, progress=False, blockwise=True, **options)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """How often every tensor of every network is read from now on."""
    count: Counter[tuple[str, str]] = Counter()
    read = Shards.read

    def reading(shards: Shards, names: Any) -> Any:
        count.update((shards.address, name) for name in names)
        return read(shards, names)

    monkeypatch.setattr(Shards, "read", reading)
    return count


@pytest.mark.parametrize("make", [llama, gpt2, gemma2, bert])
def test_block_by_block_is_the_whole_network(make: Any, tmp_path: Path) -> None:
    a, b = (in_shards(make(seed), tmp_path / str(seed)) for seed in (0, 1))
    whole, parts = language.answers(a, b, TEXTS, progress=False, blockwise=False), by_blocks(a, b)
    assert whole.kl is not None
    assert float(whole.kl.mean()) > 1e-3
    assert np.allclose(parts.kl, whole.kl, rtol=0, atol=1e-5)
    for one, other in ((parts.a, whole.a), (parts.b, whole.b)):
        assert np.allclose(one.loss, other.loss, rtol=0, atol=1e-5)
        assert (one.text == other.text).all()
        assert (one.top == other.top).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_precision_is_that_of_the_whole_network(dtype: str, tmp_path: Path) -> None:
    a, b = (in_shards(llama(seed).bfloat16(), tmp_path / str(seed)) for seed in (0, 1))
    whole = language.answers(a, b, TEXTS, progress=False, blockwise=False, dtype=dtype)
    assert np.allclose(by_blocks(a, b, dtype=dtype).kl, whole.kl, rtol=0, atol=1e-5)


def test_each_weight_is_read_once_for_all_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (in_shards(llama(seed), tmp_path / str(seed)) for seed in (0, 1))
    names = {(net, name) for net in (a, b) for name in llama(0).state_dict()}
    count = counted(monkeypatch)
    by_blocks(a, b, batch_size=5)
    assert count == dict.fromkeys(names, 1)


def test_an_embedding_that_is_the_head_too_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = in_shards(gpt2(0), tmp_path)
    count = counted(monkeypatch)
    by_blocks(address, address)
    twice = {name for (_, name), times in count.items() if times == 4}  # by either of the two
    assert twice == {"transformer.wte.weight"}
    assert set(count.values()) == {2, 4}


def test_hidden_states_that_do_not_fit_take_several_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (in_shards(llama(seed), tmp_path / str(seed)) for seed in (0, 1))
    whole = language.answers(a, b, TEXTS, progress=False, blockwise=False)
    count = counted(monkeypatch)
    monkeypatch.setattr(blocks, "free_memory", lambda: 1)
    parts = by_blocks(a, b, batch_size=8)
    assert set(count.values()) == {1, 3}  # 24 texts; the last norm stays
    assert np.allclose(parts.kl, whole.kl, rtol=0, atol=1e-5)


def test_weights_that_do_not_fit_are_read_block_by_block_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (in_shards(llama(seed), tmp_path / str(seed)) for seed in (0, 1))
    count = counted(monkeypatch)
    language.answers(a, b, TEXTS[:2], progress=False)
    assert not count
    monkeypatch.setattr(blocks, "free_memory", lambda: 1000)
    language.answers(a, b, TEXTS[:2], progress=False)
    assert count
    count.clear()
    language.answers(causal(), causal(), TEXTS[:2], progress=False)  # modules are in memory already
    assert not count


def test_a_pickled_checkpoint_is_refused(tmp_path: Path) -> None:
    address = saved(causal(), tmp_path)
    torch.save(causal().state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    assert refusal(MissingDataError, lambda: by_blocks(address, address)) == (
        f"{address} has no weights in safetensors (model.safetensors, whole or in shards), and no others can be read "
        "block by block. Load them with transformers and save_pretrained them anew, or leave blockwise out."
    )


def test_a_missing_shard_is_refused(tmp_path: Path) -> None:
    address = in_shards(causal(), tmp_path)
    last = max(tmp_path.glob("*.safetensors"))
    last.unlink()
    assert refusal(MissingDataError, lambda: by_blocks(address, address)) == (
        f"{address} lacks {last.name!r}, which its model.safetensors.index.json names. Fetch it again."
    )


def test_a_shard_elsewhere_is_refused(tmp_path: Path) -> None:
    address = in_shards(causal(), tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    names = json.loads(index.read_text())["weight_map"]
    index.write_text(json.dumps({"weight_map": names | {"lm_head.weight": "../other.safetensors"}}))
    assert refusal(InputError, lambda: by_blocks(address, address)) == (
        f"{index} names '../other.safetensors', which is no file beside it. Fetch it again."
    )


def test_a_tensor_that_no_file_has_is_refused(tmp_path: Path) -> None:
    address = in_shards(causal(), tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    names = json.loads(index.read_text())["weight_map"]
    names.pop("lm_head.weight")
    index.write_text(json.dumps({"weight_map": names}))
    assert refusal(InputError, lambda: by_blocks(address, address)) == (
        f"the files of {address} have no tensor of the name 'lm_head.weight', so it cannot be read block by block. "
        f"{WHOLE}"
    )


def test_an_architecture_without_a_list_of_blocks_is_refused(tmp_path: Path) -> None:
    from transformers import AlbertConfig, AlbertForMaskedLM, T5Config, T5ForConditionalGeneration

    shared = saved(AlbertForMaskedLM(AlbertConfig(vocab_size=len(tokenizer()), **SIZES)), tmp_path / "albert")
    assert refusal(InputError, lambda: by_blocks(shared, shared)) == (
        f"{shared} cannot be read block by block: its blocks are not called one after another. {WHOLE}"
    )
    sizes: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    halves = saved(T5ForConditionalGeneration(T5Config(vocab_size=len(tokenizer()), **sizes)), tmp_path / "t5")
    assert refusal(InputError, lambda: by_blocks(halves, halves)) == (
        f"{halves} cannot be read block by block: a T5ForConditionalGeneration is no plain list of blocks between an "
        f"embedding and a head. {WHOLE}"
    )


def refused(address: str, change: Any) -> str:
    """The refusal of a network whose pass was changed."""
    net = blocks.Blocks(address, "cpu")
    change(net.blocks)
    row = {"input_ids": torch.tensor([[2, 5, 6]]), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
    return refusal(InputError, lambda: list(net.walk({(0,): (row, torch.tensor([0]))})))


def test_blocks_that_are_given_more_than_the_block_before_gave_are_refused(tmp_path: Path) -> None:
    address = in_shards(causal(num_hidden_layers=3), tmp_path)
    seen: list[torch.Tensor] = []

    def between(layers: Any) -> None:
        layers[2].register_forward_pre_hook(lambda _, given: (given[0] + 1, *given[1:]))

    def skip(layers: Any) -> None:
        layers[0].register_forward_hook(lambda _, given, output: seen.append(output))
        layers[2].register_forward_pre_hook(
            lambda _, given, named: (given, named | {"memory": seen[-1]}), with_kwargs=True
        )

    assert refused(address, between) == (
        f"{address} cannot be read block by block: something is computed between its blocks. {WHOLE}"
    )
    assert refused(address, skip) == (
        f"{address} cannot be read block by block: its blocks use more than what the block before gives. {WHOLE}"
    )


def test_modules_and_adapters_are_refused() -> None:
    assert refusal(InputError, lambda: by_blocks(causal(), "hf:x")) == (
        "LlamaForCausalLM cannot be read block by block, only networks of transformers that an address names "
        f"('hf:FOLDER'). {WHOLE}"
    )
    assert refusal(InputError, lambda: by_blocks("hf:base+adapter", "hf:x")) == (
        f"hf:base+adapter cannot be read block by block: it is no whole network with its weights. {WHOLE}"
    )


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("hidden_act", "nosuch", "'nosuch'"), ("num_attention_heads", 0, "integer modulo by zero")],
)
def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path, field: str, value: Any, reason: str) -> None:
    address = saved(causal(), tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {field: value}))
    assert refusal(InputError, lambda: by_blocks(address, address)) == (
        f"{address} cannot be built: {reason}. Check its name and options."
    )
