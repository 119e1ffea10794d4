"""Names of strangers through every output: nothing runs, nothing is computed, nothing is hidden."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shlex
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text
from torch import nn

import likewise
from likewise import classes
from likewise._base.files import write_whole
from likewise._base.names import unquoted, visible
from likewise.analysis import clusters, plot_families, read_matrix
from likewise.benchmark import Board, submit
from likewise.benchmark.board.submissions import save_rows
from likewise.benchmark.results.frame import Results
from likewise.benchmark.results.tables import table
from likewise.classes import Inspector
from likewise.cli import main
from likewise.data import Data
from likewise.errors import InputError
from likewise.matrices.heatmap import finish
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.score import Score
from likewise.matrices.tables import escape_latex, escape_markdown
from likewise.report import hub_page, read_runs, report
from likewise.report.board_page import render_board
from likewise.report.page import contents
from likewise.report.paper_figures import _DRAW, _nothing
from likewise.transfer.logits import Answers
from likewise.transfer.matrix import TransferMatrix
from tests.benchmark.board.made import cached
from tests.benchmark.frames import results, row
from tests.contract.hostile_names import NAMES as ALL
from tests.helpers import sentence

SURROGATE = "lone\ud800surrogate"
NAMES = [name for name in ALL if name != SURROGATE]
SHOWN = [visible(name) for name in NAMES]
TABLE = [visible(name) for name in NAMES if name.strip() and "\0" not in name]  # a table with a zero byte is refused
LONG = 30  # characters of a name beyond which it may be cut or broken


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `likewise transfer --out` leaves it, of networks with such names."""
    draw, m, n = np.random.default_rng(0), len(NAMES), 12
    labels = draw.integers(3, size=n)
    logits = 3 * np.eye(3)[labels] + draw.normal(size=(m, n, 3))
    answers = Answers(NAMES, logits, labels)
    return TransferMatrix.of(answers, draw.integers(3, size=(m, m, n))).save_run(
        tmp_path_factory.mktemp("names") / "run"
    )


@pytest.fixture(scope="module")
def matrix(run: Path) -> likewise.SimilarityMatrix:
    return read_matrix(run)


def assert_all_is_seen(text: str) -> None:
    """No sign but the end of a line is one that a reader would not see."""
    hidden = {sign for line in text.split("\n") for sign in line if visible(sign) != sign}
    assert hidden == set()


def assert_names_are_whole(text: str, escape=str, names=SHOWN) -> None:
    """Every name is there, on one line where it is short."""
    joined = re.sub(r"\s+", " ", text)
    missing = [name for name in names if name.strip() and len(name) <= LONG and escape(name) not in text]
    assert [name for name in missing if re.sub(r"\s+", " ", escape(name)) not in joined] == []


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code in (0, None, 1)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def test_at_least_forty_names_are_tried() -> None:
    assert len(set(ALL)) == len(ALL) >= 40


def test_names_are_unchanged_in_files_that_are_read_back(matrix: likewise.SimilarityMatrix, tmp_path: Path) -> None:
    assert list(matrix.names) == NAMES
    assert list(likewise.SimilarityMatrix.load(matrix.save(tmp_path / "again.npz")).names) == NAMES


def test_a_name_that_is_no_text_is_refused() -> None:
    expected = "'lone\\ud800surrogate' is no name in UTF-8. Rename it."
    square = np.eye(2)
    assert sentence(InputError, likewise.SimilarityMatrix, [SURROGATE, "b"], square) == expected
    assert sentence(InputError, Answers, [SURROGATE], np.zeros((1, 2, 2)), [0, 1]) == expected
    assert sentence(InputError, LayerMatrix, "a", "b", [SURROGATE, "y"], ["x", "y"], square, "cka") == expected
    assert sentence(InputError, classes.ClassSimilarity, square, [SURROGATE, "y"]) == expected


@pytest.mark.parametrize(
    "command",
    [
        ["families", "RUN", "--k", "3"],
        ["ensemble", "RUN", "--size", "2", "--by-families"],
        ["teacher", "RUN", "--student", "+1+1"],
        ["report", "RUN", "--out", "OUT/\x1b[31mpage.html"],
    ],
    ids=lambda words: words[0],
)
def test_a_terminal_is_told_nothing_it_would_obey(
    command: list[str], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.replace("RUN", str(run)).replace("OUT", str(tmp_path)) for word in command]
    out, err = told(words, capsys)
    assert out
    assert_all_is_seen(out + err)
    if command[0] == "families":
        assert_names_are_whole(out)


def test_errors_and_warnings_show_names_too(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, err = told(["families", f"{tmp_path}/\x1b[2J\u202egone.csv"], capsys)
    assert err == f"likewise: there is no file {tmp_path}/\\x1b[2J\\u202egone.csv. Check the path.\n"
    _, err = told(["teacher", str(run), "--student", "\x1b[31mre"], capsys)
    assert err.startswith("likewise: ")
    assert_all_is_seen(err)


def test_json_has_names_as_they_are(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(["families", str(run), "--k", "3", "--json"], capsys)
    assert_all_is_seen(out)
    assert sorted(name for family in json.loads(out)["families"] for name in family["members"]) == sorted(NAMES)


def test_what_python_prints_is_seen(matrix: likewise.SimilarityMatrix, run: Path) -> None:
    grouped = clusters(matrix, 3)
    score = Score(0.5, measure="x\x1b[31m", names=(NAMES[0], NAMES[14]), untrained=(NAMES[0],))
    for text in (str(matrix), str(grouped), score.explain(), str(table(strange_results())), repr(matrix)):
        assert_all_is_seen(text)
    assert_names_are_whole(str(grouped))
    assert_names_are_whole(matrix.table(width=10**6))
    assert matrix.table(width=10**6).count("\n") == len(NAMES)  # one line each


# --- tables in files ---------------------------------------------------------------------------------------------


def strange_results() -> Results:
    named = [name for name in NAMES if name.strip() and "\0" not in name]
    return results([row(network=name, measure=measure) for name in named for measure in ("cka", "=1+1")])


def assert_nothing_is_computed(text: str) -> None:
    cells = [cell for line in csv.reader(io.StringIO(text, newline="")) for cell in line]
    first = {cell[0] for cell in cells if cell and not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)}
    assert not first & set("=+-@\t\r\n＝＋－＠")


def test_a_spreadsheet_computes_no_name(run: Path, matrix: likewise.SimilarityMatrix, tmp_path: Path) -> None:
    assert_nothing_is_computed((run / "sat.csv").read_text(encoding="utf-8"))
    layers = LayerMatrix("a", "b", NAMES, NAMES, np.eye(len(NAMES)), "cka", larger_is="more alike")
    _, path, *_ = layers.write(tmp_path / "layers")
    assert_nothing_is_computed(path.read_text(encoding="utf-8"))
    assert_nothing_is_computed(table(strange_results()).to_csv())
    saved = strange_results().save(tmp_path / "results")
    assert_nothing_is_computed(saved.read_text(encoding="utf-8"))


def test_our_own_csv_gives_names_back(run: Path, tmp_path: Path) -> None:
    strange = strange_results()
    strange.save(tmp_path / "results")
    again = Results.load(tmp_path / "results").frame
    assert list(again["network"]) == list(strange.frame["network"])
    assert list(again["measure"]) == list(strange.frame["measure"])
    named = [name for name in NAMES if name.strip() and "\0" not in name]
    values = np.eye(len(named))
    layers = LayerMatrix("a", "b", named, named, values, "cka", larger_is="more alike")
    _, path, *_ = layers.write(tmp_path / "layers")
    assert list(read_matrix(path).names) == named
    frame = unquoted(pd.read_csv(run / "sat.csv", keep_default_na=False))
    assert {*frame["a"], *frame["b"]} == set(NAMES)


def test_latex_obeys_no_name(matrix: likewise.SimilarityMatrix) -> None:
    for text in (matrix.to_latex(), table(strange_results()).to_latex()):
        assert_all_is_seen(text)
        assert_names_are_whole(text, escape_latex, TABLE)
        assert not re.search(r"\\(input|write|x)\b|(?<!\\)[$%#]x", text)
    assert escape_latex("\\input{/etc/passwd}") == r"\textbackslash{}input\{/etc/passwd\}"


def test_markdown_holds_no_markup_of_a_name(strange_diff: likewise.Diff) -> None:
    for text in (strange_diff.to_markdown(), table(strange_results()).to_markdown()):
        assert_all_is_seen(text)
        assert not re.search(r"<(?!/?(details|summary)>)|(?<!\\)\]\(|https?://|@e|(?<!\\)`", text)
        assert {line.count("|") - line.count(r"\|") for line in text.split("\n") if line.startswith("| ")} <= set(
            range(100)
        )
    assert_names_are_whole(table(strange_results()).to_markdown(), escape_markdown, TABLE)


def test_a_card_of_a_hub_holds_no_markup_of_a_name(run: Path, tmp_path: Path) -> None:
    """Nor of a command, which is a file of the folder."""
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    command = "likewise transfer " + " ".join(shlex.quote(name) for name in NAMES if "\0" not in name)
    write_whole(folder / "command.txt", f"{command}\n````\n<script>\n![x](http://example.invalid/a.png)\n".encode())
    page, card = hub_page(folder, out=tmp_path / "page", title=NAMES[0] + NAMES[14] + NAMES[39] + '"\n---\nx: y')
    assert_inert(Elements(page.read_text(encoding="utf-8")))
    text = card.read_text(encoding="utf-8")
    assert_all_is_seen(text)
    empty, head, rest = text.split("---\n", 2)
    assert empty == ""
    assert [line.partition(":")[0] for line in head.splitlines()] == ["title", "sdk", "app_file", "pinned"]
    assert json.loads(head.splitlines()[0].partition(": ")[2]) == visible(
        NAMES[0] + NAMES[14] + NAMES[39] + '"\n---\nx: y'
    )
    before, _, code = rest.partition("\n`````\n")
    block, _, after = code.partition("\n`````\n")
    assert "<script>" in block
    for part in (before, after):
        assert not re.search(r"<|(?<!\\)\]\(|https?://|@e|(?<!\\)`(?!index)", part.replace("`index.html`", ""))
    assert_names_are_whole(before, escape_markdown, [name for name in SHOWN if name in before])


# --- pages, notebooks and pictures -------------------------------------------------------------------------------


class Elements(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.text, self._inside = "", ""
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._inside = "data" if dict(attributes).get("id") == "data" else tag
        for name, value in attributes:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, text: str) -> None:
        if self._inside == "data":
            self.data += text
        elif self._inside not in ("script", "style"):
            self.text += text


def assert_inert(page: Elements) -> None:
    assert not page.tags & {"img", "iframe", "object", "embed", "link", "form", "base"}
    assert not [name for name in page.attributes if name.startswith("on")]
    assert {target[:1] for target in page.attributes.get("href", {"#"})} == {"#"}
    assert "src" not in page.attributes


def strings(content: object) -> list[str]:
    if isinstance(content, dict):
        return [text for key, value in content.items() for text in (*strings(key), *strings(value))]
    if isinstance(content, list):
        return [text for value in content for text in strings(value)]
    return [content] if isinstance(content, str) else []


def test_a_report_shows_every_name_as_text(run: Path, tmp_path: Path) -> None:
    page = Elements(report(run, out=tmp_path / "report.html", title=NAMES[0] + NAMES[14]).read_text(encoding="utf-8"))
    assert_inert(page)
    assert_all_is_seen(re.sub(r"\s+", " ", page.text))
    data = json.loads(page.data)
    assert sorted(network["name"] for network in data["networks"]) == sorted(SHOWN)
    for text in strings(data):
        assert_all_is_seen(text)
        assert "\n" not in text


def test_a_board_shows_every_name_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows come from strangers: names of measures, of who sent them, of data, networks and questions."""
    (plain,) = submit("cka", cached(), progress=False)
    rows = [
        replace(
            plain,
            measure=name,
            submitter=name,
            family=name,
            source=name,
            views=NAMES[14],
            versions={name: name},
            cells=tuple(
                replace(cell, domain=name, data=name, network=name, preset=name, grounding=name, metric=name)
                for cell in plain.cells[:1]
            ),
        )
        for name in NAMES
    ]
    path = save_rows(rows, tmp_path / "rows.json")
    page = Elements(render_board(Board.load(path, ours=False)))
    assert_inert(page)
    assert_all_is_seen(re.sub(r"\s+", " ", page.text))
    for text in strings(json.loads(page.data)):
        assert_all_is_seen(text)
    assert_names_are_whole(page.data, lambda name: json.dumps(name)[1:-1].replace("<", "\\u003c"), [NAMES[30]])
    out, err = told(["benchmark", "board", str(path), "--no-ours", "--out", str(tmp_path / "board.html")], capsys)
    assert_all_is_seen(out + err)


def test_recordings_and_samples_show_every_name_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    shown: dict[str, Any] = {"mean": 0, "std": 1, "progress": False}
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    whole = likewise.record(net, "digits:test[:20]", **shown)
    (*_, last) = whole.layers.values()
    layers = dict.fromkeys(NAMES, last)
    weights = dict(zip(NAMES, [next(iter(whole.weights.values()))] * len(NAMES), strict=True))
    pair = []
    for number in range(2):
        changed = {name: replace(one, digest=f"{number}", values=one.values + number) for name, one in weights.items()}
        strange = replace(whole, name=NAMES[number], data=NAMES[14], layers=layers, weights=changed)
        pair.append(str(strange.save(tmp_path / f"{number}")))
    for command in ("compare", "layerwise", "diff", "diff --markdown"):
        out, err = told([*command.split(), *pair, "--data", "digits:test[:20]"], capsys)
        assert out, err
        assert_all_is_seen(out + err)
    for side in "ab":
        (tmp_path / side).mkdir()
        lines = [{"doc_id": i, "metrics": NAMES, **dict.fromkeys(NAMES, i % 2)} for i in range(4)]
        text = "\n".join(map(json.dumps, lines))
        (tmp_path / side / "samples_\x1b[31m\u202etask_2025-01-01T00.jsonl").write_text(text)
    out, err = told(["samples", str(tmp_path / "a"), str(tmp_path / "b")], capsys)
    assert_all_is_seen(out + err)
    assert "\\u202etask" in out


def test_a_film_shows_every_class_as_text(tmp_path: Path) -> None:
    film = classes.animate(watched(), tmp_path / "film.html", title=NAMES[0] + NAMES[14]).read_text(encoding="utf-8")
    assert (film.count("<script>"), film.count("</script>"), film.count("<!--")) == (1, 1, 0)
    assert_all_is_seen(film)
    (content,) = re.findall(r"^const data = (.*);$", film, flags=re.MULTILINE)
    assert sorted(json.loads(content)["classes"]) == sorted(map(visible, classes.similarity.named(NAMES, len(NAMES))))


def test_a_notebook_shows_every_name_as_text(matrix: likewise.SimilarityMatrix, strange_diff: likewise.Diff) -> None:
    score = Score(0.5, measure="x\x1b[31m", names=(NAMES[0], "<script>"), untrained=(NAMES[14],))
    for content in (matrix, score, strange_diff):
        text = content._repr_html_()
        page = Elements(text.replace("<img src='data:image/png", "<i title='"))
        assert_inert(page)
        assert "script" not in page.tags
        assert_all_is_seen(text)
    few = matrix.reordered(NAMES[:20])
    assert_names_are_whole(few._repr_html_(), html.escape, SHOWN[:20])


def assert_drawn(figure: Figure, names=SHOWN) -> None:
    """A figure can be drawn, and its texts show names as they are."""
    figure.canvas.draw()
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    for text in texts:
        assert_all_is_seen(text.get_text())
        assert not (text.get_parse_math() and "$" in text.get_text().replace("$\\mathdefault{", ""))
    joined = "\n".join(text.get_text() for text in texts)
    assert [name for name in names if name.strip() and len(name) <= LONG and name not in joined] == []


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font", "ignore:constrained_layout")
def test_figures_of_a_report_show_every_name(run: Path) -> None:
    page = contents(read_runs(run))
    drawn = [figure for panel in page.panels for _, figure in _DRAW.get(panel.id, _nothing)(panel.data, page)]
    assert len(drawn) >= 4
    for figure in drawn:
        finish(figure, None)
        assert_drawn(figure, [])


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font", "ignore:Tight layout", "ignore:constrained_layout")
def test_figures_show_every_name(
    matrix: likewise.SimilarityMatrix, strange_diff: likewise.Diff, tmp_path: Path
) -> None:
    short = [name for name in NAMES if len(name) <= LONG and "/" not in name]  # folders are left out of long names
    few = matrix.reordered(short)
    assert_drawn(few.plot(tmp_path / "m.png"), [visible(name) for name in short])
    assert_drawn(plot_families(clusters(matrix.reordered(short[:30]), 2), tmp_path / "f.pdf"), [])
    assert_drawn(strange_diff.plot(), [])
    assert_drawn(watched().plot(), [])
    assert_drawn(table(strange_results()).plot(), [])


# --- what is drawn and told ---------------------------------------------------------------------------------------


def watched() -> Inspector:
    """An inspector that saw two epochs of a classifier of such classes."""
    count, draw = len(NAMES), np.random.default_rng(0)
    inspector = Inspector(NAMES)
    for _ in range(2):
        labels = np.arange(count)
        inspector.update(draw.normal(size=(count, count)) + 3 * np.eye(count), labels)
        inspector.report(draw.normal(size=(count, 8)))
    return inspector


@pytest.fixture(scope="module")
def strange_diff() -> likewise.Diff:
    """Two networks of such names, which answer otherwise to images of such classes."""
    torch.manual_seed(0)
    count = len(NAMES)
    one, other = (nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Linear(12, count)) for _ in range(2))
    images = torch.rand(80, 1, 4, 4)
    data = Data("\x1b[31m<img>", "image", images, torch.arange(80) % count, tuple(NAMES))
    return likewise.diff(one, other, data, names=(NAMES[0], "\u202egnp"), transfer=False, mean=0, std=1)
