"""Towers and halves of networks of transformers, against what the whole network gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import likewise
from likewise.networks import recipe, unwrapped
from likewise.networks.forward import input_kind
from tests.fuzz.tiny_transformers import TOWER, build, save, special_tokens, tokenizer, vocabulary
from tests.networks.helpers import refused, said

pytestmark = pytest.mark.usefixtures("vision")

TEXTS = ["the cat sat on the mat .", "a dog", "the very good film was not bad !", "a bird in a tree"]
IMAGES = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def words(texts: list[str], kind: str = "") -> dict[str, torch.Tensor]:
    padding = "max_length" if kind == "siglip" else True  # as it was trained
    given = tokenizer()(texts, padding=padding, return_tensors="pt")
    return {"input_ids": given["input_ids"], "attention_mask": given["attention_mask"]}


def embedding(address: str, data: Any) -> tuple[Any, list[str]]:
    return said(lambda: likewise.extract(address, data, "embedding", progress=False))


@pytest.mark.parametrize("kind", ["clip", "siglip", "align", "chinese-clip", "blip"])
def test_images_are_shown_to_one_tower_and_texts_to_the_other(tmp_path: Path, kind: str) -> None:
    save(kind, tmp_path)
    whole = build(kind)
    view, notes = embedding(f"hf:{tmp_path}", IMAGES)
    assert notes == [f"of hf:{tmp_path} the vision tower is looked at: 'hf:{tmp_path},part=text' looks at another."]
    pixels = IMAGES
    net = likewise.network(f"hf:{tmp_path},part=vision")
    if hasattr(net, "mean"):
        pixels = (IMAGES - net.mean) / net.std
    with torch.no_grad():
        images = whole.get_image_features(pixel_values=pixels).pooler_output
        texts = whole.get_text_features(**words(TEXTS, kind)).pooler_output
    np.testing.assert_allclose(view.values, images, atol=1e-5)
    assert view.about["part"] == "vision"
    view, notes = embedding(f"hf:{tmp_path},part=text", TEXTS)
    assert notes == []
    np.testing.assert_allclose(view.values, texts, atol=1e-5)


def test_a_tower_is_without_the_other(tmp_path: Path) -> None:
    save("clip", tmp_path)
    vision, text = (unwrapped(likewise.network(f"hf:{tmp_path},part={part}")) for part in ("vision", "text"))
    assert not [key for key in vision.state_dict() if key.startswith("text")]
    assert not [key for key in text.state_dict() if key.startswith("vis")]
    assert (input_kind(vision), input_kind(text)) == ("image", "text")
    assert hasattr(text, "tokenize")
    assert not hasattr(vision, "tokenize")


def test_both_towers_end_in_one_space(tmp_path: Path) -> None:
    save("clip", tmp_path)
    views = {
        part: embedding(f"hf:{tmp_path},part={part}", data)[0] for part, data in (("vision", IMAGES), ("text", TEXTS))
    }
    assert [view.d for view in views.values()] == [24, 24]


def test_two_towers_without_data_ask_which(tmp_path: Path) -> None:
    save("clip", tmp_path)
    assert refused(lambda: likewise.network(f"hf:{tmp_path}")) == (
        f"hf:{tmp_path} has 2 towers, and nothing says which is to be looked at. Name one: "
        f"'hf:{tmp_path},part=vision' or 'hf:{tmp_path},part=text'."
    )
    assert type(likewise.network(f"hf:{tmp_path},part=text")).__name__ == "CLIPModel"


@pytest.mark.parametrize(
    ("kind", "part", "remedy"),
    [
        ("clip", "encoder", "Choose part=vision or part=text."),
        ("t5", "vision", "Choose part=encoder or part=decoder."),
        ("bert", "encoder", "Leave part out."),
    ],
)
def test_a_part_that_is_not_there_is_refused(tmp_path: Path, kind: str, part: str, remedy: str) -> None:
    save(kind, tmp_path)
    sentence = refused(lambda: likewise.network(f"hf:{tmp_path},part={part}"))
    assert sentence == f"hf:{tmp_path},part={part} has no part {part!r}. {remedy}"


@pytest.mark.parametrize("kind", ["t5", "bart", "marian", "pegasus"])
def test_the_encoder_is_taken_and_said(tmp_path: Path, kind: str) -> None:
    save(kind, tmp_path)
    net, notes = said(lambda: likewise.network(f"hf:{tmp_path}"))
    assert notes == [f"of hf:{tmp_path} the encoder is looked at: 'hf:{tmp_path},part=decoder' looks at another."]
    assert recipe(net).options == {"part": "encoder"}
    with torch.no_grad():
        expected = build(kind).get_encoder()(**words(TEXTS)).last_hidden_state
        torch.testing.assert_close(likewise.networks.call(net, TEXTS).last_hidden_state, expected)


@pytest.mark.parametrize(("kind", "start"), [("t5", 0), ("bart", 2), ("marian", 2)])  # T5 begins with padding
def test_the_decoder_is_shown_the_text_one_token_late(tmp_path: Path, kind: str, start: int) -> None:
    save(kind, tmp_path)
    net = likewise.network(f"hf:{tmp_path},part=decoder")
    given = words(TEXTS)
    late = torch.cat([torch.full((4, 1), start), given["input_ids"][:, :-1]], dim=1)
    whole = build(kind)
    whole = getattr(whole, "model", None) or type(net)(whole.config).eval()
    whole.load_state_dict(net.state_dict())
    with torch.no_grad():
        expected = whole(**given, decoder_input_ids=late).last_hidden_state
        given_here = likewise.networks.call(net, TEXTS).last_hidden_state
    real = given["attention_mask"].bool()
    torch.testing.assert_close(given_here[real], expected[real])
    views = [embedding(f"hf:{tmp_path},part=decoder", texts)[0] for texts in (TEXTS, [TEXTS[1], TEXTS[1]])]
    np.testing.assert_allclose(views[0].values[1], views[1].values[0], atol=1e-5)  # whatever is padded beside it


@pytest.mark.filterwarnings("ignore:.*is looked at")
def test_a_part_is_saved_and_found_again(tmp_path: Path) -> None:
    save("clip", tmp_path / "net")
    net = likewise.network(f"hf:{tmp_path}/net", domain="image")
    likewise.networks.save(net, tmp_path / "w.safetensors")
    again = likewise.network(str(tmp_path / "w.safetensors"))
    with torch.no_grad():
        torch.testing.assert_close(again(IMAGES).pooler_output, net(IMAGES).pooler_output)


def test_a_classifier_is_kept_whole_and_has_no_parts(tmp_path: Path) -> None:
    save("bart-classifier", tmp_path)
    assert type(likewise.network(f"hf:{tmp_path}")).__name__ == "BartForSequenceClassification"
    assert type(likewise.network(f"hf:{tmp_path},part=encoder")).__name__ == "BartEncoder"


def test_text_shown_to_a_tower_of_images_is_refused(tmp_path: Path) -> None:
    save("clip", tmp_path)
    net = likewise.network(f"hf:{tmp_path},part=vision")
    assert refused(lambda: likewise.extract(net, TEXTS, progress=False)) == (
        "CLIPModel takes images, and was shown text. Use a text network, such as zoo:minilm."
    )


LONG = ["the cat sat . " * 20, "a dog", "good film was very bad", "the bird ran"]


def seeing(folder: Path, kind: str) -> Any:
    """A tiny language model that sees, with its tokenizer and processor in a folder."""
    transformers = pytest.importorskip("transformers")
    image = {"image_size": 32, "patch_size": 8} | TOWER
    words = {"vocab_size": vocabulary() + 2, "max_position_embeddings": 256, "num_key_value_heads": 2, "head_dim": 8}
    text = TOWER | words | special_tokens()
    if kind == "llava":
        towers = {
            "vision_config": transformers.CLIPVisionConfig(**image),
            "text_config": transformers.LlamaConfig(**text),
        }
        config = transformers.LlavaConfig(**towers, image_token_id=vocabulary())
        net = transformers.LlavaForConditionalGeneration(config)
        sizes = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
        transformers.CLIPImageProcessor(**sizes).save_pretrained(folder)
    elif kind == "gemma3":
        towers = {
            "vision_config": transformers.SiglipVisionConfig(**image),
            "text_config": transformers.Gemma3TextConfig(**text),
        }
        config = transformers.Gemma3Config(**towers, mm_tokens_per_image=4, image_token_id=vocabulary())
        net = transformers.Gemma3ForConditionalGeneration(config)
        transformers.Gemma3ImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    else:
        rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
        patches = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 8}
        config = transformers.Qwen2VLConfig(
            vision_config=patches, text_config=text | {"rope_parameters": rope}, image_token_id=vocabulary()
        )
        net = transformers.Qwen2VLForConditionalGeneration(config)
    net.save_pretrained(folder)
    endless = tokenizer()
    endless.model_max_length = 10**30
    endless.save_pretrained(folder)
    return net.eval()


@pytest.mark.parametrize("kind", ["llava", "gemma3", "qwen2-vl"])
def test_texts_of_a_language_model_that_sees_are_not_cut_at_its_patches(tmp_path: Path, kind: str) -> None:
    net = seeing(tmp_path, kind)
    states = net.model.language_model(**tokenizer()(LONG[:1], return_tensors="pt", verbose=False)).last_hidden_state
    assert states.shape[1] > 80
    for address in (f"hf:{tmp_path}", f"hf:{tmp_path},part=text"):
        view = likewise.extract(address, LONG, "embedding")  # not a word of texts that are cut
        torch.testing.assert_close(view.values[:1], states[:, -1].detach(), atol=1e-5, rtol=1e-5)
    assert likewise.network(f"hf:{tmp_path}", longest=100).tokenize.longest == 100


@pytest.mark.parametrize("kind", ["llava", "gemma3"])
def test_images_are_shown_to_the_vision_tower_of_a_language_model(tmp_path: Path, kind: str) -> None:
    net = seeing(tmp_path, kind)
    images = torch.rand(5, 3, 32, 32)
    view = likewise.extract(f"hf:{tmp_path},part=vision", images, "embedding")
    with pytest.warns(UserWarning, match="the vision tower is looked at"):
        unasked = likewise.extract(f"hf:{tmp_path}", images, "embedding")
    assert torch.equal(view.values, unasked.values)
    assert view.about["embedding"] == "pooler_output"
    assert view.n == 5
    own = dict(net.model.vision_tower.named_parameters())
    loaded = dict(unwrapped(likewise.network(f"hf:{tmp_path},part=vision")).named_parameters())
    assert all(torch.equal(own[name], value) for name, value in loaded.items())


def test_patches_of_all_images_in_one_row_are_refused(tmp_path: Path) -> None:
    seeing(tmp_path, "qwen2-vl")
    address = f"hf:{tmp_path},part=vision"
    assert refused(lambda: likewise.network(address)) == (
        f"{address} takes the patches of all images in one row, so what it has for images gives no row per image. Wrap "
        "that in a module of yours that does, or show it texts."
    )
