"""Which layers a network has, which of them are its blocks, and what each gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import likewise
from likewise.data import Data
from likewise.errors import InputError
from likewise.networks import Normalised
from likewise.networks.anatomy.layers import named_layers


def test_layers_are_listed_with_shapes_and_parameters_one_entry_per_call() -> None:
    step = nn.Linear(4, 4)
    net = nn.Sequential(nn.Linear(8, 4), step, step)
    found = [(one.name, one.kind, one.shape, one.parameters) for one in likewise.layers(net, torch.rand(3, 8))]
    # weights and biases: 8 · 4 + 4 = 36 and 4 · 4 + 4 = 20
    assert found == [
        ("0", "Linear", (4,), 36),
        ("1", "Linear", (4,), 20),
        ("1#2", "Linear", (4,), 20),
    ]


def test_without_data_a_size_is_tried() -> None:
    shapes = {one.name: one.shape for one in likewise.layers("zoo:resnet20")}
    assert shapes["layer1.0"] == (16, 32, 32)
    assert shapes["layer3.2"] == (64, 8, 8)


def test_where_no_size_fits_names_are_listed_without_shapes() -> None:
    found = likewise.layers(nn.Sequential(nn.Linear(7, 3)))
    assert [(one.name, one.shape) for one in found] == [("0", None)]


def test_wrappers_do_not_show_in_names() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3))
    wrapped = nn.DataParallel(Normalised(net, mean=[0.5] * 3, std=[0.2] * 3))
    assert list(named_layers(wrapped)) == ["0"]
    compiled = torch.compile(net, backend="eager")
    assert list(named_layers(compiled)) == ["0"]


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    "name", ["timm:test_vit", "timm:test_resnet", "timm:test_vit.r160_in1k", "torchvision:squeezenet1_1"]
)
def test_layers_are_listed_without_fetching_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    for folder in ("TORCH_HOME", "HF_HOME"):
        monkeypatch.setenv(folder, str(tmp_path))
    monkeypatch.setattr("socket.socket.connect", refuse)
    built = likewise.network(f"{name},pretrained=false")
    assert likewise.layers(name) == likewise.layers(built)
    assert all(one.shape is not None for one in likewise.layers(name))
    assert list(tmp_path.rglob("*")) == []


def refuse(*_: object) -> None:
    raise AssertionError("something was fetched")


def test_layers_of_a_folder_of_transformers_need_its_config_alone(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "image_size": 16, "patch_size": 8}
    config = transformers.ViTConfig(num_hidden_layers=1, num_attention_heads=2, **sizes)
    config.architectures = ["ViTForImageClassification"]
    config.save_pretrained(tmp_path)
    found = {one.name: one.shape for one in likewise.layers(f"hf:{tmp_path}", torch.zeros(2, 3, 16, 16))}
    assert found["vit.layernorm"] == (5, 16)  # four patches and the class
    assert found["classifier"] == (2,)


def test_an_untrained_network_of_the_zoo_is_built_for_the_data() -> None:
    prepared = likewise.layers("zoo:mlp", "digits:test[:4]")
    assert prepared[-1].shape == (10,)
    assert prepared[0].parameters == 64 * 256 + 256


@pytest.mark.usefixtures("vision")
def test_layers_of_a_published_network_are_those_of_its_weights_whatever_the_data() -> None:
    images = Data("few", "image", torch.rand(4, 3, 160, 160), [0, 1, 0, 1], ("a", "b"))
    assert likewise.layers("timm:test_resnet", images)[-1].shape == (1000,)


def test_a_network_without_weights_has_layers_but_no_activations() -> None:
    with torch.device("meta"):
        net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 4), nn.Linear(4, 2))
    assert [one.shape for one in likewise.layers(net)] == [(3072,), (4,), (2,)]
    sentence = (
        "'Sequential' is on the device 'meta', where weights have no values. Build it outside of "
        "torch.device('meta'), or call to_empty(device='cpu') on it and load its weights."
    )
    rows = torch.rand(8, 3, 32, 32)
    acts: list[Callable[[], object]] = [
        lambda: likewise.extract(net, rows),
        lambda: likewise.extract(net, rows, store="unused"),
        lambda: likewise.compare([net, net], "cka", data=rows),
        lambda: likewise.layerwise(net, data=rows),
    ]
    for act in acts:
        with pytest.raises(InputError) as error:
            act()
        assert str(error.value) == sentence
    filled = net.to_empty(device="cpu")
    filled.load_state_dict(nn.Sequential(nn.Flatten(), nn.Linear(3072, 4), nn.Linear(4, 2)).state_dict())
    assert likewise.extract(filled, rows).d == 4


@pytest.mark.parametrize("thing", [3, None, [1]])
def test_what_is_no_network_is_refused(thing: object) -> None:
    with pytest.raises(InputError) as error:
        likewise.layers(thing)  # type: ignore[arg-type]
    assert str(error.value) == (
        f"{thing!r} is no network. Give an address, as in 'zoo:resnet20', or a torch.nn.Module."
    )
