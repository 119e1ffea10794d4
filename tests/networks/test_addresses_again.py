"""Networks by address, wherever they are asked for: the same network, the same names, one sentence."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise._base.hashing import fingerprint
from likewise.comparison.networks import named_networks
from likewise.errors import InputError, MissingDataError, MissingDependencyError, UnknownNameError


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


class Bent(nn.Module):
    """A network whose likeness to another shows neither in its layers nor in its weights."""

    def __init__(self, act: Any = torch.relu, scale: float = 1, table: Any = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.act, self.scale, self.table = act, scale, table

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(self.act(self.scale * self.first(inputs)))


def hooked() -> Bent:
    net = Bent()
    net.first.register_forward_hook(lambda module, given, found: found.sin())
    return net


@pytest.mark.parametrize(
    "other",
    [
        lambda: Bent(torch.cos),
        lambda: Bent(lambda x: 2 * x),
        lambda: Bent(functools.partial(nn.functional.leaky_relu, negative_slope=0.5)),
        lambda: Bent(scale=5),
        lambda: Bent(table={"a": [1, torch.ones(2)]}),
        hooked,
    ],
)
def test_a_store_tells_networks_apart_by_what_they_do(other: Any, tmp_path: Path) -> None:
    data = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    plain = likewise.extract(other(), data, "last").values
    likewise.extract(Bent(), data, "last", store=tmp_path)
    assert torch.equal(likewise.extract(other(), data, "last", store=tmp_path).values, plain)
    assert fingerprint(other()) == fingerprint(other()) != fingerprint(Bent())


def test_functions_that_differ_in_a_constant_are_told_apart() -> None:
    doubled, tripled = Bent(lambda x: 2 * x), Bent(lambda x: 3 * x)
    assert fingerprint(doubled) != fingerprint(tripled)
    slopes = [Bent(functools.partial(nn.functional.leaky_relu, negative_slope=s)) for s in (0.1, 0.2)]
    assert fingerprint(slopes[0]) != fingerprint(slopes[1])


FILE = """
import torch
from torch import nn
GAIN = {gain}
def bend(x):
    return {constant} * x.sin()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 4)
        self.names = {{"one", "two", "three"}}
    def forward(self, x):
        return self.shifted(bend(self.layer(x))) if x.ndim in {{2, "a", "b"}} else x
    def shifted(self, x):
        return x + {shift} * GAIN
def build():
    return Net()
"""


def test_a_changed_line_of_a_file_is_another_network(tmp_path: Path) -> None:
    file, prints = tmp_path / "mine.py", []
    for changed in ({}, {"gain": 2}, {"constant": 3}, {"shift": 4}, {}):
        file.write_text(FILE.format(**({"gain": 1, "constant": 2, "shift": 1} | changed)))
        prints.append(fingerprint(likewise.network(f"{file}:build")))
    assert prints[0] == prints[-1]
    assert len(set(prints)) == 4


def test_the_same_network_has_the_same_fingerprint_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(gain=1, constant=2, shift=1))
    code = (
        "import likewise; from likewise._base.hashing import fingerprint; "
        f"print(fingerprint(likewise.network({f'{file}:build'!r})))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {fingerprint(likewise.network(f"{file}:build")) + "\n"}


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize("name", ["fcn_resnet50", "fasterrcnn_resnet50_fpn", "r3d_18"])
def test_what_torchvision_has_but_classifiers_is_not_denied(name: str) -> None:
    with pytest.raises(InputError) as error:
        likewise.network(f"torchvision:{name}")
    assert str(error.value) == (
        f"torchvision's {name!r} is no classifier of images, and only those have an address. Build "
        f"it and pass the module: torchvision.models.get_model({name!r}, weights='DEFAULT')."
    )


@pytest.mark.usefixtures("vision")
def test_timm_without_torchvision_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)  # as if it were not installed
    with pytest.raises(MissingDependencyError) as error:
        likewise.network("timm:resnet18")
    assert str(error.value) == ("to load timm:resnet18, torchvision is needed: pip install 'likewise[vision]'.")


def test_all_measures_are_those_whose_libraries_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=(40, 5)), chance.normal(size=(40, 3))
    for library in ("ripser", "ot"):
        monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    sentence = "left out of 'all': .*rtd, since .* is needed: pip install"
    with pytest.warns(UserWarning, match=sentence):
        many = likewise.compare({"a": x, "b": y}, "all", progress=False)
    with pytest.warns(UserWarning, match=sentence):
        two = likewise.compare(x, y, "all", progress=False)
    assert "cka" in many
    assert "cka" in two
    assert not {"rtd", "soft-matching"} & {*many, *two}
    with pytest.raises(MissingDependencyError, match="to compute rtd, ripser is needed"):
        likewise.compare({"a": x, "b": y}, ["cka", "rtd"], progress=False)


def test_a_split_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError) as error:
        likewise.dataset("digits", split="tarin")
    assert str(error.value) == (
        "digits has no split 'tarin', asked for by 'digits'. Did you mean 'train'? It has test, train, all."
    )


def test_rows_are_chosen_by_whole_numbers_and_whole_masks() -> None:
    data = likewise.dataset("digits:test[:20]")
    with pytest.raises(InputError) as half:
        data[[1.5]]  # type: ignore[list-item]
    assert str(half.value) == ("inputs are counted by whole numbers, not by torch.float32. Round them.")
    with pytest.raises(InputError) as mask:
        data[torch.ones(5, dtype=torch.bool)]
    assert str(mask.value) == "a mask of 5 cannot choose among 20 inputs. Give 20."
    assert len(data[[]]) == 0
    assert len(data[torch.arange(20) < 3]) == 3


def test_folders_may_have_brackets_and_hidden_folders(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos [2024]"
    for name in ("cat", "dog", "cat/.ipynb_checkpoints", ".ipynb_checkpoints", ".empty"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("cat/1.png", "dog/1.png", "cat/.ipynb_checkpoints/1.png", "dog/._1.png"):
        image.new("RGB", (8, 8)).save(folder / name)
    data = likewise.dataset(f"imagefolder:{folder}")
    assert (len(data), data.classes) == (2, ("cat", "dog"))
    assert len(likewise.dataset(f"imagefolder:{folder}[:1]")) == 1


def test_networks_are_compared_on_a_device_in_batches_of_a_size() -> None:
    shown: list[tuple[int, str]] = []
    nets = {name: nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)) for name in "ab"}
    for net in nets.values():
        net[0].register_forward_hook(lambda _m, _a, out: shown.append((len(out), out.device.type)))
    likewise.compare(nets, "cka", data=torch.rand(10, 8), layers="0", batch_size=4, device="cpu")
    assert shown == 2 * [(4, "cpu"), (4, "cpu"), (2, "cpu")]
    with pytest.raises(InputError, match="device 'gpu' cannot be used here"):
        likewise.compare(nets, "cka", data=torch.rand(10, 8), layers="0", device="gpu")
