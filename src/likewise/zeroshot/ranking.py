"""Do representations that serve unseen classes make robust networks? Architectures in one table, and rank correlations.

The paper says so from five networks. Its tables are here for comparison: their rank correlation with the number of
successful attacks is 0.00 for DBI and 0.50 for AM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import atanh, factorial, tanh
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import InputError, did_you_mean, quoted_list
from likewise.zeroshot.result import Results, as_list, means

if TYPE_CHECKING:
    import pandas as pd

NORMS = {"pixel": "L0", "threshold": "Linf"}
ATTACKS = "attacks"  # the column of all successful attacks
_EXACT = 7  # networks up to which all orders are looked at
_DRAWS = 9999
_Z = 1.959964  # of 95 %
_PAPER = {  # tables 1 to 3: L0 and Linf attacks of 400 each, DBI, AM
    "CapsNet": (164, 219, 0.2301, 0.0163, 124.4882, 62.2379),
    "AllConv": (176, 227, 0.6432, 0.1058, 101.1299, 54.9864),
    "ResNet": (222, 263, 0.6307, 0.1337, 281.2960, 107.8297),
    "NIN": (251, 277, 0.6258, 0.0952, 203.1542, 93.0854),
    "LeNet": (337, 340, 0.5161, 0.0284, 144.1068, 75.1839),
}


def paper_table() -> pd.DataFrame:
    """Tables 1 to 3 of the paper: successful attacks of 800, DBI and AM of five networks on CIFAR-10.

    Example:
        >>> paper_table().loc["ResNet", ["attacks", "AM"]].tolist()
        [485.0, 281.296]
    """
    import pandas as pd

    columns = ["L0", "Linf", "DBI", "DBI ±", "AM", "AM ±"]
    table = pd.DataFrame.from_dict(_PAPER, orient="index", columns=columns).rename_axis(index="network")
    table.insert(2, ATTACKS, table["L0"] + table["Linf"])
    return table


def architectures(results: Results, attacks: Mapping[str, pd.DataFrame] | None = None, **options: Any) -> pd.DataFrame:
    """One row per architecture: DBI, AM, accuracy, depth, and how often attacks succeed.

    `L0`, `Linf` and `attacks` count images that are misclassified afterwards, as the paper does; `rate` is the share of
    correctly classified images that attacks change.

    Args:
        results: One result, or several in a list or a mapping.
        attacks: The table of `likewise.transfer.robustness` by network, of one number of generations.
        **options: Options of both metrics.

    Raises:
        InputError: A network was not attacked, or not as the others were.
    """
    import pandas as pd

    several, table = as_list(results), means(results, **options)
    if attacks is None:
        return table
    missing = [one.network for one in several if one.network not in attacks]
    if missing:
        raise InputError(f"there are no attacks on {missing[0]!r}. Give the table of robustness for every network.")
    counted = {one.network: _counted(one.network, attacks[one.network]) for one in several}
    sizes = {counts.pop("tried") for counts in counted.values()}
    if len(sizes) > 1:
        raise InputError("networks were attacked with other attacks, thresholds or images. Attack all alike.")
    return table.join(pd.DataFrame.from_dict(counted, orient="index"))


def _counted(name: str, table: pd.DataFrame) -> dict[str, Any]:
    if len(set(table["generations"])) != 1:
        raise InputError(
            f"the attacks on {name!r} are of several numbers of generations. Take one: table[table.generations == 100]."
        )
    norms = table["attack"].map(NORMS)
    right = table["images"] - table["wrong_before"]
    counts: dict[str, Any] = {norm: int(table["fooled"][norms == norm].sum()) for norm in sorted(set(norms))}
    counts |= {ATTACKS: int(table["fooled"].sum()), "attacks of": int(table["images"].sum())}
    counts["rate"] = float((table["fooled"] - table["wrong_before"]).sum() / right.sum()) if right.sum() else np.nan
    tried = table[["attack", "threshold", "generations", "images"]].sort_values(["attack", "threshold"])
    return counts | {"tried": tuple(tried.itertuples(index=False, name=None))}


def rank_correlations(
    table: pd.DataFrame, of: Sequence[str] = ("DBI", "AM"), against: Sequence[str] = (ATTACKS,)
) -> pd.DataFrame:
    """Spearman's correlation of columns over networks, one row per pair, with a 95 % interval and p.

    1 if a network with a higher DBI is always fooled more often, which is what the paper claims; -1 the other way
    round. The interval is Fisher's with the variance of Bonett and Wright (2000), of a perfect order that with two
    neighbours swapped; p is the share of all orders as far from 0 (up to seven networks, else of drawn ones). Of five
    networks every interval holds 0. Rows of NaN are left out.

    Args:
        table: One row per network, such as that of `architectures` or `paper_table`.
        of: Columns.
        against: Columns they are correlated with.

    Raises:
        InputError: There is no such column, or fewer than four networks have both.

    Example:
        >>> rank_correlations(paper_table())["correlation"].round(2).tolist()
        [0.0, 0.5]
    """
    import pandas as pd

    rows = []
    for one in of:
        for other in against:
            both = _columns(table, one, other)
            correlation = _spearman(both)
            low, high = _interval(correlation, both.shape[1])
            rows.append((one, other, both.shape[1], correlation, low, high, _chance(both, correlation)))
    return pd.DataFrame(rows, columns=["of", "against", "networks", "correlation", "low", "high", "p"])


def _columns(table: pd.DataFrame, one: str, other: str) -> Array:
    """Two columns without rows of NaN."""
    for name in (one, other):
        if name not in table.columns:
            columns = list(map(str, table.columns))
            raise InputError(
                f"the table has no column {name!r}.{did_you_mean(str(name), columns)} Choose {quoted_list(columns)}."
            )
    both = table[[one, other]].dropna().to_numpy(dtype=np.float64).T
    if both.shape[1] < 4:
        raise InputError(
            f"{both.shape[1]} networks have both {one!r} and {other!r}, too few for an interval. Give four or more."
        )
    return np.asarray(both)


def _spearman(both: Array) -> float:
    from scipy.stats import rankdata

    ranks = rankdata(both, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(ranks, axis=1)
    return float(round(ranks[0] @ ranks[1] / sizes.prod(), 12)) if sizes.all() else float("nan")


def _interval(correlation: float, n: int) -> tuple[float, float]:
    if np.isnan(correlation):
        return correlation, correlation
    most = 1 - 12 / (n * (n**2 - 1))  # two neighbours swapped
    middle = atanh(min(most, max(-most, correlation)))
    reach = _Z * ((1 + min(abs(correlation), most) ** 2 / 2) / (n - 3)) ** 0.5
    low, high = tanh(middle - reach), tanh(middle + reach)
    return (-1.0 if correlation <= -1 else low), (1.0 if correlation >= 1 else high)


def _chance(both: Array, correlation: float) -> float:
    """How often another order of the networks gives as much."""
    if np.isnan(correlation):
        return float("nan")
    n = both.shape[1]
    if n <= _EXACT:
        orders, count, observed = list(map(list, permutations(range(n)))), factorial(n), 0
    else:
        draw = np.random.default_rng(0)
        orders, count, observed = [draw.permutation(n).tolist() for _ in range(_DRAWS)], _DRAWS + 1, 1
    as_far = sum(abs(_spearman(np.stack([both[0], both[1][order]]))) >= abs(correlation) - 1e-9 for order in orders)
    return (as_far + observed) / count
