"""Weights on disk: seen through their wrappers, refused where they are of something else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import likewise
from likewise.errors import InputError, MissingDataError
from likewise.networks import Normalised, save
from tests.networks.helpers import refused, said


@pytest.fixture
def lenet() -> Any:
    return likewise.network("zoo:lenet", seed=3)


def equal(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    left, right = a.state_dict(), b.state_dict()
    return all(torch.equal(left[key], right[key]) for key in left | right)


@pytest.mark.parametrize("ending", [".pt", ".pth", ".th", ".bin", ".ckpt", ".pth.tar"])
@pytest.mark.parametrize("wrap", ["bare", "state_dict", "module", "both"])
def test_published_wrappers_are_seen_through(tmp_path: Path, lenet: Any, ending: str, wrap: str) -> None:
    state = dict(lenet.state_dict())
    if wrap in ("module", "both"):
        state = {f"module.{key}": value for key, value in state.items()}
    stored = {"state_dict": state, "epoch": 3} if wrap in ("state_dict", "both") else state
    path = tmp_path / f"w{ending}"
    torch.save(stored, path)
    assert equal(likewise.network(f"zoo:lenet@{path}"), lenet)


@pytest.mark.parametrize("prefix", ["_orig_mod.", "model.", "module.model.", "model.module.", "module._orig_mod."])
def test_prefixes_of_wrappers_are_taken_off_in_any_order(tmp_path: Path, lenet: Any, prefix: str) -> None:
    torch.save({"model": {f"{prefix}{key}": value for key, value in lenet.state_dict().items()}}, tmp_path / "w.pth")
    assert equal(likewise.network(f"zoo:lenet@{tmp_path}/w.pth"), lenet)


@pytest.mark.parametrize("key", ["model_ema", "ema", "state_dict_ema", "ema_state_dict"])
def test_a_moving_average_is_taken_where_there_is_nothing_else(tmp_path: Path, lenet: Any, key: str) -> None:
    other = likewise.network("zoo:lenet", seed=4)
    torch.save({key: lenet.state_dict(), "epoch": 3}, tmp_path / "average.pth.tar")
    net, notes = said(lambda: likewise.network(f"zoo:lenet@{tmp_path}/average.pth.tar"))
    assert equal(net, lenet)
    assert notes == [f"average.pth.tar holds no weights but their moving average, {key!r}, which is taken."]
    torch.save({key: lenet.state_dict(), "state_dict": other.state_dict()}, tmp_path / "both.pth.tar")
    net, notes = said(lambda: likewise.network(f"zoo:lenet@{tmp_path}/both.pth.tar"))
    assert equal(net, other)
    assert notes == [f"both.pth.tar holds weights, which are taken, and their moving average, {key!r}, which is not."]


def test_saved_weights_are_an_address(tmp_path: Path) -> None:
    digits = likewise.dataset("digits")
    net = likewise.network("zoo:lenet", data=digits, seed=5)
    save(net, tmp_path / "weights.safetensors")
    by_file = likewise.network(str(tmp_path / "weights.safetensors"))
    by_folder = likewise.network(str(tmp_path))
    by_name = likewise.network(f"zoo:lenet@{tmp_path / 'weights.safetensors'}")
    for again in (by_file, by_folder, by_name):
        assert isinstance(again, Normalised)
        assert torch.equal(again(digits.inputs[:5]), net(digits.inputs[:5]))


def test_weights_without_a_name_ask_for_one(tmp_path: Path, lenet: Any) -> None:
    path = tmp_path / "bare.safetensors"
    save_file(lenet.state_dict(), path)
    assert refused(lambda: likewise.network(str(path))) == (
        f"{path} does not say which network it belongs to. Name it: 'zoo:resnet20@{path}'."
    )


def test_normalisation_is_read_from_a_list_beside_the_weights(tmp_path: Path, lenet: Any) -> None:
    save_file(lenet.state_dict(), tmp_path / "a.safetensors")
    (tmp_path / "models.json").write_text(
        '{"normalisation": {"mean": [0.1, 0.2, 0.3], "std": [1.0, 1.0, 2.0]}, "models": {"a": {}}}'
    )
    net = likewise.network(f"zoo:lenet@{tmp_path}/a.safetensors")
    images = torch.rand(2, 3, 32, 32)
    shown = (images - torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)) / torch.tensor([1.0, 1.0, 2.0]).view(3, 1, 1)
    assert torch.equal(net(images), lenet(shown))


@pytest.mark.parametrize(
    ("network", "faults"),
    [
        (
            "zoo:mlp",
            "missing hidden.2.weight, hidden.2.bias; unexpected features.0.bias, features.0.weight, features.1.bias "
            "and 19 more; of another shape hidden.0.weight (120 × 400 there, 256 × 3072 here), hidden.0.bias (120 "
            "there, 256 here), fc.weight (10 × 84 there, 10 × 256 here)",
        ),
        (
            "zoo:lenet,classes=3",
            "of another shape fc.weight (10 × 84 there, 3 × 84 here), fc.bias (10 there, 3 here)",
        ),
    ],
)
def test_weights_of_another_architecture_are_named(tmp_path: Path, lenet: Any, network: str, faults: str) -> None:
    path = tmp_path / "lenet.safetensors"
    save_file(lenet.state_dict(), path)
    assert refused(lambda: likewise.network(f"{network}@{path}")) == (
        f"the weights of {path} for {network.partition(',')[0]} are of another architecture: {faults}. Name the "
        "architecture they were made for, with its options such as classes=."
    )


class Harm:
    """What an evil pickle would do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("harm").touch, ())


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_a_pickle_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evil.pt"
    if how == "torch":
        torch.save({"state_dict": Harm()}, path)
    else:
        path.write_bytes(pickle.dumps(Harm()))
    assert refused(lambda: likewise.network(f"zoo:lenet@{path}")) == (
        "evil.pt is a pickle of more than tensors, and nothing is unpickled here. Where you trust "
        "it, save its tensors: safetensors.torch.save_file(net.state_dict(), 'evil.safetensors')."
    )
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("name", "content", "kind", "sentence"),
    [
        (
            "w.pkl",
            b"x",
            InputError,
            "w.pkl is no weights file: it ends in '.pkl'. Give .safetensors, or .pt, .pth, .th, "
            ".bin, .ckpt, .pth.tar holding tensors alone.",
        ),
        (
            "w.safetensors",
            b"x",
            InputError,
            "{path} is not a whole safetensors file. Fetch it again.",
        ),
        (
            "w.pt",
            None,
            MissingDataError,
            "there are no weights at {path}. Give the path of a file.",
        ),
    ],
)
def test_a_file_that_holds_no_weights_is_refused(
    tmp_path: Path, name: str, content: bytes | None, kind: type[Exception], sentence: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert refused(lambda: likewise.network(f"zoo:lenet@{path}"), kind) == sentence.format(path=path)


def test_a_file_of_other_things_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3}, tmp_path / "w.pt")
    assert (
        refused(lambda: likewise.network(f"zoo:lenet@{tmp_path}/w.pt"))
        == "w.pt holds no tensors by name. Save a state_dict."
    )


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, lenet: Any) -> None:
    save(lenet, tmp_path / "weights.safetensors")
    before = (tmp_path / "weights.safetensors").read_bytes()
    lenet.broken = torch.nn.UninitializedParameter()
    with pytest.raises(Exception, match="uninitialized"):
        save(lenet, tmp_path / "weights.safetensors")
    assert (tmp_path / "weights.safetensors").read_bytes() == before
