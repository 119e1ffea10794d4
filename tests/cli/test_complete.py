"""`likewise complete`: the script of a shell, and what it is answered."""

from __future__ import annotations

import pytest

from likewise import cli
from likewise.cli.complete import SHELLS, complete
from likewise.errors import OptionError
from tests.cli.conftest import invoke
from tests.helpers import sentence


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_asks_likewise(shell: str) -> None:
    text = invoke(complete, shell)
    assert f"{cli.COMPLETE}=complete_{shell}" in text


@pytest.mark.parametrize(
    ("typed", "answers"),
    [
        ("likewise comp", ["compare", "complete"]),
        ("likewise compare --interv", ["--intervals"]),
        ("likewise report --fig", ["--figures"]),
    ],
)
def test_commands_and_options_are_completed(
    typed: str, answers: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(cli.COMPLETE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        cli.main([])
    assert capsys.readouterr().out.split() == answers


def test_another_shell_is_refused() -> None:
    assert sentence(OptionError, invoke, complete, "tcsh") == "no completion for 'tcsh'. Choose bash, zsh or fish."
