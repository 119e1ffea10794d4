"""Tables of texts on disk, what is said where there are none, and sentences made here."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import likewise
from likewise.data.sources.text import make_sentences
from likewise.errors import InputError, MissingDependencyError
from tests.helpers import sentence as refusal


def table(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


def test_tables_are_read_with_quotes_and_spaces_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path / "sst2" / "dev.tsv.gz", "sentence\tlabel\n\"so bad \t0\nit 's good \t1\n")
    table(tmp_path / "nli" / "mnli_train.tsv.gz", "premise\thypothesis\tlabel\na b\tc\t2\n")
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    assert likewise.dataset("sst2").inputs == ['"so bad', "it 's good"]
    pairs = likewise.dataset("mnli:train")
    assert (pairs.inputs, pairs.labels.tolist()) == ([("a b", "c")], [2])
    assert next(iter(pairs.batches(4)))[0] == [("a b", "c")]


GLUE = "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"


def test_glue_and_multinli_are_read_as_they_are_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MNLI", "SST-2", "alone"):
        (tmp_path / name).mkdir()
    rows = '0\tfiction\tA "b\tC\tneutral\tcontradiction\n1\tfiction\tD\tE\t-\t-\n2\tfiction\tF\tG\t-\tentailment\n'
    (tmp_path / "MNLI" / "train.tsv").write_text(GLUE + rows)
    (tmp_path / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nit 's good \t1\n")
    pairs = [{"gold_label": label, "sentence1": "A", "sentence2": "B"} for label in ("neutral", "-", "entailment")]
    text = "\n".join(map(json.dumps, pairs)) + "\n"
    (tmp_path / "alone" / "multinli_1.0_dev_matched.jsonl").write_text(text)
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    train = likewise.dataset("mnli:train")
    assert (train.inputs, train.labels.tolist()) == ([('A "b', "C"), ("F", "G")], [2, 0])
    assert likewise.dataset("sst2").inputs == ["it 's good"]
    assert likewise.dataset(f"mnli:{tmp_path}/alone").labels.tolist() == [1, 0]
    assert likewise.dataset(f"mnli:{tmp_path}/MNLI:train").labels.tolist() == [2, 0]


def test_a_published_table_with_another_label_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dev_matched.tsv"
    path.write_text(GLUE + "0\tfiction\tA\tB\t-\tmaybe\n")
    assert refusal(InputError, likewise.dataset, f"mnli:{tmp_path}") == (
        f"line 2 of {path} has the label 'maybe'. Labels are entailment, neutral, contradiction and - for none."
    )
    path.write_text("index\tsentence1\tgold_label\n0\tA\tneutral\n")
    assert refusal(InputError, likewise.dataset, f"mnli:{tmp_path}") == (
        f"{path} has no column sentence2. Its first line must name sentence1, sentence2, gold_label, with tabs between."
    )
    path.write_text(GLUE + "0\tfiction\tA\n")
    assert refusal(InputError, likewise.dataset, f"mnli:{tmp_path}") == (
        f"line 2 of {path} is too short. Give sentence1, sentence2, gold_label in every line, with tabs between."
    )


BAD_TABLES = {
    "text\tlabel\na\t0\n": "{} has no column sentence. Its first line must name sentence, label, with tabs between.",
    "sentence\tlabel\na\t0\nb\tgood\n": "line 3 of {} has the label 'good'. Labels are whole numbers.",
    "sentence\tlabel\na\t2\n": "the labels of 'sst2:dev' must be 1 whole numbers from 0 to 1, got numbers from 2 "
    "to 2. Give one class index per input.",
}


@pytest.mark.parametrize(("text", "sentence"), BAD_TABLES.items(), ids=["column", "word", "range"])
def test_a_table_that_cannot_be_used_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    path = table(tmp_path / "dev.tsv.gz", text)
    assert refusal(InputError, likewise.dataset, f"sst2:{tmp_path}") == sentence.format(path)


@pytest.mark.skipif(find_spec("datasets") is None, reason="datasets is not installed")
def test_text_that_is_nowhere_says_what_to_put_where(tmp_path: Path) -> None:
    code = (
        "import likewise\n"
        "try: likewise.dataset('sst2:train')\n"
        "except likewise.errors.MissingDataError as error: print(error)"
    )
    empty = {"LIKEWISE_DATA": f"{tmp_path}/data", "XDG_CACHE_HOME": f"{tmp_path}/cache"}
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": f"{tmp_path}/hf", "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=empty | offline, capture_output=True, text=True)
    assert run.stdout == (
        f"sst2 was not found in {tmp_path}/data or {tmp_path}/cache/likewise and could not be "
        "downloaded (Couldn't reach 'nyu-mll/glue' on the Hub (OfflineModeIsEnabled)). Put "
        "sst2/train.tsv.gz (tab-separated, first line sentence label) there, or set LIKEWISE_DATA "
        "to the folder that holds it.\n"
    )


def test_without_datasets_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert refusal(MissingDependencyError, likewise.dataset, f"mnli:{tmp_path}") == (
        "to load mnli, datasets is needed: pip install 'likewise[language]'."
    )


@pytest.mark.parametrize(
    ("address", "counts"), [("sst2:train", [29780, 37569]), ("sst2:dev", [428, 444]), ("mnli:dev", [3479, 3123, 3213])]
)
def test_the_real_texts_have_their_published_counts(address: str, counts: list[int], real_data: Path) -> None:
    assert likewise.dataset(address).labels.bincount().tolist() == counts


PRAISE = {"superb", "moving", "clever", "charming", "funny", "gripping", "warm", "honest", "fresh"}


def test_the_label_of_a_sentence_is_that_of_its_main_clause() -> None:
    texts, labels = make_sentences(300, seed=1)
    for text, label in zip(texts, labels, strict=True):
        words = text.split(" , ")[-1].split()
        praised = not PRAISE.isdisjoint(words)
        assert (praised != ("not" in words)) == bool(label), text


def test_the_same_seed_makes_the_same_sentences_and_another_seed_others() -> None:
    assert make_sentences(50, seed=3) == make_sentences(50, seed=3)
    assert make_sentences(50, seed=3) != make_sentences(50, seed=4)


def test_training_and_test_sentences_are_all_different() -> None:
    training, test = likewise.dataset("sentences:train"), likewise.dataset("sentences")
    assert (len(training), len(test)) == (2000, 500)
    assert len({*training.inputs, *test.inputs}) == 2500
    assert 0.45 < training.labels.float().mean() < 0.55
    assert test.classes == ("negative", "positive")
