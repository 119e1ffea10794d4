"""Networks are compared by address or as modules: the same network, the same names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.comparison.networks import named_networks
from likewise.errors import InputError, MissingDataError, UnknownNameError


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
    view = likewise.extract(address, data, layer, "cls")
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
    np.testing.assert_allclose(found["lenet,seed=0", "lenet,seed=1"], expected, atol=1e-9)


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
    assert shown == 2 * [(4, "cpu"), (4, "cpu"), (2, "cpu")]
    with pytest.raises(InputError, match="device 'gpu' cannot be used here"):
        likewise.compare(nets, "cka", data=torch.rand(10, 8), layers="0", device="gpu")
