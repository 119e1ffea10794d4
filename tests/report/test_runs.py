"""Results of every kind are recognised by what lies in their folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import InputError, StoreError
from likewise.report import read_runs, report
from likewise.work.store import Store
from tests.report.helpers import arrays, compared, data_of


def test_a_folder_of_runs_is_looked_into(tmp_path: Path) -> None:
    compared(3, ["cka"]).save(tmp_path / "one" / "matrices")
    compared(3, ["rsa"]).save(tmp_path / "two" / "matrices")
    (tmp_path / "store").mkdir()
    found = read_runs(tmp_path)
    assert [matrix.measure for matrix in found.matrices] == ["cka", "rsa"]
    assert [what for _, what in found.sources] == ["cka of 3 networks", "rsa of 3 networks"]


def test_two_runs_of_one_measure_are_numbered(tmp_path: Path) -> None:
    compared(3, ["cka"]).save(tmp_path / "one")
    compared(4, ["cka"], seed=1).save(tmp_path / "two")
    text = report(tmp_path / "one", tmp_path / "two", out=tmp_path / "r.html").read_text(encoding="utf-8")
    labels = [measure["label"] for measure in data_of(text)["panels"]["matrix"]["measures"]]
    assert sorted(labels) == ["cka (1)", "cka (2)"]


def test_a_square_csv_is_a_matrix(tmp_path: Path) -> None:
    compared(3, ["cka"])["cka"].to_frame().to_csv(tmp_path / "own.csv")
    found = read_runs(tmp_path / "own.csv")
    assert (found.matrices[0].measure, found.matrices[0].larger_is) == ("own", "more alike")


def test_class_similarities_are_distinguished_from_networks(tmp_path: Path) -> None:
    values = np.eye(3) + 0.2
    ClassSimilarity(values, classes=("</script>", "b", "c"), kind="weights").save(tmp_path / "matrices" / "net")
    found = read_runs(tmp_path)
    assert list(found.classes) == ["net"]
    assert not found.matrices
    text = report(tmp_path, out=tmp_path / "r.html").read_text(encoding="utf-8")
    film = data_of(text)["panels"]["classes"]["films"][0]
    assert sorted(film["classes"]) == ["</script>", "b", "c"]
    assert text.count("</script>") == 3  # those of the page


def test_curves_without_epochs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "curves.csv").write_text("epoch\n")
    with pytest.raises(InputError) as error:
        read_runs(tmp_path)
    assert str(error.value) == (
        f"{tmp_path} has curves of an inspection and no epoch of it. Run likewise inspect again."
    )


def test_a_damaged_epoch_is_named(tmp_path: Path) -> None:
    (tmp_path / "curves.csv").write_text("epoch\n")
    (tmp_path / "0001.safetensors").write_bytes(b"nothing")
    with pytest.raises(StoreError) as error:
        read_runs(tmp_path)
    file = tmp_path / "0001.safetensors"
    assert str(error.value).startswith(f"{file} is no file of results, or it is damaged (")
    assert str(error.value).endswith("). Run again what wrote it.")


def test_no_run_is_refused() -> None:
    with pytest.raises(InputError) as error:
        read_runs()
    assert str(error.value) == "no run was given. Give folders that commands wrote by --out, or saved matrices."


def test_a_folder_that_was_read_before_is_not_read_twice(tmp_path: Path) -> None:
    compared(3, ["cka"]).save(tmp_path / "one" / "matrices")
    assert len(read_runs(tmp_path / "one", tmp_path).matrices) == 1


def stopped(folder: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """A comparison of four networks with everything, that is killed after so many stored scores."""
    put, stored = Store.put_many, []

    def kill(self: Store, scores: object) -> None:
        rows = list(scores)[: after - len(stored)]  # type: ignore[call-overload]
        stored.extend(rows)
        put(self, rows)
        if len(stored) >= after:
            raise KeyboardInterrupt

    options = {"calibrate": 20, "intervals": True, "progress": False, "store": folder / "store"}
    with monkeypatch.context() as patch:
        patch.setattr(Store, "put_many", kill)
        with pytest.raises(KeyboardInterrupt):
            likewise.compare(arrays(4), ["cka", "svcca"], **options)


def test_a_comparison_that_was_killed_is_reported_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    stopped(run, monkeypatch, after=8)
    found = read_runs(run)
    whole = likewise.compare(arrays(4), ["cka", "svcca"], progress=False)
    assert {matrix.measure for matrix in found.matrices} == {"cka", "svcca"}
    for matrix in found.matrices:
        known = np.isfinite(matrix.values)
        np.testing.assert_allclose(matrix.values[known], whole[matrix.measure].values[known])
    counts = {m.measure: int(np.isfinite(m.values[np.triu_indices(4, 1)]).sum()) for m in found.matrices}
    assert sum(counts.values()) == 8
    reached = {count: [name for name in sorted(counts) if counts[name] == count] for count in counts.values()}
    assert sorted(found.missing) == sorted(
        f"the comparison by {' and '.join(names)} in {run} was stopped: {count} of 6 pairs have a score; chance and "
        "intervals were not reached. The same command resumes it."
        for count, names in reached.items()
    )
    text = report(run, out=tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.count("<b>Unfinished:</b>") == len(reached)
    assert "the same command resumes where it was stopped" in text
    likewise.compare(arrays(4), ["cka", "svcca"], store=run / "store", calibrate=20, intervals=True, progress=False)
    with pytest.raises(InputError) as error:  # it is done, and nobody saved its matrices
        read_runs(run)
    assert str(error.value) == (
        f"{run} holds a run that was stopped before its first result. Run the same command again: it resumes."
    )
