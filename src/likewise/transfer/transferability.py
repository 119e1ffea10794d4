"""SAT: how far an attack on one network fools another, over many networks, one new network, or a training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise import attacks
from likewise.attacks import Attack
from likewise.errors import InputError, OptionError, UndefinedError
from likewise.matrices.labelled import UNTRAINED
from likewise.matrices.shares import mean_of_two
from likewise.networks.names import untrained_networks
from likewise.networks.training.checkpoints import addresses_by_epoch
from likewise.transfer.classifiers import NOT_HERE, by_name, labelled, networks_and_data
from likewise.transfer.examples import AttackSettings
from likewise.transfer.matrix import TransferMatrix, warn_of_accuracies
from likewise.transfer.scores import NONE_RIGHT, percent_of, score_of
from likewise.transfer.session import Session
from likewise.views.show import Show, unknown_option
from likewise.work.store import open_store
from likewise.work.tasks import check_plain, is_remote

if TYPE_CHECKING:
    import pandas as pd

BATCH = 64


def sat(
    networks: Any,
    other: Any = None,
    data: Any = None,
    *,
    attack: str | Attack = "pgd",
    smoothed: bool = False,
    seed: int = 0,
    **options: Any,
) -> TransferMatrix:
    """Score how far networks are fooled by the same attacks: similarity by attack transferability (SAT).

    Each network is attacked once, at its own size and in [0, 1] before its own normalisation, and shown the examples
    of all. Call it as `sat(networks, data)` or `sat(a, b, data)`.

    Args:
        networks: An address or a module; or a list or mapping of them.
        other: The other network, where the first argument is one.
        data: Labelled images, or their address.
        attack: An attack or its name. All have `eps` 8/255 by default; `pgd` has the options of the paper, 50
            iterations of a tenth of `eps` from a random start.
        smoothed: Count half a hit more for every pair: among few inputs a pair may have none, and ln 0.01 for a score.
        seed: Draws random starts.
        **options: The options of the attack, such as `eps` and `iterations`, and how networks are shown (`store`,
            `device`, `batch_size`, `progress`; see `Show`). By default 64 images are attacked at a time; another
            `batch_size` draws other random starts. Every batch of examples is stored at once.

    Returns:
        The scores of all pairs, with rates, counts and answers.

    Raises:
        InputError: Fewer than two networks, no labels, or a network that cannot be attacked.
        UndefinedError: Two networks classify no input correctly both.

    Example:
        >>> import torch, likewise
        >>> from torch import nn
        >>> images = likewise.dataset("digits:test[:40]")
        >>> means = torch.stack([images.inputs[:][images.labels == k].mean(dim=0).flatten() for k in range(10)])
        >>> def nearest(scale):  # of the mean images of the classes
        ...     net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        ...     net[1].weight.data, net[1].bias.data = scale * means, -scale * means.square().sum(dim=1) / 2
        ...     return net
        >>> matrix = sat({"a": nearest(1.0), "b": nearest(3.0)}, images, eps=0.2, progress=False)
        >>> int(matrix.counts[0, 1]), round(float(matrix.rates[0, 1]), 2), round(matrix["a", "b"], 2)
        (39, 0.36, 3.74)
    """
    named, inputs = networks_and_data("sat", networks, other, data)
    if len(named) < 2:
        raise InputError(f"SAT compares networks with each other, and {len(named)} was given. Give at least two.")
    address = other if data is None else data
    images = address if isinstance(address, str) else inputs  # which workers of an engine can read too
    with attacked_session("sat", named, images, attack, seed, options) as session:
        answers = session.answers(named)
        if len(named) == 2 and not (answers.right[0] & answers.right[1]).any():
            raise UndefinedError(f"SAT is undefined for {answers.names[0]!r} and {answers.names[1]!r}: {NONE_RIGHT}")
        warn_of_accuracies(answers)
        stalled = {name: examples.stalled() for name, examples in session.attack(named).items()}
        classes = session.predictions((source, target) for target in named for source in named)
    predictions = np.stack([np.stack([classes[source, target] for target in named]) for source in named])
    about = {"data": session.data.name, **session.settings.facts()}
    about |= {"stalled": {name: count for name, count in stalled.items() if count}}
    untrained = untrained_networks(named, own_names=False)
    about |= {UNTRAINED: ", ".join(untrained)} if untrained else {}
    about |= {"smoothed": True} if smoothed else {}
    return TransferMatrix.of(answers, predictions, about, smoothed=smoothed)


@dataclass(frozen=True, eq=False)
class OneSided(Mapping[str, float]):
    """How far examples made from one network fool others: a mapping of names to scores.

    Attributes:
        network: The network that was attacked.
        names: The others.
        scores: One score per other network.
        percent: Of inputs that both classify correctly, how many percent the examples fool the other on.
        counts: How many inputs both classify correctly.
        low: The lower end of a 95 % interval of each score over inputs.
        high: The upper end.
    """

    network: str
    names: tuple[str, ...]
    scores: tuple[float, ...]
    percent: tuple[float, ...]
    counts: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __getitem__(self, name: str) -> float:
        return dict(zip(self.names, self.scores, strict=True))[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def one_sided(
    new: Any, zoo: Any, data: Any, attack: str | Attack = "pgd", *, seed: int = 0, **options: Any
) -> OneSided:
    """Compare a new network with a zoo by one attack alone: its examples are shown to all others.

    Args:
        new: The network that is attacked.
        zoo: The others, a list or a mapping by name.
        data: Labelled images, or their address.
        attack: An attack or its name, as in `sat`.
        seed: Draws random starts.
        **options: The options of the attack, and how networks are shown, as in `sat`.

    Returns:
        One score per network of the zoo, NaN where it and the new one classify no input correctly both;
        `Clusters.assign` takes it.
    """
    others = by_name(zoo)
    if not others:
        raise InputError("the zoo is empty. Give at least one network to compare the new one with.")
    ((name, network), *more) = by_name(new).items()
    if more:
        raise InputError(f"one network is compared with a zoo, and {1 + len(more)} were given. Give one.")
    name = name if name not in others else f"new {name}"
    networks = {name: network, **others}
    with attacked_session("one_sided", networks, data, attack, seed, options) as session:
        session.attack([name])
        classes = session.predictions([(name, other) for other in others])
        answers = session.answers(networks)
    both = answers.right[0] & answers.right[1:]
    fooled = np.stack([classes[name, other] != answers.labels for other in others]) & both
    hits, counts = fooled.sum(axis=1), both.sum(axis=1)
    percent, ends = percent_of(fooled, both), mean_of_two(hits, hits, hits, counts)
    columns = (score_of(percent), percent, counts, *(score_of(100 * end) for end in ends))
    return OneSided(name, tuple(others), *(tuple(column.tolist()) for column in columns))


def during(
    run: str | Path | Sequence[str | Path], data: Any, attack: str | Attack = "pgd", *, seed: int = 0, **options: Any
) -> pd.DataFrame:
    """Compare every epoch that a training kept with the last one, by SAT.

    Args:
        run: The folder of a training with kept epochs, or checkpoints in their order.
        data: Labelled images, or their address.
        attack: An attack or its name, as in `sat`.
        seed: Draws random starts.
        **options: The options of the attack, and how networks are shown, as in `sat`.

    Returns:
        One row per epoch, the last of which is the network with itself: the score `sat` with `low` and `high`, the ends
        of a 95 % interval over inputs. Scores are NaN where an epoch classifies none of the inputs correctly.
    """
    import pandas as pd

    epochs = {str(number): address for number, address in addresses_by_epoch(run).items()}
    if len(epochs) < 2:
        raise InputError(f"{run} has one network only. Give a training's folder with kept epochs (--keep-epochs).")
    last = list(epochs)[-1]
    with attacked_session("during", epochs, data, attack, seed, options) as session:
        session.attack(epochs)
        classes = session.predictions(dict.fromkeys((*((last, name) for name in epochs), *((n, last) for n in epochs))))
        answers = session.answers(epochs)
    both = answers.right & answers.right[-1]
    fooled = {pair: row != answers.labels for pair, row in classes.items()}
    there = np.stack([fooled[name, last] for name in epochs]) & both
    back = np.stack([fooled[last, name] for name in epochs]) & both
    percent = percent_of(there.astype(int) + back, both) / 2
    low, high = mean_of_two(there.sum(axis=1), back.sum(axis=1), (there & back).sum(axis=1), both.sum(axis=1))
    columns = {"epoch": [int(name) for name in epochs], "sat": score_of(percent), "percent": percent}
    columns |= {"low": score_of(100 * low), "high": score_of(100 * high)}
    return pd.DataFrame(columns | {"count": both.sum(axis=1), "accuracy": answers.accuracies})


@contextmanager
def attacked_session(
    verb: str,
    networks: Mapping[str, Any],
    data: Any,
    attack: str | Attack,
    seed: int,
    options: Mapping[str, Any],
    *,
    transfer: bool = True,
) -> Iterator[Session]:
    """Networks that have answered clean data; `options` are those of the attack and of `Show`."""
    show, rest = Show.read(verb, options, without=NOT_HERE, long=True)
    attack = attack if isinstance(attack, Attack) else attacks.get(attack)
    for name in rest.keys() - attack.options:
        if "Did you mean" in (sentence := unknown_option(verb, name, without=NOT_HERE)):
            raise OptionError(sentence)  # a slip in an option of `Show`; the attack names its own
    size = int(show.batch_size or BATCH)
    settings = AttackSettings.of(attack, rest, int(seed), size, transfer=transfer)  # before any pass
    if show.engine is not None:
        check_plain(verb, networks=networks, data=data)
        if show.store is None:
            raise InputError(
                "the workers of an engine leave examples in a store. Pass store=, a folder that all of them see."
            )
        show = show.with_engine()
    inputs = labelled(data)
    with open_store(show.store) as opened:
        folder = None if opened is None else opened.path
        session = Session(inputs, settings, folder, device=show.device, progress=show.progress)
        choices = show.per_network(networks)
        ready = {name: choices[name].for_attack(network) for name, network in networks.items()}
        if is_remote(show.engine):
            session.use_workers(show.engine, data, ready)
        for name, network in ready.items():
            session.add(name, network)
        yield session
