"""Six small networks learn the digits; which of them are alike?

Three learn the same task from different seeds, one is narrower, one is not trained at all, and one learns shuffled
labels. A measure worth its name should find the first three alike and the last two not.

    python examples/digits.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import likewise

SHOWN = ["cka-debiased", "procrustes", "jaccard", "disagreement"]


def trained(images, labels, *, seed, width=64, epochs=60):
    """A network of two hidden layers, and its view of the probe's inputs."""
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    network = nn.Sequential(body, nn.Linear(width, 10))
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimiser.step()
    return network


def main(folder):
    torch.set_num_threads(1)  # the networks are too small to share
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    learn, probe = slice(0, 1200), slice(1200, None)
    shuffled = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))]
    networks = {
        "seed 0": trained(images[learn], labels[learn], seed=0),
        "seed 1": trained(images[learn], labels[learn], seed=1),
        "seed 2": trained(images[learn], labels[learn], seed=2),
        "narrow": trained(images[learn], labels[learn], seed=3, width=16),
        "untrained": trained(images[learn], labels[learn], seed=4, epochs=0),
        "shuffled labels": trained(images[learn], shuffled[learn], seed=5),
    }
    views = {}
    for name, network in networks.items():
        with torch.no_grad():
            hidden = network[0](images[probe])
            outputs = likewise.Outputs(network[1](hidden), labels[probe])
        views[name] = likewise.Activations(hidden, probe="digits[1200:]", outputs=outputs)
        accuracy = (outputs.predictions == labels[probe]).float().mean()
        print(f"{name:>16}: {accuracy:.1%} right on {len(hidden)} digits it did not learn from")

    comparison = likewise.compare(views, SHOWN)
    folder.mkdir(parents=True, exist_ok=True)
    comparison.plot(folder / "likeness.png")
    comparison.to_frame().to_csv(folder / "scores.csv", index=False)

    cka = comparison["cka-debiased"]
    same = np.mean([cka["seed 0", "seed 1"], cka["seed 0", "seed 2"], cka["seed 1", "seed 2"]])
    print(f"\nSame task, other seeds: debiased CKA {same:.2f} on average.")
    print(f"Learned against shuffled labels: {cka['seed 0', 'shuffled labels']:.2f}.")
    print(f"\nLook at {folder / 'likeness.png'}; all scores are in {folder / 'scores.csv'}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
