"""The paper's figures, and ours beside them.

The figures are those printed in tables 7 to 19 of Klabunde et al., "ReSi: A Comprehensive Benchmark for
Representational Similarity Measures" (arXiv:2408.00531), kept as printed and read when first asked for. The tables
were made by the reference implementation, so ours are compared in its form of the evaluation and of the measures.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import write_whole
from likewise._base.names import csv_text
from likewise.analysis.matrix_agreement import correlations
from likewise.benchmark.results.frame import EVIDENCE, SETTING, Results, label, package_table
from likewise.errors import InputError, quoted_list

if TYPE_CHECKING:
    import pandas as pd

FILE = EVIDENCE / "paper.csv"
SOURCE = "Klabunde et al., ReSi, arXiv:2408.00531"
_TESTS = ("accuracy", "outputs", "labels", "shortcut", "augmentation", "layers")
TABLES = {  # which table of the paper holds a domain and grounding
    **{("graph", test): number for number, test in enumerate(_TESTS, 7)},
    **{("language", test): 13 for test in _TESTS},
    **{("vision", test): number for number, test in enumerate(_TESTS, 14)},
}
INPUTS = {"cora": 1000, "flickr": 10_000, "ogbn-arxiv": 10_000, "sst2": 872, "mnli": 9815, "imagenet100": 5000}
_SYNONYMS = {"sage": "graphsage", "arxiv": "ogbnarxiv", "sst": "sst2", "bertbase": "bert", "bertbaseuncased": "bert"}
_SYNONYMS |= {"googlevitbasepatch32224in21k": "vitb32", "googlevitlargepatch32224in21k": "vitl32"}
_FIGURES = ("table", "domain", "grounding", "metric", "data", "network", "measure", "printed", "value")
_CELL = [*SETTING, "grounding", "metric"]


@cache
def _figures() -> pd.DataFrame:
    import pandas as pd

    from likewise.measures.registry import MEASURES

    wide = package_table(FILE, dtype=str, keep_default_na=False)
    keys = [name for name in _FIGURES if name in wide.columns]
    tall = wide.melt(keys, var_name="measure", value_name="printed")
    tall["measure"] = [MEASURES.get(alias).name for alias in tall["measure"]]
    value = pd.to_numeric(tall["printed"].mask(tall["printed"].isin(["", "nan"])))
    turned = tall["metric"] == "violation"
    tall["value"] = value.where(~turned, (1 - value).round(6))
    tall["metric"] = tall["metric"].replace({"violation": "conformity"})
    tall["table"] = tall["table"].astype(int)
    return _without_empty_conformity(tall)[list(_FIGURES)]


def _without_empty_conformity(figures: pd.DataFrame) -> pd.DataFrame:
    """The reference counts undefined layers as conforming: what has no correlation has no conformity either."""
    layers = figures[figures["grounding"] == "layers"]
    keys = [*SETTING, "measure"]
    undefined = layers[(layers["metric"] == "spearman") & layers["value"].isna()].set_index(keys).index
    empty = (figures["grounding"] == "layers") & figures.set_index(keys).index.isin(undefined)
    return figures.assign(value=figures["value"].mask(empty))


def figures() -> pd.DataFrame:
    """The paper's figures: table, domain, grounding, metric, data, network, measure, as printed and as value.

    Values are higher-is-better: vision's "conformity rate" is printed as a rate of violation, and is 1 minus that
    here. What a table does not print (PWCCA in tables 7 to 12 and 16) and what it prints as nan is NaN, and so is
    the conformity over layers of a measure whose correlation is nan: the reference lets undefined pairs conform.

    Example:
        >>> figures().query("table == 9 and network == 'GCN' and data == 'Cora' and measure == 'imd'").value.tolist()
        [0.74, 0.93]
    """
    return _figures().copy()


def paper_results() -> Results:
    """The paper's figures in the form of results, so that tables, ranks and advice read them as they read ours."""
    printed = _figures()
    chance: Any = [_chance(*cell) for cell in printed[["grounding", "metric", "data"]].itertuples(index=False)]
    same: dict[str, Any] = dict.fromkeys(("low", "high", "p", "ties", "networks", "valid", "seconds"))
    same |= {"preset": "paper", "seed": 0, "variant": "resi", "measure_variant": "resi"}
    inputs, coverage = printed["data"].str.lower().map(INPUTS), printed["value"].notna().astype(float)
    frame = printed.assign(chance=chance, coverage=coverage, n=inputs, **same)
    return Results.from_frame(frame, SOURCE)


def _chance(grounding: str, metric: str, data: str) -> float | None:
    """Groups of five networks: 10 pairs inside one, and 5 with each network of the others."""
    others = 1 if (grounding, data) == ("augmentation", "SST2") else 2  # A.4: two groups there, three elsewhere
    return {"auprc": 10 / (10 + 25 * others), "conformity": None}.get(metric, 0.0)


def plain(name: str) -> str:
    """A name of data or of a network as both sides write it: `zoo:sage,layers=2` and `GraphSAGE` are one.

    >>> plain("zoo:sage,layers=2"), plain("GraphSAGE"), plain("imagenet100:/data"), plain("ViT-B/32")
    ('graphsage', 'graphsage', 'imagenet100', 'vitb32')
    """
    prefix, colon, rest = name.partition(":")
    bare = rest if colon and prefix.lower() in ("zoo", "timm", "hf", "torchvision") else prefix
    if re.match("(timm|torchvision):vgg", name.lower()):
        bare = prefix + rest  # plain ones, with other heads
    word = re.sub(r"[^a-z0-9]", "", bare.partition(",")[0].partition("@")[0].lower())
    return _SYNONYMS.get(word, word)


@dataclass(frozen=True, eq=False)
class PaperComparison:
    """Ours beside the paper's figures.

    Attributes:
        cells: One row per data, network, grounding and metric: over the measures that both have, the mean absolute
            difference and the rank correlation, each the mean over our repetitions with the least and the largest;
            `between` is the mean absolute difference of two repetitions of ours, which is what chance makes;
            `by_chance` the share of the paper's figures inside what chance gives, where a correlation has such a range.
        rows: One row per measure of each cell: paper, ours (mean, least, largest) and the difference.
    """

    cells: pd.DataFrame
    rows: pd.DataFrame

    def by_grounding(self) -> pd.DataFrame:
        """Mean over networks: difference and correlation per domain, data, grounding and metric."""
        groups = self.cells.groupby(["domain", "data", "grounding", "metric"], sort=False)
        means = groups[["difference", "between", "correlation"]].mean()
        return means.assign(networks=groups.size()).reset_index()

    def __str__(self) -> str:
        ranges = {name: _with_range(self.cells, name) for name in ("difference", "correlation")}
        ends = [f"{name}_{end}" for name in ranges for end in ("low", "high")]
        cells = self.cells.drop(columns=["domain", *ends]).assign(**ranges)
        text: str = cells.to_string(index=False, float_format="%.2f", na_rep="–")
        return (
            f"{text}\n\ndifference: mean absolute difference to the paper over measures, [least, largest] over "
            "repetitions.\nbetween: the same between two repetitions of ours. correlation: of ranks over measures.\n"
            "by_chance: share of the paper's figures within what chance gives."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rows, one per measure of each cell, as CSV.

        Args:
            path: The file.
        """
        write_whole(Path(path), csv_text(self.rows, index=False, lineterminator="\n").encode())


def _with_range(frame: pd.DataFrame, name: str) -> list[str]:
    columns = zip(*(frame[f"{name}{end}"] for end in ("", "_low", "_high")), strict=True)
    return [
        "–" if np.isnan(mean) else f"{mean:.2f}" + (f" [{low:.2f}, {high:.2f}]" if high > low else "")
        for mean, low, high in columns
    ]


def compare_with_paper(results: Results, *, variant: str = "resi", measure_variant: str = "resi") -> PaperComparison:
    """Compare results with the paper's figures, cell by cell, by default in the reference's forms.

    Args:
        results: Results of one or more runs.
        variant: The form of the evaluation, "published" or "resi".
        measure_variant: The form of the measures, "published" or "resi".

    Returns:
        Differences and rank correlations per cell, and every figure beside ours.

    Raises:
        InputError: The results hold no measure in these forms, or nothing the paper has figures for.
    """
    import pandas as pd

    ours = results.form(variant).frame.query("measure_variant == @measure_variant")
    if not len(ours):
        raise InputError(
            f"these results hold no measure in the form {measure_variant!r} by the evaluation {variant!r}, which the "
            "paper's tables were made with. Run the benchmark with --measures resi."
        )
    pairs = _joined(ours)
    if not len(pairs):
        settings = sorted(set(ours["data"] + " with " + ours["network"]))
        raise InputError(
            f"the paper has no figures for {quoted_list(settings)}. It has Cora, Flickr and OGBN-Arxiv with GCN, "
            "GraphSAGE and GAT, SST2 and MNLI with BERT, and ImageNet100."
        )
    cells = [dict(zip(_CELL, names, strict=True)) | _cell(cell) for names, cell in pairs.groupby(_CELL, sort=False)]
    groups = pairs.groupby([*_CELL, "measure", "table"], sort=False)
    columns = {name: ("ours", word) for name, word in (("ours", "mean"), ("ours_low", "min"), ("ours_high", "max"))}
    rows = groups.agg(paper=("paper", "first"), **columns).reset_index()
    rows["difference"] = rows["ours"] - rows["paper"]
    rows.insert(len(_CELL), "label", [label(name) for name in rows["measure"]])
    return PaperComparison(pd.DataFrame(cells), rows)


def _joined(ours: pd.DataFrame) -> pd.DataFrame:
    """One row per repetition of ours and figure of the paper's."""
    theirs = _figures().rename(columns={"value": "paper"})
    for frame in (ours := ours.rename(columns={"value": "ours"}), theirs):
        frame["_data"], frame["_network"] = frame["data"].map(plain), frame["network"].map(plain)
    keys = ["domain", "_data", "_network", "grounding", "metric", "measure"]
    theirs = theirs[[*keys, "paper", "printed", "table"]]
    return ours.merge(theirs, on=keys, how="inner")


def _cell(pairs: pd.DataFrame) -> dict[str, Any]:
    """Difference and correlation of one cell over its repetitions."""
    wide = pairs.pivot_table(index="measure", columns=["preset", "seed"], values="ours", dropna=False)
    paper = pairs.groupby("measure")["paper"].first().reindex(wide.index).to_numpy()
    values = wide.to_numpy()
    differences = _mean(np.abs(values - paper[:, None]))
    agreement = correlations(paper, values.T, ranked=True) if len(paper) > 1 else np.full(values.shape[1], np.nan)
    one, two = np.triu_indices(values.shape[1], 1)
    between = _mean(np.abs(values[:, one] - values[:, two])) if len(one) else np.array([np.nan])
    ranged = pairs.dropna(subset=["low", "high", "paper"])
    inside = (ranged["paper"] >= ranged["low"]) & (ranged["paper"] <= ranged["high"])
    return {
        "measures": int((~np.isnan(values).all(axis=1) & ~np.isnan(paper)).sum()),
        "repetitions": values.shape[1],
        **_summary("difference", differences),
        "between": float(np.mean(between)),
        **_summary("correlation", agreement),
        "by_chance": float(inside.mean()) if len(ranged) else np.nan,
    }


def _mean(columns: Any) -> Any:
    """The mean of each column over what is defined, NaN where nothing is."""
    return np.ma.filled(np.ma.masked_invalid(columns).mean(axis=0), np.nan)


def _summary(name: str, values: Any) -> dict[str, float]:
    defined = values[~np.isnan(values)] if not np.isnan(values).all() else np.array([np.nan])
    return {name: float(defined.mean()), f"{name}_low": float(defined.min()), f"{name}_high": float(defined.max())}
