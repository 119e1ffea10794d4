"""Representations of your own, in a folder with a manifest, held against the same groundings without any training.

`manifest.json` names the file of each network, and what is known of it:

    {"labels": "labels.npy",
     "networks": {"a1": {"representation": "a1.npy", "group": "a", "outputs": "a1-logits.npy"},
                  "b1": {"representation": "b1.npy", "group": "b", "layers": ["b1-1.npy", "b1-2.npy", "b1-3.npy"]}}}

Groups are evaluated as the grounding `family`, or as another that `"grounding"` names; outputs `(n, classes)` by how
far answers differ, with labels also by accuracy; layers, the first first, by how many lie between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._base.files import reading
from likewise.benchmark.domains import Stack
from likewise.benchmark.groundings import GROUNDINGS, Grounding
from likewise.benchmark.planning import chosen
from likewise.benchmark.trials import Bench, Trial, evaluate, with_settings
from likewise.errors import InputError, brief, did_you_mean
from likewise.views import Activations, Outputs
from likewise.views.array_files import read_arrays

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.json"
_FIELDS = ("networks", "labels", "grounding", "domain", "data", "network")
_NETWORK = ("representation", "group", "outputs", "layers")


def from_folder(
    folder: str | Path,
    measures: Any = "resi",
    *,
    groundings: Iterable[str] | str | None = None,
    store: str | Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Which measures follow what is known of representations in a folder: one row per grounding, metric and measure.

    Without `groundings` all are evaluated that the manifest says enough for. The columns are those of a run.
    """
    place = Path(folder)
    manifest = _manifest(place)
    wanted = chosen(measures)
    named = [groundings] if isinstance(groundings, str) else groundings
    rules = _possible(manifest) if named is None else [GROUNDINGS.get(name) for name in named]
    if not rules:
        raise InputError(
            f"{place / MANIFEST} names no groups, no outputs and no layers, so nothing is known of its networks. Give "
            "each network a group, outputs, or layers."
        )
    views = _views(place, manifest)
    trials = [_trial(rule, place, manifest, views) for rule in rules]
    bench = Bench(wanted, None if store is None else Path(store), progress=progress)
    about = {name: manifest.get(name, "") for name in ("domain", "data", "network")}
    return with_settings(evaluate(trials, bench), about | {"preset": "folder", "seed": 0})


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    with reading(path, f"{path} is no manifest: {{reason}}. Write it as JSON."):
        found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or not isinstance(found.get("networks"), dict) or not found["networks"]:
        raise InputError(f'{path} names no networks. Give "networks": {{NAME: {{"representation": FILE}}}}.')
    _check_fields(path, "a manifest", found, _FIELDS)
    networks = found["networks"]
    for name, given in networks.items():
        networks[name] = {"representation": given} if isinstance(given, str) else given
        if not isinstance(networks[name], dict):
            raise InputError(f"{path} says {brief(given)} of {name!r}. Give the name of a file, or its fields.")
        _check_fields(path, "a network", networks[name], _NETWORK)
    return found


def _check_fields(path: Path, what: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"{path} has an unknown field {name!r}.{hint} {what.capitalize()} has {', '.join(known)}.")


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
    return next(iter(read_arrays([str(folder / name)]).values()))


def _views(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Activations]:
    """The representations by network, all of the same number of inputs."""
    labels = None if "labels" not in manifest else _array(folder, manifest["labels"])
    found: dict[str, Activations] = {}
    for name, given in manifest["networks"].items():
        if "representation" not in given:
            continue
        outputs = Outputs(_array(folder, given["outputs"]), labels) if "outputs" in given else None
        found[name] = Activations(_array(folder, given["representation"]), name, outputs=outputs)
        first = next(iter(found))
        if found[name].n != found[first].n:
            raise InputError(
                f"{folder} holds {found[first].n} inputs of {first!r} and {found[name].n} of {name!r}. Show all "
                "networks the same inputs, and give one row per input."
            )
    return found


def _trial(rule: Grounding, folder: Path, manifest: Mapping[str, Any], views: Mapping[str, Activations]) -> Trial:
    networks, path = manifest["networks"], folder / MANIFEST
    if rule.kind == "layers":
        stacks = [_stack(folder, name, net["layers"]) for name, net in networks.items() if "layers" in net]
        if not stacks:
            raise InputError(
                f"the grounding 'layers' needs layers, and {path} names none. Give \"layers\": [FILE, ...]."
            )
        return Trial(rule.name, stacks=stacks)
    if rule.kind == "predictions":
        if "accuracy" in rule.truths and "labels" not in manifest:
            raise InputError(
                f'the grounding {rule.name!r} needs the labels of the inputs, and {path} names none. Add "labels": '
                "FILE, or leave the grounding out."
            )
        silent = [name for name, view in views.items() if view.outputs is None]
        if silent or not views:
            raise InputError(
                f"the grounding {rule.name!r} needs what networks answered, and {path} names no outputs of "
                f'{silent[0] if silent else "any"!r}. Add "outputs": FILE, or leave the grounding out.'
            )
        return Trial(rule.name, views)
    loose = [name for name in views if "group" not in networks[name]]
    if loose:
        raise InputError(
            f"the grounding {rule.name!r} needs the group of every network, and {path} names none of {loose[0]!r}. Add "
            '"group": NAME.'
        )
    return Trial(rule.name, views, tuple(str(networks[name]["group"]) for name in views))


def _stack(folder: Path, name: str, files: Any) -> Stack:
    layers = {
        f"{number} {file}": Activations(_array(folder, file), f"{name}/{file}") for number, file in enumerate(files)
    }
    sizes = {view.n for view in layers.values()}
    if len(sizes) > 1:
        raise InputError(
            f"the layers of {name!r} in {folder} have {min(sizes)} to {max(sizes)} rows. Give one row per input, the "
            "same inputs at every layer."
        )
    return Stack(layers)
