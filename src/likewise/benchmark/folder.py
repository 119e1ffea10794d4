"""Representations of your own, in a folder with a manifest, evaluated by the same groundings without any training.

`manifest.json` names the file of each network, and what is known of it:

    {"labels": "labels.npy",
     "networks": {"a1": {"representation": "a1.npy", "group": "a", "outputs": "a1-logits.npy"},
                  "b1": {"representation": "b1.npy", "group": "b", "layers": ["b1-1.npy", "b1-2.npy", "b1-3.npy"]}}}

Groups are evaluated as the grounding `family`, or as another that `"grounding"` names; outputs `(n, classes)` by how
far answers differ, with labels also by accuracy; layers, the first first, by how many lie between.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._base.files import reading
from likewise._base.folders import file_of, read_bytes
from likewise._base.formats.records import check, parse
from likewise.benchmark.domains import LayerViews
from likewise.benchmark.groundings import GROUNDINGS, Grounding
from likewise.benchmark.results.frame import SETTING
from likewise.benchmark.trials import Evaluator, Trial, select_measures, with_settings
from likewise.errors import InputError, brief, did_you_mean
from likewise.views import Activations, Outputs
from likewise.views.array_files import KINDS, read_arrays

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.json"
_FIELDS = ("networks", "labels", "grounding", "domain", "data", "network")
_NETWORK = {"representation": str, "group": str | int, "outputs": str, "layers": list[str]}


def from_folder(
    folder: str | Path,
    measures: Any = "resi",
    *,
    groundings: Iterable[str] | str | None = None,
    store: str | Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Evaluate measures on representations in a folder, by what its manifest says of their networks.

    Args:
        folder: A folder with a `manifest.json` (see the guide on the benchmark).
        measures: A name, a set like "resi" or "all", a function, or a list of them.
        groundings: Some groundings only; by default all that the manifest says enough for.
        store: A folder where scores are kept.
        progress: Whether progress is shown.

    Returns:
        One row per grounding, metric, form and measure, in the columns of a run.

    Raises:
        InputError: The manifest cannot be read, or lacks what a grounding needs.
    """
    folder = Path(folder)
    manifest = _manifest(folder)
    selected = select_measures(measures)
    names = [groundings] if isinstance(groundings, str) else groundings
    rules = _possible(manifest) if names is None else [GROUNDINGS.get(name) for name in names]
    if not rules:
        raise InputError(
            f"{folder / MANIFEST} names no groups, no outputs and no layers, so nothing is known of its networks. Give "
            "each network a group, outputs, or layers."
        )
    views = _views(folder, manifest)
    trials = [_make_trial(rule, folder, manifest, views) for rule in rules]
    evaluator = Evaluator(selected, None if store is None else Path(store), progress=progress)
    settings = {name: manifest.get(name, "") for name in SETTING} | {"preset": "folder", "seed": 0}
    return with_settings(evaluator.evaluate(trials), settings)


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    with reading(path, f"{path} is no manifest: {{reason}}. Write it as JSON."):
        manifest = parse(read_bytes(folder, MANIFEST))
        check(manifest, {name: str for name in _FIELDS if name != "networks"}, optional=True)
    networks = manifest.get("networks")
    if not isinstance(networks, dict) or not networks:
        raise InputError(f'{path} names no networks. Give "networks": {{NAME: {{"representation": FILE}}}}.')
    _check_fields(path, "A manifest", manifest, _FIELDS)
    for name, entry in networks.items():
        networks[name] = {"representation": entry} if isinstance(entry, str) else entry
        if not isinstance(networks[name], dict):
            raise InputError(f"{path} says {brief(entry)} of {name!r}. Give the name of a file, or its fields.")
        _check_fields(path, "A network", networks[name], tuple(_NETWORK))
        with reading(path, f"{path} is no manifest: of {name!r}, {{reason}}. Give names of files."):
            check(networks[name], _NETWORK, optional=True)
    return manifest


def _check_fields(path: Path, what: str, entry: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in entry:
        if name not in names:
            hint = did_you_mean(name, names)
            raise InputError(f"{path} has an unknown field {name!r}.{hint} {what} has {', '.join(names)}.")


def _possible(manifest: Mapping[str, Any]) -> list[Grounding]:
    """The groundings that the manifest says enough for."""
    networks = manifest["networks"].values()
    names = []
    if all("outputs" in net and "representation" in net for net in networks):
        names += ["accuracy", "outputs"] if "labels" in manifest else ["outputs"]
    if any("group" in net for net in networks):
        names.append(manifest.get("grounding", "family"))
    if any("layers" in net for net in networks):
        names.append("layers")
    return [GROUNDINGS.get(name) for name in names]


def _array(folder: Path, name: str) -> Any:
    file, colon, key = name.rpartition(":")
    if colon and Path(file).suffix in KINDS and not os.path.lexists(folder / name):  # one array of several
        return next(iter(read_arrays([f"{file_of(folder, file)}:{key}"]).values()))
    return next(iter(read_arrays([str(file_of(folder, name))]).values()))


def _views(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Activations]:
    """The representations by network, all of the same number of inputs."""
    labels = None if "labels" not in manifest else _array(folder, manifest["labels"])
    views: dict[str, Activations] = {}
    for name, entry in manifest["networks"].items():
        if "representation" not in entry:
            continue
        outputs = Outputs(_array(folder, entry["outputs"]), labels) if "outputs" in entry else None
        views[name] = Activations(_array(folder, entry["representation"]), name, outputs=outputs)
        first = next(iter(views))
        if views[name].n != views[first].n:
            raise InputError(
                f"{folder} holds {views[first].n} inputs of {first!r} and {views[name].n} of {name!r}. Show all "
                "networks the same inputs, and give one row per input."
            )
    return views


def _make_trial(rule: Grounding, folder: Path, manifest: Mapping[str, Any], views: Mapping[str, Activations]) -> Trial:
    networks, path = manifest["networks"], folder / MANIFEST

    def refusal(need: str, lack: str, remedy: str) -> InputError:
        return InputError(f"the grounding {rule.name!r} needs {need}, and {path} names {lack}. {remedy}")

    if rule.kind == "layers":
        layers = [_make_layers(folder, name, net["layers"]) for name, net in networks.items() if "layers" in net]
        if not layers:
            raise refusal("layers", "none", 'Give "layers": [FILE, ...].')
        return Trial(rule.name, layers=layers)
    if rule.kind == "predictions":
        if "accuracy" in rule.truths and "labels" not in manifest:
            raise refusal("the labels of the inputs", "none", 'Add "labels": FILE, or leave the grounding out.')
        silent = [name for name, view in views.items() if view.outputs is None]
        if silent or not views:
            lack = f"no outputs of {silent[0] if silent else 'any'!r}"
            raise refusal("what networks answered", lack, 'Add "outputs": FILE, or leave the grounding out.')
        return Trial(rule.name, views)
    loose = [name for name in views if "group" not in networks[name]]
    if loose:
        raise refusal("the group of every network", f"none of {loose[0]!r}", 'Add "group": NAME.')
    return Trial(rule.name, views, tuple(str(networks[name]["group"]) for name in views))


def _make_layers(folder: Path, name: str, files: Any) -> LayerViews:
    layers = {
        f"{number} {file}": Activations(_array(folder, file), f"{name}/{file}") for number, file in enumerate(files)
    }
    sizes = {view.n for view in layers.values()}
    if len(sizes) > 1:
        raise InputError(
            f"the layers of {name!r} in {folder} have {min(sizes)} to {max(sizes)} rows. Give one row per input, the "
            "same inputs at every layer."
        )
    return LayerViews(layers)
