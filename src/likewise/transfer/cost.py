"""The cost of a run of SAT before it starts: passes, multiplications and bytes per network."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from likewise._base.optional import prepare_torchvision, require
from likewise._base.progress import warn
from likewise.attacks import Attack
from likewise.errors import InputError, did_you_mean, quoted_list
from likewise.networks.forward import eval_mode
from likewise.transfer.classifiers import NOT_HERE, by_name, classifier, labelled
from likewise.transfer.examples import AttackSettings, check_attackable
from likewise.views.show import Show

if TYPE_CHECKING:
    import pandas as pd

PRESETS = {"paper": 5000}  # and how many images each takes
_BYTES = 2  # per value of an example


def preset(name: str, *, available: bool = False) -> list[str]:
    """List the networks of a preset.

    Args:
        name: "paper" for the 69 networks of SAT's paper, each with the weights that timm 0.6.7 had under its name.
        available: Leave out networks that the installed timm does not know, with a warning that names them. timm 1.0
            has gluon_xception65 no longer.

    Example:
        >>> preset("paper")[:2], len(preset("paper"))
        (['timm:nfnet_l0.ra2_in1k', 'timm:regnety_032.ra_in1k'], 69)
    """
    return [str(row["network"]) for row in _rows(name, available)]


def plan(
    networks: Any = None,
    data: Any = None,
    attack: str | Attack = "pgd",
    *,
    preset: str | None = None,
    available: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Compute what `sat` would cost. Nothing is attacked; networks are built and shown one image.

    Args:
        networks: Addresses or modules, a list or a mapping by name.
        data: Labelled images, or their address; by default as many images as the paper of a preset had.
        attack: An attack or its name, as in `sat`.
        preset: The name of a list of networks, whose costs are stored.
        available: Leave out those of the preset that the installed timm does not know, with a warning.
        **options: The options of the attack, and how networks are shown, as in `sat`.

    Returns:
        One row per network: `steps`, forward and backward passes of the attack over all images; `passes`, forward
        passes over clean images and over the examples of all networks; `tmacs`, multiplications of all of it in 10¹²
        (a backward pass to the images counts as one forward pass); `gb`, what its examples take on disk, in 10⁹ bytes,
        beside the clean images, which are stored once for all networks that are shown the same.

    Example:
        >>> costs = plan(preset="paper")
        >>> len(costs), int(costs["steps"].sum()), int(costs["passes"].sum())
        (69, 17250000, 24150000)
    """
    import pandas as pd

    show, rest = Show.read("plan", options, without=NOT_HERE)
    settings = AttackSettings.of(attack, rest, 0, 1).options
    inputs = None if data is None else labelled(data)
    facts = _rows(preset, available) if preset is not None else _counted(networks, inputs, show.device)
    n = len(inputs) if inputs is not None else PRESETS[str(preset)]
    steps = n * int(settings.get("iterations", 1)) * (1 + int(settings.get("neighbours", 0)))
    passes = n * (1 + len(facts))
    rows = []
    for row in facts:
        size, gmacs = int(row["size"]), float(row["gmacs"])
        columns = {"network": row["network"], "size": size, "parameters": float(row["parameters"]), "gmacs": gmacs}
        columns |= {"steps": steps, "passes": passes, "tmacs": (2 * steps + passes) * gmacs / 1e3}
        rows.append(columns | {"gb": n * 3 * size * size * _BYTES / 1e9})
    return pd.DataFrame(rows)


def _rows(name: str, available: bool) -> list[dict[str, Any]]:
    if name not in PRESETS:
        raise InputError(f"no preset named {name!r}.{did_you_mean(name, PRESETS)} There is 'paper'.")
    text = (files("likewise.transfer") / f"{name}.tsv").read_text()
    rows: list[dict[str, Any]] = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    missing = _unknown_to_timm(name, [row["network"] for row in rows]) if available else []
    return [row | {"network": f"timm:{row['network']}"} for row in rows if row["network"] not in missing]


def _unknown_to_timm(name: str, networks: list[str]) -> list[str]:
    """Networks of a preset that the installed timm cannot load, named in a warning."""
    prepare_torchvision()
    timm = require("timm", extra="vision", to=f"load the networks of the preset {name!r}")
    known = {*timm.list_models(), *timm.list_pretrained()}
    missing = [network for network in networks if network not in known]
    if missing:
        rest = f"{len(networks) - len(missing)} of {len(networks)} networks are left"
        warn(
            f"timm {timm.__version__} does not know {quoted_list([f'timm:{network}' for network in missing])} of the "
            f"preset {name!r}: {rest}."
        )
    return missing


def _counted(networks: Any, data: Any, device: Any) -> list[dict[str, Any]]:
    """Size, parameters in millions and 10⁹ multiplications per image of networks, by one image each."""
    from torch.utils.flop_counter import FlopCounterMode

    if networks is None or data is None:
        raise InputError("a plan needs networks and data, or a preset. Give preset='paper', or both of them.")
    rows = []
    for name, network in by_name(networks).items():
        with classifier(name, network, data[:4], device) as net:
            check_attackable(net)
            first: Tensor = next(iter(net.data[:1].batches(1, device=device)))[0]
            # frozen: the counter cannot follow a weight that is passed from module to module
            with eval_mode(net.net, input_gradients=True), FlopCounterMode(display=False) as count, torch.no_grad():
                net.logits(first)
            weights = sum(weight.numel() for weight in net.net.parameters())
        facts = {"network": name, "size": max(net.shape[1:]), "parameters": weights / 1e6}
        rows.append(facts | {"gmacs": count.get_total_flops() / 2e9})
    return rows
