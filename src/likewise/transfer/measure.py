"""SAT as a measure of the registry: beside CKA, disagreement and all others, over the same networks and data.

Each network is attacked once, however many pairs there are: the pairs of one comparison share a session.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from likewise.errors import InputError
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation

if TYPE_CHECKING:
    from likewise.transfer.session import Session


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
)
def sat(
    pair: Pair,
    *,
    attack: str = "pgd",
    eps: float | None = None,
    iterations: int | None = None,
    batch_size: int = 64,
    seed: int = 0,
) -> float:
    """How far what fools one network fools the other: similarity by attack transferability.

    ln max(0.01, 100 / (2 |X|) Σ over X of [A(x_B) ≠ y] + [B(x_A) ≠ y]), X the inputs that both classify correctly, y
    their classes, x_A the example that an attack on A makes of x. ln 100 = 4.6: whatever fools one fools the other;
    -4.6: nothing does. By PGD within 8/255 in 50 steps unless an `attack`, `eps` or `iterations` are named. Between
    networks of unequal accuracy it partly measures that. `likewise.transfer.sat` gives rates, counts and intervals.

    >>> import likewise
    >>> likewise.measures.get("sat").info.on
    'networks'
    """
    from likewise.transfer.classifiers import labelled
    from likewise.transfer.examples import Recipe
    from likewise.transfer.scores import sat_score
    from likewise.transfer.session import Session

    recipe = Recipe.of(attack, {"eps": eps, "iterations": iterations}, seed, batch_size)
    about = pair.a.subject

    def begin() -> Session:
        data = labelled(about.data, "know what an attack leads away from")
        return Session(data, recipe, about.folder, device=about.device, progress=False)

    # networks of one comparison share a workspace; no network has the number -1
    work: Session = pair.a.workspace.get((-1, ("sat", attack, eps, iterations, batch_size, seed)), begin)
    a, b = (_added(work, rep) for rep in (pair.a, pair.b))
    work.attack(dict.fromkeys([a, b]))
    found = work.predictions(dict.fromkeys([(b, a), (a, b)]))
    clean = work.answers([a]).predictions[0], work.answers([b]).predictions[0]
    return sat_score(work.data.labels.numpy(), *clean, found[b, a], found[a, b])


def _added(work: Session, rep: Representation) -> str:
    """The name of a network in the session, which it joins if it is new."""
    subject: Any = rep.subject
    if subject.transform is not None:
        raise InputError(
            f"sat attacks pixels between 0 and 1, and {rep.name} is shown what a transform gives. Leave out transform."
        )
    return work.add(rep.view.name or "network", subject.network)
