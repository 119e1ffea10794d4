"""`likewise benchmark views`, `submit` and `board`: a measure of one's own from its file to the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from likewise.cli import main
from tests.benchmark.board.made import cached

OWN = '''
def first_direction(x, y):
    """How far inputs are spread alike along the first direction."""
    import numpy as np

    first, second = (np.linalg.svd(z - z.mean(axis=0))[0][:, 0] for z in (x, y))
    return float(abs(first @ second))
'''


def ran(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["benchmark", *words])
    assert ended.value.code == 0


def data_of(page: str) -> dict[str, dict[str, list[list[object]]]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def test_a_measure_of_ones_own_goes_from_its_file_to_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(OWN)
    digest = cached().digest
    cached().save("views.safetensors")
    ran("submit", "my.py:first_direction", "--submitter", "A. Reader </script>", "-o", "mine.json")
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].startswith("vision    made noise  labels auprc  ")
    assert printed[3].endswith("  (groups not valid)")
    assert printed[-1].startswith(f"mine.json: the row of first-direction on the views {digest}, ")
    ran("submit", "cka", "rsa", "-o", "others.json")
    ran("board", "mine.json", "others.json", "--no-ours", "-o", "board.html")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4] == "board.html: 3 measures"
    page = Path("board.html").read_text()
    data = data_of(page)
    assert [fact["submitter"] for fact in data["facts"]] == ["A. Reader </script>", "", ""]  # type: ignore[call-overload]
    assert sorted(row[1] for row in data["tables"]["all all"]) == ["CKA", "RSA", "first-direction"]  # type: ignore[type-var]
    assert "3 measures on the same networks" in page
    assert "submitted only (1)" in page
    assert page.count("</script>") == 2  # nothing that a submitter wrote ends an element
    assert "http" not in re.sub(r"Content-Security-Policy", "", page).replace("http-equiv", "")


def test_without_cached_views_the_error_says_how_to_make_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["benchmark", "submit", "cka"])
    assert capsys.readouterr().err == (
        "likewise: there is no file views.safetensors. Make cached views by `likewise benchmark views RUNS`, or name "
        "them by --views.\n"
    )


def test_a_file_without_the_function_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(OWN)
    cached().save("views.safetensors")
    with pytest.raises(SystemExit):
        main(["benchmark", "submit", "my.py:first_directions"])
    assert capsys.readouterr().err == (
        "likewise: my.py has no function 'first_directions'. Did you mean 'first_direction'? It should compare two "
        "arrays.\n"
    )


def test_views_of_a_folder_without_a_run_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    with pytest.raises(SystemExit):
        main(["benchmark", "views", "empty"])
    assert "empty" in capsys.readouterr().err
    assert not Path("views.safetensors").exists()
