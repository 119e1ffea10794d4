"""A folder of representations of one's own: evaluated like a run, or refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.benchmark import from_folder
from likewise.benchmark.evaluation import Evidence, auprc
from likewise.benchmark.results.frame import COLUMNS
from likewise.comparison.compare import compare
from likewise.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two groups of three networks, alike within; answers to 40 inputs, and layers of two of the networks."""
    draw = np.random.default_rng(0)
    networks: dict[str, Any] = {}
    for group in "ab":
        base = draw.normal(size=(40, 5))
        for number in range(3):
            name = f"{group}{number}"
            rows = base + 0.1 * draw.normal(size=base.shape)
            np.save(tmp_path / f"{name}.npy", rows)
            np.save(tmp_path / f"{name}-logits.npy", rows[:, :3] + 0.5 * draw.normal(size=(40, 3)))
            networks[name] = {"representation": f"{name}.npy", "group": group, "outputs": f"{name}-logits.npy"}
    for layer in range(4):
        np.save(tmp_path / f"layer{layer}.npy", base + layer * draw.normal(size=base.shape))
    networks["a0"]["layers"] = networks["b0"]["layers"] = [f"layer{layer}.npy" for layer in range(4)]
    np.save(tmp_path / "labels.npy", draw.integers(0, 3, 40))
    write(tmp_path, {"labels": "labels.npy", "data": "drawn", "networks": networks})
    return tmp_path


def write(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest))


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def test_a_folder_is_evaluated_on_all_that_is_known_of_it(folder: Path) -> None:
    rows = from_folder(folder, ["cka", "procrustes"], progress=False)
    assert list(rows.columns) == list(COLUMNS)
    assert list(dict.fromkeys(rows["grounding"])) == ["accuracy", "outputs", "family", "layers"]
    assert set(rows["data"]) == {"drawn"}
    found = rows.query("grounding == 'family' and metric == 'auprc' and measure == 'cka' and variant == 'published'")
    names = [f"{group}{number}" for group in "ab" for number in range(3)]
    views = {name: np.load(folder / f"{name}.npy") for name in names}
    by_hand = Evidence("cka", "more alike", True, compare(views, "cka", progress=False).values, tuple("aaabbb"))
    assert found["value"].item() == auprc(by_hand).value == 1.0
    assert set(rows.query("grounding == 'layers' and measure == 'cka'")["networks"]) == {2}


def test_groups_may_be_those_of_another_grounding(folder: Path) -> None:
    write(folder, read(folder) | {"grounding": "shortcut"})
    rows = from_folder(folder, "cka", groundings=["shortcut"], progress=False)
    assert set(rows["grounding"]) == {"shortcut"}


def refused(folder: Path, groundings: Any = None) -> str:
    with pytest.raises(InputError) as error:
        from_folder(folder, "cka", groundings=groundings, progress=False)
    return str(error.value).replace(str(folder), "FOLDER")


def test_unknown_fields_are_refused(folder: Path) -> None:
    manifest = read(folder)
    write(folder, manifest | {"label": "labels.npy"})
    assert refused(folder) == (
        "FOLDER/manifest.json has an unknown field 'label'. Did you mean 'labels'? A manifest has networks, labels, "
        "grounding, domain, data, network."
    )
    manifest["networks"]["a0"]["groups"] = "a"
    write(folder, manifest)
    assert refused(folder) == (
        "FOLDER/manifest.json has an unknown field 'groups'. Did you mean 'group'? A network has representation, "
        "group, outputs, layers."
    )


def test_missing_labels_outputs_groups_and_layers_are_named(folder: Path) -> None:
    manifest = read(folder)
    del manifest["labels"]
    for net in manifest["networks"].values():
        net.pop("layers", None)
    write(folder, manifest)
    assert refused(folder, "accuracy") == (
        "the grounding 'accuracy' needs the labels of the inputs, and FOLDER/manifest.json names none. Add \"labels\": "
        "FILE, or leave the grounding out."
    )
    assert refused(folder, "layers") == (
        "the grounding 'layers' needs layers, and FOLDER/manifest.json names none. Give \"layers\": [FILE, ...]."
    )
    del manifest["networks"]["a1"]["outputs"], manifest["networks"]["b1"]["group"]
    write(folder, manifest)
    assert refused(folder, "outputs") == (
        "the grounding 'outputs' needs what networks answered, and FOLDER/manifest.json names no outputs of 'a1'. Add "
        '"outputs": FILE, or leave the grounding out.'
    )
    assert refused(folder, "family") == (
        "the grounding 'family' needs the group of every network, and FOLDER/manifest.json names none of 'b1'. Add "
        '"group": NAME.'
    )


def test_other_numbers_of_inputs_are_refused(folder: Path) -> None:
    np.save(folder / "b1.npy", np.zeros((39, 5)))
    manifest = read(folder)
    for net in manifest["networks"].values():
        del net["outputs"]
    write(folder, manifest)
    assert refused(folder) == (
        "FOLDER holds 40 inputs of 'a0' and 39 of 'b1'. Show all networks the same inputs, and give one row per input."
    )
    np.save(folder / "layer2.npy", np.ones((30, 5)))
    np.save(folder / "b1.npy", np.ones((40, 5)))
    assert refused(folder, "layers") == (
        "the layers of 'a0' in FOLDER have 30 to 40 rows. Give one row per input, the same inputs at every layer."
    )


def test_groups_of_one_network_are_refused(folder: Path) -> None:
    manifest = read(folder)
    manifest["networks"]["b0"]["group"] = "c"
    write(folder, manifest)
    assert refused(folder, "family") == (
        "the group 'c' has one network, so none to be like. Give it two or more, or leave it out."
    )


def test_a_folder_of_which_nothing_is_known_is_refused(folder: Path) -> None:
    write(folder, {"networks": {"a0": "a0.npy", "a1": "a1.npy"}})
    assert refused(folder) == (
        "FOLDER/manifest.json names no groups, no outputs and no layers, so nothing is known of its networks. Give "
        "each network a group, outputs, or layers."
    )
    write(folder, {"labels": "labels.npy"})
    assert refused(folder) == (
        'FOLDER/manifest.json names no networks. Give "networks": {NAME: {"representation": FILE}}.'
    )
