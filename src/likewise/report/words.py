"""Plain words for a page: what short names of measures and quantities stand for, and lists as people write them."""

from __future__ import annotations

from collections.abc import Sequence

WORDS = {
    "cka": "centred kernel alignment",
    "rsa": "representational similarity analysis",
    "rsm": "matrix of similarities between inputs",
    "cca": "canonical correlation analysis",
    "svcca": "canonical correlation of singular vectors",
    "pwcca": "projection-weighted canonical correlation",
    "eos": "eigenspace overlap score",
    "pnka": "pointwise normalised kernel alignment",
    "nbs": "normalised Bures similarity",
    "cknna": "kernel alignment of nearest neighbours",
    "knn": "nearest neighbours",
    "imd": "intrinsic multi-scale distance",
    "rtd": "representation topology divergence",
    "jsd": "Jensen-Shannon divergence",
    "sat": "similarity by attack transferability",
    "pgd": "projected gradient descent",
    "fgsm": "fast gradient sign method",
}


def full_name(measure: str) -> str:
    """What a measure's short name stands for; nothing where the name is words already.

    >>> full_name("cka-debiased"), full_name("sat"), full_name("jaccard[k=5]")
    ('centred kernel alignment', 'similarity by attack transferability', '')
    """
    for part in measure.lower().partition("[")[0].replace("_", "-").split("-"):
        if part in WORDS:
            return WORDS[part]
    return ""


def with_full_name(measure: str) -> str:
    """A measure with what its name stands for.

    >>> with_full_name("rsa")
    'rsa (representational similarity analysis)'
    """
    words = full_name(measure)
    return f"{measure} ({words})" if words else measure


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"]), listed(list("abcdefg"), 4)
    ('a', 'a and b', 'a, b and c', 'a, b, c and 4 others')
    """
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
