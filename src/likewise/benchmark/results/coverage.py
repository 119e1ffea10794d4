"""Which cells of the paper were run: with its settings, small, or not at all.

A cell is a data set, a network and a grounding of the paper's tables. It was run with the paper's settings where the
preset was `paper` and neither the data nor the network had options of their own, and run small where the data was the
same. Results on other data say nothing of a cell, so the paper's claims are judged without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from likewise.benchmark.results.frame import SETTING, Results
from likewise.benchmark.results.paper import figures, plain

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["paper", "small", "not run"]
_OPTION = re.compile(r",(?!pretrained=)\w+=")  # the paper's ViTs are trained on


def with_papers_settings(results: Results) -> Results:
    """The results of cells of the paper that were run with its settings.

    Args:
        results: Results of one or more runs.
    """
    frame = results.frame
    cells = {(domain, plain(data), plain(network)) for domain, data, network in _settings(figures())}
    keep = [
        preset == "paper"
        and (domain, plain(data), plain(network)) in cells
        and not _OPTION.search(data)
        and not _OPTION.search(network)
        for (domain, data, network), preset in zip(_settings(frame), frame["preset"], strict=True)
    ]
    return Results(frame[keep])


def coverage(results: Results) -> pd.DataFrame:
    """One row per cell of the paper: whether it was run, by which networks, how often, and with valid groups or not.

    Args:
        results: Results of one or more runs.

    Returns:
        The paper's names of domain, data, network and grounding; `status`, which is "paper", "small" or "not run";
        `networks`, those that were run; `repetitions`; and `valid`, how many of them have valid groups.
    """
    import pandas as pd

    settled, every = with_papers_settings(results).frame, results.frame
    rows = []
    names = [*SETTING, "grounding"]
    for values in figures().drop_duplicates(names)[names].itertuples(index=False, name=None):
        cell = dict(zip(names, map(str, values), strict=True))
        same = _of_cell(settled, cell, ("data", "network"))
        status: Status = "paper" if len(same) else "small"
        same = same if len(same) else _of_cell(every, cell, ("data",))
        runs = same.drop_duplicates([*SETTING, "preset", "seed"])
        rows.append(
            {
                **cell,
                "status": status if len(runs) else "not run",
                "networks": ", ".join(dict.fromkeys(runs["network"])),
                "repetitions": len(runs),
                "valid": int(runs["valid"].astype(bool).sum()),
            }
        )
    return pd.DataFrame(rows)


def _settings(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    return list(frame[["domain", "data", "network"]].itertuples(index=False, name=None))


def _of_cell(frame: pd.DataFrame, cell: Mapping[str, str], names: tuple[str, ...]) -> pd.DataFrame:
    keep = (frame["domain"] == cell["domain"]) & (frame["grounding"] == cell["grounding"])
    for name in names:
        keep &= frame[name].map(plain) == plain(cell[name])
    return frame[keep]
