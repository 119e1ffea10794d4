"""`likewise report`: any mix of runs in, one file out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.cli import main
from likewise.cli.compare import compare
from likewise.cli.report import report
from likewise.errors import InputError
from likewise.matrices.layers import LayerMatrix
from likewise.work.store import Store
from tests.cli.conftest import invoke
from tests.helpers import sentence
from tests.report.helpers import arrays, data_of


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A comparison by the command line, with everything a report shows of it."""
    files = []
    for name, values in arrays(4, n=30).items():
        files.append(str(tmp_path / f"{name}.npy"))
        np.save(files[-1], values)
    out = tmp_path / "run"
    words = [*files, "--measure", "cka", "pnka", "--calibrate", "--intervals", "--inputs", "--out", str(out)]
    with pytest.raises(SystemExit) as end:
        main(["compare", *words])
    assert not end.value.code
    return out


def test_a_run_of_compare_becomes_a_report(run: Path, tmp_path: Path) -> None:
    LayerMatrix("a", "b", ["x"], ["y", "z"], [[1.0, 0.5]], "cka").write(tmp_path / "layers")
    path = tmp_path / "out" / "report.html"
    assert invoke(report, str(run), str(tmp_path / "layers"), "-o", str(path)) == f"{path}\n"
    text = path.read_text(encoding="utf-8")
    found = data_of(text)
    assert list(found["panels"]) == ["matrix", "map", "disagreement", "layers", "inputs"]
    measures = {measure["label"]: measure for measure in found["panels"]["matrix"]["measures"]}
    assert all({"null", "q", "low", "high"} <= set(measure) for measure in measures.values())
    assert "likewise compare " in text
    assert "--measure cka --measure pnka --calibrate --intervals --inputs --out" in text


def test_a_title_stands_above(run: Path, tmp_path: Path) -> None:
    invoke(report, str(run), "-o", str(tmp_path / "r.html"), "--title", "Ours & <theirs>")
    assert "<h1>Ours &amp; &lt;theirs&gt;</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_training_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "weights.safetensors").write_bytes(b"")
    assert sentence(InputError, invoke, report, str(tmp_path)) == (
        f"{tmp_path} holds a training, which alone shows nothing. Look at it by likewise inspect {tmp_path} "
        "--data ... --out FOLDER, or compare its network with others."
    )


def test_inputs_need_a_folder(tmp_path: Path) -> None:
    for name, values in arrays(2, n=20).items():
        np.save(tmp_path / f"{name}.npy", values)
    words = (str(tmp_path / "net-0.npy"), str(tmp_path / "net-1.npy"), "--inputs")
    assert sentence(InputError, invoke, compare, *words) == "--inputs keeps a file. Say where, as in --out runs/first."


def test_a_run_that_was_killed_says_which_command_resumes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for name, values in arrays(4, n=30).items():
        files.append(str(tmp_path / f"{name}.npy"))
        np.save(files[-1], values)
    put, out = Store.put_many, tmp_path / "run"

    def kill(self: Store, scores: object) -> None:
        put(self, list(scores)[:1])  # type: ignore[call-overload]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put_many", kill)
        with pytest.raises((SystemExit, KeyboardInterrupt)):
            main(["compare", *files, "--measure", "cka", "--out", str(out)])
    assert not (out / "matrices").exists()
    with pytest.raises(SystemExit):
        main(["report", str(out), "-o", str(tmp_path / "r.html")])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "was stopped: 1 of 6 pairs has a score" in text
    assert f"likewise compare {' '.join(files)} --measure cka --out {out}" in text
