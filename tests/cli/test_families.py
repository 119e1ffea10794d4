"""`likewise families`: a matrix in, families, keywords and a picture out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise import analysis
from likewise.cli.families import families
from likewise.errors import InputError
from tests.analysis.helpers import families as made
from tests.cli.conftest import invoke
from tests.helpers import sentence


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    return made((4, 3, 5))[0].save(tmp_path / "m.safetensors")


def test_families_are_printed_with_their_members(matrix: Path) -> None:
    text = invoke(families, str(matrix), "--k", "3")
    found = analysis.clusters(made((4, 3, 5))[0], 3)
    assert " ".join(text.partition("\n\n")[0].split()) == found.verdict
    assert found.verdict == (
        "3 families of 12 networks by made (larger is more alike); scores are more grouped than without families "
        "(p = 0.002); families agree to 1.00 with networks left out (adjusted Rand index)"
    )
    for label, group in enumerate(found.groups()):
        spread = found.spread(label)
        assert (
            f"\nfamily {label}: {len(group)} networks, {spread['within']:.3g} within, {spread['to_others']:.3g} to "
            f"others\n  {', '.join(group)}\n"
        ) in text


def test_keywords_and_a_picture_come_with_them(matrix: Path, tmp_path: Path) -> None:
    names, groups = made((4, 3, 5))[0].names, made((4, 3, 5))[1]
    kinds = {name: "abc"[label] for label, group in enumerate(groups) for name in group}
    table = tmp_path / "components.csv"
    table.write_text("network,stem\n" + "".join(f"{name},{kinds[name]}\n" for name in names))
    text = invoke(families, str(matrix), "--components", str(table), "--plot", str(tmp_path / "f.png"))
    assert text.count("keywords: stem=") == 3
    assert text.endswith(f"\nwritten to {tmp_path / 'f.png'}\n")
    assert (tmp_path / "f.png").stat().st_size > 10_000


def test_programs_are_given_json(matrix: Path) -> None:
    found = json.loads(invoke(families, str(matrix), "--k", "3", "--json"))
    assert (found["measure"], found["networks"], found["k"], found["stability"]) == ("made", 12, 3, 1.0)
    assert (found["p"], found["input_stability"]) == (0.002, None)
    assert [row["family"] for row in found["families"]] == [0, 1, 2]
    assert [len(row["members"]) for row in found["families"]] == [5, 4, 3]
    assert all(row["within"] > row["to_others"] for row in found["families"])


def test_a_csv_of_distances_is_read_as_such(tmp_path: Path) -> None:
    given, _ = made((4, 4), larger_is="less alike")
    given.to_frame().to_csv(tmp_path / "m.csv")
    found = json.loads(invoke(families, str(tmp_path / "m.csv"), "--k", "2", "--distance", "--json"))
    assert [row["members"] for row in found["families"]] == analysis.clusters(given, 2).groups()


def test_a_family_of_one_has_nothing_within(tmp_path: Path) -> None:
    given, _ = made((4, 4, 1))
    text = invoke(families, str(given.save(tmp_path / "m.npz")), "--k", "3")
    assert "family 2, alone: 1 network, 0.3" in text


def test_the_alike_pair_of_three_networks_stays_together(tmp_path: Path) -> None:
    three = tmp_path / "three.csv"
    three.write_text("network,a,b,c\na,4.6,2.0,3.2\nb,2.0,4.6,1.9\nc,3.2,1.9,4.6\n")
    text = invoke(families, str(three), "--k", "2")
    assert "\nfamily 0: 2 networks, 3.2 within, 1.95 to others\n  a, c\n" in text
    assert invoke(families, str(three)).startswith("one family of 3 networks by three")


def test_the_method_of_the_paper_is_an_option(matrix: Path) -> None:
    text = invoke(families, str(matrix), "--k", "3", "--method", "spectral")
    assert "family 0: 5 networks, " in text
    message = "no method named 'ward'. Choose 'average' or 'spectral'."
    assert sentence(InputError, invoke, families, str(matrix), "--method", "ward") == message


def test_a_table_without_a_network_is_refused(matrix: Path, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("network,stem\nn0,a\nn1,b\n")
    words = (str(matrix), "--components", str(tmp_path / "c.csv"))
    assert sentence(InputError, invoke, families, *words).startswith("the table of components has no row for 'n2'.")
