"""All benchmarks, one after the other, each in a process of its own: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("single", "matrix", "engines", "growth", "peers", "wordnet", "inspector")


def main() -> int:
    for name in BENCHMARKS:
        print(f"\n{name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False)
        if done.returncode:
            print(f"{name} stopped with exit code {done.returncode}", file=sys.stderr)
            return done.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
