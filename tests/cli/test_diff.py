"""`likewise diff`: what changed, as text, Markdown and JSON, with an exit code for CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import save_file

from likewise.cli import main
from likewise.cli._words import thresholds
from likewise.cli.diff import diff
from likewise.errors import InputError
from tests.cli.conftest import invoke
from tests.difference.copies import fitted, with_noise
from tests.helpers import sentence

BUILD = """
from torch import nn

def build():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10)
    )
"""


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "nets.py").write_text(BUILD)
    for name, net in (("base", fitted()), ("noisy", with_noise(fitted(), "3", 0.2))):
        save_file(net.state_dict(), tmp_path / f"{name}.safetensors")
    return tuple(f"{tmp_path / 'nets.py'}:build@{tmp_path / name}.safetensors" for name in ("base", "noisy"))


WORDS = ("--data", "digits:test[:100]", "--transfer", "0")


def test_identical_networks_are_said_to_be_so(pair: tuple[str, str]) -> None:
    lines = invoke(diff, pair[0], pair[0], *WORDS, "--fail-over", "disagreement=0").splitlines()
    assert lines[0] == "base → base#2 on digits:test[:100] (100 inputs): identical"
    assert lines[-1] == "ok     disagreement = 0 is not over 0"


def test_a_missed_threshold_is_exit_code_one(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(
            ["diff", *pair, *WORDS, "--fail-under", "cka-debiased=0.9999", "--fail-over", "disagreement=0.9", "--json"]
        )
    assert stopped.value.code == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["first_moved"] == "3"
    assert found["failures"] == [f"cka-debiased = {found['scores']['cka-debiased']:.4g} is under 0.9999"]
    assert err == f"likewise: {found['failures'][0]}\n"


def test_markdown_and_files_are_for_a_pull_request(pair: tuple[str, str], tmp_path: Path) -> None:
    printed = invoke(diff, *pair, *WORDS, "--markdown", "--out", str(tmp_path / "out"))
    assert printed.startswith("### base → noisy: changed\n")
    assert sorted(path.name for path in (tmp_path / "out").glob("diff.*")) == ["diff.json", "diff.md", "diff.png"]


@pytest.mark.parametrize("word", ["disagreement", "=0.5", "disagreement=much", "disagreement=nan"])
def test_a_limit_that_is_none_is_refused(word: str) -> None:
    assert sentence(InputError, thresholds, [word], "--fail-over") == (
        f"--fail-over {word} names no limit. Give MEASURE=VALUE, as in --fail-over disagreement=0.02."
    )
