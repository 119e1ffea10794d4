"""Tables of texts in files and data frames, and plain text, one text per line."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import likewise
from likewise.data.sources import tables
from likewise.errors import InputError, MissingDataError
from tests.helpers import sentence as refusal

ROWS = {
    "id": [7, 8, 9],
    "text": ['she said "no", twice', "two\nlines", "dry  \N{SNOWMAN}"],
    "label": ["pos", "neg", "pos"],
}
WRITERS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.CSV": lambda frame, path: frame.to_csv(path, index=False, encoding="utf-8-sig"),
    "my.reviews.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "a.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "a.parquet": lambda frame, path: frame.to_parquet(path),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("prefix", ["", "table:"])
def test_a_table_gives_the_same_data_whatever_it_is_kept_in(name: str, prefix: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    WRITERS[name](pd.DataFrame(ROWS), tmp_path / name)
    data = likewise.dataset(f"{prefix}{tmp_path / name}")
    assert (data.name, data.domain) == (f"table:{tmp_path / name}", "text")
    assert (data.inputs, data.labels.tolist(), data.classes) == (ROWS["text"], [1, 0, 1], ("neg", "pos"))
    assert likewise.dataset(f"{prefix}{tmp_path / name}[1:]").inputs == ROWS["text"][1:]
    assert likewise.dataset(tmp_path / name).probe == data.probe
    assert likewise.dataset(pd.DataFrame(ROWS)).probe == data.probe


def test_columns_are_named_where_they_cannot_be_told(tmp_path: Path) -> None:
    path = tmp_path / "nli.tsv"
    path.write_text('premise\thypothesis\tgold\n"a" b\tc\tyes\nd\te\tno\n')
    assert refusal(InputError, likewise.dataset, str(path)) == (
        f"table:{path} has 3 columns of text ('premise', 'hypothesis', 'gold'). Name the one to show: "
        f"'table:{path},text=premise', and a second beside it with pair=."
    )
    data = likewise.dataset(str(path), text="premise", pair="hypothesis", label="gold")
    assert data.inputs == [('"a" b', "c"), ("d", "e")]
    assert (data.labels.tolist(), data.classes) == ([1, 0], ("no", "yes"))
    assert refusal(InputError, likewise.dataset, str(path), text="premises") == (
        f"table:{path} has no column 'premises'. Did you mean 'premise'? It has 'premise', 'hypothesis', 'gold'."
    )


def test_a_data_frame_with_two_columns_of_text_says_what_to_call() -> None:
    frame = pd.DataFrame({"title": ["a", "b"], "body": ["c", "d"], "stars": [1, 5]})
    assert refusal(InputError, likewise.dataset, frame) == (
        "data frame has 2 columns of text ('title', 'body'). Name the one to show: likewise.dataset(data, "
        "text='title'), and a second beside it with pair=."
    )
    data = likewise.dataset(frame, text="body", label="stars")
    assert (data.inputs, data.labels.tolist(), data.classes) == (["c", "d"], [0, 1], ("1", "5"))


def test_columns_of_numbers_are_no_texts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,review,score\n1,fine,0.5\n2,bad,\n")
    assert likewise.dataset(str(tmp_path / "a.csv")).inputs == ["fine", "bad"]
    (tmp_path / "b.csv").write_text("id,score\n1,0.5\n2,\n")
    assert refusal(InputError, likewise.dataset, str(tmp_path / "b.csv")) == (
        f"table:{tmp_path}/b.csv has no column of text. Its columns are 'id', 'score'. Give one that has, or batches "
        "of what the network takes."
    )


LABELS = {
    "all there": ([0, 2, 0], [0, 2, 0], ("0", "1", "2"), ""),
    "written": (["1.0", "0", "1"], [1, 0, 1], ("0", "1"), ""),
    "stars": ([1, 5, 5], [0, 1, 1], ("1", "5"), ""),
    "none": ([-1, -1, -1], None, (), ""),
    "truth": ([True, False, True], [1, 0, 1], ("0", "1"), ""),
    "some": ([0, -1, 1], None, (), "column 'label' of data frame has no label in 1 of 3 rows, so none is used."),
    "scores": (
        [0.5, 1.5, 2.0],
        None,
        (),
        "column 'label' of data frame holds numbers, not classes, so no labels are used.",
    ),
}


@pytest.mark.parametrize(("given", "labels", "classes", "warning"), LABELS.values(), ids=list(LABELS))
def test_labels_are_indices_or_classes(
    given: list[object], labels: list[int] | None, classes: tuple[str, ...], warning: str
) -> None:
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": given})
    if warning:
        with pytest.warns(UserWarning, match=f"^{re.escape(warning)}$"):
            data = likewise.dataset(frame)
    else:
        data = likewise.dataset(frame)
    assert (None if data.labels is None else data.labels.tolist(), data.classes) == (labels, classes)
    assert likewise.dataset(frame, label=False).labels is None


def test_lines_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\n\r\n two \nthree".encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"one\n two \nthree\n"))
    data = likewise.dataset(str(tmp_path / "a.txt"))
    assert (data.inputs, data.labels, data.name) == (["one", " two ", "three"], None, f"lines:{tmp_path}/a.txt")
    assert likewise.dataset(f"lines:{tmp_path}/b.txt.gz").probe == data.probe


def test_signs_that_part_lines_elsewhere_stay_within_a_text(tmp_path: Path) -> None:
    text = "one\u2028still\x0cone\x85"
    (tmp_path / "a.txt").write_text(f"{text}\ntwo\n", encoding="utf-8", newline="")
    (tmp_path / "a.jsonl").write_text(f'{{"text": "{text[:9]}"}}\n{{"text": "two"}}\n', encoding="utf-8", newline="")
    assert likewise.dataset(f"text:{tmp_path}/a.txt").inputs == [text, "two"]
    assert likewise.dataset(f"jsonl:{tmp_path}/a.jsonl").inputs == [text[:9], "two"]


def test_a_column_may_be_called_by_a_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("0,1,2\na,b,x\nc,d,y\n")
    data = likewise.dataset(f"csv:{tmp_path}/a.csv,text=1,label=2")
    assert (data.inputs, data.labels.tolist(), data.classes) == (["b", "d"], [0, 1], ("x", "y"))
    assert refusal(InputError, likewise.dataset, f"{tmp_path}/a.csv,text=7") == (
        f"table:{tmp_path}/a.csv has no column '7'. It has '0', '1', '2'."
    )


BROKEN: dict[str, tuple[bytes, str]] = {
    "a.csv": (
        b"text,label\na,0\nb,1,2\n",
        "line 3 of {} has 3 columns and the first line 2, separated by ','. Put texts that hold ',' "
        "into double quotes.",
    ),
    "semicolon.csv": (
        b"text;label\nslow, very slow, and long;0\ngood; very good;1\n",
        "line 3 of {} has 3 columns and the first line 2, separated by ';'. Put texts that hold ';' "
        "into double quotes.",
    ),
    "a.tsv": (
        b'text\tlabel\na\t"0\nb\t1\t2\n',
        "line 3 of {} has 3 columns and the first line 2, separated by '\\t'. Take those in texts out.",
    ),
    "quote.csv": (b'text,label\n"a,0\n', "{} is no whole table: {reason}. Save it again."),
    "empty.csv": (b"", "{} is no whole table: No columns to parse from file. Save it again."),
    "head.csv": (b"text,label\n", "table:{} has no rows. Give at least two."),
    "twice.csv": (b"text,text\na,b\n", "{} has two columns of one name in its first line. Rename one."),
    "gap.csv": (
        b"text,label\na,0\n,1\n",
        "column 'text' of table:{} holds None in row 1, not text. Leave such rows out.",
    ),
    "latin.txt": (
        b"caf\xe9\n",
        "{0} is no text in UTF-8: byte 3 is 0xe9. Save it as UTF-8 ('CSV UTF-8' in Excel), or convert it: "
        "iconv -f latin1 -t utf-8 '{0}' > 'utf8.txt'.",
    ),
    "excel.csv": (
        "text\tlabel\ngood\t1\n".encode("utf-16"),
        "{0} is no text in UTF-8: byte 0 is 0xff. Save it as UTF-8 ('CSV UTF-8' in Excel), or convert it: "
        "iconv -f utf-16 -t utf-8 '{0}' > 'utf8.csv'.",
    ),
    "blank.txt": (b"\n \n", "{} holds no text. Write one text per line."),
    "a.jsonl": (b'{"text": "a"}\n[1]\n', "line 2 of {} is no object in braces. Write one per line, as in JSON lines."),
    "cut.jsonl": (b'{"text": "a"}\n{"te', "{} is no whole table: {reason}. Save it again."),
    "a.parquet": (b"PAR1 something PAR1", "{} is no whole table: {reason}. Save it again."),
    "a.csv.gz": (gzip.compress(b"text\na\nb\n", mtime=0)[:-6], "{} is no whole table: {reason}. Save it again."),
    "a.docx": (
        b"?",
        "{} is no data that is known by its ending. Those are .csv, .tsv, .parquet, .jsonl, .csv.gz, .tsv.gz, "
        ".jsonl.gz, .txt, .txt.gz, and folders.",
    ),
}


@pytest.mark.parametrize(
    ("name", "content", "sentence"), [(name, *case) for name, case in BROKEN.items()], ids=list(BROKEN)
)
def test_a_file_that_cannot_be_read_is_named(name: str, content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(InputError) as error:
        likewise.dataset(str(path))
    before, _, after = sentence.format(path, reason="|").partition("|")
    assert str(error.value).startswith(before)
    assert str(error.value).endswith(after)
    assert "|" in sentence.format(path, reason="|") or str(error.value) == before


def test_a_table_of_another_ending_is_refused_by_its_source(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_text("?")
    assert refusal(InputError, likewise.dataset, f"table:{tmp_path}/a.docx") == (
        f"{tmp_path}/a.docx is no table that is known by its ending. Give .csv, .tsv, .jsonl, .parquet (.gz but "
        "parquet)."
    )


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.parquet"])
def test_a_small_file_that_unpacks_to_more_than_memory_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
        pd.DataFrame({"text": ["a"] * 100_000}).to_parquet(path)
    else:
        path.write_bytes(gzip.compress((json.dumps({"text": "a"}) + "\n").encode() * 100_000))
    monkeypatch.setattr(tables, "free_memory", lambda: 10**6)
    assert path.stat().st_size < 10**5
    with pytest.raises(InputError) as error:
        likewise.dataset(str(path))
    room = "0.000125" if name.endswith("gz") else "0.0005"
    assert str(error.value) == f"{path} unpacks to more than {room} GB, more than is read of it. Save fewer lines."


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/reviews.csv", "reviews.csv", f"{tmp_path}/photos"):
        assert refusal(MissingDataError, likewise.dataset, path) == (
            f"there is no file or folder {path}. Check the path."
        )


def test_a_name_is_data_of_that_name_and_a_path_is_what_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    Path("digits").mkdir()
    image.new("RGB", (8, 8)).save("digits/1.png")
    assert likewise.dataset("digits[:3]").name == "digits:test[:3]"
    assert (
        len(likewise.dataset("digits/"))
        == len(likewise.dataset("./digits"))
        == len(likewise.dataset(Path("digits")))
        == 1
    )


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_csv_separated_as_excel_does_elsewhere_keeps_its_columns_and_labels(tmp_path: Path, separator: str) -> None:
    rows = [("text", "label"), ("good, very good", "pos"), ('"a ""bad"" film"', "neg")]
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(separator.join(row) for row in rows) + "\n")
    data = likewise.dataset(str(path))
    assert data.inputs == ["good, very good", 'a "bad" film']
    assert data.labels.tolist() == [1, 0]
    assert data.classes == ("neg", "pos")


@pytest.mark.parametrize("line", ["sep=;\r\n", '"sep=;"\n'])
def test_the_line_in_which_excel_names_the_separator_is_no_row(tmp_path: Path, line: str) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes(f"{line}text;label\ngood;pos\nbad;neg\n".encode())
    data = likewise.dataset(str(path))
    assert (data.inputs, data.classes) == (["good", "bad"], ("neg", "pos"))


def test_semicolons_within_the_texts_of_one_column_separate_nothing(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text\ngood; very good\nbad\n")
    assert likewise.dataset(str(path)).inputs == ["good; very good", "bad"]


def test_a_first_line_that_may_be_a_row_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("good film,1\nbad film,0\nfine film,1\n")
    told = (
        f"the first line of {tmp_path}/a.csv ('good film', '1') is taken for names of columns. If it is a row, write "
        "names above it, such as 'text' and 'label'."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(told)}$"):
        assert likewise.dataset(f"{tmp_path}/a.csv").inputs == ["bad film", "fine film"]


def test_the_command_for_another_encoding_makes_a_file_that_is_read(tmp_path: Path) -> None:
    iconv = shutil.which("iconv")
    if iconv is None:
        pytest.skip("iconv is not installed")
    (tmp_path / "a.csv").write_bytes("text;label\ncafé;1\nthé;0\n".encode("latin1"))
    with pytest.raises(InputError) as error:
        likewise.dataset(str(tmp_path / "a.csv"))
    command = str(error.value).partition("convert it: ")[2].removesuffix(".")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert likewise.dataset(str(tmp_path / "utf8.csv")).inputs == ["café", "thé"]
