"""What the folders beside this file were made with, by the code of commit c140bf0: `python make.py FOLDER`.

The tests of `test_formats.py` ask for the same things again and compute nothing.
"""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import likewise
from likewise.data import Data

MEASURES = ["cka", "jaccard[k=3]", "pwcca"]


def arrays():
    """Three views of eight inputs."""
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(8, 3)) for name in "abc"}


def network(step=3):
    """A network whose weights need no generator, and whose activations are exact: no processor rounds them."""
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(((torch.arange(parameter.numel()) * step % 7 - 3) / 4).view(parameter.shape))
    return net


def data():
    """Ten labelled inputs."""
    rows = ((torch.arange(30) * 5 % 11 - 5) / 8).view(10, 3)
    return Data("rows", "text", rows, torch.arange(10) % 2, ("a", "b"))


def compare(folder):
    """Scores of arrays, kept in a store."""
    return likewise.compare(arrays(), MEASURES, store=folder / "scores", progress=False)


def compare_networks(folder):
    """Scores of networks, kept in a store with their views."""
    networks = {"one": network(), "two": network(2)}
    return likewise.compare(networks, ["cka"], data=data(), store=folder / "networks", progress=False)


def extract(folder):
    """A view of a layer, kept in a folder."""
    return likewise.extract(network(), data(), "0", store=folder / "views", progress=False)


def train(folder, callbacks=()):
    """A training of two epochs."""
    return likewise.train(network(), data(), epochs=2, batch_size=4, out=folder / "training", callbacks=callbacks)


def stop(net, record):
    """Interrupt in the second epoch."""
    if record["epoch"] == 2:
        raise KeyboardInterrupt


if __name__ == "__main__":
    target = Path(sys.argv[1])
    scores = {f"scores {k}": m.values.tolist() for k, m in compare(target).items()}
    scores |= {f"networks {k}": m.values.tolist() for k, m in compare_networks(target).items()}
    digest = extract(target).digest
    with contextlib.suppress(KeyboardInterrupt):
        train(target, [stop])
    whole = train(target / "whole")
    losses = [record["loss"] for record in whole.history]
    (target / "expected.json").write_text(json.dumps({"scores": scores, "digest": digest, "losses": losses}))
