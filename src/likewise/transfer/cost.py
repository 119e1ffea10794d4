"""What a run of SAT would cost, before it is begun: passes, multiplications and bytes, network by network."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from likewise.attacks import Attack
from likewise.errors import InputError, did_you_mean
from likewise.networks.forward import at_rest
from likewise.transfer.classifiers import by_name, classifier, labelled
from likewise.transfer.examples import Recipe, check_attackable

if TYPE_CHECKING:
    import pandas as pd

PRESETS = {"paper": 5000}  # and how many images each takes
_BYTES = 2  # of a value of an example


def preset(name: str) -> list[str]:
    """Addresses of the networks of a preset: "paper" are the 69 of SAT's paper, as timm 0.6 named them.

    Today's timm has one no longer, gluon_xception65, whose weights it dropped.

    >>> preset("paper")[:2], len(preset("paper"))
    (['timm:nfnet_l0', 'timm:regnety_032'], 69)
    """
    return [str(row["network"]) for row in _rows(name)]


def plan(
    networks: Any = None,
    data: Any = None,
    attack: str | Attack = "pgd",
    *,
    preset: str | None = None,
    device: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """What `sat` would cost, one row per network: nothing is attacked.

    steps   forward and backward passes of the attack, over all images
    passes  forward passes over clean images and over the examples of all networks
    tmacs   multiplications of all of it, in 10¹²; a backward pass to the images counts as one forward pass
    gb      what its examples take on disk, in 10⁹ bytes

    Networks are built and shown one image; those of a preset are known, on as many images as the paper had unless
    data is given.

    >>> found = plan(preset="paper")
    >>> len(found), int(found["steps"].sum()), int(found["passes"].sum())
    (69, 17250000, 24150000)
    """
    import pandas as pd

    recipe = Recipe.of(attack, options, 0, 1)
    shown = None if data is None else labelled(data, "know what an attack leads away from")
    known = _rows(preset) if preset is not None else _counted(networks, shown, device)
    n = len(shown) if shown is not None else PRESETS[str(preset)]
    chosen = recipe.options
    per_image = int(chosen.get("iterations", 1)) * (1 + int(chosen.get("neighbours", 0)))
    rows = []
    for row in known:
        size, gmacs = int(row["size"]), float(row["gmacs"])
        steps, passes = n * per_image, n * (1 + len(known))
        row = {"network": row["network"], "size": size, "parameters": float(row["parameters"]), "gmacs": gmacs}
        row |= {"steps": steps, "passes": passes, "tmacs": (2 * steps + passes) * gmacs / 1e3}
        rows.append(row | {"gb": n * 3 * size * size * _BYTES / 1e9})
    return pd.DataFrame(rows)


def _rows(name: str) -> list[dict[str, Any]]:
    if name not in PRESETS:
        raise InputError(f"no preset named {name!r}.{did_you_mean(name, PRESETS)} There is 'paper'.")
    text = (files("likewise.transfer") / f"{name}.tsv").read_text()
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return [row | {"network": f"timm:{row['network']}"} for row in rows]


def _counted(networks: Any, data: Any, device: Any) -> list[dict[str, Any]]:
    """Size, parameters in millions and 10⁹ multiplications per image of networks, by one image each."""
    from torch.utils.flop_counter import FlopCounterMode

    if networks is None or data is None:
        raise InputError("a plan needs networks and data, or a preset. Give preset='paper', or both of them.")
    found = []
    for name, network in by_name(networks).items():
        with classifier(name, network, data[:4], device) as net:
            check_attackable(net)
            first: Tensor = next(iter(net.data[:1].batches(1, device=device)))[0]
            # frozen: the counter cannot follow a weight that is handed from module to module
            with at_rest(net.net, input_gradients=True), FlopCounterMode(display=False) as count, torch.no_grad():
                net.logits(first)
            weights = sum(weight.numel() for weight in net.net.parameters())
        facts = {"network": name, "size": max(net.shape[1:]), "parameters": weights / 1e6}
        found.append(facts | {"gmacs": count.get_total_flops() / 2e9})
    return found
