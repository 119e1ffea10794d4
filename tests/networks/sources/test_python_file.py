"""Networks of the user's own files: imported as Python would, found again from anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import likewise
from likewise.errors import (
    InputError,
    OptionError,
    UnknownNameError,
)
from tests.networks.helpers import refused, same

WITH_DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass
from torch import nn

@dataclass
class Sizes:
    width: int = 4

def build(width: int = 4):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, Sizes(width).width), nn.Linear(width, 10))
"""


def test_a_file_may_hold_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WITH_DATACLASS)
    assert likewise.network(f"{tmp_path}/mine.py:build,width=3")[1].out_features == 3


def test_a_file_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "sibling_one.py").write_text("WIDTH = 7\n")
    (tmp_path / "sibling_two.py").write_text("DEPTH = 2\n")
    (tmp_path / "mine.py").write_text(
        "from sibling_one import WIDTH\nfrom torch import nn\n"
        "def build():\n    from sibling_two import DEPTH\n    return nn.Linear(DEPTH, WIDTH)\n"
    )
    before = list(sys.path)
    net = likewise.network(f"{tmp_path}/mine.py:build")
    assert (net.in_features, net.out_features) == (2, 7)
    assert sys.path == before


def test_a_file_edited_within_a_second_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "mine.py"
    for width in (2, 3):
        file.write_text(f"from torch import nn\ndef build():\n    return nn.Linear(5, {width})\n")
        os.utime(file, (1e9, 1e9))
        assert likewise.network(f"{file}:build").out_features == width
    assert list(tmp_path.iterdir()) == [file]


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    for width in (2, 3):
        (tmp_path / str(width)).mkdir()
        (tmp_path / str(width) / "mine.py").write_text(
            f"from torch import nn\nWIDTH = {width}\n"
            "class Net(nn.Linear):\n    def __init__(self):\n        super().__init__(1, WIDTH)\n"
            "def build():\n    return Net()\n"
        )
    first, second = (likewise.network(f"{tmp_path}/{width}/mine.py:build") for width in (2, 3))
    assert (first.out_features, second.out_features) == (2, 3)
    assert type(first).__module__ != type(second).__module__


def test_helpers_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    for width in (2, 3):
        (tmp_path / str(width)).mkdir()
        (tmp_path / str(width) / "sibling_three.py").write_text(f"WIDTH = {width}\n")
        (tmp_path / str(width) / "mine.py").write_text(
            "from sibling_three import WIDTH\nfrom torch import nn\ndef build():\n    return nn.Linear(1, WIDTH)\n"
        )
    nets = [likewise.network(f"{tmp_path}/{width}/mine.py:build") for width in (2, 3)]
    assert [net.out_features for net in nets] == [2, 3]


def test_a_file_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('no')\n")
    before = list(sys.path), set(sys.modules)
    assert refused(lambda: likewise.network(f"{tmp_path}/broken.py:build")) == (
        f"{tmp_path}/broken.py fails when it is imported, line 1: RuntimeError: no. Repair it, or move the network's "
        "class to a file of its own."
    )
    assert (list(sys.path), set(sys.modules)) == before


def test_an_option_that_a_function_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WITH_DATACLASS)
    assert refused(lambda: likewise.network(f"{tmp_path}/mine.py:build,depth=3"), OptionError) == (
        f"build of {tmp_path}/mine.py cannot be called so: got an unexpected keyword argument "
        "'depth'. Its options are (width: 'int' = 4)."
    )


def test_a_trained_network_of_a_file_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(WITH_DATACLASS)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    done = likewise.train("mine.py:build", "digits:train[:40]", epochs=1, out="run")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(InputError) as error:
        likewise.network("../run")
    typed = f"{tmp_path.resolve()}/mine.py:build@../run/weights.safetensors"
    assert str(error.value) == (
        "../run/weights.safetensors belongs to 'build' of a Python file, which is run only where "
        f"you type it. Where you trust it: '{typed}'."
    )
    again = likewise.network(typed)
    inputs = torch.rand(3, 1, 8, 8)
    assert torch.equal(again(inputs), done.net(inputs))


def test_a_function_of_a_python_file_is_an_address(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from torch import nn\n\ndef build(width=3):\n    return nn.Linear(width, 2)\n")
    assert likewise.network(f"{file}:build,width=5").in_features == 5
    weights = tmp_path / "w.safetensors"
    net = likewise.network(f"{file}:build,seed=7")
    likewise.networks.save(net, weights)
    assert same(net, likewise.network(f"{file}:build@{weights}"))


def test_a_file_without_the_function_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def build():\n    return 3\n")
    assert refused(lambda: likewise.network(f"{file}:built"), UnknownNameError) == (
        f"{file} has no function 'built'. Did you mean 'build'? It should return a torch.nn.Module."
    )
    assert (
        refused(lambda: likewise.network(f"{file}:build"))
        == f"build of {file} returned int. It should return a torch.nn.Module."
    )


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "import torch\nimport a_board_of_tensors\n",
            "{file} fails when it is imported, line 2: ModuleNotFoundError: No module named 'a_board_of_tensors'. "
            "Install a_board_of_tensors, or move the network's class to a file that does without it.",
        ),
        (
            "import argparse\nargparse.ArgumentParser().parse_args(['--epochs'])\n",
            "{file} fails when it is imported, line 2: SystemExit: 2. Repair it, or move the network's class to a file "
            "of its own.",
        ),
        (
            "def build():\n    import torch\n    return torch.load('nowhere.pth')\n",
            "build of {file} fails, line 3: FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.pth'. "
            "Repair it, or move the network's class to a file of its own.",
        ),
        (
            "def build(:\n",
            "{file} fails when it is imported: SyntaxError: invalid syntax (mine.py, line 1). Repair it, or move the "
            "network's class to a file of its own.",
        ),
    ],
)
def test_code_that_fails_is_one_sentence_with_the_line(tmp_path: Path, code: str, sentence: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(code)
    assert refused(lambda: likewise.network(f"{file}:build")) == sentence.format(file=file)


@pytest.mark.parametrize("package", ["torchvision.transforms", "sentence_transformers"])
def test_a_file_that_imports_torchvision_works_beside_any_build_of_torch(tmp_path: Path, package: str) -> None:
    if find_spec("torchvision") is None or find_spec(package.partition(".")[0]) is None:
        pytest.skip(f"torchvision or {package} is not installed")
    (tmp_path / "helper.py").write_text(f"import {package} as T\n")
    (tmp_path / "mine.py").write_text(
        "import helper\nfrom torch import nn\nclass Net(nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(2, 3)\n"
    )
    code = f"import likewise; print(likewise.network('{tmp_path}/mine.py:Net').out_features)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("3", 0), done.stderr
