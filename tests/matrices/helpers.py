"""Networks of several widths, one of them noise."""

import numpy as np


def views():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(40, 5))
    widths = {"wide": 64, "a": 12, "b": 8}
    made = {name: hidden @ rng.normal(size=(5, d)) + rng.normal(size=(40, d)) / 2 for name, d in widths.items()}
    return {**made, "noise": rng.normal(size=(40, 9))}
