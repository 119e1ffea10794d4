"""Choose an ensemble: train a few networks, ask them all, and pick those that are right and err apart.

python examples/choose_ensemble.py
"""

import likewise

train, test = likewise.dataset("digits:train[:600]"), likewise.dataset("digits:test")
networks = {}
for seed in range(3):
    for kind in ("mlp", "lenet"):
        network = likewise.network(f"zoo:{kind}", data=train, seed=seed)
        likewise.train(network, train, epochs=10, seed=seed, optimiser="adam", lr=3e-3, progress=False)
        networks[f"{kind}-{seed}"] = network

answers = likewise.transfer.answers(networks, test)
for name, accuracy in zip(answers.names, answers.accuracies, strict=True):
    print(f"{name:>8}: {accuracy:.1%} right")
alike = likewise.compare(networks, "disagreement", data=test)
print(likewise.analysis.pick_ensemble(alike, answers, 3))
