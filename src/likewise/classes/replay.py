"""Inspection after the fact: the same reports from the weights that a training left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import torch

from likewise._base.files import is_folder
from likewise._base.progress import tracked
from likewise.classes.inspector import Inspector
from likewise.classes.network_sources import one_head
from likewise.data import Data, dataset
from likewise.errors import InputError, MissingDataError
from likewise.networks import network, unwrapped
from likewise.networks.address import is_network
from likewise.networks.class_names import relabel
from likewise.networks.forward import logits as answer
from likewise.networks.forward import transform_for
from likewise.views.show import Show, ShowOptions

BATCH = 256  # inputs shown at a time by default


def inspect(
    run: str | Path | Sequence[str | Path],
    data: Data | str,
    *,
    train: Data | str | None = None,
    reference: Any = None,
    out: str | Path | None = None,
    adversarial_every: int | None = None,
    **show: Unpack[ShowOptions],
) -> Inspector:
    """Inspect every epoch a training has kept: its folder, or the checkpoints themselves.

    Classes are those of the network, in its order, where it has names for them.

    Args:
        run: The folder of a training, whose epochs have the numbers of their files; or checkpoints, any network
            addresses, in the order of their epochs, counted from 1.
        data: What mistakes are counted on.
        train: Training data, or some of it, for indices that compare the two.
        reference: What the network is compared with (see `Inspector`).
        out: A folder in which every epoch is written; epochs that are there are not inspected again.
        adversarial_every: Attack the test batches of every so many epochs too.
        **show: How networks are shown the data: `head`, `batch_size`, `device` and `progress` of `likewise.Show`.

    Raises:
        InputError: The folder keeps no epochs, or the data have no labels.
        MissingDataError: There is no such folder or file.
    """
    options = Show.only("inspect", show, without=("layers", "reduce", "transform", "dtype", "store"))
    head, device = one_head("inspect", options), options.device
    test = dataset(data) if isinstance(data, str) else data
    seen = dataset(train, split="train") if isinstance(train, str) else train
    splits = {"test": test} if seen is None else {"train": seen, "test": test}
    for labelled in splits.values():
        labelled.need_labels("inspect a training")
    addresses = checkpoints(run)
    splits = _relabel(next(iter(addresses.values())), splits, device)
    inspector = Inspector(splits["test"], reference=reference, head=head, out=out, adversarial_every=adversarial_every)
    missing = {n: address for n, address in addresses.items() if n not in inspector.records.reports}
    for number, address in tracked(missing.items(), "inspecting", total=len(missing), show=options.progress):
        net = _network(address, splits["test"], device)
        inspector.begin(net, number)
        for split, labelled in splits.items():
            with torch.inference_mode():
                inputs_for = transform_for(net, labelled, repr(type(unwrapped(net)).__name__))
                for inputs, labels in inputs_for.batches(options.batch_size or BATCH, device=device):
                    inspector.watch(net, split, inputs, answer(net, inputs), labels)
        inspector(net, {"epoch": number})
    return inspector


def checkpoints(run: str | Path | Sequence[str | Path]) -> dict[int, str]:
    """Addresses of networks by epoch: those in a training's folder, or the ones given."""
    if not isinstance(run, (str, Path)):
        if not run:
            raise InputError("no checkpoint was given. Give a training's folder, or its checkpoints in order.")
        if len(run) > 1:
            return {number: str(address) for number, address in enumerate(run, start=1)}
        run = run[0]
    folder = Path(run).expanduser()
    for parent in (folder / "epochs", folder):
        named = parent.glob("[0-9]*.safetensors") if is_folder(parent) else ()
        files = sorted(file for file in named if file.stem.isdecimal())
        if files:
            return {int(file.stem): str(file) for file in files}
    if is_folder(folder) and not (folder / "weights.safetensors").is_file():
        raise InputError(
            f"{folder} keeps no epochs. Train with keep_epochs (likewise train --keep-epochs), or give the "
            "checkpoints themselves."
        )
    if not folder.exists() and not is_network(str(run)):
        raise MissingDataError(
            f"there is no folder or file {run}. Give a training's folder, its checkpoints in order, or a network's "
            "address."
        )
    return {1: str(run)}


def _network(address: str, data: Data, device: Any) -> torch.nn.Module:
    net = network(address, data=data)
    return net.to(device) if device is not None else net


def _relabel(address: str, splits: dict[str, Data], device: Any) -> dict[str, Data]:
    """The data with their classes as the network at this address counts them."""
    test = splits["test"]
    net = _network(address, test, device)
    with torch.inference_mode():
        inputs, _ = next(transform_for(net, test[:2], repr(address)).batches(2, device=device))
        count = answer(net, inputs).shape[1]
    return {split: relabel(data, net, count, address) for split, data in splits.items()}
