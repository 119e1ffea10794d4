"""What a notebook and a paper are given of a matrix: coloured tables, directions, names that stay names."""

from __future__ import annotations

import re

import matplotlib.pyplot
import numpy as np
import pytest

import likewise
from likewise.classes import ClassSimilarity
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.similarity import Comparison, SimilarityMatrix

BAD = "<img src=x onerror=alert(1)>"
MADE = {
    "similarity": SimilarityMatrix([BAD, "b_1"], [[0, 2], [2, 0]], "procrustes", "less alike", bounds=(0, None)),
    "layers": LayerMatrix(BAD, "b", [BAD], ["r", "s"], [[1, 0]], "cka", larger_is="more alike", bounds=(0, 1)),
    "classes": ClassSimilarity([[1, 0.5], [0.5, 1]], [BAD, "</script>"]),
    "comparison": Comparison(
        {"procrustes": SimilarityMatrix([BAD, "b_1"], [[0, 2], [2, 0]], "procrustes", "less alike", bounds=(0, None))}
    ),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_notebook_shows_a_heat_map_with_names_and_direction(kind: str) -> None:
    page = MADE[kind]._repr_html_()
    assert "<img" not in page
    assert "</script>" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert re.search(r'<td style="background:#[0-9a-f]{6};color:#(000|fff)">', page)
    assert re.search("more alike|less alike", page)


def test_bright_is_alike_whichever_way_a_measure_runs() -> None:
    def shades(larger_is: str, values: list[list[float]]) -> list[str]:
        matrix = SimilarityMatrix(["a", "b"], values, "m", larger_is, bounds=(0, 1))
        return re.findall(r"background:(#\w{6})", matrix._repr_html_())

    alike = shades("more alike", [[1, 0], [0, 1]])
    assert alike == shades("less alike", [[0, 1], [1, 0]])
    assert alike[:2] == ["#fde724", "#440154"]  # the ends of viridis
    assert shades("more alike", [[1, np.nan], [np.nan, 1]])[1] == "#dddddd"


def test_of_many_networks_the_first_and_the_last_are_shown() -> None:
    names = [f"n{i}" for i in range(30)]
    page = SimilarityMatrix(names, np.eye(30))._repr_html_()
    assert page.count("<tr>") == 22  # a head, ten, a gap, ten
    assert "<th>n9</th>" in page
    assert "<th>n10</th>" not in page
    assert "<th>n20</th>" in page


@pytest.mark.parametrize("kind", MADE)
def test_a_picture_is_a_figure_and_opens_no_window(kind: str) -> None:
    figure = MADE[kind].plot()
    assert type(figure).__name__ == "Figure"
    assert matplotlib.pyplot.get_fignums() == []


def test_a_table_of_latex_holds_every_number_and_escapes_names() -> None:
    text = MADE["similarity"].to_latex(".2f")
    rows = [line for line in text.splitlines() if " & " in line]
    assert rows == [
        r" & <img src=x onerror=alert(1)> & b\_1 \\",
        r"<img src=x onerror=alert(1)> & 0.00 & 2.00 \\",
        r"b\_1 & 2.00 & 0.00 \\",
    ]
    assert text.startswith("\\begin{table}\n\\centering\n\\begin{tabular}{lrr}\n\\toprule\n")
    assert "larger is less alike" in text


def test_a_comparison_of_latex_has_a_row_per_measure_with_its_direction() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 40, 6))
    found = likewise.compare({"50%": x, "all": y}, ["cka", "procrustes"], progress=False)
    rows = [line for line in found.to_latex().splitlines() if " & " in line]
    assert rows[0] == r" & larger is & 50\% \textasciitilde{} all \\"
    cka, procrustes = found["cka"]["50%", "all"], found["procrustes"]["50%", "all"]
    assert rows[1:] == [rf"cka & more alike & {cka:.3f} \\", rf"procrustes & less alike & {procrustes:.3f} \\"]
