"""Inspection after the fact: the same reports from the weights that a training left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from likewise._base.files import is_folder
from likewise._base.progress import tracked
from likewise.classes.classifier import Tap
from likewise.classes.inspector import Inspector
from likewise.data import Data, dataset
from likewise.errors import InputError, MissingDataError
from likewise.networks import network, unwrapped
from likewise.networks.address import is_network
from likewise.networks.class_names import relabel
from likewise.networks.forward import logits as answer
from likewise.networks.forward import transform_for


def inspect(
    run: str | Path | Sequence[str | Path],
    data: Data | str,
    *,
    train: Data | str | None = None,
    reference: Any = None,
    out: str | Path | None = None,
    head: str | None = None,
    adversarial_every: int | None = None,
    batch_size: int = 256,
    device: Any = None,
    progress: bool = True,
) -> Inspector:
    """Inspect every epoch a training has kept: its folder, or the checkpoints themselves.

    `data` is what mistakes are counted on, `train` (part of) the training data, for what is asked of
    both. Checkpoints are any network addresses, in the order of their epochs, counted from 1; of a
    folder, epochs have the numbers of their files. With `out`, epochs already inspected are not
    inspected again. Classes are those of the network, in its order, where it knows them by name.
    """
    shown = dataset(data) if isinstance(data, str) else data
    seen = dataset(train, split="train") if isinstance(train, str) else train
    for given in (shown, seen):
        if given is not None:
            given.need_labels("inspect a training")
    addresses = checkpoints(run)
    shown, seen = _relabel(next(iter(addresses.values())), shown, seen, device)
    inspector = Inspector(
        shown,
        reference=reference,
        head=head,
        out=out,
        adversarial_every=adversarial_every,
    )
    todo = {n: address for n, address in addresses.items() if n not in inspector.records.reports}
    for number, address in tracked(todo.items(), "inspecting", total=len(todo), show=progress):
        net = network(address, data=shown)
        net = net.to(device) if device is not None else net
        for split, part in (("train", seen), ("test", shown)):
            if part is not None:
                _count(inspector, net, part, split, number, batch_size, device)
        inspector.report(net, epoch=number)
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
    for place in (folder / "epochs", folder):
        named = place.glob("[0-9]*.safetensors") if is_folder(place) else ()
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


def _relabel(address: str, shown: Data, seen: Data | None, device: Any) -> tuple[Data, Data | None]:
    """Both data with their classes as the network at this address counts them."""
    net = network(address, data=shown)
    net = net.to(device) if device is not None else net
    with torch.inference_mode():
        inputs, _ = next(transform_for(net, shown[:2], repr(address)).batches(2, device=device))
        count = answer(net, inputs).shape[1]
    return (
        relabel(shown, net, count, address),
        None if seen is None else relabel(seen, net, count, address),
    )


def _count(
    inspector: Inspector,
    net: torch.nn.Module,
    data: Data,
    split: str,
    epoch: int,
    batch_size: int,
    device: Any,
) -> None:
    tap = Tap(net, inspector.head)
    try:
        with torch.inference_mode():
            shown = transform_for(net, data, repr(type(unwrapped(net)).__name__))
            for inputs, labels in shown.batches(batch_size, device=device):
                logits = answer(net, inputs)
                features = inspector.features_of(tap, logits)
                if features is not None and hasattr(inputs, "rows"):
                    features = inputs.rows(features)
                inspector.update(logits, labels, features, split=split)
                if split == "test" and inspector.attacks(epoch):
                    inspector.update_adversarial(net, inputs, labels)
    finally:
        tap.close()
