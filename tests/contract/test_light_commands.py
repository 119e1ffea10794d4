"""Lists of names answer at once: no command that only lists names and facts imports torch."""

from __future__ import annotations

import contextlib
import json
import runpy
import subprocess
import sys

import pytest

from likewise.cli import _facts, main
from tests.conftest import ROOT

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
    import torch  # noqa: F401  where it is loaded, the code is read and not the file

    text, heavy = light[tuple(words)]
    assert heavy == []
    with contextlib.suppress(SystemExit):
        main(words)
    if "--help" not in words:  # as wide as the terminal is
        assert text == capsys.readouterr().out
    assert text


def test_files_of_facts_are_what_the_code_declares() -> None:
    for path, text in runpy.run_path(str(ROOT / "scripts" / "facts.py"))["FILES"].items():
        assert path.read_text("utf-8") == text(), "run `python scripts/facts.py`"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("measures OrthProc", "procrustes  (alignment)\n"),
        ("measures jaccard[k=5]", "jaccard[k=5]  (neighbors)\n"),
        ("measures ckaa", "likewise: no measure named 'ckaa'. Did you mean 'cka'?\n"),
        (
            "measures --family ccaa",
            "likewise: no family named 'ccaa'. There are rsm, cca, alignment, neighbors, topology, statistics, "
            "functional.\n",
        ),
        ("networks zoo:ckaa", "likewise: no network matches 'zoo:ckaa'. Leave the pattern out to see the zoo.\n"),
        ("data ckaa", "likewise: no data matches 'ckaa'. Leave the pattern out to see all.\n"),
    ],
)
def test_names_that_the_file_does_not_have_are_looked_up(
    words: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_facts, "must_read_code", lambda **_: False)
    with contextlib.suppress(SystemExit):
        main(words.split())
    assert "".join(capsys.readouterr()).startswith(text)


def test_arrays_need_no_networks() -> None:
    """In one process: a list, then real comparisons."""
    done = run(
        """
printed(["measures"])
import numpy as np, likewise
x, y = np.random.default_rng(0).normal(size=(2, 30, 4))
likewise.compare(x, y).explain()
likewise.compare([x, y], ["cka", "jaccard"], calibrate=9, progress=False)
names = (name.split(".") for name in sys.modules if name.startswith("likewise."))
print([name for name in names if name[1] in ("data", "networks", "wordnet", "classes", "attacks")])
print(round(likewise.measures.cka(x, 2 * x), 6), len(likewise.networks.list_networks()) > 20)
"""
    )
    assert done.stdout.splitlines() == ["[]", "1.0 True"], done.stdout + done.stderr


def test_help_takes_little_time() -> None:
    """CPU seconds of the process, imports of Python and typer included; the least of three, since machines are busy."""
    code = """
import time
printed(["--help"])
print(time.process_time())
"""
    assert min(float(run(code).stdout) for _ in range(3)) < 0.3
