"""`hf:ADAPTER` and `hf:BASE+ADAPTER`: adapters of PEFT on their networks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import likewise
from likewise.errors import MissingDataError, MissingDependencyError
from tests.fuzz.tiny_transformers import build, save, tokenizer
from tests.networks.helpers import refused
from tests.networks.sources.helpers import hub_cache as hub_cache

pytestmark = pytest.mark.usefixtures("vision")
TEXTS = ["the cat sat on the mat", "a dog", "good film was very bad", "the bird ran"]


@pytest.fixture
def peft(vision: Any) -> Any:
    return pytest.importorskip("peft", reason="peft is not installed: pip install 'likewise[adapters]'")


def written(folder: Path, adapted: Any, base: Path | str, **options: Any) -> str:
    """The address of an adapter that was saved."""
    adapted.peft_config["default"].base_model_name_or_path = str(base)
    adapted.save_pretrained(folder, **options)
    return f"hf:{folder}"


def lora(peft: Any, kind: str, **options: Any) -> Any:
    torch.manual_seed(1)
    return peft.get_peft_model(build(kind), peft.LoraConfig(r=2, init_lora_weights=False, **options)).eval()


def test_an_adapter_gives_what_peft_gives(tmp_path: Path, peft: Any) -> None:
    save("llama", tmp_path / "base")
    adapted = lora(peft, "llama", target_modules="all-linear", task_type="CAUSAL_LM")
    address = written(tmp_path / "lora", adapted, tmp_path / "base")
    view = likewise.extract(address, TEXTS, "embedding")
    by_module = likewise.extract(likewise.network(adapted, tokenizer=tokenizer()), TEXTS, "embedding")
    torch.testing.assert_close(view.values, by_module.values, atol=1e-6, rtol=1e-6)
    plain = likewise.extract(f"hf:{tmp_path / 'base'}", TEXTS, "embedding")
    assert (plain.values - view.values).norm() > 0.1 * plain.values.norm()
    net = likewise.network(address)
    likewise.networks.save(net, tmp_path / "a.safetensors")
    again = likewise.extract(str(tmp_path / "a.safetensors"), TEXTS, "embedding")
    assert torch.equal(again.values, view.values)


@pytest.mark.parametrize("words", ["embed_tokens", "lm_head"])
def test_an_adapter_of_words_brings_those_of_its_base_along(tmp_path: Path, peft: Any, words: str) -> None:
    save("llama", tmp_path / "base")
    adapted = lora(peft, "llama", target_modules=["q_proj", words], task_type="CAUSAL_LM")
    address = written(tmp_path / "lora", adapted, tmp_path / "base", save_embedding_layers=True)
    assert any("base_layer" in name for name in load_file(tmp_path / "lora" / "adapter_model.safetensors"))
    by_module = likewise.extract(likewise.network(adapted, tokenizer=tokenizer()), TEXTS, "embedding")
    torch.testing.assert_close(likewise.extract(address, TEXTS, "embedding").values, by_module.values)


def test_a_classifier_with_an_adapter_is_one_layer(peft: Any) -> None:
    adapted = lora(peft, "bert-classifier", target_modules=["query", "classifier"])
    net = likewise.network(adapted, tokenizer=tokenizer())
    view = likewise.extract(net, TEXTS, "penultimate")
    head = likewise.networks.head(net)
    assert head.layer_name == "classifier"
    assert head.bias is not None
    logits = likewise.extract(net, TEXTS, "logits").values
    torch.testing.assert_close(view.values @ head.weight.T + head.bias, logits, atol=1e-5, rtol=1e-5)


def test_the_classes_of_an_adapter_are_those_it_was_trained_for(tmp_path: Path, peft: Any) -> None:
    save("bert", tmp_path / "base")  # without a classifier
    adapted = lora(peft, "bert-classifier", target_modules=["query"], task_type="SEQ_CLS")
    address = written(tmp_path / "lora", adapted, tmp_path / "base")
    view = likewise.extract(address, TEXTS, "logits")
    tokens = tokenizer()(TEXTS, return_tensors="pt", padding=True)
    with torch.no_grad():
        torch.testing.assert_close(view.values, adapted(**tokens).logits, atol=1e-5, rtol=1e-5)


def test_an_adapter_of_another_network_is_refused(tmp_path: Path, peft: Any) -> None:
    for kind in ("bert", "llama"):
        save(kind, tmp_path / kind)
    written(tmp_path / "lora", lora(peft, "llama", target_modules=["q_proj"]), tmp_path / "llama")
    base, adapter = tmp_path / "bert", tmp_path / "lora"
    assert refused(lambda: likewise.network(f"hf:{base}+{adapter}")) == (
        f"the adapter {adapter} does not fit the BertConfig of {base}: it belongs to a LlamaForCausalLM. Name the "
        f"network it was trained with: 'hf:BASE+{adapter}'."
    )


def test_an_adapter_of_a_deeper_network_is_refused(tmp_path: Path, peft: Any) -> None:
    save("llama", tmp_path / "llama")
    address = written(tmp_path / "lora", lora(peft, "llama", target_modules=["q_proj"]), tmp_path / "llama")
    message = refused(lambda: likewise.network(f"{address},num_hidden_layers=1"))
    assert message.startswith(f"the adapter {tmp_path / 'lora'} does not fit the LlamaForCausalLM of ")
    assert "there is no place for 'model.layers.1.self_attn.q_proj.lora_A.weight'" in message


def test_an_adapter_with_tensors_of_another_rank_is_refused(tmp_path: Path, peft: Any) -> None:
    save("llama", tmp_path / "llama")
    address = written(tmp_path / "lora", lora(peft, "llama", target_modules=["q_proj"]), tmp_path / "llama")
    config = tmp_path / "lora" / "adapter_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"r": 4}))
    message = refused(lambda: likewise.network(address))
    assert "does not fit the LlamaForCausalLM of " in message
    assert "size mismatch for base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight" in message


def test_an_adapter_that_lacks_tensors_is_refused(tmp_path: Path, peft: Any) -> None:
    save("llama", tmp_path / "llama")
    address = written(tmp_path / "lora", lora(peft, "llama", target_modules=["q_proj"]), tmp_path / "llama")
    path = tmp_path / "lora" / "adapter_model.safetensors"
    tensors = {name: value for name, value in load_file(path).items() if "layers.0" in name}
    save_file(tensors, path)
    assert refused(lambda: likewise.network(address)) == (
        f"the adapter {tmp_path / 'lora'} lacks weights that its adapter_config.json asks for: "
        "'model.layers.1.self_attn.q_proj.lora_A.weight', 'model.layers.1.self_attn.q_proj.lora_B.weight'. "
        "Fetch it again."
    )


def test_an_adapter_that_changes_no_layers_is_refused(tmp_path: Path, peft: Any) -> None:
    save("llama", tmp_path / "base")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    address = written(tmp_path / "prompt", peft.get_peft_model(build("llama"), config), tmp_path / "base")
    assert refused(lambda: likewise.network(address)) == (
        f"{address} is an adapter of the kind PROMPT_TUNING, which changes the inputs and no layers. Load it with peft "
        "and pass the module, or give a LoRA."
    )


# Without peft.


def bare_adapter(folder: Path, base: str) -> str:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": base}))
    return f"hf:{folder}"


def test_an_adapter_whose_base_is_not_here_is_named_with_it(tmp_path: Path, hub_cache: Path) -> None:
    address = bare_adapter(tmp_path / "lora", "org/large")
    assert refused(lambda: likewise.network(address), MissingDataError) == (
        f"{address} is an adapter of 'org/large', which is neither a folder with a network of transformers nor can it "
        f"be downloaded. Name the folder it is in: 'hf:PATH+{tmp_path / 'lora'}'."
    )


def test_an_adapter_that_names_no_base_is_refused(tmp_path: Path) -> None:
    address = bare_adapter(tmp_path / "lora", "")
    assert refused(lambda: likewise.network(address)) == (
        f"{address} does not say which network it belongs to. Name it: 'hf:BASE+{tmp_path / 'lora'}'."
    )


def test_a_folder_that_is_no_adapter_is_refused(tmp_path: Path) -> None:
    save("bert", tmp_path)
    assert refused(lambda: likewise.network(f"hf:{tmp_path}+{tmp_path}"), MissingDataError) == (
        f"there is no adapter at '{tmp_path}': it has no adapter_config.json, nor can one be downloaded. Give the "
        "folder that save_pretrained of peft wrote."
    )


def test_without_peft_an_adapter_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    save("bert", tmp_path / "base")
    address = bare_adapter(tmp_path / "lora", str(tmp_path / "base"))
    save_file({"a": torch.zeros(1)}, tmp_path / "lora" / "adapter_model.safetensors")
    assert refused(lambda: likewise.network(address), MissingDependencyError) == (
        f"to load {address}, peft is needed: pip install 'likewise[adapters]'."
    )
