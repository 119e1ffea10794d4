"""NLTK on the same nouns: run by `perf.wordnet` with a Python that has NLTK, which need not have torch.

PYTHONPATH=src python perf/wordnet_nltk.py /usr/share/wordnet 20000
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from likewise.wordnet import classes


class Reader(WordNetCorpusReader):
    """NLTK's reader of one version alone."""

    def map_wn(self, version: str = "wordnet") -> None:
        """No mapping to other versions, which would need their files as well."""


def reader(dict_dir: Path, folder: Path) -> Any:
    """NLTK's WordNet on a copy of the dict files, since it reads only folders among its data."""
    for file in dict_dir.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    if not (folder / "lexnames").exists():  # Debian leaves it out; the names are of no use here
        lines = (f"{i:02d}\tlexname{i}\t1\n" for i in range(45))
        (folder / "lexnames").write_text("".join(lines))
    nltk.data.path.append(str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # says that there are no other languages
        return Reader(str(folder), None)


def main(dict_dir: str, pairs: int) -> None:
    wnids = classes("imagenet1k").wnids
    draw = random.Random(0)
    sample = [draw.sample(range(len(wnids)), 2) for _ in range(pairs)]
    with tempfile.TemporaryDirectory() as folder:
        wordnet = reader(Path(dict_dir), Path(folder))
        synsets = [wordnet.synset_from_pos_and_offset("n", int(wnid[1:])) for wnid in wnids]
        start, cpu = time.perf_counter(), time.process_time()
        values = [synsets[i].path_similarity(synsets[j]) for i, j in sample]
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    print(
        json.dumps(
            {
                "nltk": nltk.__version__,
                "seconds": seconds,
                "cpu_seconds": cpu_seconds,
                "pairs": sample,
                "values": values,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
