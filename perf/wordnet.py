"""WordNet's path similarity of ImageNet's 1,000 classes, all pairs, beside NLTK's.

Ours is timed in a fresh process, from before numpy is imported to the finished matrix. NLTK would take
minutes, so it is given a random sample of the pairs, with its files already loaded, and the time is
scaled to all 499,500: the row says so. Where this Python has no NLTK, name one that has:

    python -m perf.wordnet --nltk-python /path/to/python --dict /usr/share/wordnet
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from likewise.wordnet import classes, similarity
from perf.common import write

FRESH = """
import time
start, cpu = time.perf_counter(), time.process_time()
import json, pathlib
from likewise.wordnet import classes, similarity
imported = time.perf_counter()
similarity(classes("imagenet1k").wnids, {measure!r})
seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
status = pathlib.Path("/proc/self/status").read_text()
peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps(dict(seconds=seconds, cpu_seconds=cpu_seconds, import_seconds=imported - start,
                      process_peak_mb=peak)))
"""
HERE = Path(__file__).parent
RUNS = 5
TARGET = 500  # times faster than NLTK


def fresh(measure: str) -> dict[str, Any]:
    """The middle one of some fresh processes."""
    runs = [_answer([sys.executable, "-c", FRESH.format(measure=measure)]) for _ in range(RUNS)]
    return sorted(runs, key=lambda run: run["seconds"])[RUNS // 2]


def _answer(command: list[str], **environment: str) -> dict[str, Any]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def rows(python: str | None, dict_dir: str, sample: int) -> Iterator[dict[str, Any]]:
    wnids = classes("imagenet1k").wnids
    every = len(wnids) * (len(wnids) - 1) // 2
    for measure in ("path", "wup", "lch"):
        row = {"what": measure, "who": "likewise", "classes": len(wnids), "pairs": every}
        ours = fresh(measure)
        yield row | ours
        if measure != "path" or python is None:
            continue
        command = [python, str(HERE / "wordnet_nltk.py"), dict_dir, str(sample)]
        theirs = _answer(command, PYTHONPATH=str(HERE.parent / "src"))
        i, j = np.transpose(theirs["pairs"])
        scale = every / sample
        yield row | {
            "who": f"nltk {theirs['nltk']}",
            "seconds": theirs["seconds"] * scale,
            "cpu_seconds": theirs["cpu_seconds"] * scale,
            "measured_pairs": sample,
            "scaled": f"from {sample} random pairs, without loading",
            "largest_difference": float(np.abs(similarity(wnids)[i, j] - theirs["values"]).max()),
            "times_faster": theirs["seconds"] * scale / ours["seconds"],
            "times_less_cpu": theirs["cpu_seconds"] * scale / ours["cpu_seconds"],
            "target": TARGET,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = sys.executable if find_spec("nltk") else None
    parser.add_argument("--nltk-python", default=here, help="a Python that has NLTK and numpy")
    parser.add_argument("--dict", default="/usr/share/wordnet", help="the dict files of WordNet 3.0")
    parser.add_argument("--sample", type=int, default=20_000, help="pairs that NLTK is given")
    options = parser.parse_args()
    write("wordnet", rows(options.nltk_python, options.dict, options.sample))


if __name__ == "__main__":
    main()
