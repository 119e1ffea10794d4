"""What a domain is: it knows which networks each grounding needs, on which data each is trained, and where to look.

A grounding needs groups of networks. A group is a change of the training data or of the training, of some strength,
and a number of seeds. Groups of several groundings that need the same networks share them: the key of a network is a
hash of all that its weights depend on. A domain of your own is a class with the decorator `@domain`; most define no
more than their presets, their levels of change and their layers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import nn

from likewise._base.hashing import digest
from likewise._base.registry import Registry, parse_options
from likewise.data import Data, dataset
from likewise.data.address import parse
from likewise.data.changes import add_shortcut, randomise_labels
from likewise.errors import InputError, brief, did_you_mean
from likewise.networks import Settings
from likewise.networks import network as load_network
from likewise.views import Activations
from likewise.views.extract import extract

ChangeKind = Literal["labels", "shortcut", "augmentation"]
STANDARD = "standard"
_FIT = 2000  # training inputs that show whether a network learned them
_FORMAT = 2  # raised where the same description would give other networks
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Preset:
    """How many networks are trained, and on how many inputs."""

    seeds: int = 10  # networks that differ by their seed alone
    group: int = 5  # networks per group
    layered: int = 5  # networks whose layers are compared
    train: int | None = None  # inputs to train on, all if None
    probe: int | None = None  # inputs that networks are compared on, all if None
    options: Mapping[str, Any] = field(default_factory=dict)  # options of the network, beside those the domain gives it
    training: Mapping[str, Any] = field(default_factory=dict)  # settings of the training, beside those of the domain

    def override(self, changes: Mapping[str, Any]) -> Preset:
        """This preset but for some fields; options and training are added to."""
        names = [item.name for item in fields(self)]
        for name, value in changes.items():
            if name not in names:
                hint = did_you_mean(name, names)
                raise InputError(f"a preset has no field {name!r}.{hint} It has {', '.join(names)}.")
            if name not in ("options", "training") and value is not None and (type(value) is not int or value < 1):
                raise InputError(f"{name} of the preset is {value!r}. Give a whole number of at least 1.")
        merged = {name: {**getattr(self, name), **changes[name]} for name in ("options", "training") if name in changes}
        return replace(self, **{**changes, **merged})


@dataclass(frozen=True)
class Group:
    """Networks that are made alike: one change of some strength, and seeds."""

    name: str
    count: int
    kind: ChangeKind | None = None
    share: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkSpec:
    """All that the weights of one network depend on, and what it is called."""

    group: str
    number: int
    seed: int
    data: str
    address: str
    options: dict[str, Any]
    training: dict[str, Any]
    kind: ChangeKind | None = None
    share: float = 0.0
    change_seed: int = 0
    train: int | None = None

    @property
    def name(self) -> str:
        """What the network is called: its group and its number."""
        return f"{self.group}/{self.number}"

    @cached_property
    def key(self) -> str:
        """A hash of all that the weights depend on."""
        facts = {name: value for name, value in asdict(self).items() if name not in ("group", "number")}
        return digest([json.dumps([_FORMAT, facts], sort_keys=True, default=str)])

    @property
    def folder(self) -> str:
        """The name of its folder."""
        words = "".join(letter if letter.isalnum() else "-" for letter in self.group)
        return f"{words}-{self.number}-{self.key[:10]}"


@dataclass(frozen=True)
class Experiment:
    """What a domain is to do: a data set, a network, a preset, and which repetition."""

    data: str
    network: str
    preset: Preset
    preset_name: str
    seed: int = 0

    @property
    def data_name(self) -> str:
        """What the data is called, wherever its files are: flickr of flickr:/data/flickr."""
        return parse(self.data).source.name

    @property
    def as_in_paper(self) -> bool:
        """Whether the preset is the paper's, changed or not."""
        return self.preset_name.startswith("paper")


@dataclass(frozen=True, eq=False)
class LayerViews:
    """The layers of one network, the first first."""

    rows: Mapping[str, Activations]  # every layer as a matrix; maps averaged, to be compared with layers without maps
    flat: Mapping[str, Activations] = field(default_factory=dict)  # layers with maps, all positions in one row
    positions: Mapping[str, Activations] = field(default_factory=dict)  # layers with maps, positions as rows


class Domain:
    """One domain. Subclasses set the class variables and define how networks are built, changed and looked at."""

    name: ClassVar[str] = ""
    kind: ClassVar[str] = ""  # of inputs: graph, text, image
    data: ClassVar[tuple[str, ...]] = ()
    networks: ClassVar[Mapping[str, str]] = MappingProxyType({})  # addresses by name
    test_split: ClassVar[tuple[str, ...]] = ("test", "dev", "val")
    version: ClassVar[int] = 1  # raised where networks are made in another way, so that old runs are not resumed

    def experiment(self, data: str, network: str, preset: str | Mapping[str, Any], seed: int = 0) -> Experiment:
        """A data set and a network of this domain, checked, with the preset resolved.

        Args:
            data: The address of the data.
            network: A name of `networks`, or any address.
            preset: "paper" or "small", with changes as in "paper,seeds=3,epochs=2", or as a mapping.
            seed: Which repetition, from 0.
        """
        kind = parse(data).source.domain
        if kind != self.kind:
            raise InputError(
                f"the domain {self.name!r} has no data {data!r}, which holds {kind} inputs. It has "
                f"{', '.join(self.data)}, and takes any address of {self.kind} inputs."
            )
        if network not in self.networks and ":" not in network:
            raise InputError(
                f"the domain {self.name!r} has no network {network!r}.{did_you_mean(network, self.networks)} It has "
                f"{', '.join(self.networks)}, and takes any address like zoo:NAME."
            )
        if type(seed) is not int or seed < 0:
            raise InputError(f"the seed is {brief(seed)}. Give a whole number from 0.")
        changes = _preset_changes(preset) if isinstance(preset, str) else dict(preset)
        name = str(changes.pop("base", "small"))
        if name not in ("paper", "small"):
            raise InputError(f"no preset named {name!r}.{did_you_mean(name, ('paper', 'small'))} Give paper or small.")
        resolved = self.preset(name, data, network).override(changes)
        Settings().override(resolved.training)  # refuses what no training knows
        return Experiment(data, network, resolved, name if not changes else f"{name}, changed", seed)

    def preset(self, name: str, data: str, network: str) -> Preset:
        """The preset `paper` or `small` for a network on a data set.

        Args:
            name: "paper" or "small".
            data: The address of the data.
            network: A name of `networks`, or any address.
        """
        raise NotImplementedError

    def levels(self, kind: ChangeKind, experiment: Experiment) -> tuple[float, ...]:
        """The strengths of a change, one per group; 0 of labels and augmentation is the standard training.

        Args:
            kind: "labels", "shortcut" or "augmentation".
            experiment: The data, the network and the preset.
        """
        raise NotImplementedError

    def groups(self, grounding: str, experiment: Experiment) -> list[Group]:
        """The groups that a grounding needs; none where it cannot be made here.

        Args:
            grounding: Its name.
            experiment: The data, the network and the preset.
        """
        preset = experiment.preset
        if grounding in ("accuracy", "outputs"):
            return [Group(STANDARD, preset.seeds)]
        if grounding == "layers":
            return [Group(STANDARD, preset.layered)]
        if grounding == "family":
            changed = [group for kind in ("labels", "augmentation") for group in self.groups(kind, experiment)]
            return [Group(STANDARD, preset.group), *(group for group in changed if group.kind is not None)]
        if grounding in ("labels", "shortcut", "augmentation"):
            return [self._group(grounding, share, preset.group) for share in self.levels(grounding, experiment)]  # type: ignore[arg-type]
        return []

    def _group(self, kind: ChangeKind, share: float, count: int) -> Group:
        if share == 0 and kind != "shortcut":
            return Group(STANDARD, count)
        return Group(f"{kind} {share:g}", count, kind, share)

    def specs(self, grounding: str, experiment: Experiment) -> list[NetworkSpec]:
        """The networks of a grounding, group by group.

        Args:
            grounding: Its name.
            experiment: The data, the network and the preset.
        """
        return [
            self.spec(group, number, experiment)
            for group in self.groups(grounding, experiment)
            for number in range(group.count)
        ]

    def spec(self, group: Group, number: int, experiment: Experiment) -> NetworkSpec:
        """One network of a group. In `paper` groups have the same seeds, as in the reference.

        Args:
            group: What its networks have in common.
            number: Its number in the group.
            experiment: The data, the network and the preset.
        """
        seed = 1000 * experiment.seed + number + (0 if experiment.as_in_paper else self._offset(group, experiment))
        data, address, preset = experiment.data, self.address(experiment, seed), experiment.preset
        options = {**self.options(experiment), **group.options, **preset.options}
        training = {**self.training(experiment, group), **preset.training}
        change = (group.kind, group.share, self.change_seed(seed, experiment))
        return NetworkSpec(group.name, number, seed, data, address, options, training, *change, preset.train)

    def _offset(self, group: Group, experiment: Experiment) -> int:
        """Other seeds for every changed group: the weights they start from make briefly trained networks alike."""
        if group.kind is None:
            return 0
        kinds: tuple[ChangeKind, ...] = ("labels", "shortcut", "augmentation")
        changes = [(kind, share) for kind in kinds for share in self.levels(kind, experiment)]
        return 50 * (1 + changes.index((group.kind, group.share)))

    def family(self, spec: NetworkSpec) -> str:
        """What kind of training a network had, for the grounding `family`.

        Args:
            spec: All that the weights of one network depend on.
        """
        return spec.kind or STANDARD

    def address(self, experiment: Experiment, seed: int) -> str:
        """The address of a network, which may depend on the seed.

        Args:
            experiment: The data, the network and the preset.
            seed: Of the network.
        """
        return self.networks.get(experiment.network, experiment.network)

    def options(self, experiment: Experiment) -> dict[str, Any]:
        """Options of the network.

        Args:
            experiment: The data, the network and the preset.
        """
        return {}

    def training(self, experiment: Experiment, group: Group) -> dict[str, Any]:
        """Settings of the training.

        Args:
            experiment: The data, the network and the preset.
            group: What its networks have in common.
        """
        return {}

    def change_seed(self, seed: int, experiment: Experiment) -> int:
        """The seed of a change of the data: by default one for all networks of a run.

        Args:
            seed: Of the network.
            experiment: The data, the network and the preset.
        """
        return experiment.seed

    def load(self, data: str, split: str) -> Data:
        """A split of the data; `probe` is the first of the splits for tests that it has.

        Args:
            data: The address of the data.
            split: A split, or "probe".
        """
        if split == "probe":
            splits = parse(data).source.splits
            split = next((name for name in self.test_split if name in splits), "test")
        return _dataset(data, split)

    def changed(self, data: Data, spec: NetworkSpec, share: float | None = None) -> Data:
        """Random labels, or a shortcut to them, as `likewise.data` makes them; augmentation is left to the training.

        Args:
            data: The data.
            spec: All that the weights of one network depend on.
            share: The strength of the change; that of the network by default.
        """
        strength = spec.share if share is None else share
        if spec.kind == "labels":
            return randomise_labels(data, strength, spec.change_seed)
        return add_shortcut(data, strength, spec.change_seed) if spec.kind == "shortcut" else data

    def train_data(self, spec: NetworkSpec) -> Data:
        """What a network is trained on.

        Args:
            spec: All that the weights of one network depend on.
        """
        data = self.load(spec.data, "train")
        data = data if spec.train is None else data[: spec.train]
        return self.changed(data, spec)

    def validation_data(self, spec: NetworkSpec) -> Data | None:
        """What it is validated on while it trains; None where that decides nothing.

        Args:
            spec: All that the weights of one network depend on.
        """
        return None

    def settings(self, spec: NetworkSpec) -> Settings:
        """The settings of its training.

        Args:
            spec: All that the weights of one network depend on.
        """
        return Settings().override({"seed": spec.seed, **spec.training})

    def build(self, spec: NetworkSpec, data: Data) -> nn.Module:
        """The network before it is trained.

        Args:
            spec: All that the weights of one network depend on.
            data: What it is trained on.
        """
        return load_network(spec.address, data=data, seed=spec.seed, untrained=True, **spec.options)

    def probe(self, spec: NetworkSpec, experiment: Experiment) -> Data:
        """The inputs that networks are compared on; in the shortcut test with uninformative shortcuts.

        Args:
            spec: All that the weights of one network depend on.
            experiment: The data, the network and the preset.
        """
        data = self.plain_probe(spec, experiment)
        return self.changed(data, spec, self.uninformative(experiment)) if spec.kind == "shortcut" else data

    def plain_probe(self, spec: NetworkSpec, experiment: Experiment) -> Data:
        """The probe without shortcuts.

        Args:
            spec: All that the weights of one network depend on.
            experiment: The data, the network and the preset.
        """
        data = self.load(spec.data, "probe")
        return data if experiment.preset.probe is None else data[: experiment.preset.probe]

    def uninformative(self, experiment: Experiment) -> float:
        """The share of right shortcuts at which they are uninformative.

        Args:
            experiment: The data, the network and the preset.
        """
        return 0.0

    def checks(self, spec: NetworkSpec, experiment: Experiment) -> dict[str, Data]:
        """What shows that a change was learned: `fit` on the training data, `shortcut` with right ones, `augmented`.

        Args:
            spec: All that the weights of one network depend on.
            experiment: The data, the network and the preset.
        """
        fit = {"fit": self.train_data(spec)[:_FIT]}
        if spec.kind == "shortcut":
            return fit | {"shortcut": self.changed(self.plain_probe(spec, experiment), spec, 1.0)}
        return fit | {"augmented": self.augmented(self.probe(spec, experiment), experiment)}

    def augmented(self, probe: Data, experiment: Experiment) -> Data:
        """The probe under the strongest augmentation of the test, the same for every network.

        Args:
            probe: The inputs that networks are compared on.
            experiment: The data, the network and the preset.
        """
        raise NotImplementedError

    def view(self, net: nn.Module, probe: Data, **show: Any) -> Activations:
        """The representation that networks are compared by: by default the input of the classifier.

        Args:
            net: The network.
            probe: The inputs that networks are compared on.
            **show: How networks are shown; see `likewise.Show`.
        """
        view: Activations = extract(net, probe, "penultimate", **show)
        return view

    def layer_views(self, net: nn.Module, probe: Data, experiment: Experiment, **show: Any) -> LayerViews:
        """The layers for the layer test.

        Args:
            net: The network.
            probe: The inputs that networks are compared on.
            experiment: The data, the network and the preset.
            **show: How networks are shown; see `likewise.Show`.
        """
        raise NotImplementedError


def _preset_changes(text: str) -> dict[str, Any]:
    """Sizes of a preset, and settings of the training by their name.

    >>> _preset_changes("paper,seeds=3,epochs=2")
    {'base': 'paper', 'seeds': 3, 'training': {'epochs': 2}}
    """
    name, _, rest = text.partition(",")
    options = parse_options(rest, "preset") if rest else {}
    sizes = {field.name for field in fields(Preset)} - {"options", "training"}
    training = {key: value for key, value in options.items() if key not in sizes}
    changes = {key: value for key, value in options.items() if key in sizes}
    return {"base": name} | changes | ({"training": training} if training else {})


@lru_cache(maxsize=6)
def _dataset(address: str, split: str) -> Data:
    return _interleaved(dataset(address, split=split))


def _interleaved(data: Data) -> Data:
    """Inputs that come class by class, as folders of classes give them, one of every class in turn.

    The first thousand of them then hold every class, whatever is cut or changed later.
    """
    labels = data.labels
    if data.domain == "graph" or labels is None or len(labels) < 2 or bool((labels[1:] < labels[:-1]).any()):
        return data
    counts = torch.bincount(labels)
    rank = torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels]  # the how-manieth of its class
    return replace(data[torch.argsort(rank, stable=True)], name=data.name)


DOMAINS: Registry[Domain] = Registry("domain", group="likewise.domains", modules=("likewise.benchmark.domains.*",))
D = TypeVar("D", bound=type[Domain])


def domain(name: str, *aliases: str) -> Callable[[D], D]:
    """Register a domain.

    Args:
        name: Its name.
        *aliases: Other names for it.

    Returns:
        A decorator of a subclass of `Domain`, of which one instance is made.
    """

    def declare(kind: D) -> D:
        kind.name = name
        DOMAINS.add(name, kind(), aliases, module=kind.__module__)
        return kind

    return declare
