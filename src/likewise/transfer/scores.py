"""Similarity by attack transferability (SAT): its formulas on plain arrays, and the measure of the registry.

Only inputs that both networks classify correctly count, since a network that was wrong before cannot be fooled. Scores
are logarithms of percents, at least `LEAST` percent: the paper leaves that number open. It decides the score of a pair
without a hit, which among few inputs says little of the pair: `smoothed` scores count half a hit more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import InputError, UndefinedError
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.transfer.classifiers import labelled, viewed_network
from likewise.transfer.examples import AttackSettings
from likewise.transfer.session import Session

LEAST = 0.01  # percent
NONE_RIGHT = "no input is classified correctly by both, so nothing can be fooled. Show them inputs they know."


@measure(
    name="sat",
    family="functional",
    on="networks",
    aliases=("SAT", "attack-transfer"),
    larger_is="more alike",
    bounds=(math.log(0.01), math.log(100)),
    paired=False,
    limits={"batch_size": (1, None)},
    cost="an attack per network, a pass over its examples per pair",
    source="Hwang et al. 2024, arXiv:2210.11407",
    version=3,
)
def sat(
    pair: Pair,
    *,
    attack: str = "pgd",
    eps: float | None = None,
    iterations: int | None = None,
    batch_size: int = 64,
    smoothed: bool = False,
    seed: int = 0,
) -> float:
    """How far what fools one network fools the other: similarity by attack transferability.

    ln max(0.01, 100 / (2 |X|) Σ over X of [A(x_B) ≠ y] + [B(x_A) ≠ y]), X the inputs that both classify correctly, y
    their classes, x_A the example that an attack on A makes of x. ln 100 = 4.6: whatever fools one fools the other;
    -4.6: nothing does. By default PGD within 8/255 in 50 steps, else the named `attack`, `eps` or `iterations`. Between
    networks of unequal accuracy it partly measures that. `likewise.transfer.sat` gives rates, counts and intervals.

    Options:
        attack: An attack by name; see `likewise.attacks`.
        eps: How far inputs may be changed; 8/255 by default, for every attack.
        iterations: How many steps the attack takes; the attack's own by default, 50 for PGD.
        batch_size: How many inputs are attacked at a time.
        smoothed: Count half a hit more, for pairs that few inputs show no hit of.
        seed: Of the random draws.

    Example:
        >>> import likewise
        >>> likewise.measures.get("sat").info.on
        'networks'
    """
    settings = AttackSettings.of(attack, {"eps": eps, "iterations": iterations}, seed, batch_size)
    subject = pair.a.subject

    def begin() -> Session:
        data = labelled(subject.data)
        return Session(data, settings, subject.folder, device=subject.device, progress=False)

    # each network is attacked once: the pairs of one comparison share a workspace; no network has the number -1
    session: Session = pair.a.workspace.get((-1, ("sat", attack, eps, iterations, batch_size, seed)), begin)
    a, b = (_join(session, rep) for rep in (pair.a, pair.b))
    session.attack(dict.fromkeys([a, b]))
    classes = session.predictions(dict.fromkeys([(b, a), (a, b)]))
    clean = session.answers([a]).predictions[0], session.answers([b]).predictions[0]
    return sat_score(session.data.labels.numpy(), *clean, classes[b, a], classes[a, b], smoothed=smoothed)


def _join(session: Session, rep: Representation) -> str:
    """The name of a network in the session, which it joins if it is new."""
    return session.add(rep.view.name or "network", viewed_network(rep))


def percent_of_pair(hits: Any, count: Any, *, smoothed: bool = False) -> Any:
    """Hits of both directions in percent of the examples of `count` inputs; `smoothed` by half a hit more of one more.

    >>> percent_of_pair(3, 6), round(percent_of_pair(0, 50, smoothed=True), 3)
    (25.0, 0.495)
    """
    return 100 * (hits + 0.5) / (2 * count + 1) if smoothed else 50 * hits / count


def score_of(percent: Any, least: float = LEAST) -> Any:
    """ln max(least, percent), entry by entry; NaN stays NaN.

    >>> [round(float(value), 3) for value in score_of(np.array([0.0, 42.857, 100.0]))]
    [-4.605, 3.758, 4.605]
    """
    if not 0 < least < math.inf:
        raise InputError(f"eps_s is {least}, which has no logarithm. Give a percentage above 0, like {LEAST}.")
    return np.log(np.maximum(percent, least))


def sat_score(
    labels: Any, clean_a: Any, clean_b: Any, a_on_b: Any, b_on_a: Any, *, eps_s: float = LEAST, smoothed: bool = False
) -> float:
    """Compute the similarity by attack transferability (SAT) of two networks from predicted classes.

    ln max(eps_s, 100 / (2 |X|) Σ over X of [a_on_b ≠ y] + [b_on_a ≠ y]), X the inputs that both classify correctly.
    ln 100 = 4.6: whatever fools one fools the other; ln eps_s: nothing does. Networks of unequal accuracy differ by
    that alone.

    Args:
        labels: The true class of each input, (n,).
        clean_a: What A answers to clean inputs, (n,).
        clean_b: What B answers to clean inputs, (n,).
        a_on_b: What A answers to the examples made from B, (n,).
        b_on_a: What B answers to the examples made from A, (n,).
        eps_s: The smallest percentage, which keeps the logarithm finite.
        smoothed: Count half a hit more, so that few inputs without a hit do not give `ln eps_s`.

    Example:
        >>> round(sat_score([0, 1, 2], [0, 1, 2], [0, 1, 0], [1, 1, 2], [0, 0, 1]), 4)
        3.912
    """
    y, a, b, on_b, on_a = _columns(labels, clean_a, clean_b, a_on_b, b_on_a)
    both = _both(a == y, b == y)
    hits = int((on_b[both] != y[both]).sum() + (on_a[both] != y[both]).sum())
    return float(score_of(percent_of_pair(hits, int(both.sum()), smoothed=smoothed), eps_s))


def one_sided_score(labels: Any, clean_a: Any, clean_b: Any, b_on_a: Any, *, eps_s: float = LEAST) -> float:
    """Compute SAT from one attack only: how far the examples made from A fool B.

    Args:
        labels: The true class of each input, (n,).
        clean_a: What A answers to clean inputs, (n,).
        clean_b: What B answers to clean inputs, (n,).
        b_on_a: What B answers to the examples made from A, (n,).
        eps_s: The smallest percentage, which keeps the logarithm finite.

    Example:
        >>> round(one_sided_score([0, 1, 2], [0, 1, 2], [0, 1, 0], [0, 0, 1]), 4)
        3.912
    """
    y, a, b, on_a = _columns(labels, clean_a, clean_b, b_on_a)
    both = _both(a == y, b == y)
    return float(score_of(100 * float(np.mean(on_a[both] != y[both])), eps_s))


def _columns(*classes: Any) -> list[Array]:
    arrays = [np.asarray(values) for values in classes]
    if len({array.shape for array in arrays}) > 1 or arrays[0].ndim != 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InputError(f"labels and answers must be one class per input, got {shapes}. Give all the same inputs.")
    return arrays


def _both(a: Array, b: Array) -> Array:
    both: Array = a & b
    if not both.any():
        raise UndefinedError(f"SAT is undefined: {NONE_RIGHT}")
    return both


def directed_rates(right: Array, fooled: Array) -> tuple[Array, Array]:
    """How often examples of each network (rows) fool each other (columns), and of how many inputs, (m, m) each.

    `right` (m, n) says which inputs each network classifies correctly, `fooled` (m, m, n) which examples, made
    from the first, the second gets wrong. NaN where no input counts.
    """
    counts = right.astype(np.int64) @ right.T.astype(np.int64)
    hits = np.stack([(fooled[i] & right[i] & right).sum(axis=1) for i in range(len(right))])
    with np.errstate(invalid="ignore"):
        return hits / np.where(counts > 0, counts, np.nan), counts


def percent_of(hits: Array, counted: Array) -> Array:
    """Row by row, hits in percent of the inputs that count; NaN where none does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(100 * hits.sum(axis=1) / counted.sum(axis=1))


def same_mistakes(right: Array, predictions: Array, labels: Array) -> Array:
    """Of examples that fool both their source and another network, the share both take for the same class, (m, m).

    Examples of either network of a pair count, made of inputs that both classify correctly; NaN where none fools both.
    """
    m = len(right)
    alike, both = np.zeros((m, m)), np.zeros((m, m))
    for i in range(m):
        source = predictions[i, i]
        shared = right[i] & right & (source != labels) & (predictions[i] != labels)  # (m, n): of i, on each j
        both[i], alike[i] = shared.sum(axis=1), (shared & (predictions[i] == source)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((alike + alike.T) / (both + both.T))
