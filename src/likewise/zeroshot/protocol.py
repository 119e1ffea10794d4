"""The test: a network trained without each class in turn and once with all, and what it answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Unpack

import numpy as np
import torch

from likewise._base.arrays import Array
from likewise._base.progress import Progress
from likewise.data import Data, held_out
from likewise.errors import InputError, WorkerError, brief
from likewise.networks.anatomy.outputs import check_output_kind
from likewise.networks.training.settings import SettingsDict
from likewise.work.engines import Engine, Local, WorkerDied, engine_of
from likewise.work.store import Store, open_store
from likewise.zeroshot.folds import Fold, Network, Source, check_network, read_answers, run_fold, with_key
from likewise.zeroshot.presets import preset_of
from likewise.zeroshot.result import ZeroShot, check_classes
from likewise.zeroshot.soft_labels import soft_labels

Split = Literal["train", "test"]
StoreLike = Store | str | os.PathLike[str] | None
_SPLITS = ("train", "test")


def run(
    network: Network,
    data: Data | str,
    *,
    preset: str = "paper",
    seeds: int = 1,
    split: Split = "train",
    test: Data | str | None = None,
    store: StoreLike = None,
    engine: Any = None,
    workers: int | None = None,
    engine_options: Mapping[str, Any] | str | None = None,
    device: Any = None,
    progress: bool = True,
    **changes: Unpack[SettingsDict],
) -> ZeroShot:
    """Raw Zero-Shot of one architecture: what it makes of each class when it never saw it.

    It is trained without each class and once on all. The classes left out are shown afterwards.

    Args:
        network: An address (`zoo:lenet`, `timm:...`, `file.py:function`) or a function of the number of classes.
        data: Labelled data of three classes or more, or its address.
        preset: "paper" trains as the paper's code did, "small" takes minutes: 5 epochs, 500 samples per class.
        seeds: How many trainings there are of each.
        split: The samples that are shown: "train" as in the paper, or "test".
        test: Held-out data; by default that of the data's address.
        store: A folder for networks and answers: rerun with it to resume, in the middle of a class too.
        engine: "processes", "dask", "ray", "slurm" or an executor trains several classes at a time; by default one
            after another. Its workers see the folder of the store.
        workers: How many trainings run at a time, where the engine leaves it open.
        engine_options: What the engine's library takes for every training, such as `{"num_gpus": 1}`.
        device: Where networks are trained.
        progress: Whether to show a progress bar.
        **changes: Settings of `likewise.train` that differ from the preset, such as `epochs=20`.

    Raises:
        InputError: The network cannot be built with fewer classes, the data have too few, or an option is unknown.
        WorkerError: A worker of the engine died.
    """
    job = _prepare(network, data, test, preset, device, dict(changes))
    _check(job, split, seeds)
    with _folder(store) as folder:
        runner, threads = _engine(engine, workers, engine_options)
        left_out: list[tuple[str, ...]] = [*((name,) for name in job.train.classes), ()]
        first = job.fold.settings.seed
        folds = [job.without(classes, folder, first + seed, threads) for seed in range(seeds) for classes in left_out]
        _run_all(folds, runner, job.name, progress)
        result = _gather(job, folds, seeds, split, preset)
        if store is not None:
            weights = [str(fold.weights.resolve()) for fold in folds if not fold.without]
            result = replace(result, about={**result.about, "weights": weights})
        return result


def unseen(
    network: Network,
    data: Data | str,
    classes: Sequence[str],
    *,
    preset: str = "paper",
    split: Split = "train",
    test: Data | str | None = None,
    store: StoreLike = None,
    device: Any = None,
    **changes: Unpack[SettingsDict],
) -> dict[str, Array]:
    """Soft labels of several classes by one network that saw none of them, for `davies_bouldin`.

    Args:
        network: An address, or a function of the number of classes.
        data: Labelled data, or its address.
        classes: The classes that are left out together, two or more.
        preset: How the network is trained, as in `run`.
        split: The samples that are shown: "train" or "test".
        test: Held-out data; by default that of the data's address.
        store: A folder for the network and its answers: rerun with it to resume.
        device: Where the network is trained.
        **changes: Settings of `likewise.train` that differ from the preset.

    Returns:
        Soft labels (samples, classes that are left) by class.

    Raises:
        InputError: Fewer than two classes are left out or left, or an option is unknown.
    """
    job = _prepare(network, data, test, preset, device, dict(changes))
    names = tuple(dict.fromkeys(classes))
    left = len(job.train.classes) - len(names)
    if len(names) < 2 or left < 2:
        raise InputError(f"{len(names)} classes are left out and {left} are left. Leave out two or more, of two more.")
    _check(job, split, 1)
    with _folder(store) as folder:
        fold = job.without(names, folder, job.fold.settings.seed, None)
        run_fold(fold)
        tensors, facts = read_answers(fold.answers)
        rows = soft_labels(tensors[split].numpy().astype(np.float64), check_output_kind(facts["answers"]))
    samples = job.samples(split)
    numbers = [samples.classes.index(name) for name in names]
    labels = samples.labels[torch.isin(samples.labels, torch.tensor(numbers))].numpy()
    return {name: rows[labels == number] for name, number in zip(names, numbers, strict=True)}


@dataclass(frozen=True, eq=False)
class _Job:
    """What all folds of a run share; `fold` is one without classes and a folder."""

    name: str
    train: Data
    test: Data | None
    fold: Fold

    def without(self, classes: tuple[str, ...], folder: Path, seed: int, threads: int | None) -> Fold:
        settings = replace(self.fold.settings, seed=seed)
        fold = replace(self.fold, without=classes, store=folder, settings=settings, threads=threads)
        return with_key(fold, self.train, self.test)

    def samples(self, split: Split) -> Data:
        """The data that is shown after the trainings."""
        data = self.train if split == "train" else self.test
        assert data is not None
        return data


def _prepare(network: Any, data: Any, test: Any, preset: str, device: Any, changes: dict[str, Any]) -> _Job:
    check_network(network)
    training = preset_of(preset, network)
    settings = training.settings.override(changes, list(run.__kwdefaults__ or ()))
    if test is None and isinstance(data, str):
        test = held_out(data)
    train_source = Source(_data_or_address(data), training.per_class)
    test_source = None if test is None else Source(_data_or_address(test), training.per_class)
    train_data = train_source.open()
    test_data = None if test_source is None else test_source.open()
    options = dict(training.options) if isinstance(network, str) else {}
    name = network if isinstance(network, str) else getattr(network, "__name__", type(network).__name__)
    fold = Fold(network, options, train_source, test_source, settings, (), Path(), "", device)
    return _Job(name, train_data, test_data, fold)


def _data_or_address(data: Any) -> Data | str:
    if isinstance(data, (Data, str)):
        return data
    if isinstance(data, os.PathLike):
        return os.fspath(data)
    raise InputError(
        f"the data is {brief(data)}, which does not say what its classes are. Give an address, or likewise.data.Data "
        "of inputs, labels and classes."
    )


def _check(job: _Job, split: str, seeds: int) -> None:
    if split not in _SPLITS:
        raise InputError(f"split is {split!r}. Give 'train' or 'test'.")
    if not isinstance(seeds, int) or seeds < 1:
        raise InputError(f"seeds is {seeds!r}. Give how many trainings there are of each, at least 1.")
    if split == "test" and job.test is None:
        raise InputError(f"{job.train.name!r} has no held-out split of its own. Give test=, or split='train'.")
    check_classes(job.train.name, job.train.classes)
    for data in (job.train, job.test):
        if data is None or (data is job.test and split == "train"):
            continue
        labels = data.need_labels("leave out a class")
        empty = [name for number, name in enumerate(data.classes) if not bool((labels == number).any())]
        if empty:
            raise InputError(
                f"{data.name!r} has no samples of class {empty[0]!r}, so nothing can be said of it. Give some, or "
                "likewise.data.changes.without_class of the data."
            )
    if job.test is not None and job.test.classes != job.train.classes:
        raise InputError(
            f"{job.train.name!r} and {job.test.name!r} have different classes, or the same in another order. Give "
            "splits of one data set."
        )


@contextmanager
def _folder(store: StoreLike) -> Iterator[Path]:
    """The folder of a store; a temporary one where there is none."""
    with open_store(store) as opened:
        if opened is not None:
            yield opened.path
            return
        with TemporaryDirectory(prefix="likewise-") as folder:
            yield Path(folder)


def _engine(name: Any, workers: int | None, options: Mapping[str, Any] | str | None) -> tuple[Engine, int | None]:
    """The engine, and how many threads each of its workers may take; None for this process."""
    engine = engine_of(name, workers=workers, options=options)
    if name is None:
        return Local(1), None
    return engine, None if isinstance(engine, Local) else max(1, torch.get_num_threads() // engine.workers)


def _run_all(folds: Sequence[Fold], engine: Engine, name: str, progress: bool) -> None:
    with Progress(len(folds), f"training {name}", show=progress) as bar:
        for fold, done in engine.run(run_fold, folds):
            if isinstance(done, WorkerDied):
                what = f"without {fold.without[0]!r}" if fold.without else "on all classes"
                raise WorkerError(f"{name} {what} was not trained: {done.reason}. Run again with the store to resume.")
            bar.advance()


def _gather(job: _Job, folds: Sequence[Fold], seeds: int, split: Split, preset: str) -> ZeroShot:
    """The result, from the answers that the folds left."""
    samples = job.samples(split)
    n, full, rest, scores = len(samples.classes), [], [], []
    labels = samples.labels.numpy()
    facts: dict[str, Any] = {}
    seconds = 0.0
    for seed in range(seeds):
        of_seed = [read_answers(fold.answers) for fold in folds[seed * (n + 1) : (seed + 1) * (n + 1)]]
        *without, (whole, facts) = of_seed
        full.append(tuple(whole[split].numpy()[labels == i] for i in range(n)))
        rest.append(tuple(tensors[split].numpy().copy() for tensors, _ in without))
        scores.append([one["accuracy"]["train" if job.test is None else "test"] for _, one in of_seed])
        seconds += sum(one["seconds"] for _, one in of_seed)
    settings = {name: value for name, value in asdict(job.fold.settings).items() if not callable(value)}
    about = {
        "data": job.train.name,
        "accuracy on": job.train.name if job.test is None else job.test.name,
        "preset": preset,
        "settings": settings,
        "seconds": round(seconds, 1),
        **{name: facts[name] for name in ("parameters", "depth")},
    }
    accuracy = np.array(scores)
    answers = check_output_kind(facts["answers"])
    return ZeroShot(
        job.name, samples.classes, tuple(full), tuple(rest), answers, split, accuracy[:, -1], accuracy[:, :-1], about
    )
