"""The inspector: what a network finds alike, epoch by epoch, while it is trained.

`update` takes a batch, `report` closes an epoch and gives a flat dictionary of floats. Everything else (Lightning,
transformers, our own training) is an adapter on these two, and `inspect` calls them with the weights that a training
left behind. Every epoch is on disk the moment it is reported, under its number: a training that was killed resumes
without a gap, and an epoch that is trained again replaces itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import torch

from likewise._base.progress import tracked, warn
from likewise.classes.adapters import ADAPTERS
from likewise.classes.batches import Counts, Tap, sum_over_processes
from likewise.classes.epoch_report import Reference, Snapshot, chance_levels, headlines, report
from likewise.classes.from_sources import from_confusion, from_sums, from_weights, from_wordnet
from likewise.classes.indices import OF_TRAINING, of_training
from likewise.classes.learning.phases import Phases, phases
from likewise.classes.learning.steering import Steering
from likewise.classes.network_sources import one_head
from likewise.classes.pictures.gallery import epochs_shown
from likewise.classes.records import Epoch, Records
from likewise.classes.similarity import ClassSimilarity, named
from likewise.data import Data, dataset
from likewise.errors import InputError, NoClassifierError, brief, check_count, quoted_list
from likewise.matrices.notebook import as_html
from likewise.matrices.tables import fit_width
from likewise.networks import network, unwrapped
from likewise.networks.building import on_device
from likewise.networks.class_names import class_names, relabel
from likewise.networks.forward import device_of, transform_for
from likewise.networks.forward import logits as answer
from likewise.networks.training.checkpoints import addresses_by_epoch, history_of
from likewise.networks.unknown_normalisation import check_normalisation
from likewise.views.extract import extract
from likewise.views.show import Show, ShowOptions, options_for_worker
from likewise.wordnet import ClassNames, match, recognised
from likewise.work.tasks import Call, check_plain, run_calls

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BATCH = 256  # inputs shown at a time by default by `inspect`
ATTACK = {"eps": 0.05, "step": 0.001, "iterations": 2}  # of Deep Similarity Inspector's appendix K


class Inspector:
    """Watches a classifier learn and reports every epoch.

    Args:
        classes: The name of a list of classes ("cifar100": the reference is WordNet's), data, names, or their number.
        reference: What the network is compared with: a class similarity, the name of a list, WordNet ids or synset
            names.
        head: The name of the classifier, where it cannot be found.
        out: A folder in which every epoch is written; with the same folder, a run that was stopped resumes.
        every_n_epochs: Report every so many epochs.
        features: Whether to keep the class means of the classifier's input, train and test.
        adversarial_every: Attack the test batches of every so many epochs too.
        attack: Options of that attack, PGD: by default `eps` 0.05, `step` 0.001 and `iterations` 2 from a random start,
            those of Deep Similarity Inspector.
        adversarial_epochs: Attack the test batches of these epochs too.
        stop_after: Stop the training once this phase is seen: "rest", or "surge" as soon as its end is seen.
        reduce_lr_after: Lower the learning rate, once, when this phase is seen.
        lr_factor: What the learning rate is then multiplied by.
        phases_of: The index whose curve has these phases; "wsi_max" and "sai_ncsm_scsm" need no labels.

    Raises:
        InputError: An option is out of range, a reference has other classes, or the folder holds other classes.

    Example:
        >>> import numpy as np
        >>> inspector = Inspector(["cat", "dog", "ship"], reference=["cat.n.01", "dog.n.01", "ship.n.01"])
        >>> inspector.update(np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 1]))
        >>> report = inspector.report([[1.0, 0.2], [0.9, 0.3], [-1.0, 0.0]])
        >>> report["accuracy"], report["widm"], report["widm_errors"]
        (0.75, 0.875, 0.5)
    """

    def __init__(
        self,
        classes: str | int | Sequence[str] | Any,
        *,
        reference: Any = None,
        head: str | None = None,
        out: str | Path | None = None,
        every_n_epochs: int = 1,
        features: bool = True,
        adversarial_every: int | None = None,
        attack: Mapping[str, Any] | None = None,
        adversarial_epochs: Collection[int] = (),
        stop_after: str | None = None,
        reduce_lr_after: str | None = None,
        lr_factor: float = 0.1,
        phases_of: str = "wsi_max",
    ) -> None:
        self.steering = Steering(stop_after, reduce_lr_after, lr_factor, phases_of)
        check_count("every_n_epochs", every_n_epochs)
        if adversarial_every is not None:
            check_count("adversarial_every", adversarial_every)
        if isinstance(adversarial_epochs, str) or not isinstance(adversarial_epochs, Collection):
            raise InputError(f"adversarial_epochs is {brief(adversarial_epochs)}. Give a list of epochs.")
        for number in adversarial_epochs:
            check_count("an epoch of adversarial_epochs", number, least=0)
        if out is not None and not os.fspath(out):
            raise InputError("out is empty. Name a folder.")
        self.classes, self.reference = _classes_and_reference(classes, reference)
        self.head, self.every, self.features = head, every_n_epochs, features
        self.adversarial_every, self.adversarial_epochs = adversarial_every, frozenset(adversarial_epochs)
        if attack is not None:
            _check_attack(attack)
        self.attack = ATTACK | ({"step": None} if "relative_step" in (attack or {}) else {}) | dict(attack or {})
        if attack is not None:
            _try_attack(self.attack)
        self.records = Records(None if out is None else Path(out).expanduser(), self.classes)
        self._fixed = None if self.reference is None else Reference(self.reference)
        self._counts: dict[str, Counts] = {}
        self._fooled = [0, 0]
        self._tap: Tap | None = None
        self._epoch = 0
        self.answering: str | None = None  # the classifier, as soon as a batch has shown it

    def __repr__(self) -> str:
        count = len(self.records.reports)
        return f"Inspector({len(self.classes)} classes, {count} epoch{'s' * (count != 1)} reported)"

    def __str__(self) -> str:
        return "\n".join([repr(self), fit_width(self._last_epochs())]) if self.records.reports else repr(self)

    def _repr_html_(self) -> str:
        return as_html(repr(self), self._last_epochs(), ["inspector.plot() draws all curves"])

    def _last_epochs(self) -> pd.DataFrame:
        """The headline indices of the last epochs, as text."""
        frame = self.curves()
        frame = frame[[name for name in headlines() if name in frame]].tail(10)
        return frame.map(lambda value: "NaN" if value != value else f"{value:.4g}")

    @property
    def wnids(self) -> Sequence[str | None] | None:
        """The WordNet ids of the classes, where the reference has them."""
        return None if self.reference is None else self.reference.wnids

    @property
    def next_epoch(self) -> int:
        """The number of the epoch that is reported next."""
        return max(self.records.reports, default=0) + 1

    @property
    def damaged_epochs(self) -> Collection[int]:
        """Epochs whose files in the folder are damaged; they count as not reported."""
        return self.records.damaged

    def due(self, epoch: int | None = None) -> bool:
        """Whether an epoch is to be reported, by `every_n_epochs`.

        Args:
            epoch: Its number; by default the next one.
        """
        return (self.next_epoch if epoch is None else epoch) % self.every == 0

    def attacks(self, epoch: int) -> bool:
        """Whether the test batches of an epoch are to be attacked too.

        Args:
            epoch: Its number.
        """
        every = self.adversarial_every
        return epoch in self.adversarial_epochs or (every is not None and epoch % every == 0)

    def update(self, logits: Any, labels: Any, features: Any = None, *, split: str = "test") -> None:
        """Count a batch.

        Args:
            logits: Logits (inputs, classes), or one predicted class per input.
            labels: The true class of every input.
            features: The input of the classifier (inputs, width), for class means.
            split: "test", "train" or "adversarial"; there are sums for each.
        """
        if split not in ("test", "train", "adversarial"):
            raise InputError(f"split is {split!r}. Give 'test', 'train' or 'adversarial'.")
        counts = self._counts.get(split) or Counts(len(self.classes))
        counts.add(logits, labels, features)
        self._counts[split] = counts  # not before: a batch that is refused leaves no trace

    def update_adversarial(self, net: Any, inputs: Any, labels: Any) -> None:
        """Attack a batch of images and count what the network then answers, and how often it was fooled.

        Args:
            net: The network.
            inputs: The images.
            labels: Their true classes.
        """
        from likewise.attacks import pgd

        attacked, before, _ = pgd(net, inputs, **self.attack)
        after = answer(net, attacked).detach().argmax(dim=1)
        self._fooled[0] += int((after != before).sum())
        self._fooled[1] += len(before)
        self.update(after, labels, split="adversarial")

    def report(
        self, weights: Any = None, *, epoch: int | None = None, also: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Close the epoch: its indices are computed and kept under its number, and the sums start anew.

        Args:
            weights: The classifier's weight matrix, or the network; without it, indices that need it are left out.
            epoch: The number of the epoch; by default the next one.
            also: Numbers of the training, to be drawn beside the indices: `loss`, `validation_loss`, `lr`.

        Returns:
            All indices by name; NaN where one is undefined (no mistake was made, a class has no sample). With
            `stop_after`, `stopped` is 1 where the training should stop; with `reduce_lr_after`, `lr_factor` is what the
            learning rate should be multiplied by from here on.

        Raises:
            InputError: `also` holds another number, or the curve of `phases_of` is not among the indices.
        """
        also = of_training(also or {})
        if epoch is not None:
            check_count("epoch", epoch, least=0)
        number = self.next_epoch if epoch is None else int(epoch)
        matrices = self._matrices_now(weights)
        tables = {split: counts.table() for split, counts in self._counts.items()}
        if "test" not in tables and number and not self.steering.is_on:  # which may go by the weights alone
            warn(f"epoch {number} is empty: no test batch was counted, so its mistakes are unknown.")
        values = report(Snapshot(matrices, tables, self._fixed, self._counted() | also))
        values |= self.steering.decide(self.records.reports, number, values) if number else {}
        self.reset()
        self.records.keep(Epoch(number, values, matrices, tables), self.reference)
        return values

    def _matrices_now(self, weights: Any = None) -> dict[str, ClassSimilarity]:
        """The matrices of the running epoch, by what they are made from."""
        names: dict[str, Any] = {"classes": self.classes, "wnids": self.wnids}
        matrices: dict[str, ClassSimilarity] = {}
        if weights is not None:
            self._check_order(weights)
            matrices["weights"] = from_weights(weights, head=self.head or self.answering, **names)
        for split, counts in self._counts.items():
            suffix = "" if split == "test" else f"_{split}"
            matrices[f"confusion{suffix}"] = from_confusion(counts.table(), split=split, **names)
            means = counts.means()
            if means is not None:
                matrices[f"features{suffix}"] = from_sums(*means, split=split, **names)
        return matrices

    def _counted(self) -> dict[str, float]:
        """Numbers that were counted beside the confusion: how often an attack fooled, what was left out."""
        numbers: dict[str, float] = {}
        if "adversarial" in self._counts:
            fooled, total = sum_over_processes(self._fooled)
            numbers["fooling_rate"] = float(fooled / total) if total else float("nan")
        left_out = sum(counts.left_out for counts in self._counts.values())
        return numbers | ({"left_out": float(left_out)} if left_out else {})

    def reset(self) -> None:
        """Forget the batches of the running epoch."""
        self._counts, self._fooled = {}, [0, 0]

    def curves(self) -> pd.DataFrame:
        """All reports so far: one row per epoch."""
        return self.records.frame()

    def matrices(self, epoch: int) -> dict[str, ClassSimilarity]:
        """The matrices of an epoch that was reported, by what they are made from.

        Args:
            epoch: Its number.
        """
        return self.records.epoch(epoch).matrices

    def phases(self, curve: str = "wsi_max") -> Phases:
        """When the surge and the refinement of a curve ended.

        Args:
            curve: The name of an index.
        """
        frame = self.curves()
        if curve not in frame:
            raise InputError(f"no curve named {curve!r}. There are {', '.join(frame.columns) or 'none'}.")
        return phases(frame[curve].tolist(), frame.index.tolist())

    def chance(self) -> dict[str, float]:
        """What the curves would be without any learning, by their names."""
        return chance_levels(self._fixed)

    def plot(self, path: str | Path | None = None) -> Figure:
        """All curves in one picture.

        Args:
            path: Where to save it.
        """
        from likewise.classes.pictures import curves

        return curves({"": self.curves()}, path, chance=self.chance())

    def state_dict(self) -> dict[str, Any]:
        """The reports so far, to be saved inside another checkpoint."""
        return {"reports": {str(epoch): dict(r) for epoch, r in self.records.reports.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the reports of a checkpoint; later ones are dropped, as they will come again.

        Args:
            state: What `state_dict` gave.
        """
        self.records.go_back_to({int(epoch): dict(report) for epoch, report in state["reports"].items()})
        self.reset()

    # What our own training asks of a callback.

    def start(self, net: Any) -> None:
        """Report the weights before the first step as epoch 0, from which the climb of a curve is counted.

        Nothing is reported of a network whose layers alone do not say which of them classifies.

        Args:
            net: The network.
        """
        with suppress(NoClassifierError):
            self.report(net, epoch=0)

    def begin(self, net: Any, epoch: int) -> None:
        """Get ready for an epoch of our own training; before the first, its weights are reported as epoch 0.

        Args:
            net: The network.
            epoch: The number of the epoch.
        """
        if epoch == 1:
            self.start(net)
        self._open(net, epoch)

    def _open(self, net: Any, epoch: int) -> None:
        """Listen to the classifier from now on, where the epoch is to be reported."""
        self.reset()
        self._epoch = epoch
        self._check_order(net)
        self._tap = Tap(net, self.head) if self.due(epoch) else None

    def watch(self, net: Any, split: str, inputs: Any, logits: Any, labels: Any) -> None:
        """Count a batch of our own training.

        Args:
            net: The network.
            split: "train" or "test".
            inputs: The batch.
            logits: What the network answered to it.
            labels: The true class of every input.
        """
        if not self.due(self._epoch):
            return
        seen = None if self._tap is None else self.features_of(self._tap, logits)
        if seen is not None and hasattr(inputs, "rows"):  # of a graph, the nodes asked for
            seen = inputs.rows(seen)
        self.update(logits, labels, seen, split=split)
        if split == "test" and self.attacks(self._epoch):
            self.update_adversarial(net, inputs, labels)

    def features_of(self, tap: Tap, logits: Any = None) -> Any:
        """The input of the classifier for the last batch, None where `features` is off.

        Args:
            tap: What recorded it.
            logits: What the network answered.
        """
        seen = tap.take(logits)
        self.answering = tap.layer or self.answering
        return seen if self.features else None

    def _check_order(self, net: Any) -> None:
        """Refuse a network that counts the inspector's classes otherwise than the inspector."""
        if not hasattr(net, "named_modules"):
            return
        names = class_names(net, len(self.classes))
        if names is None:
            return
        numbers = match(ClassNames(self.classes, None if self.wnids is None else tuple(self.wnids)), names)
        for index, number in enumerate(numbers):
            if number not in (None, index):
                raise InputError(
                    f"{self.classes[index]!r} is class {index} of the inspector and class {number} of the "
                    f"network. Give the inspector the network's order: {quoted_list(names.names)}."
                )

    def __call__(self, net: Any, record: Mapping[str, Any]) -> dict[str, float] | None:
        """Report an epoch of our own training; what is returned joins its record.

        Args:
            net: The network.
            record: The record of the epoch.
        """
        if self._tap is not None:
            self._tap.close()
        if not self.due(record["epoch"]):
            return None
        also = {name: record[name] for name in OF_TRAINING if name in record}
        report = self.report(net, epoch=record["epoch"], also=also)
        return {name: value for name, value in report.items() if name not in record}

    # Other people's training.

    def lightning(self, **options: Any) -> Any:
        """A callback for Lightning: `Trainer(callbacks=[inspector.lightning()])`.

        Args:
            **options: `get(outputs, batch)`, which finds logits and labels, and a `prefix` for names of metrics.
        """
        return ADAPTERS.get("lightning")(self, **options)

    def trainer(self, **options: Any) -> Any:
        """For transformers: `Trainer(..., callbacks=[hook], compute_metrics=hook)`.

        Args:
            **options: Another `compute_metrics`, whose metrics are reported too.
        """
        return ADAPTERS.get("transformers")(self, **options)


def _classes_and_reference(classes: Any, reference: Any) -> tuple[tuple[str, ...], ClassSimilarity | None]:
    """The names of the classes, and the matrix they are compared with."""
    ids: Sequence[str | None] | None = None
    matrix: ClassSimilarity | None = None
    if isinstance(classes, (str, ClassSimilarity)):
        matrix = from_wordnet(classes) if isinstance(classes, str) else classes
        names, ids = tuple(matrix.classes), matrix.wnids
    elif isinstance(classes, int):
        names = named(None, classes)
    elif hasattr(classes, "wnids"):
        names, ids = named(classes.classes, len(classes.classes)), classes.wnids
        matrix = from_wordnet(classes) if ids is not None and all(ids) else None
    else:
        names = named(list(classes), len(classes))
    if len(names) < 2:
        raise InputError("an inspector needs at least two classes. Give their names or their number.")
    if reference is not None:
        matrix = _reference(reference, recognised(names) if ids is None else ClassNames(names, tuple(ids)))
    return names, matrix


def _reference(reference: Any, classes: ClassNames) -> ClassSimilarity:
    """The reference over these classes, matched by WordNet id or by name."""
    if isinstance(reference, str):
        return from_wordnet(reference).matched(classes, f"the reference {reference!r}")
    if isinstance(reference, ClassSimilarity):
        return reference if tuple(reference.classes) == classes.names else reference.matched(classes)
    synsets = from_wordnet(reference)  # one synset per class, in their order; where classes are ids, by id
    if all(classes.ids) and sorted(map(str, classes.ids)) == sorted(synsets.ids or ()):
        return synsets.matched(classes)
    return from_wordnet(reference, names=classes.names)


def _check_attack(options: Any) -> None:
    """Refuse options of the attack before an epoch is trained for nothing."""
    from likewise.attacks import pgd

    if not isinstance(options, Mapping):
        raise InputError(f"attack is {brief(options)}. Give options of PGD, as in attack={{'eps': 0.05}}.")
    pgd.check(options)


def _try_attack(options: Mapping[str, Any]) -> None:
    """Attack two grey pixels, each the logit of a class: refuses values that no attack can have."""
    from likewise.attacks import pgd

    pgd(torch.nn.Flatten(), torch.full((1, 1, 1, 2), 0.5), **options)


def inspect(
    run: str | Path | Sequence[str | Path],
    data: Data | str,
    *,
    train: Data | str | None = None,
    reference: Any = None,
    out: str | Path | None = None,
    adversarial_every: int | None = None,
    attack: Mapping[str, Any] | bool | None = None,
    shown: Sequence[int] | None = None,
    pictures: bool = False,
    **show: Unpack[ShowOptions],
) -> Inspector:
    """Inspect every epoch a training has kept: its folder, or the checkpoints themselves.

    Classes are those of the network, in its order, where it has names for them. Loss and learning rate are those of the
    training, where its folder tells them.

    Args:
        run: The folder of a training, whose epochs have the numbers of their files; or checkpoints, any network
            addresses, in the order of their epochs, counted from 1.
        data: What mistakes are counted on.
        train: Training data, or some of it, for indices that compare the two.
        reference: What the network is compared with (see `Inspector`).
        out: A folder in which every epoch is written; epochs that are there are not inspected again.
        adversarial_every: Attack the test batches of every so many epochs too.
        attack: Options of that attack (see `Inspector`); True is those of the paper, where data are images. With it or
            with `adversarial_every`, the epochs that are shown are attacked too.
        shown: Epochs whose matrices, mistakes and templates are drawn; by default four from the first to the last.
        pictures: Whether to draw everything there is to see into `out`: curves, joint panels, and for the epochs shown
            matrices, mistakes, templates; and a film.
        **show: How networks are shown the data: `head`, `mean`, `std`, `transform`, `batch_size`, `device` and
            `progress` of `likewise.Show`.

    Raises:
        InputError: The folder keeps no epochs, the data have no labels, or an option cannot be used.
        MissingDataError: There is no such folder or file.
    """
    options = Show.only("inspect", show, without=("layers", "reduce", "dtype", "store"), long=True)
    if pictures and out is None:
        raise InputError("pictures are written to a folder. Pass out=.")
    chosen = {"adversarial_every": adversarial_every, "attack": attack, "shown": shown}
    if options.engine is not None:
        check_plain("inspect", run=run, data=data, train=train, reference=reference)
        if out is None:
            raise InputError("the workers of an engine leave epochs in a folder. Pass out=, one that all of them see.")
        keywords = {"train": train, "reference": reference, **chosen}
        repeated = {name: value for name, value in options_for_worker(show).items() if name != "store"}
        task = Call("the inspection", _inspect_there, (run, data, Path(out).absolute()), keywords | repeated)
        run_calls([task], options.with_engine().engine, "inspecting", progress=options.progress)
    head, device = one_head("inspect", options), options.device
    test = dataset(data) if isinstance(data, str) else data
    seen = dataset(train, split="train") if isinstance(train, str) else train
    splits = {"test": test} if seen is None else {"train": seen, "test": test}
    for labelled in splits.values():
        labelled.need_labels("inspect a training")
    attack = _attack_on(test, attack, adversarial_every)
    addresses = addresses_by_epoch(run)
    epochs = epochs_shown(list(addresses), shown)
    addresses = {epoch: options.for_attack(address) for epoch, address in addresses.items()}
    splits = _relabel(next(iter(addresses.values())), splits, device)
    inspector = Inspector(
        splits["test"],
        reference=reference,
        head=head,
        out=out,
        adversarial_every=adversarial_every,
        attack=attack,
        adversarial_epochs=() if attack is None else epochs,
    )
    recorded, histories = inspector.records.reports, history_of(run)
    missing = {n: address for n, address in addresses.items() if n not in recorded or _unattacked(inspector, n)}
    for number, address in tracked(missing.items(), "inspecting", total=len(missing), show=options.progress):
        net = _network(address, splits["test"], device)
        inspector._open(net, number)
        for split, labelled in splits.items():
            with torch.inference_mode():
                inputs_for = transform_for(net, labelled, repr(type(unwrapped(net)).__name__))
                for inputs, labels in inputs_for.batches(options.batch_size or BATCH, device=device_of(net)):
                    inspector.watch(net, split, inputs, answer(net, inputs), labels)
        inspector(net, {**histories.get(number, {}), "epoch": number})
    inspector.records.write_curves()  # an earlier run may have ended between its last epoch and them
    if pictures and out is not None:
        from likewise.classes.pictures.gallery import draw

        asked = {"batch_size": options.batch_size, "device": device, "head": head}
        once_more: Any = {name: value for name, value in asked.items() if value is not None}
        draw(
            inspector,
            Path(out).expanduser(),
            epochs,
            splits,
            lambda number, data: extract(addresses[number], data, progress=False, **once_more),
        )
    return inspector


def _attack_on(data: Data, attack: Any, every: int | None) -> Mapping[str, Any] | None:
    """The options of the attack on the epochs shown; None for none."""
    if attack is True or (attack is None and every is not None):
        return {} if data.domain == "image" else None
    if attack is None or attack is False:
        return None
    _check_attack(attack)
    if data.domain != "image":
        raise InputError(f"{data.name!r} holds {data.domain} data, which cannot be attacked. Leave out attack.")
    return dict(attack)


def _unattacked(inspector: Inspector, epoch: int) -> bool:
    """Whether an epoch that was inspected is to be attacked, and was not."""
    return epoch in inspector.adversarial_epochs and "fooling_rate" not in inspector.records.reports[epoch]


def _network(address: str, data: Data, device: Any) -> torch.nn.Module:
    return on_device(network(address, data=data), device)


def _relabel(address: str, splits: dict[str, Data], device: Any) -> dict[str, Data]:
    """The data with their classes as the network at this address counts them."""
    test = splits["test"]
    net = _network(address, test, device)
    check_normalisation(net, test, repr(address))
    with torch.inference_mode():
        inputs, _ = next(transform_for(net, test[:2], repr(address)).batches(2, device=device_of(net)))
        count = answer(net, inputs).shape[1]
    return {split: relabel(data, net, count, address) for split, data in splits.items()}


def _inspect_there(run: Any, data: str, out: Path, **options: Any) -> None:
    """The task of a worker: every epoch, into the folder, where they are then found."""
    inspect(run, data, out=out, **options)
