"""Lists of names answer at once: no command that only reads declarations imports torch."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys

import pytest

from likewise.cli import main

RUN = """
import contextlib, io, json, sys
from likewise.cli import main

def printed(words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main(words)
    return out.getvalue()

HEAVY = ("torch", "scipy", "numpy", "pandas", "matplotlib", "timm", "torchvision")
"""
COMMANDS = [
    ["measures"],
    ["measures", "--json"],
    ["measures", "--family", "cca"],
    ["measures", "cka"],
    ["measures", "jaccard[k=5]"],
    ["measures", "rtd", "--json"],
    ["networks"],
    ["networks", "zoo:resnet*"],
    ["networks", "--json"],
    ["data"],
    ["data", "cifar*", "--json"],
    ["--help"],
    ["--version"],
    ["measures", "--help"],
    ["train", "--help"],
    ["benchmark", "--help"],
    ["benchmark", "run", "--help"],
]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", RUN + code], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def light() -> dict[tuple[str, ...], tuple[str, list[str]]]:
    """Each command in one process, with what it printed and what was imported when it was done."""
    done = run(
        f"""
for words in {COMMANDS!r}:
    print(json.dumps([printed(words), [name for name in HEAVY if name in sys.modules]]))
import time
print("CPU seconds of all:", time.process_time(), file=sys.stderr)
"""
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(map(tuple, COMMANDS), map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_list_is_read_without_torch_and_says_the_same_as_with_it(
    light: dict[tuple[str, ...], tuple[str, list[str]]], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    import torch  # noqa: F401  where it is loaded, the sources are read with it

    text, heavy = light[tuple(words)]
    assert heavy == []
    with contextlib.suppress(SystemExit):
        main(words)
    if "--help" not in words:  # as wide as the terminal is
        assert text == capsys.readouterr().out
    assert text


def test_unknown_names_are_refused_without_torch_too() -> None:
    done = run("printed(['measures', 'ckaa']); print([name for name in HEAVY if name in sys.modules])")
    assert done.stderr == "likewise: no measure named 'ckaa'. Did you mean 'cka'?\n"
    assert done.stdout == "[]\n"


def test_what_was_read_with_placeholders_is_forgotten_and_arrays_need_no_networks() -> None:
    """In one process: a list, then a declaration that needs torch itself, then real comparisons."""
    done = run(
        """
from likewise._base.declarations import read_declarations

def task():
    import torch
    return 1 + int(torch.zeros(1))

printed(["measures"])
print(read_declarations(task), "torch" in sys.modules)
import numpy as np, likewise
x, y = np.random.default_rng(0).normal(size=(2, 30, 4))
likewise.compare(x, y).explain()
likewise.compare([x, y], ["cka", "jaccard"], calibrate=9, progress=False)
names = (name.split(".") for name in sys.modules if name.startswith("likewise."))
print([name for name in names if name[1] in ("data", "networks", "wordnet", "classes", "attacks")])
print(round(likewise.measures.cka(x, 2 * x), 6), len(likewise.networks.list_networks()) > 20)
"""
    )
    assert done.stdout.splitlines() == ["1 True", "[]", "1.0 True"], done.stdout + done.stderr


def test_help_imports_no_command_and_takes_little_time() -> None:
    """CPU seconds of the process, imports of Python and typer included; the least of three, since machines are busy."""
    code = """
import time
printed(["--help"])
print(json.dumps([[name for name in sys.modules if name.startswith("likewise.")], time.process_time()]))
"""
    found = [json.loads(run(code).stdout) for _ in range(3)]
    loaded = {name for name in found[0][0] if name.startswith("likewise.cli.") or name.count(".") == 1}
    assert loaded <= {"likewise.cli", "likewise.cli._words", "likewise.errors", "likewise._base"}
    assert min(seconds for _, seconds in found) < 0.3
