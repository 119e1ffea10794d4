"""Benchmarks, one after the other, each in a process of its own; all write to `perf/results`.

    python -m perf
    python -m perf matrix wordnet

Those that take hours or need data (coverage, extraction, ...) are run by themselves and say how.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

BENCHMARKS = (
    "single",
    "matrix",
    "many",
    "engines",
    "growth",
    "peers",
    "layer_peers",
    "attacks",
    "black_box",
    "analysis",
    "wordnet",
    "inspector",
    "image_networks",
)


def main() -> int:
    """Run the benchmarks that are named, or all; stop at the first that fails."""
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args().names or BENCHMARKS
    if unknown := sorted(set(names) - set(BENCHMARKS)):
        parser.error(f"no benchmark named {unknown[0]!r}. There are {', '.join(BENCHMARKS)}.")
    for name in names:
        print(f"\n{name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"perf.{name}"], check=False)
        if done.returncode:
            print(f"{name} stopped with exit code {done.returncode}", file=sys.stderr)
            return done.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
