"""The registry of sources: one class per prefix, also of others, and what a header may ask of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import likewise
from likewise.errors import (
    InputError,
    MissingDependencyError,
)
from likewise.networks import list_networks
from likewise.networks.address import is_network, parse
from likewise.networks.sources.base import SOURCES, Loaded, NetworkInfo, Request, Source, source
from tests.networks.helpers import refused


class Linear(Source):
    """A source that does no more than it must."""

    def build(self, request: Request) -> Loaded:
        width = request.options.pop("width", 2)
        return Loaded(nn.Linear(width, request.options.pop("classes", 3), **request.options))


class Open(Linear):
    """One that lists its networks, is sized by data and may be named by a header."""

    def accepts(self, name: str) -> Collection[str]:
        return ("classes",)

    def names(self) -> Iterator[NetworkInfo]:
        yield NetworkInfo("mine:linear", "image", "one layer")

    def header_options(self, name: str) -> Collection[str]:
        return ("classes",)


@pytest.fixture
def declare() -> Iterator[object]:
    yield lambda kind: source("mine")(kind)
    SOURCES.remove("mine")


def weights(path: Path, **header: object) -> Path:
    save_file(dict(nn.Linear(2, 3).state_dict()), path, metadata={"likewise": json.dumps(header)})
    return path


def test_a_source_is_all_that_a_prefix_needs(declare, tmp_path: Path) -> None:
    declare(Open)
    assert parse("mine:linear").source.prefix == "mine"
    assert is_network("mine:linear")
    assert likewise.network("mine:linear", seed=1)(torch.zeros(1, 2)).shape == (1, 3)
    assert [network.address for network in list_networks("mine:*")] == ["mine:linear"]
    path = weights(tmp_path / "w.safetensors", network="mine:linear", options={"classes": 3})
    assert likewise.networks.recipe(likewise.network(str(path))).network == "mine:linear"


def test_no_header_names_a_source_that_does_not_allow_it(declare, tmp_path: Path) -> None:
    declare(Linear)
    path = weights(tmp_path / "w.safetensors", network="mine:linear")
    assert refused(lambda: likewise.network(str(path))) == (
        f"{path} belongs to 'mine:linear', which is built only where you type it. "
        f"Where you trust it: 'mine:linear@{path}'."
    )
    assert isinstance(likewise.network(f"mine:linear@{path}"), nn.Linear)


def test_a_source_without_options_for_headers_is_handed_numbers_alone(declare, tmp_path: Path) -> None:
    declare(Linear)
    path = weights(tmp_path / "w.safetensors", network="mine:linear", options={"width": 2, "device": "cpu"})
    assert refused(lambda: likewise.network(f"mine:linear@{path}")) == (
        f"{path} asks for the option device='cpu', which a file may not choose. "
        f"Where you trust it, type it: 'mine:linear,device=VALUE@{path}'."
    )


def test_an_error_of_a_library_is_told_with_the_address(declare) -> None:
    declare(Linear)
    with pytest.raises(InputError) as error:
        likewise.network("mine:linear", width=-1)
    assert str(error.value).startswith(
        "mine:linear cannot be built: Trying to create tensor with negative dimension -1"
    )


def test_one_prefix_has_one_source() -> None:
    assert refused(lambda: source("timm")(Linear)) == "the source name 'timm' is taken by 'timm'. Choose another name."


def test_the_sources_declare_which_of_them_a_header_may_name() -> None:
    allowed = {entry.prefix for entry in SOURCES if entry.header_options("lenet") is not None}
    assert allowed == {"zoo", "timm", "torchvision", "hf"}  # a list that grows only by intent


PLUG_IN = """
from torch import nn
from likewise.networks.sources.base import Loaded, Source, source

@source("plugged")
class Plugged(Source):
    def build(self, request):
        return Loaded(nn.Linear(2, 3))
"""


def test_a_plug_in_is_found_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "plugged.py").write_text(PLUG_IN)
    about = tmp_path / "plugged-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[likewise.sources]\nplugged = plugged\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import likewise; print(likewise.network('plugged:x'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "Linear(in_features=2, out_features=3, bias=True)\n", done.stderr


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
    assert refused(lambda: likewise.network(address), MissingDependencyError) == sentence
