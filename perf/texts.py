"""What it saves to show texts of similar length together: extraction with MiniLM, in CPU seconds.

Texts of SST-2 and pairs of MNLI, in the order of their files, are extracted as they are by default and padded to the
longest of the 256 that are read at a time; the two take turns within one run. `ratio` is the time of the latter to that
of the former, `difference` the largest between their rows, relative to the largest entry.

    python -m perf.texts SST2.tsv.gz MNLI.tsv.gz
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import likewise
from likewise.networks.inputs import padding
from perf.common import costs, write


def read(path: str, count: int) -> list[Any]:
    """The texts of a table with a header, or pairs of them: all columns but the last."""
    with gzip.open(path, "rt", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1 : count + 1]
    return [line[0] if len(line) == 2 else tuple(line[:-1]) for line in lines]


def rows(paths: list[str], count: int) -> Iterator[dict[str, Any]]:
    """One row per file."""
    for path in paths:
        texts, net = read(path, count), likewise.network("zoo:minilm")

        def by_length(net: Any = net, texts: Any = texts) -> Any:
            return likewise.extract(net, texts, progress=False)

        def as_read(extract: Callable[[], Any] = by_length) -> Any:
            with patch.dict(padding._BUDGET, cpu=2**40):
                return extract()

        by_length(texts=texts[:64])  # what is set up once is not counted
        lengths = net.tokenize(texts)["attention_mask"].sum(dim=1).double()
        default, padded = costs([by_length, as_read], repeats=2, enough=1e9)
        change = (default.value.values - padded.value.values).abs().max() / padded.value.values.abs().max()
        yield {
            "texts": path.rpartition("/")[2],
            "n": len(texts),
            "tokens_mean": float(lengths.mean()),
            "tokens_longest": int(lengths.max()),
            "by_length_s": default.seconds,
            "padded_s": padded.seconds,
            "ratio": padded.seconds / default.seconds,
            "difference": float(change),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--count", type=int, default=512)
    options = parser.parse_args()
    write("texts", rows(options.tables, options.count))


if __name__ == "__main__":
    main()
