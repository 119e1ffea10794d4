"""The experiments of the SAT paper on a zoo of known make: `python -m studies.fashion_transfer [PART ...]`.

The networks are those of `studies.fashion_networks`, trained first. Parts go by the names of their functions; each
keeps its table at once, and examples and answers stay in `studies/runs/transfer/store`, so that a run which was
stopped is resumed. Beside each figure stands the paper's, on ImageNet.
"""

from __future__ import annotations

import sys
from importlib import import_module

import torch

from studies.fashion_matrix import DOCS, PARTS


def main(wanted: list[str]) -> int:
    """The parts asked for, or all."""
    torch.set_num_threads(1)
    for name in ("fashion_families", "fashion_attacks"):  # each adds its parts
        import_module(f"studies.{name}")
    (DOCS / "transfer-study").mkdir(exist_ok=True)
    for one in PARTS:
        if not wanted or one.__name__ in wanted:
            one()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
