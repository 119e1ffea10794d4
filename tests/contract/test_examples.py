"""Every example runs as it is written, offline, and prints what it is for."""

from __future__ import annotations

import json
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / "examples"
PRINTS = {  # what each example must print, among other things
    "two_arrays": ["cka-debiased = 0.4725", "* more alike than chance", "most out of place: input 7"],
    "timm_zoo": ["SimilarityMatrix('cka-debiased', 4 networks)", "alike ones side by side:"],
    "lightning_training": ["epoch"],
    "hugging_face_fine_tune": ["pretrained → fine-tuned on reviews (64 inputs)", "accuracy  "],
    "choose_ensemble": ["lenet-2:", "predicted error", "held-out inputs"],
    "onnx_runtime": ["71 layers, the largest change ", ": equal but for rounding"],
    "language_layers": [
        "LayerMatrix('gpt2', 'llama', 3 x 4, measure='cka-debiased')",
        "h.0 of gpt2 is nearest to layers.",
    ],
}
NEEDS = {
    "timm_zoo": ("timm",),
    "lightning_training": ("lightning",),
    "hugging_face_fine_tune": ("transformers", "accelerate"),
    "language_layers": ("transformers",),
    "onnx_runtime": ("onnx", "onnxruntime"),
    "choose_ensemble": ("sklearn",),
}


def test_every_script_is_run_and_has_a_line_in_the_docs() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"digits"} == set(PRINTS)  # `make demo` runs that
    page = (ROOT / "docs" / "examples.md").read_text()
    assert [name for name in [*PRINTS, "notebook"] if f"examples/{name}." not in page] == []


@pytest.mark.parametrize("name", PRINTS)
def test_an_example_runs_and_prints_what_it_is_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from likewise._base.optional import prepare_torchvision

    prepare_torchvision()
    for library in NEEDS.get(name, ()):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(tmp_path)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries say of small data and random weights
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert [text for text in PRINTS[name] if text not in printed] == [], printed


def notebook() -> dict[str, Any]:
    return json.loads((FOLDER / "notebook.ipynb").read_text())


def test_the_notebook_is_one_and_holds_no_outputs() -> None:
    found = notebook()
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in found["cells"]}) == len(found["cells"])
    assert [cell for cell in found["cells"] if cell.get("outputs")] == []
    try:
        import nbformat
    except ImportError:
        return
    nbformat.validate(nbformat.read(FOLDER / "notebook.ipynb", as_version=4))


def test_the_cells_of_the_notebook_run_in_order() -> None:
    """As a kernel runs them, in this process: what a cell ends with is shown as HTML."""
    import ast

    space: dict[str, Any] = {}
    shown = []
    for cell in notebook()["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "a cell", "exec"), space)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "a cell", "eval"), space)
                shown.append("" if value is None else value._repr_html_())
    assert [page.startswith("<p>") for page in shown] == [True, True, True, False]
    assert "seed 0" in shown[1]
    assert "with noise" in shown[2]
