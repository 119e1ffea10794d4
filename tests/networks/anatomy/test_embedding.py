"""The embedding: the representation of networks without a classifier."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.views.extract import extract
from tests.fuzz import tiny_transformers as tiny
from tests.views.helpers import WRAPPERS, refused, shown

pytestmark = [
    pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed"),
    pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed"),
    pytest.mark.usefixtures("vision"),
]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TEXT = SMALL | {"vocab_size": 50, "pad_token_id": 0}
IMAGE = SMALL | {"image_size": 16, "patch_size": 8}
IMAGES = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(3))


def build(name: str, **options: Any) -> Any:
    """A network of transformers by the name of its class, untrained, with biases that are not zero."""
    import transformers

    kind = getattr(transformers, name)
    torch.manual_seed(0)
    net = kind(kind.config_class(**options)).eval()
    for value in net.parameters():
        value.data += 0.1 * torch.randn_like(value)
    return net


CAUSAL = {
    "gpt2": lambda: build("GPT2Model", vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=32),
    "llama": lambda: build("LlamaModel", **TEXT, num_key_value_heads=1),
    "mamba": lambda: build("MambaModel", vocab_size=50, hidden_size=16, state_size=4, num_hidden_layers=2),
    "mixtral": lambda: build("MixtralModel", **TEXT, num_key_value_heads=1, num_local_experts=2),
    "bert as a decoder": lambda: build("BertModel", **TEXT, is_decoder=True).base_model,
}
BOTH_WAYS = {
    "distilbert": lambda: build("DistilBertModel", vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32),
    "modernbert": lambda: build("ModernBertModel", **TEXT, local_attention=4),
    "electra": lambda: build("ElectraModel", **TEXT, embedding_size=16),
    "t5's encoder": lambda: build(
        "T5EncoderModel", vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2
    ),
}


def padded(side: str = "right") -> dict[str, Tensor]:
    """Six texts of 1 to 9 words."""
    words = torch.randint(1, 50, (6, 9), generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([9, 4, 1, 2, 7, 5])
    real = torch.arange(9)[None] < lengths[:, None]
    real = real if side == "right" else real.flip(1)
    return {"input_ids": words * real, "attention_mask": real.long()}


def alone(net: Any, batch: dict[str, Tensor]) -> list[Tensor]:
    """The last states of every text without its padding."""
    with torch.no_grad():
        rows = zip(batch["input_ids"], batch["attention_mask"].bool(), strict=True)
        return [net(input_ids=words[real][None]).last_hidden_state[0] for words, real in rows]


@pytest.mark.parametrize("name", CAUSAL)
def test_of_a_network_whose_tokens_see_none_after_them_the_last_real_one_is_the_embedding(name: str) -> None:
    net, batch = CAUSAL[name](), padded()
    if getattr(net, "pooler", None) is not None:
        net.pooler = None
    view = shown(net, [batch], "embedding")
    expected = torch.stack([states[-1] for states in alone(net, batch)])
    torch.testing.assert_close(view.values.float(), expected, atol=1e-5, rtol=1e-4)
    assert view.about["embedding"] == "last_hidden_state, last"
    assert view.outputs is None


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_of_a_network_whose_tokens_see_all_the_mean_of_the_real_ones_is_the_embedding(name: str) -> None:
    net, batch = BOTH_WAYS[name](), padded()
    view = shown(net, [batch], "embedding")
    expected = torch.stack([states.mean(dim=0) for states in alone(net, batch)])
    torch.testing.assert_close(view.values.float(), expected, atol=1e-5, rtol=1e-4)
    assert view.about["embedding"] == "last_hidden_state, mean"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [*CAUSAL, *BOTH_WAYS])
def test_half_precision_does_not_hide_what_a_network_does(name: str, dtype: torch.dtype) -> None:
    net = {**CAUSAL, **BOTH_WAYS}[name]().to(dtype)
    if getattr(net, "pooler", None) is not None:
        net.pooler = None
    how = "last" if name in CAUSAL else "mean"
    assert shown(net, [padded()], "embedding").about["embedding"] == f"last_hidden_state, {how}"


@pytest.mark.parametrize("name", [*CAUSAL, *BOTH_WAYS])
def test_texts_of_one_word_do_not_hide_what_a_network_does(name: str) -> None:
    net = {**CAUSAL, **BOTH_WAYS}[name]()
    words = {"input_ids": torch.tensor([[5], [7], [9]])}
    how = "last" if name in CAUSAL else "mean"
    found = shown(net, [words], "embedding").about["embedding"]
    assert found in (f"last_hidden_state, {how}", "pooler_output")


def test_padding_on_the_left_does_not_count_either() -> None:
    net, batch = CAUSAL["llama"](), padded("left")
    expected = torch.stack([states[-1] for states in alone(net, batch)])
    positions = (batch["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)
    view = shown(net, [batch | {"position_ids": positions}], "embedding")
    torch.testing.assert_close(view.values.float(), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("BertModel", TEXT, "pooler_output"),
        ("ViTModel", IMAGE, "pooler_output"),
        ("CLIPVisionModel", IMAGE, "pooler_output"),
        ("CLIPVisionModelWithProjection", IMAGE, "image_embeds"),
        ("CLIPTextModelWithProjection", TEXT | {"eos_token_id": 2}, "text_embeds"),
        ("SiglipVisionModel", IMAGE, "pooler_output"),
        ("Dinov2Model", SMALL | {"image_size": 16, "patch_size": 8}, "pooler_output"),
        ("BeitModel", IMAGE, "pooler_output"),
        ("ResNetModel", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}, "pooler_output"),
    ],
)
def test_what_is_pooled_is_the_embedding(name: str, options: dict[str, Any], field: str) -> None:
    net = build(name, **options)
    inputs = (
        {"input_ids": padded()["input_ids"].clamp(min=1)}
        if net.main_input_name == "input_ids"
        else {"pixel_values": IMAGES}
    )
    with torch.no_grad():
        expected = getattr(net(**inputs), field).flatten(1)
    view = shown(net, [inputs], "embedding")
    torch.testing.assert_close(view.values.float(), expected)
    assert view.about["embedding"] == field
    assert view.outputs is None


@pytest.mark.parametrize(
    ("name", "options", "rows"),
    [
        ("ViTMSNModel", IMAGE, lambda states: states[:, 0]),
        (
            "SegformerModel",
            {"hidden_sizes": [8, 8, 8, 16], "depths": [1] * 4, "num_attention_heads": [1] * 4},
            lambda states: states.mean(dim=(2, 3)),
        ),
        ("SiglipVisionModel", IMAGE | {"vision_use_head": False}, lambda states: states.mean(dim=1)),
    ],
)
def test_images_have_their_first_token_or_the_mean(name: str, options: dict[str, Any], rows: Any) -> None:
    net = build(name, **options)
    images = torch.rand(3, 3, 64, 64) if name == "SegformerModel" else IMAGES
    with torch.no_grad():
        expected = rows(net(pixel_values=images).last_hidden_state)
    torch.testing.assert_close(shown(net, images, "embedding").values.float(), expected)


def test_a_reduction_that_is_asked_for_comes_before_what_is_pooled() -> None:
    net, batch = build("BertModel", **TEXT), padded()
    expected = torch.stack([states.mean(dim=0) for states in alone(net, batch)])
    found = shown(net, [batch], "embedding", reduce="mean").values.float()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_networks_that_give_tuples_are_reduced_by_the_same_rules() -> None:
    net, batch = build("BertModel", **TEXT), padded()
    expected = torch.stack([states.mean(dim=0) for states in alone(net, batch)])
    net.config.return_dict = False
    with pytest.warns(UserWarning, match="no classifier was found"):
        view = shown(net, [batch])
    torch.testing.assert_close(view.values.float(), expected, atol=1e-5, rtol=1e-4)
    assert view.outputs is None


def test_the_default_of_a_network_without_a_classifier_is_its_embedding_and_is_said() -> None:
    net = CAUSAL["gpt2"]()
    with pytest.warns(UserWarning, match="no classifier") as caught:
        found = shown(net, [padded()], name="gpt2")
    assert [str(entry.message) for entry in caught] == [
        "no classifier was found in gpt2 (last_hidden_state, last), so the embedding is taken. "
        "Pass layers='embedding' to say so."
    ]
    assert found.about["layer"] == "embedding"
    torch.testing.assert_close(found.values, shown(net, [padded()], "embedding").values)


@pytest.mark.parametrize(("name", "given"), [("GPT2Model", "last_hidden_state"), ("CLIPVisionModel", "pooler_output")])
def test_penultimate_without_a_classifier_is_refused_with_what_works(name: str, given: str) -> None:
    net = CAUSAL["gpt2"]() if name == "GPT2Model" else build(name, **IMAGE)
    data: Any = [padded()] if name == "GPT2Model" else IMAGES
    assert refused(lambda: shown(net, data, "penultimate", reduce="mean")) == (
        f"{name!r} has no classifier that could be found, so nothing is penultimate: it gives {given!r} and no "
        "logits. Ask for layers='embedding', its representation, or name the classifier: head='name'."
    )


@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize("name", ["test_vit", "test_resnet"])
def test_networks_of_timm_without_classes_give_their_pooled_features(name: str, wrap: str) -> None:
    import timm

    net = timm.create_model(name, num_classes=0).eval()
    images = torch.rand(3, 3, *net.default_cfg["input_size"][1:])
    with torch.no_grad():
        expected = net.forward_head(net.forward_features(images), pre_logits=True)
    with pytest.warns(UserWarning, match="no classifier was found"):
        view = shown(WRAPPERS[wrap](net), images)
    torch.testing.assert_close(view.values.float(), expected, atol=1e-5, rtol=1e-4)
    assert view.outputs is None  # features are no logits
    assert "by its get_classifier it is 'head', which is an Identity" in refused(
        lambda: shown(timm.create_model("test_vit", num_classes=0), images, "penultimate")
    )


def test_of_the_stages_of_features_only_the_last_is_the_embedding() -> None:
    import timm

    net, images = timm.create_model("test_resnet", features_only=True).eval(), torch.rand(3, 3, 64, 64)
    with torch.no_grad():
        expected = net(images)[-1].mean(dim=(2, 3))
    torch.testing.assert_close(shown(net, images, "embedding").values.float(), expected)


def test_what_an_unknown_module_gives_is_taken_as_it_is_or_a_reduction_is_asked_for() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, 8)

        def forward(self, rows: Tensor) -> Tensor:
            return rows + self.fc(self.norm(rows))

    net, rows = nn.Sequential(Block(), Block()).eval(), torch.rand(10, 8)
    with torch.no_grad(), pytest.warns(UserWarning, match="no classifier was found in Sequential"):
        torch.testing.assert_close(shown(net, rows).values, net(rows))
    assert refused(lambda: shown(net, torch.rand(10, 4, 8), "embedding")) == (
        "'embedding' of 'Sequential' has shape (10, 4, 8), not (inputs, neurons). Choose a reduction of the tokens: "
        "reduce='mean', 'cls', 'last' or 'flatten'."
    )
    assert refused(lambda: shown(net, rows, "penultimate")) == (
        "'Sequential' has no classifier that could be found, so nothing is penultimate: the last layer its answer "
        "needs, '1.fc', is a part of the block '1'. Ask for layers='embedding', its representation, or "
        "name the classifier: head='name'."
    )


def test_of_a_classifier_the_embedding_is_what_the_classifier_is_given() -> None:
    import timm

    net = timm.create_model("test_vit").eval()
    images = torch.rand(3, 3, *net.default_cfg["input_size"][1:])
    both = extract(net, images, ["penultimate", "embedding"], progress=False)
    assert torch.equal(both["penultimate"].values, both["embedding"].values)
    lm, batch = build("GPT2LMHeadModel", vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=32), padded()
    expected = torch.stack([states[-1] for states in alone(lm.transformer, batch)])
    torch.testing.assert_close(shown(lm, [batch], "embedding").values.float(), expected, atol=1e-5, rtol=1e-4)


def test_a_layer_called_embedding_is_told_from_the_embedding() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.norm = nn.Linear(4, 3), nn.LayerNorm(3)

        def forward(self, rows: Tensor) -> Tensor:
            return self.norm(self.embedding(rows))

    net, rows = Words().eval(), torch.rand(5, 4)
    assert refused(lambda: shown(net, rows, "embedding")) == (
        "'embedding' of 'Words' may be its layer of that name or what the word stands for. Ask for '[e]mbedding', "
        "which is the layer, or leave layers out for the other."
    )
    with torch.no_grad():
        layer = shown(net, rows, "[e]mbedding")["embedding"]
        torch.testing.assert_close(layer.values, net.embedding(rows))
        with pytest.warns(UserWarning, match="no classifier was found"):
            torch.testing.assert_close(shown(net, rows).values, net(rows))


def test_the_default_is_answered_from_the_store_the_next_time(tmp_path: Any) -> None:
    net = build("ViTModel", **IMAGE)
    with pytest.warns(UserWarning, match="no classifier was found in ViTModel"):
        first = shown(net, IMAGES, store=tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.warns(UserWarning, match="no classifier was found in ViTModel"):
        assert torch.equal(shown(net, IMAGES, store=tmp_path).values, first.values)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mamba"])
def test_a_language_model_as_a_module_has_the_default_of_its_address(tmp_path: Path, kind: str) -> None:
    tiny.save(kind, tmp_path)
    texts = ["the cat sat on the mat", "a dog", "the bird was very good and not bad", "fish ran", "a good film"]
    module = likewise.network(tiny.build(kind), tokenizer=tiny.tokenizer())
    with pytest.warns(UserWarning, match="so the embedding is taken"):
        by_module, by_address = likewise.extract(module, texts), likewise.extract(f"hf:{tmp_path}", texts)
    torch.testing.assert_close(by_module.values, by_address.values, atol=1e-6, rtol=1e-6)
    assert by_module.about["embedding"] == "input of lm_head, last"
