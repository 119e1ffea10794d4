"""A measure is a function that a person can read: `help`, signatures, one line at a prompt, options by name."""

from __future__ import annotations

import inspect
import pickle
import pydoc

import numpy as np
import pytest

import likewise
from likewise.errors import OptionError
from likewise.measures.registry import MEASURES

X, NOISE = np.random.default_rng(0).normal(size=(2, 40, 6))
ALL = [*MEASURES, *(variant for measure in MEASURES for variant in measure.variants.values())]


def test_help_shows_the_measure_and_not_the_class() -> None:
    text = pydoc.render_doc(likewise.measures.jaccard, renderer=pydoc.plaintext)
    assert "\njaccard(x, y, *, k=10, reduce=None)\n    How many of each input's nearest neighbours are the same" in text
    assert "__init__" not in text


def test_options_are_given_by_name_at_the_call() -> None:
    jaccard = likewise.measures.jaccard
    assert jaccard(X, X + NOISE, k=5) == likewise.measures.get("jaccard", k=5)(X, X + NOISE)
    assert jaccard(X, X + NOISE, k=5) != jaccard(X, X + NOISE)
    with pytest.raises(OptionError) as caught:
        jaccard(X, X, kk=5)
    assert str(caught.value) == "jaccard has no option 'kk'. Did you mean 'k'? Its options are k."


@pytest.mark.parametrize(
    ("measure", "line"),
    [
        (likewise.measures.jaccard, "<measure 'jaccard', k=10: larger is more alike, 0 … 1>"),
        (likewise.measures.get("cka[resi]"), "<measure 'cka[resi]': larger is more alike, 0 … 1>"),
        (likewise.measures.cka_deconfounded, "<measure 'cka-deconfounded', confounder: larger is more alike, -1 … 1>"),
        (
            likewise.measures.get("cka-deconfounded", confounder=np.zeros(3)),
            "<measure 'cka-deconfounded', confounder=ndarray 9d908e: larger is more alike, -1 … 1>",
        ),
    ],
)
def test_a_measure_is_one_line_at_a_prompt(measure, line: str) -> None:
    assert repr(measure) == line


@pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.key)
def test_the_signature_has_every_option_and_the_docstring_describes_it(measure) -> None:
    names = list(inspect.signature(measure).parameters)
    assert names == ["x", "y", *measure.defaults, "reduce"]
    arguments = inspect.getdoc(measure).partition("\nArgs:\n")[2].partition("\n\n")[0]
    described = [line.strip().partition(": ") for line in arguments.splitlines() if line[4] != " "]
    assert [name for name, _, text in described if len(text) > 10] == names


def test_a_bound_option_is_the_default_of_the_signature() -> None:
    assert str(inspect.signature(likewise.measures.get("jaccard", k=3))) == "(x, y, *, k=3, reduce=None)"
    assert "def jaccard(pair: Pair" in inspect.getsource(likewise.measures.jaccard)


def test_a_measure_of_the_user_is_read_in_the_same_way() -> None:
    @likewise.measures.register(name="gap")
    def gap(x, y, scale=1.0):
        """How far means are apart.

        Args:
            x: One.
            y: The other.
            scale: What the gap is multiplied by.
        """
        return scale * abs(x.mean() - y.mean())

    likewise.measures.unregister("gap")
    assert str(inspect.signature(gap)) == "(x, y, *, scale=1.0, reduce=None)"
    assert gap.__name__ == "gap"
    assert "    scale: What the gap is multiplied by.\n" in gap.__doc__
    assert gap(X, X + 1, scale=2.0) == pytest.approx(2.0)


@pytest.mark.parametrize("measure", [likewise.measures.jaccard, likewise.measures.get("jaccard", "resi", k=4)])
def test_a_measure_is_pickled_by_its_name(measure) -> None:
    copy = pickle.loads(pickle.dumps(measure))
    assert (copy.key, copy.function) == (measure.key, measure.function)
