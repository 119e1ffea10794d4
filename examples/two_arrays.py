"""Two arrays: how alike are they, is that more than chance, and which inputs do they place differently?

python examples/two_arrays.py
"""

import numpy as np

import likewise

rng = np.random.default_rng(0)
x = rng.normal(size=(500, 64))  # activations: 500 inputs, 64 neurons
y = x @ rng.normal(size=(64, 32)) + 4 * rng.normal(size=(500, 32))  # another network, which sees much of the same
y[7] *= -3  # and one input quite differently

score = likewise.compare(x, y)
print(score.explain())

found = likewise.compare(
    {"x": x, "y": y, "noise": rng.normal(size=(500, 64))}, ["cka-debiased", "mutual-knn"], calibrate=99
)
print(found)
print(likewise.bootstrap(x, y))
print("most out of place: input", int(likewise.pointwise(x, y).argmin()))
