"""Six small networks learn the digits; which of them are alike?

Three learn the same task from different seeds, one is of another kind, one is not trained at all, and
one learns shuffled labels. A measure worth its name should find the first three alike and the last
two not.

    python examples/digits.py FOLDER
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import torch

import likewise

SHOWN = ["cka-debiased", "procrustes", "jaccard", "disagreement"]


def main(folder):
    torch.set_num_threads(1)  # the networks are too small to share
    digits, probe = likewise.dataset("digits:train"), likewise.dataset("digits:test")
    order = torch.randperm(len(digits.labels), generator=torch.Generator().manual_seed(0))
    shuffled = dataclasses.replace(digits, name="shuffled digits", labels=digits.labels[order])

    def trained(address, seed, data=digits, epochs=25, **more):
        network = likewise.network(address, data=data, seed=seed)
        if epochs:
            how = {"epochs": epochs, "seed": seed, "optimiser": "adam", "lr": 2e-3}
            likewise.train(network, data, **how, **more)
        return network

    watch = likewise.Inspector(probe)
    networks = {
        "seed 0": trained("zoo:lenet", 0, validation=probe, callbacks=[watch]),
        "seed 1": trained("zoo:lenet", 1),
        "seed 2": trained("zoo:lenet", 2),
        "mlp": trained("zoo:mlp", 3),
        "untrained": trained("zoo:lenet", 4, epochs=0),
        "shuffled labels": trained("zoo:lenet", 5, shuffled),
    }
    for name, network in networks.items():
        _, accuracy = likewise.networks.evaluate(network, probe)
        print(f"{name:>16}: {accuracy:.1%} right on {len(probe)} digits it did not learn from")

    comparison = likewise.compare(networks, SHOWN, data=probe)
    folder.mkdir(parents=True, exist_ok=True)
    comparison.plot(folder / "likeness.png")
    comparison.to_frame().to_csv(folder / "scores.csv", index=False)

    cka = comparison["cka-debiased"]
    same = np.mean([cka["seed 0", "seed 1"], cka["seed 0", "seed 2"], cka["seed 1", "seed 2"]])
    print(f"\nSame task, other seeds: debiased CKA {same:.2f} on average.")
    print(f"Against the one that learned shuffled labels: {cka['seed 0', 'shuffled labels']:.2f}.")

    layers = likewise.layerwise(networks["seed 0"], networks["seed 1"], probe, layers="blocks")
    layers.plot(folder / "layers.png")

    film = likewise.classes.animate(watch, folder / "film.html", title="Which digits it finds alike")
    near = watch.matrices(25)["features"].closest("8", 1)[0][0]
    print(f"\nThe first network finds 8 and {near} most alike. Open {film} in a browser to watch it learn;")
    print(f"look at {folder / 'likeness.png'} and {folder / 'layers.png'};")
    print(f"all scores are in {folder / 'scores.csv'}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
