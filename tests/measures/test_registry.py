"""Names, variants and options of measures: what is unknown, taken, missing or out of range."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise import measures
from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))


def test_an_unknown_measure_is_guessed() -> None:
    assert sentence(KeyError, likewise.compare, X, X, measure="ckaa") == (
        "no measure named 'ckaa'. Did you mean 'cka'?"
    )
    with pytest.raises(AttributeError) as caught:
        measures.procrustis  # noqa: B018
    assert str(caught.value) == "no measure named 'procrustis'. Did you mean 'procrustes'?"
    assert sentence(ValueError, measures.names, "rsmm") == (
        "no family named 'rsmm'. There are rsm, cca, alignment, neighbors, topology, statistics, functional."
    )


def test_unknown_options_and_variants() -> None:
    assert sentence(TypeError, measures.get, "jaccard", kk=3) == (
        "jaccard has no option 'kk'. Did you mean 'k'? Its options are k."
    )
    assert sentence(TypeError, measures.get, "cka", k=3) == "cka has no option 'k'. It has none."
    assert sentence(TypeError, measures.get, "jaccard", variant="other") == (
        "jaccard has no variant 'other'; it has 'resi'."
    )


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("jaccard", {"k": 0}, "jaccard: k must be a whole number of at least 1, got 0."),
        ("jaccard", {"k": 2.5}, "jaccard: k must be a whole number of at least 1, got 2.5."),
        ("shape", {"alpha": 1.5}, "shape: alpha must be a number from 0.0 to 1.0, got 1.5."),
        ("cka-rbf", {"bandwidth": "x"}, "cka-rbf: bandwidth must be a number from 0.001 to 1000.0, got 'x'."),
        ("imd", {"mode": "fast"}, "imd: mode must be one of auto, exact, stochastic, got 'fast'."),
    ],
)
def test_options_out_of_range(name, options, expected) -> None:
    assert sentence(ValueError, measures.get, name, **options) == expected


def test_a_missing_option_is_asked_for() -> None:
    assert sentence(TypeError, measures.cka_deconfounded, X, X) == (
        "cka-deconfounded needs the option 'confounder'. Its options are confounder."
    )


def test_a_name_that_is_taken() -> None:
    assert sentence(ValueError, measures.register, lambda x, y: 0.0, name="OrthProc") == (
        "the measure name 'orthproc' is taken by 'procrustes'. Choose another name."
    )


def test_a_function_that_is_no_measure() -> None:
    def three(x, y, z):
        return 0.0

    assert sentence(ValueError, likewise.compare, {"a": X, "b": X}, three) == (
        "three takes 3 arguments. A measure takes a Pair, or two arrays."
    )
    assert sentence(ValueError, likewise.compare, {"a": X, "b": X}, [3]) == (
        "3 is not a measure. Pass a name, a measure or a function."
    )
    for odd, shown in ((3, "3"), (X, "an array of shape (30, 5)")):
        assert sentence(ValueError, measures.get, odd) == f"{shown} is not a measure. Pass a name or a measure."


N = 24


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


def test_a_function_of_two_arrays_sees_them_as_they_were_given() -> None:
    x, y = related()
    measures.register(lambda a, b: float(np.abs(a).max()), name="peak")
    try:
        assert likewise.compare(x * 1e-200, y, "peak") == np.abs(x).max() * 1e-200
    finally:
        measures.unregister("peak")


def run(program: str, *folders: Path) -> str:
    """What a program prints in a process of its own, with folders on its path."""
    path = os.pathsep.join([*map(str, folders), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_look_up_imports_no_more_than_the_file_of_the_measure() -> None:
    program = """
import sys, likewise
def loaded():
    names = [name for name in sys.modules if name.startswith(("likewise.measures.families.", "likewise.classes."))]
    return sorted(name.rpartition(".")[2] for name in names)
likewise.measures.cka
print(loaded())
likewise.measures.svcca
print(loaded())
likewise.measures.get("class-alignment")
print("measure" in loaded(), len(likewise.measures.names()) > 40)
"""
    assert run(program).splitlines() == ["['cka']", "['cca', 'cka', 'gram', 'rsm']", "True True"]


def test_a_plug_in_adds_measures_by_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "gaps.py").write_text(
        "import likewise\n"
        "@likewise.measures.register(name='mean-gap', larger_is='less alike', symmetric=True, family='statistics')\n"
        "def mean_gap(x, y):\n"
        "    return float(abs(x.mean() - y.mean()))\n"
    )
    facts = tmp_path / "gaps-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: gaps\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[likewise.measures]\ngaps = gaps\n")
    program = """
import numpy as np, likewise
x = np.arange(8.0).reshape(4, 2)
print(likewise.compare(x, x + 3, "Mean_Gap"), likewise.measures.names()[-1])
print("mean-gap" in likewise.compare({"a": x, "b": x * x}, "statistics", progress=False))
"""
    assert run(program, tmp_path).splitlines() == ["3.0 mean-gap", "True"]
    listed = run("from likewise.cli import main; main(['measures', '--family', 'statistics'])", tmp_path)
    assert "mean-gap" in listed
