"""Networks are compared by address or as modules: the same network, the same names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise import measures
from likewise.errors import InputError, MissingDataError, UnknownNameError
from likewise.networks.names import named_networks
from likewise.testing import check_measure
from tests.data.helpers import coloured
from tests.fuzz.tiny_transformers import WORDS, save


class Untouched(nn.Module):
    """A network that must not run."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the network was shown inputs")


def images(n: int = 12, side: int = 32) -> likewise.data.Data:
    chance = torch.Generator().manual_seed(0)
    pixels = torch.rand(n, 3, side, side, generator=chance)
    return likewise.data.Data("noise", "image", pixels, [i % 2 for i in range(n)], ("a", "b"))


@pytest.mark.usefixtures("vision")
def test_a_comparison_never_takes_published_networks_untrained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there
    sentence = (
        "the weights of torchvision:resnet18 are not here and cannot be downloaded (URLError). "
        "Add '@weights.safetensors', or take it untrained: 'torchvision:resnet18,pretrained=false'."
    )
    with pytest.raises(MissingDataError) as error:
        likewise.extract("torchvision:resnet18", images())
    assert str(error.value) == sentence
    with pytest.raises(MissingDataError) as error:
        likewise.compare(["torchvision:resnet18", "zoo:lenet"], "cka", data=images())
    assert str(error.value) == sentence


@pytest.mark.usefixtures("vision")
def test_a_comparison_finds_the_layers_of_a_transformer_that_extract_finds(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "image_size": 16, "patch_size": 8}
    config = transformers.ViTConfig(num_hidden_layers=1, num_attention_heads=2, **sizes)
    transformers.ViTModel(config).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.2]}')
    address, data = f"hf:{tmp_path}", images(side=16)
    layer = "layernorm"  # of the bare encoder: a classifier would call it vit.layernorm
    view = likewise.extract(address, data, layer, reduce="cls")
    score = likewise.compare(address, view, measure="cka", data=data, layers=layer, reduce="cls")
    assert float(score) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kind", ["tensor", "array", "loader"])
def test_addresses_are_compared_on_tensors_arrays_and_loaders(kind: str) -> None:
    inputs = images().inputs
    data = {
        "tensor": inputs,
        "array": inputs.numpy(),
        "loader": torch.utils.data.DataLoader(inputs, batch_size=5),
    }[kind]
    networks = ["zoo:lenet,seed=0", "zoo:lenet,seed=1"]
    found = likewise.compare(networks, "cka", data=data)
    views = [likewise.extract(address, inputs) for address in networks]
    expected = likewise.measures.get("cka")(*views)
    # float32 is rounded otherwise where other inputs are shown together
    assert float(found["lenet,seed=0", "lenet,seed=1"]) == pytest.approx(
        expected, abs=1e-6 if kind == "loader" else 1e-9
    )


def test_untrained_networks_are_said_to_be(tmp_path: Path) -> None:
    data = likewise.dataset("digits:test[:60]")
    score = likewise.compare("zoo:lenet", "zoo:mlp", "cka", data=data)
    assert score.untrained == ("zoo:lenet", "zoo:mlp")
    assert repr(score).endswith("(0 … 1, larger is more alike; 1 with itself, untrained)")
    assert score.explain().splitlines()[1] == "Untrained, with random weights: zoo:lenet, zoo:mlp."
    layers = likewise.layerwise("zoo:mlp", data=data)
    assert layers.notes()[-1] == "Untrained, with random weights: zoo:mlp."
    likewise.train("zoo:mlp", "digits:train[:50]", epochs=1, out=tmp_path / "run")
    module = likewise.network("zoo:mlp", data=data)
    (tmp_path / "mine.py").write_text(
        "from torch import nn\ndef build(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))"
    )
    given = [str(tmp_path / "run"), f"zoo:mlp@{tmp_path}/run/weights.safetensors", module, f"{tmp_path}/mine.py:build"]
    for one in given:
        pair = likewise.compare([one, one], "cka", data=data, layers="logits")
        for matrix in (pair, likewise.layerwise(one, data=data)):
            assert not any("Untrained" in note for note in matrix.notes())


def test_a_wrong_measure_is_told_before_a_network_runs() -> None:
    with pytest.raises(UnknownNameError) as error:
        likewise.compare([Untouched(), Untouched()], "ckaa", data=torch.rand(9, 4))
    assert str(error.value) == "no measure named 'ckaa'. Did you mean 'cka'?"


def test_modules_are_named_by_the_address_they_came_from(tmp_path: Path) -> None:
    data = likewise.dataset("digits:test[:20]")
    nets = [likewise.network("zoo:mlp", data=data, seed=seed) for seed in (0, 1)]
    paths = [tmp_path / run / "weights.safetensors" for run in ("first", "second")]
    for net, path in zip(nets, paths, strict=True):
        likewise.networks.save(net, path)
    loaded = [likewise.network(str(path)) for path in paths]
    assert list(named_networks([*nets, *loaded])) == ["mlp", "mlp#2", "first", "second"]
    assert list(named_networks([str(path) for path in paths])) == ["first", "second"]
    assert likewise.extract(nets[0], data).name == "zoo:mlp"
    assert likewise.extract(loaded[0], data).name == f"zoo:mlp@{paths[0]}"


def test_networks_are_compared_on_a_device_in_batches_of_a_size() -> None:
    shown: list[tuple[int, str]] = []
    nets = {name: nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)) for name in "ab"}
    for net in nets.values():
        net[0].register_forward_hook(lambda _m, _a, out: shown.append((len(out), out.device.type)))
    likewise.compare(nets, "cka", data=torch.rand(10, 8), layers="0", batch_size=4, device="cpu")
    assert shown == 2 * [(4, "cpu"), (2, "cpu"), (2, "cpu"), (4, "cpu"), (2, "cpu")]  # two inputs again, twice
    with pytest.raises(InputError, match="device 'gpu' cannot be used here"):
        likewise.compare(nets, "cka", data=torch.rand(10, 8), layers="0", device="gpu")


def share_of_equal_weights(pair):
    """Which share of the weights of two networks is equal, and how many inputs they were shown."""
    left, right = (torch.cat([p.flatten() for p in rep.subject.network.parameters()]) for rep in (pair.a, pair.b))
    assert pair.a.subject.data is pair.b.subject.data
    return float((left == right).double().mean())


@pytest.fixture
def weights_measure():
    yield measures.register(share_of_equal_weights, name="equal-weights", on="networks", symmetric=True, identity=1)
    measures.unregister("equal-weights")


def linear(*weights: float) -> nn.Module:
    layer = nn.Linear(len(weights), 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([weights]))
        layer.bias.zero_()
    return layer


INPUTS = torch.rand(12, 3, generator=torch.Generator().manual_seed(0))


def test_a_measure_may_look_at_the_networks_themselves(weights_measure, tmp_path: Path) -> None:
    nets = {"a": linear(1, 2, 3), "b": linear(1, 2, 4), "c": linear(5, 6, 3)}
    score = likewise.compare(nets["a"], nets["b"], "equal-weights", data=INPUTS, layers="logits")
    assert score == 0.75  # two of three weights, and the bias
    for _ in range(2):  # computed, then from the store
        matrix = likewise.compare(
            nets, "equal-weights", data=INPUTS, layers="logits", store=tmp_path / "store", progress=False
        )
        assert matrix["a"] == {"a": 1.0, "b": 0.75, "c": 0.5}
    both = likewise.compare(nets, ["cka", "equal-weights"], data=INPUTS, layers="logits", progress=False)
    assert both["equal-weights"]["b", "c"] == 0.25


def test_networks_that_answer_alike_are_told_apart_in_the_store(weights_measure, tmp_path: Path) -> None:
    inputs = torch.cat([INPUTS[:, :2], torch.zeros(12, 1)], dim=1)  # the third weight is never seen
    how = {"data": inputs, "layers": "logits", "store": tmp_path / "store"}
    assert likewise.compare(linear(1, 2, 3), linear(4, 5, 3), "equal-weights", **how) == 0.5
    assert likewise.compare(linear(1, 2, 3), linear(4, 5, 6), "equal-weights", **how) == 0.25


def test_answers_that_are_not_finite_are_told_and_stop_only_measures_that_read_them() -> None:
    nets = {name: likewise.network("zoo:lenet", seed=seed) for seed, name in enumerate("ab")}
    for net in nets.values():
        nn.init.constant_(net.fc.bias, torch.inf)
    sentence = "'a' answers with numbers that are not finite. Its rows are kept without outputs."
    with pytest.warns(UserWarning, match="^'[ab]' answers") as warned:
        alone = likewise.compare(nets, "cka", data=images(), progress=False)
    assert sentence in [str(each.message) for each in warned]
    assert 0 < alone["a", "b"] < 1
    with pytest.warns(UserWarning, match="^'[ab]' answers") as warned:
        both = likewise.compare(nets, ["cka", "disagreement"], data=images(), progress=False)
    assert sentence in [str(each.message) for each in warned]
    assert 0 < both["cka"]["a", "b"] < 1
    assert np.isnan(both["disagreement"]["a", "b"])


def test_a_measure_of_networks_refuses_arrays(weights_measure) -> None:
    x, y = INPUTS.numpy(), INPUTS.numpy() ** 2
    reason = (
        "equal-weights looks at networks, and {} is an array of activations. Pass two networks and data, as in "
        "compare(network, other, 'equal-weights', data='cifar10:test')."
    )
    for call, name in (
        (lambda: likewise.compare(x, y, "equal-weights"), "'x'"),
        (lambda: likewise.compare({"one": x, "two": y}, "equal-weights"), "'one'"),
        (lambda: weights_measure(x, y), "'x'"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == reason.format(name)


def test_a_measure_of_networks_is_neither_shuffled_nor_sent_away(weights_measure) -> None:
    nets = {"a": linear(1, 2, 3), "b": linear(1, 2, 4)}
    for options, reason in (
        (
            {"calibrate": True},
            "calibrate shuffles inputs of activations, and equal-weights looks at networks. Leave it out.",
        ),
        (
            {"engine": "processes"},
            "equal-weights looks at networks, which stay in this process. Leave the engine out.",
        ),
    ):
        with pytest.raises(InputError) as caught:
            likewise.compare(nets, "equal-weights", data=INPUTS, layers="logits", **options)
        assert str(caught.value) == reason
    reason = "equal-weights looks at networks, and check_measure makes up activations. Test it on networks."
    with pytest.raises(InputError) as caught:
        check_measure("equal-weights")
    assert str(caught.value) == reason


def captioned(folder: Path) -> list[str]:
    """Six images with a text each, which are given back."""
    coloured(folder, *(f"{i}.png" for i in range(6)))
    texts = [f"the {'very ' * i}good cat" for i in range(6)]
    lines = [f"{i}.png,{json.dumps(text)}" for i, text in enumerate(texts)]
    (folder / "metadata.csv").write_text("\n".join(["file_name,text", *lines]))
    return texts


def test_captioned_images_are_shown_as_what_each_network_takes(tmp_path: Path) -> None:
    texts = captioned(tmp_path)
    seeing, reading = likewise.network("zoo:mlp,size=8"), likewise.network("zoo:bert-tiny,width=16")
    found = likewise.compare({"seeing": seeing, "reading": reading}, "cka", data=str(tmp_path))
    alone = [likewise.extract(seeing, f"imagefolder:{tmp_path}"), likewise.extract(reading, texts)]
    assert found.values[0, 1] == pytest.approx(float(likewise.compare(*map(np.asarray, alone), "cka")), abs=1e-6)
    views = [likewise.extract(net, f"captions:{tmp_path}") for net in (seeing, reading)]
    assert views[0].probe == views[1].probe
    assert np.array_equal(views[1], alone[1])
    layers = likewise.layerwise(seeing, reading, str(tmp_path), layers="penultimate", batch_size=6)
    assert layers.values.shape == (1, 1)


@pytest.mark.usefixtures("vision")
def test_the_two_towers_of_clip_are_compared_on_captioned_images(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    texts = captioned(tmp_path / "photos")
    save("clip", tmp_path / "clip")
    towers = [f"hf:{tmp_path}/clip,part={part}" for part in ("vision", "text")]
    how: dict[str, Any] = {"layers": "embedding"}
    score = likewise.compare(*towers, "cka", data=f"captions:{tmp_path}/photos", **how)
    seen = likewise.extract(towers[0], f"imagefolder:{tmp_path}/photos", **how)
    read = likewise.extract(towers[1], texts, **how)
    assert float(score) == pytest.approx(float(likewise.compare(np.asarray(seen), np.asarray(read), "cka")), abs=1e-5)
    assert 0 < score < 1


@pytest.mark.usefixtures("vision")
def test_text_networks_of_four_kinds_are_compared_on_one_text_file(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    texts = [f"{'the ' * (i % 3)}{word} {'sat on' if i % 2 else 'was'} a mat" for i, word in enumerate(WORDS[2:18])]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    kinds = ("gpt2", "llama", "bert", "mamba")
    for kind in kinds:
        save(kind, tmp_path / kind)
    nets = [f"hf:{tmp_path}/{kind}" for kind in kinds]
    found = likewise.compare(nets, "cka", data=str(tmp_path / "texts.txt"), layers="embedding")
    assert np.isfinite(found.values).all()
    rows = {kind: np.asarray(likewise.extract(net, texts, "embedding")) for kind, net in zip(kinds, nets, strict=True)}
    np.testing.assert_allclose(found.values, likewise.compare(rows, "cka").values, atol=1e-5)
    layers = likewise.layerwise(*nets[:2], str(tmp_path / "texts.txt"), batch_size=16)
    assert min(layers.values.shape) > 1
    assert np.isfinite(layers.values).all()


def test_labels_of_pairs_and_loaders_tell_accuracies_too() -> None:
    torch.manual_seed(0)
    nets = {name: nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 2)) for name in ("a", "b")}
    x, y = torch.rand(30, 3, 2, 2), torch.arange(30) % 2
    right = {name: float((net(x).argmax(dim=1) == y).float().mean()) for name, net in nets.items()}
    both = torch.utils.data.TensorDataset(x, y)
    for data in ((x, y), (x.numpy(), y.numpy()), both, torch.utils.data.DataLoader(both, batch_size=7)):
        matrix = likewise.compare(nets, data=data, progress=False)
        assert matrix.about["accuracies"] == pytest.approx(right)
    for data in (x, torch.utils.data.TensorDataset(x, torch.rand(30))):
        with pytest.raises(KeyError):
            likewise.compare(nets, data=data, progress=False).about["accuracies"]
