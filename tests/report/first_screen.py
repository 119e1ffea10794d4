"""Every statement of a first screen, compared with the numbers behind it by plain loops."""

from __future__ import annotations

import math
import re

from likewise.matrices.shares import difference
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.page import Contents
from likewise.report.runs import Runs
from likewise.report.summary import ALIKE, ALONE, NEXT, ODD

KINDS = {
    "disagreement": "answers",
    "error-consistency": "answers",
    "jsd": "answers",
    "sat": "attacks",
    "class-alignment": "classes",
}


def check(page: Contents, runs: Runs) -> set[str]:
    """Check all sentences and the table; the questions that were answered."""
    sentences = {question: finding.text for question, finding in page.summary.sentences.items()}
    main = next(m for m in runs.matrices if m.measure == page.summary.measure)
    if ALIKE in sentences:
        _alike(sentences[ALIKE], page, main)
    if ODD in sentences:
        _odd(sentences[ODD], page, runs)
    if ALONE in sentences:
        assert ODD not in sentences
        _alone(sentences[ALONE], page, at_least=2)
    if NEXT in sentences and sentences[NEXT].startswith("Find out why"):
        _weak(sentences[NEXT], page)
    _table(page, main)
    return set(sentences)


def score(matrix: SimilarityMatrix, a: str, b: str) -> float:
    """Larger is more alike."""
    return (1 if matrix.larger_is == "more alike" else -1) * (matrix[a, b] + matrix[b, a]) / 2


def _names(text: str) -> list[str]:
    return [name for part in text.split(", ") for name in part.split(" and ")]


def _alike(text: str, page: Contents, main: SimilarityMatrix) -> None:
    pair = re.fullmatch(
        r"(\S+) and (\S+) are more alike than chance: \S+ is (\S+), where shuffled inputs give (\S+?)\.(?: They score "
        r"highest; (all (?P<every>\d+)|(?P<some>\d+) of (?P<all>\d+)) pairs are more alike than chance\.)?",
        text,
    )
    names = list(main.names)
    if pair is None:  # families: members are more alike among themselves than to others
        assert page.networks.families is not None
        told = [
            _names(part) for part in re.split(r" are alike; so are |; and | are alike, one family", text[:-1]) if part
        ]
        families = [group for group in page.networks.families.clusters.groups() if len(group) > 1]
        groups = [next(family for family in families if group[0] in family) for group in told]
        assert sorted(map(len, groups)) == sorted(map(len, families))
        for group, whole in zip(told, groups, strict=True):
            assert group == whole or group == [*whole[:4], f"{len(whole) - 4} others"]
        for group in groups:
            inner = [score(main, a, b) for a in group for b in group if a < b]
            outer = [score(main, a, b) for a in group for b in names if b not in group]
            assert sum(inner) / len(inner) > sum(outer) / len(outer), group
        return
    a, b = pair[1], pair[2]
    q = dict(zip(((x, y) for x in names for y in names), main.extra["q"].ravel().tolist(), strict=True))
    pairs = [(x, y) for i, x in enumerate(names) for y in names[i + 1 :]]
    sure = [each for each in pairs if q[each] <= 0.05]
    assert max(sure, key=lambda each: score(main, *each)) in ((a, b), (b, a))
    assert f"{main[a, b]:.2f}" == pair[3]
    if pair["every"]:
        assert int(pair["every"]) == len(sure) == len(pairs)
    if pair["some"]:
        assert (int(pair["some"]), int(pair["all"])) == (len(sure), len(pairs))


def _odd(text: str, page: Contents, runs: Runs) -> None:
    """In each view that is named, the mean rank of the network's pairs over the view's measures is the lowest."""
    found = re.fullmatch(r"(\S+): of all networks .* by (all )?(\d+) ways of looking \((.*)\)\.", text)
    if found is None:
        _alone(text, page)
        return
    odd, views = found[1], _names(found[4])
    assert len(views) == int(found[3])
    for view in views:
        far = page.networks.outside if view == "attacks" else frozenset()
        ranks = [_ranks(m, far) for m in runs.matrices if KINDS.get(m.measure, "representations") == view]
        total = {pair: sum(r[pair] for r in ranks) / len(ranks) for pair in ranks[0]}
        names = {name for pair in total for name in pair}
        mean = {n: _mean([rank for pair, rank in total.items() if n in pair]) for n in names}
        assert min(mean, key=lambda n: mean[n]) == odd, (view, mean)


def _alone(text: str, page: Contents, at_least: int = 1) -> None:
    """All networks that are named, and no others, are families of one; for the odd one out there is just one."""
    assert page.networks.families is not None
    single = [group[0] for group in page.networks.families.clusters.groups() if len(group) == 1]
    told = _names(re.sub(r" (is|are each) in no family with any other network\.$", "", text))
    assert told == single if len(single) <= 5 else told[:4] == single[:4]
    assert at_least <= len(single)
    assert at_least > 1 or len(single) == 1


def _ranks(matrix: SimilarityMatrix, far: frozenset[str]) -> dict[frozenset[str], float]:
    names = [name for name in matrix.names if name not in far]
    values = {frozenset((a, b)): score(matrix, a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
    return {pair: sum((w < v) + (w == v) / 2 for w in values.values()) / len(values) for pair, v in values.items()}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _weak(text: str, page: Contents) -> None:
    """Each is surely less accurate than the best of the others, over all pairs of networks."""
    pattern = r"Find out why (.*) (?:is|are) right on only (\d+)(?: to (\d+))? % of inputs \(the others on (\d+)"
    found = re.match(pattern, text)
    assert found is not None, text
    accuracies, weak = page.networks.accuracies, _names(found[1])
    others = {name: share for name, share in accuracies.items() if name not in page.networks.outside}
    assert f"{100 * min(accuracies[name] for name in weak):.0f}" == found[2]
    assert f"{100 * min(others.values()):.0f}" == found[4]
    level = 1 - 0.05 / math.comb(len(accuracies), 2)
    for name in weak:
        low, _ = difference(max(others.values()), accuracies[name], page.networks.counts[name], level)
        assert low > 0.04, name


def _table(page: Contents, main: SimilarityMatrix) -> None:
    assert [row.name for row in page.summary.rows] == list(page.networks.names)
    for row in page.summary.rows:
        assert row.family == page.networks.family(row.name)
        if row.accuracy == row.accuracy:
            assert row.accuracy == page.networks.accuracies[row.name]
            assert row.low <= row.accuracy <= row.high
        if row.name in main.names:
            best = max((name for name in main.names if name != row.name), key=lambda name: score(main, row.name, name))
            assert score(main, row.name, row.nearest) == score(main, row.name, best)
            assert row.score == (main[row.name, row.nearest] + main[row.nearest, row.name]) / 2
    odd = [row.name for row in page.summary.rows if row.odd]
    assert len(odd) <= 1
    assert not odd or page.summary.sentences[ODD].text.startswith(f"{odd[0]}: ")
