"""`diff` of a network, a LoRA of it, and the two merged: as modules of PEFT and by address."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import likewise
from tests.fuzz.tiny_transformers import build, save, tokenizer

pytestmark = pytest.mark.usefixtures("vision")  # transformers imports torchvision
peft: Any = None
TEXTS = ["the cat sat on the mat", "a dog", "good film was very bad", "the bird ran", "a fish in the tree !"] * 4
LORAS: dict[str, tuple[dict[str, Any], str, int]] = {  # its options, the first layer that changes, how many tensors do
    "bert": ({"target_modules": ["query"], "layers_to_transform": [1]}, "encoder.layer.1.attention.self.query", 1),
    "bert-classifier": (
        {"target_modules": ["value"], "task_type": "SEQ_CLS"},
        "bert.encoder.layer.0.attention.self.value",
        2,
    ),
    "llama": ({"target_modules": ["v_proj"], "task_type": "CAUSAL_LM"}, "layers.0.self_attn.v_proj", 2),
    "gpt2": ({"target_modules": ["c_attn"], "task_type": "CAUSAL_LM", "use_dora": True}, "h.0.attn.c_attn", 2),
}


@pytest.fixture(autouse=True)
def _peft(vision: Any) -> None:
    global peft
    peft = pytest.importorskip("peft", reason="peft is not installed: pip install 'likewise[adapters]'")


def lora(kind: str) -> Any:
    """A LoRA of a tiny network, as if it had been trained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        options = {"r": 2, "lora_alpha": 1, "fan_in_fan_out": kind == "gpt2", **LORAS[kind][0]}
        adapted = peft.get_peft_model(build(kind), peft.LoraConfig(**options)).eval()
        for name, value in adapted.named_parameters():
            if "lora_B" in name or ("modules_to_save" in name and name.endswith("weight")):
                value.data += 0.3 * torch.randn_like(value)
    return adapted


def with_words(net: Any) -> Any:
    return likewise.network(net, tokenizer=tokenizer())


def changed(change: Any) -> list[str]:
    return [name for name, _ in change.weights.changed if "classifier" not in name]


@pytest.mark.parametrize("kind", LORAS)
def test_a_module_of_peft_is_compared_layer_by_layer(kind: str) -> None:
    adapted = lora(kind)
    nets = {"base": build(kind), "lora": adapted, "merge": copy.deepcopy(adapted).merge_and_unload()}
    nets = {name: with_words(net) for name, net in nets.items()}
    _, first, count = LORAS[kind]
    change = likewise.diff({name: nets[name] for name in ("base", "lora")}, data=TEXTS, transfer=False)
    assert change.verdict in ("close", "changed", "different")
    assert change.same_layers
    assert change.first_moved is not None
    assert change.first_moved.layer.endswith(first)
    assert len(changed(change)) == count
    assert change.weights.other == 0
    assert changed(change)[0].endswith(f"{first}.weight")
    for names in (("lora", "merge"), ("merge", "lora")):
        change = likewise.diff({name: nets[name] for name in names}, data=TEXTS, transfer=False)
        assert change.verdict == "equal but for rounding"
        assert (len(change.weights.changed), change.weights.other) == (0, 0)


@pytest.mark.parametrize("kind", LORAS)
def test_an_adapter_by_its_folder_is_compared_with_its_base_and_with_their_merge(tmp_path: Path, kind: str) -> None:
    base, adapter, merge = (tmp_path / name for name in ("base", "lora", "merge"))
    save(kind, base)
    adapted = lora(kind)
    adapted.peft_config["default"].base_model_name_or_path = str(base)
    adapted.save_pretrained(adapter)
    copy.deepcopy(adapted).merge_and_unload().save_pretrained(merge)
    for path in base.glob("token*"):
        shutil.copy(path, merge)
    _, first, count = LORAS[kind]
    change = likewise.diff(f"hf:{base}", f"hf:{adapter}", TEXTS, transfer=False)
    assert change.same_layers
    assert change.first_moved is not None
    assert change.first_moved.layer == first
    assert len(changed(change)) == count
    change = likewise.diff(f"hf:{base}+{adapter}", f"hf:{merge}", TEXTS, transfer=False)
    assert change.names == ("lora", "merge")
    assert change.verdict == "equal but for rounding"
    assert change.weights.changed == ()
