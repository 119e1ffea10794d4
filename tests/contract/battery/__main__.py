"""Everything that the battery has, by one command: readers, long jobs and commands.

    python -m tests.contract.battery [--seed 0] [--volume 1] [--only readers]

A volume of 1 is the whole of it: about 5,000 files, 500 faults and all argument vectors. It ends with exit code 1 where
something was lost, wrong, foreign, outside or touched. Nothing is
fetched: a damaged data set of a hub is not loaded anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

VOLUMES = {"readers": 5000, "jobs": 500, "commands": 10_000}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contract.battery")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--volume", type=float, default=1.0, help="a share of the whole")
    parser.add_argument("--only", choices=VOLUMES, nargs="*", help="parts; all without it")
    options = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}  # else each tries for half a minute
    bad = 0
    for name in options.only or VOLUMES:
        module = import_module(f"tests.contract.battery.{name}")
        counts = module.run(options.seed, round(options.volume * VOLUMES[name]))
        bad += sum(counts.get(kind, 0) for kind in module.BAD)
        print(f"{name}: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()), flush=True)
    print(f"{bad} of these should not be" if bad else "none lost, wrong, foreign, outside or touched")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
