"""Advice: measures ranked by results, with power and cost, and the rows it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from likewise.benchmark.results import advice
from likewise.benchmark.results.advice import OWN_COLUMNS, advise, parse_seconds, power_at, seconds_at
from likewise.benchmark.results.paper import figures
from likewise.cli.advise import advise as command
from likewise.errors import InputError, UnknownNameError
from tests.benchmark.frames import row
from tests.cli.conftest import invoke


@pytest.fixture
def paper_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The paper's figures alone: they stay as they are whatever runs of ours are added."""
    monkeypatch.setattr(advice, "OURS", tmp_path / "none.csv")
    advice._evidence.cache_clear()
    yield
    advice._evidence.cache_clear()


@pytest.mark.usefixtures("paper_only")
def test_every_row_can_be_traced_to_the_papers_tables() -> None:
    """Vision, shortcut: table 17, six networks; the cell of ViT-L32 is left out, since most measures are nan there."""
    found = advise("vision", "shortcut")
    best = next(one for one in found.rows if one.label == "CKA")
    assert [(fact.source, fact.network, fact.value) for fact in best.evidence] == [
        ("ReSi paper, table 17", network, 1.0)
        for network in ("ResNet101", "ResNet18", "ResNet34", "VGG11", "VGG19", "ViT-B32")
    ]
    known = figures().set_index(["table", "data", "network", "grounding", "metric", "measure"])["value"]
    for one in found.rows:
        for fact in one.evidence:
            table = int(fact.source.rsplit(" ", 1)[1])
            value = known[(table, fact.data, fact.network, fact.grounding, fact.metric, one.measure)]
            assert value == fact.value or (value != value and fact.value != fact.value)


@pytest.mark.usefixtures("paper_only")
def test_the_order_is_by_the_share_of_measures_beaten() -> None:
    """Language, labels: AlignCos has 1.00 on MNLI (shared with ConcDiff) and 0.99 on SST2, alone at the top."""
    found = advise("language", "labels")
    standings = [one.standing for one in found.rows if not one.warnings]
    assert standings == sorted(standings, reverse=True)
    first = found.rows[0]
    assert first.label == "AlignCos"
    assert [(fact.value, fact.rank, fact.of) for fact in first.evidence] == [(1.0, 1.5, 23), (0.99, 1.0, 23)]
    assert first.standing == pytest.approx(((23 - 1.5) / 22 + 1) / 2)
    assert first.value == pytest.approx(0.995)
    assert (first.low, first.high) == (0.99, 1.0)


@pytest.mark.usefixtures("paper_only")
def test_power_and_cost_come_with_the_size_and_put_measures_last() -> None:
    found = advise("vision", "shortcut", n=100, d=512, budget="100ms")
    by_label = {one.label: one for one in found.rows}
    assert by_label["CKA"].warnings == ()
    assert by_label["EOS"].warnings == ("sees too little at n = 100",)  # 100 inputs span the same space in any network
    firsts = [bool(one.warnings) for one in found.rows]
    assert firsts == sorted(firsts)
    dear = advise("vision", "shortcut", n=5000, budget="1s")
    assert "over budget" in {one.label: one for one in dear.rows}["IMD"].warnings


def test_cost_is_the_stored_model() -> None:
    cost = pd.read_csv(advice.COST).set_index("measure").loc["cka"]
    assert seconds_at("cka", 1000, 128) == cost["seconds"]
    assert seconds_at("cka", 2000, 256) == pytest.approx(cost["seconds"] * 2 ** cost["by_n"] * 2 ** cost["by_d"])
    assert seconds_at("sat", 1000) is None


def test_power_is_read_from_the_simulation() -> None:
    table = pd.read_csv(advice.POWER).set_index(["measure", "n"])["power"]
    assert power_at("cka", 100) == table["cka", 100]
    assert power_at("cka", 10**6) == table["cka", 400]
    assert power_at("eos", 400, 512) == table["eos", 100]  # n against d is what counts
    low, high = sorted([table["gulp", 100], table["gulp", 200]])
    assert low <= power_at("gulp", 150) <= high  # type: ignore[operator]
    assert power_at("sat", 100) is None


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Results of our own beside the paper's: nbs wins twice on digits, and once where groups are not valid."""
    rows = [
        row(domain="vision", data="digits", network="mlp", grounding="shortcut", seed=seed, measure=name, value=value)
        for seed, bonus in ((0, 0.0), (1, 0.1))
        for name, value in (("nbs", 0.8 + bonus), ("cka", 0.4), ("rsa", 0.3))
    ]
    rows += [row(domain="vision", data="digits", network="vit", grounding="shortcut", measure="rsa", valid=False)]
    rows += [row(domain="vision", data="digits", network="mlp", grounding="family", measure="rsa", value=0.7)]
    frame = pd.DataFrame(rows).assign(run="digits-mlp")[list(OWN_COLUMNS)]
    frame.to_csv(tmp_path / "ours.csv", index=False)
    monkeypatch.setattr(advice, "OURS", tmp_path / "ours.csv")
    advice._evidence.cache_clear()
    yield
    advice._evidence.cache_clear()


@pytest.mark.usefixtures("ours")
def test_one_lucky_cell_does_not_win() -> None:
    """nbs beats all others in its only cell: (1 + 3 / 2) / 4; one that beats 80 % in seven: (5.6 + 3 / 2) / 10."""
    found = advise("vision", "shortcut")
    by_label = {one.label: one for one in found.rows}
    assert by_label["nbs"].settled == pytest.approx(0.625)
    assert [one.settled for one in found.rows] == sorted((one.settled for one in found.rows), reverse=True)
    assert found.rows[0].label != "nbs"


@pytest.mark.usefixtures("ours")
def test_our_results_stand_beside_the_papers() -> None:
    found = advise("vision", "shortcut")
    assert found.sources == ("the ReSi paper", "our runs")
    own = {one.label: one for one in found.rows}["nbs"]
    assert [str(fact) for fact in own.evidence] == [
        "our run digits-mlp: digits, mlp, shortcut (auprc): 0.85, rank 1 of 3"
    ]
    assert own.standing == 1.0
    assert len({one.label: one for one in found.rows}["CKA"].evidence) == 7
    assert advise("vision", "family").rows[0].label == "RSA"


def test_the_results_that_ship_are_of_all_domains_and_each_row_is_one_of_a_run() -> None:
    frame = pd.read_csv(advice.OURS)
    assert tuple(frame.columns) == OWN_COLUMNS
    assert set(frame["domain"]) == {"graph", "language", "vision"}
    assert not frame.duplicated(["run", "grounding", "metric", "measure"]).any()
    assert frame["value"].dropna().between(-1, 1).all()
    assert frame["measure"].nunique() > 35
    found = advise("vision", "family", top=1)  # the paper has no such grounding
    assert found.sources == ("our runs",)
    first, fact = found.rows[0], found.rows[0].evidence[0]
    rows = frame[(frame["data"] == fact.data) & (frame["network"] == fact.network) & (frame["grounding"] == "family")]
    assert fact.value == pytest.approx(rows[rows["measure"] == first.measure]["value"].mean())
    assert fact.source == f"our run {rows['run'].iloc[0]}"
    assert rows["valid"].all()


@pytest.mark.usefixtures("paper_only")
def test_it_is_printed_with_the_evidence_of_the_first() -> None:
    text = invoke(command, "--domain", "language", "--question", "labels", "--top", "2")
    lines = text.splitlines()
    assert lines[0] == "label randomisation in language; by the ReSi paper"
    assert lines[3].split()[:5] == ["1", "AlignCos", "99%", "2", "0.99"]
    assert len([line for line in lines if line[:1].isdigit()]) == 2
    assert "  ReSi paper, table 13: MNLI, BERT, labels (auprc): 1.00, rank 1.5 of 23" in lines
    assert "  ReSi paper, table 13: SST2, BERT, labels (auprc): 0.99, rank 1 of 23" in lines


@pytest.mark.usefixtures("paper_only")
def test_programs_are_given_json() -> None:
    words = ("--domain", "graph", "--question", "all", "--n", "500", "--budget", "2min", "--top", "3", "--json")
    found = json.loads(invoke(command, *words))
    assert (found["domain"], found["question"], found["n"], found["budget"]) == ("graph", "all groundings", 500, 120.0)
    assert found["measures"][0]["label"] == "2nd-Cos"
    assert len(found["measures"]) == 3
    assert len(found["measures"][0]["evidence"]) == 63


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("visoin", "shortcut"), "no domain named 'visoin' has results. Did you mean 'vision'?"),
        (("sound", "shortcut"), "no domain named 'sound' has results. There are graph, language, vision."),
        (("vision", "shortcuts"), "no question named 'shortcuts'. Did you mean 'shortcut'?"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(given: tuple[str, str], sentence: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        advise(*given)
    assert str(error.value) == sentence


@pytest.mark.usefixtures("paper_only")
def test_a_question_without_results_is_refused() -> None:
    with pytest.raises(InputError) as error:
        advise("vision", "family")
    assert str(error.value) == (
        "there are no results for 'family' in vision, neither in the paper nor of ours. There are 'accuracy', "
        "'outputs', 'labels' and 3 more; or run `likewise benchmark run --domain vision --grounding family`."
    )


@pytest.mark.parametrize("budget", ["soon", "-3s", "0s", "10 days"])
def test_a_budget_is_a_time(budget: str) -> None:
    with pytest.raises(InputError) as error:
        parse_seconds(budget)
    assert str(error.value) == (f"the budget is {budget!r}. Give CPU seconds per pair, as in 10s, 500ms or 2min.")


def test_sizes_that_make_no_sense_are_refused() -> None:
    for given, sentence in (
        ({"n": 1}, "n is 1. Give the number of inputs, 2 or more."),
        ({"top": 0}, "top is 0. Give 1 or more."),
        ({"budget": "10s"}, "a budget needs the number of inputs. Give n as well."),
    ):
        with pytest.raises(InputError) as error:
            advise("vision", "shortcut", **given)  # type: ignore[arg-type]
        assert str(error.value) == sentence
