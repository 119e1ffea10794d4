"""How often the advice on a change of embedding models is right: `python -m perf.upgrades`.

Items are made from 24 features of falling size around 40 centres. The new vectors are the old ones turned, with noise,
a linear map of them with noise, one of another width, or unrelated; noise is drawn over more than two orders of
magnitude, so that some cases are close calls. `upgrade` sees 500 items, and 300 queries in every other case. The truth
is what happens to 500 other items and 300 other queries: maps by scipy and scikit-learn, recall by one sort per query.

`--layers` takes layers of MiniLM as models, each the old and each the new one, on 400 and 400 other texts of SST-2.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import RidgeCV

import likewise
from likewise.analysis import Upgrade, upgrade
from perf.common import write_table

ITEMS, QUERIES, WIDTH, LIMIT, NEAREST = 500, 300, 24, 0.9, 10
TEXTS = 400
KINDS = ("turned", "noise", "linear", "other width", "unrelated")
Draw = np.random.Generator
Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """Old and new vectors: items and queries that are shown, and others that are not."""

    kind: str
    noise: float
    items: Pairs
    queries: Pairs
    other_items: Pairs
    other_queries: Pairs


def made(number: int) -> Case:
    """A case by its number, of the kinds in turn."""
    draw = np.random.default_rng(number)
    kind, size = KINDS[number % len(KINDS)], np.linspace(1, 0.3, WIDTH)
    centres, shift = draw.normal(size=(40, WIDTH)) * size, 0.3 * draw.normal(size=WIDTH)
    noise = float(10 ** draw.uniform(-3, -0.5))
    carry = _carrier(kind, draw, noise)

    def some(count: int) -> Pairs:
        old = centres[draw.integers(40, size=count)] + 0.7 * draw.normal(size=(count, WIDTH)) * size + shift
        return old, carry(old)

    return Case(kind, noise, some(ITEMS), some(QUERIES), some(ITEMS), some(QUERIES))


def _carrier(kind: str, draw: Draw, noise: float) -> Callable[[np.ndarray], np.ndarray]:
    """From old vectors to new ones."""
    width = int(draw.integers(12, 48)) if kind == "other width" else WIDTH
    matrix = draw.normal(size=(WIDTH, width)) / np.sqrt(width)
    matrix = {"turned": np.linalg.qr(matrix)[0], "noise": np.eye(WIDTH)}.get(kind, matrix)
    if kind == "unrelated":
        return lambda old: draw.normal(size=old.shape)
    level = 0.0 if kind == "turned" else noise
    return lambda old: old @ matrix + level * draw.normal(size=(len(old), width))


def layer_cases() -> Iterator[Case]:
    """Every two layers of MiniLM, the mean over the tokens of each text."""
    layers = [f"encoder.encoder.layer.{i}" for i in range(6)]
    views = likewise.extract("zoo:minilm", f"sst2:train[:{4 * TEXTS}]", layers=layers, reduce="mean")
    parts = {name: np.split(np.asarray(view, dtype=np.float64), 4) for name, view in views.items()}
    for old, new in permutations(layers, 2):
        yield Case(f"{old} to {new}", 0.0, *((parts[old][i], parts[new][i]) for i in range(4)))


def advised(number: int, case: Case) -> Upgrade:
    """What `upgrade` says; without queries in every other round of kinds."""
    return upgrade(*case.items, queries=case.queries if number // len(KINDS) % 2 else None, recall=LIMIT)


def truth(case: Case) -> tuple[str, float]:
    """The right verdict, and the recall it rests on."""
    (old, new), (_, queries) = map(_unit_pairs, (case.other_items, case.other_queries))
    as_is = _recall(old, new, queries) if old.shape == new.shape else 0.0
    if as_is >= LIMIT:
        return "keep", as_is
    mapped = max(_recall(rows, new, queries) for rows in _mapped(*_unit_pairs(case.items), old))
    return ("map", mapped) if mapped >= LIMIT else ("embed again", mapped)


def _mapped(old: np.ndarray, new: np.ndarray, others: np.ndarray) -> list[np.ndarray]:
    x, y, z = old - old.mean(axis=0), new - new.mean(axis=0), others - old.mean(axis=0)
    width = max(x.shape[1], y.shape[1])
    turn, strength = orthogonal_procrustes(*(np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (x, y)))
    turned = np.pad(z, ((0, 0), (0, width - z.shape[1]))) @ turn * strength / np.square(x).sum()
    ridge = RidgeCV(np.logspace(-6, 3, 19)).fit(x, y)
    return [turned[:, : y.shape[1]] + new.mean(axis=0), ridge.predict(z) + new.mean(axis=0)]


def _recall(found: np.ndarray, wanted: np.ndarray, queries: np.ndarray) -> float:
    """The mean share of the nearest of one search among those of another, query by query."""
    shares = []
    for query in queries:
        lists = [np.argsort(-(_unit(rows) @ query), kind="stable")[:NEAREST] for rows in (found, wanted)]
        shares.append(len(set(lists[0]) & set(lists[1])) / NEAREST)
    return float(np.mean(shares))


def _unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _unit_pairs(pairs: Pairs) -> Pairs:
    return _unit(pairs[0]), _unit(pairs[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--layers", action="store_true", help="layers of MiniLM instead")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    cases = layer_cases() if options.layers else map(made, range(options.cases))
    for number, case in enumerate(cases):
        right, recall = truth(case)
        found = advised(number, case)
        kind = "layers of MiniLM" if options.layers else case.kind
        counts[kind].update(cases=1, right=int(found.verdict == right), **{right.replace(" ", "_"): 1})
        if found.verdict != right:
            what = f"{number} {case.kind}, noise {case.noise:.3f}"
            print(f"{what}: {found.verdict}, in truth {right} ({recall:.3f})", found.as_is, found.maps)
    rows: list[dict[str, Any]] = [
        {"kind": kind, **{name: seen[name] for name in ("cases", "right", "keep", "map", "embed_again")}}
        for kind, seen in counts.items()
    ]
    write_table("upgrades_layers" if options.layers else "upgrades", rows)


if __name__ == "__main__":
    main()
