"""`likewise inspect`: class similarity epoch by epoch, from the checkpoints of a training."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import likewise
from likewise import classes
from likewise.classes import from_weights
from likewise.cli.inspect import inspect
from likewise.cli.train import train
from tests.classes.test_pictures import film_of
from tests.cli.conftest import invoke


def test_inspect_reads_what_a_training_kept(tmp_path: Path) -> None:
    folder, out, data = tmp_path / "run", tmp_path / "out", "digits:test[:100]"
    invoke(
        train, "zoo:mlp", "digits:train[:200]", "--epochs", "2", "--lr", "0.05", "--keep-epochs", "--out", str(folder)
    )
    printed = invoke(inspect, str(folder), "--data", data, "--out", str(out)).splitlines()
    accuracies, weights = {}, {}
    images = likewise.dataset(data)
    for epoch in (0, 1, 2):
        net = likewise.network(str(folder / "epochs" / f"{epoch:04d}.safetensors"), data=images)
        answers = net(images.inputs[:]).argmax(dim=1)
        accuracies[epoch] = float((answers == images.labels).float().mean())
        weights[epoch] = from_weights(net)
    assert printed[0].split() == ["accuracy", "wsi_max"]  # digits have no meaning in WordNet
    assert printed[1] == "epoch                   "
    for line, epoch in zip(printed[2:5], (0, 1, 2), strict=True):
        number, accuracy, most = line.split()
        assert int(number) == epoch
        assert float(accuracy) == pytest.approx(accuracies[epoch], abs=1e-6)
        assert float(most) == pytest.approx(classes.wsi(weights[epoch]).max, abs=5e-4)
    assert printed[5:] == [
        "cannot tell yet: 3 epochs are recorded, 20 are needed",
        str(out / "film.html"),
    ]
    kept = sorted(path.name for path in out.iterdir())
    kept.remove("likewise.manifest")
    assert kept == [
        "0000.safetensors",
        "0001.safetensors",
        "0002.safetensors",
        "curves.csv",
        "curves.png",
        "film.html",
        "joint.png",
        *(f"matrices-{kind}.png" for kind in ("confusion", "confusion_adversarial", "features", "weights")),
        "mistakes-0001.png",
        "mistakes-0002.png",
        "templates.csv",
        "templates.png",
    ]
    attacked = [epoch for epoch, rate in pd.read_csv(out / "curves.csv")["fooling_rate"].items() if rate == rate]
    assert attacked == [1, 2]  # the epochs that are shown
    assert film_of(out / "film.html")["epochs"] == [0, 1, 2]
    before = (out / "0001.safetensors").stat().st_mtime_ns
    rows = json.loads(invoke(inspect, str(folder), "--data", data, "--out", str(out), "--json"))
    assert (out / "0001.safetensors").stat().st_mtime_ns == before  # not inspected again
    assert {int(epoch): row["accuracy"] for epoch, row in rows.items()} == pytest.approx(accuracies)
    assert rows["2"]["samples"] == 100
    stored = pd.read_csv(out / "curves.csv", index_col="epoch")
    assert stored["wsi_max"].tolist() == pytest.approx([rows[n]["wsi_max"] for n in "012"])
