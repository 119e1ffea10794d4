"""Headers of weights files: they may name networks and sizes, and never run, fetch or read anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import likewise
from likewise.errors import InputError, LikewiseError, MissingDataError
from likewise.networks import save
from tests.networks.helpers import refused


def file_with(path: Path, **header: Any) -> Path:
    """A weights file of a stranger, with whatever header they like."""
    state = likewise.network("zoo:lenet").state_dict()
    save_file(dict(state), path, metadata={"likewise": json.dumps(header)})
    return path


def refusal(address: str | Path, **options: Any) -> str:
    with pytest.raises(InputError) as error:
        likewise.network(str(address), **options)
    return str(error.value)


MARKING = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
BUILD = "from torch import nn\ndef build(width=4, kind='a'):\n    return nn.Linear(2, width)\n"


def test_a_header_never_runs_a_python_file(tmp_path: Path) -> None:
    code = tmp_path / "evil.py"
    code.write_text(MARKING + BUILD)
    path = file_with(tmp_path / "w.safetensors", network=f"{code}:build")
    assert refusal(path) == (
        f"{path} belongs to 'build' of a Python file, which is run only where you type it. Where "
        f"you trust it: '{code}:build@{path}'."
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", ["layers", "compare", "layerwise", "inspect"])
def test_no_command_runs_what_a_header_names(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from likewise.cli import main

    (tmp_path / "evil.py").write_text(MARKING + BUILD)
    path = str(file_with(tmp_path / "w.safetensors", network=f"{tmp_path}/evil.py:build"))
    more = {
        "layers": [path],
        "compare": [path, path, "--data", "digits:test[:20]"],
        "layerwise": [path, "--data", "digits:test[:20]"],
        "inspect": [path, "--data", "digits:test[:20]", "--out", str(tmp_path / "out")],
    }
    with pytest.raises(SystemExit):
        main([command, *more[command]])
    assert "which is run only where you type it" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_a_network_of_your_own_file_is_built_where_it_is_typed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BUILD)
    net = likewise.network(f"{tmp_path}/mine.py:build", width=7)
    save(net, tmp_path / "w.safetensors")
    again = likewise.network(f"{tmp_path}/mine.py:build@{tmp_path}/w.safetensors")
    assert torch.equal(again.weight, net.weight)


def test_words_of_a_header_do_not_reach_your_own_function(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BUILD)
    net = likewise.network(f"{tmp_path}/mine.py:build", kind="b")
    path = tmp_path / "w.safetensors"
    save(net, path)
    typed = f"{tmp_path}/mine.py:build"
    assert refusal(f"{typed}@{path}") == (
        f"{path} asks for the option kind='b', which a file may not choose. Where you trust it, "
        f"type it: '{typed},kind=VALUE@{path}'."
    )
    assert torch.equal(likewise.network(f"{typed},kind=b@{path}").weight, net.weight)


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("timm:resnet18", {"checkpoint_path": "evil.pth"}),
        ("timm:resnet18", {"pretrained": True}),
        ("timm:resnet18", {"pretrained_cfg": {"file": "evil.pth"}}),
        ("timm:resnet18", {"pretrained_cfg_overlay": {"url": "http://localhost"}}),
        ("timm:resnet18", {"cache_dir": "/tmp"}),
        ("torchvision:resnet18", {"weights": "DEFAULT"}),
        ("hf:bert-base-uncased", {"trust_remote_code": True}),
        ("hf:bert-base-uncased", {"revision": "evil"}),
        ("hf:bert-base-uncased", {"attn_implementation": "evil/kernel"}),
        ("hf:bert-base-uncased", {"local_files_only": False}),
        ("zoo:minilm", {"folder": "/tmp/evil"}),
        ("zoo:lenet", {"classes": 10**9}),
        ("zoo:lenet", {"classes": "../../x"}),
        ("zoo:lenet", {"classes": {"a": 1}}),
        ("zoo:mlp", {"depth": 10**5}),
        ("zoo:lenet", {"classes": float("nan")}),
        ("zoo:lenet", {"seed": 3}),
        ("zoo:lenet", {"command": "id"}),
    ],
)
def test_an_option_that_is_more_than_a_size_has_to_be_typed(
    tmp_path: Path, network: str, options: dict[str, Any]
) -> None:
    path = file_with(tmp_path / "w.safetensors", network=network, options=options)
    ((name, value),) = options.items()
    sentence = (
        f"{path} asks for the option {name}={value!r}, which a file may not choose. Where you "
        f"trust it, type it: '{network},{name}=VALUE@{path}'."
    )
    assert refusal(path) == sentence
    assert refusal(f"{network}@{path}") == sentence  # a typed network does not make it safer


@pytest.mark.parametrize(("option", "typed"), [("pretrained", False), ("seed", 1)])
def test_an_option_that_is_typed_leaves_nothing_of_the_header_s(tmp_path: Path, option: str, typed: Any) -> None:
    path, network = tmp_path / "w.safetensors", "timm:test_vit"
    state = likewise.network(network, pretrained=False).state_dict()
    header = {"network": network, "options": {option: 7}}
    save_file(dict(state), path, metadata={"likewise": json.dumps(header)})
    net = likewise.network(f"{network},{option}={typed}@{path}")
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())


def test_layers_are_listed_whatever_a_header_says_of_published_weights(tmp_path: Path) -> None:
    net = likewise.network("timm:test_vit", pretrained=False)
    header = {"network": "timm:test_vit", "options": {"pretrained": True}}
    save_file(dict(net.state_dict()), tmp_path / "w.safetensors", metadata={"likewise": json.dumps(header)})
    found, expected = likewise.layers(str(tmp_path / "w.safetensors")), likewise.layers(net)
    assert list(found) == list(expected)


@pytest.mark.parametrize(
    "network",
    ["timm:hf-hub:evil/net", "timm:local-dir:/tmp/evil", "hf:../evil", "hf:http://evil.example"],
)
def test_a_header_does_not_choose_what_is_fetched(tmp_path: Path, network: str) -> None:
    path = file_with(tmp_path / "w.safetensors", network=network)
    assert refusal(path) == (
        f"{path} belongs to a network that is kept elsewhere ({network!r}), and a file may not "
        f"choose what is fetched or read. Where you trust it: '{network}@{path}'."
    )


@pytest.mark.parametrize(
    "header",
    [
        {"network": 3},
        {"network": ["zoo:lenet"]},
        {"network": "zoo:lenet" + "x" * 1000},
        {"network": "zoo:lenet,classes=3"},
        {"network": "zoo:lenet@/etc/passwd"},
        {"network": "zoo:lenet", "options": [1]},
        {"network": "zoo:lenet", "options": {f"o{i}": i for i in range(101)}},
    ],
)
def test_a_header_of_another_form_is_called_damaged(tmp_path: Path, header: Any) -> None:
    path = file_with(tmp_path / "w.safetensors", **header)
    assert refusal(path) == (
        f"the header of {path} is damaged: it does not say which network it belongs to. Name it: 'zoo:resnet20@{path}'."
    )


def test_a_network_that_does_not_exist_is_named_with_the_file(tmp_path: Path) -> None:
    path = file_with(tmp_path / "w.safetensors", network="zou:lenet")
    assert refusal(path) == (
        f"{path} names a network that cannot be built: no networks come from 'zou'. Did you mean "
        "'zoo'? An address is zoo:NAME, gguf:NAME, timm:NAME, torchvision:NAME, hf:NAME, file.py:function, "
        "a .safetensors file or a training's folder."
    )


@pytest.mark.parametrize(
    ("mean", "std", "what"),
    [
        ([0.1], [0.0], "std"),
        (["a"], [1.0], "mean"),
        ([0.1, 0.2], [1.0], "std"),
        ("x", "y", "mean"),
        ([float("inf")], [1.0], "mean"),
    ],
)
def test_a_normalisation_that_cannot_be_is_refused(tmp_path: Path, mean: Any, std: Any, what: str) -> None:
    path = file_with(tmp_path / "w.safetensors", network="zoo:lenet", mean=mean, std=std)
    assert refusal(path) == (f"{path} gives no usable {what} to normalise images by. Fetch the file again.")


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("zoo:lenet", {"classes": 3, "channels": 1, "size": 8}),
        ("zoo:gat", {"features": 5, "activation": "relu", "norm": "BatchNorm"}),
        ("zoo:lmfrnet", {"blocks": [1, 1, 1, 1]}),
        ("timm:test_resnet", {"classes": 3, "channels": 1}),
        ("torchvision:squeezenet1_0", {"classes": 3}),
    ],
)
def test_what_was_saved_here_is_found_again(
    tmp_path: Path, address: str, options: dict[str, Any], vision: None
) -> None:
    if address == "zoo:gat":
        pytest.importorskip("torch_geometric")
    net = likewise.network(address, untrained=True, **options)
    save(net, tmp_path / "w.safetensors")
    again = likewise.network(str(tmp_path / "w.safetensors"))
    mine, theirs = net.state_dict(), again.state_dict()
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)


def folder_with_code(folder: Path, **config: Any) -> Path:
    """A folder of transformers whose config asks for Python code beside it to be run."""
    folder.mkdir()
    auto = {"AutoConfig": "code.Config", "AutoModel": "code.Net", "AutoTokenizer": "code.Words"}
    stated = {"model_type": "evil", "auto_map": auto} | config
    (folder / "config.json").write_text(json.dumps(stated))
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": auto}))
    (folder / "code.py").write_text(MARKING + "raise SystemExit('ran')\n")
    return folder


def test_code_of_a_folder_is_not_run_and_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    folder = folder_with_code(tmp_path / "net")
    monkeypatch.setattr("builtins.input", lambda *a: pytest.fail("asked on standard input"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    sentence = (
        f"hf:{folder} brings code of its own, which is not run unasked. Where you trust it, type "
        f"'hf:{folder},trust_remote_code=true'."
    )
    assert refusal(f"hf:{folder}") == sentence
    path = file_with(tmp_path / "w.safetensors", network=f"hf:{folder}")
    assert refusal(path) == sentence
    with pytest.raises(LikewiseError):
        likewise.network(f"zoo:minilm,folder={folder}")
    assert not (folder / "ran").exists()


def test_a_config_does_not_choose_compiled_code_of_the_hub(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = folder_with_code(tmp_path / "net", model_type="bert", auto_map={}, attn_implementation="evil/kernel")
    assert refusal(f"hf:{folder},pretrained=false") == (
        f"hf:{folder} brings code of its own, which is not run unasked. Where you trust it, type "
        f"'hf:{folder},trust_remote_code=true'."
    )


def test_a_network_of_transformers_named_by_a_header_is_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    import socket

    calls: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: calls.append(a) or [])
    path = file_with(tmp_path / "w.safetensors", network="hf:nobody/nothing-here")
    assert refused(lambda: likewise.network(str(path)), MissingDataError) == (
        f"{path} belongs to hf:nobody/nothing-here, which is not on this disk, and a file may not "
        f"choose what is fetched. Where you trust it: 'hf:nobody/nothing-here@{path}'."
    )
    assert calls == []


def test_a_trained_network_of_a_transformers_folder_is_found_again(tmp_path: Path, vision: None) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=8,
        patch_size=4,
        num_channels=1,
    )
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    with pytest.warns(UserWarning, match="drawn at random|no image processor"):
        net = likewise.network(f"hf:{tmp_path / 'vit'}", classes=3)
    save(net, tmp_path / "w.safetensors")
    again = likewise.network(str(tmp_path / "w.safetensors"))
    mine, theirs = net.state_dict(), again.state_dict()
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)
