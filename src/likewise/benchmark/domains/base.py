"""What a domain is: it knows which networks each grounding needs, on which data each is trained, and where to look.

A grounding needs groups of networks. A group is a change of the training data or of the training, of some strength,
and a number of seeds. Groups of several groundings that ask for the same networks share them: a network goes by all
that its weights depend on. A domain of your own is a class with the decorator `@domain`; most say no more than their
presets, their levels of change and their layers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

from torch import nn

from likewise._base.hashing import digest
from likewise._base.registry import Registry
from likewise.data import Data, dataset
from likewise.data.address import parse
from likewise.data.changes import add_shortcut, randomise_labels
from likewise.errors import InputError, brief, did_you_mean
from likewise.networks import Settings
from likewise.networks import network as load_network
from likewise.views import Activations
from likewise.views.extract import extract

Kind = Literal["labels", "shortcut", "augmentation"]
STANDARD = "standard"
_FIT = 2000  # training inputs by which it is seen whether they were learned
_FORMAT = 2  # raised where the same description would give other networks
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Preset:
    """How much is trained, and on how much it is looked at.

    seeds     networks that differ by their seed alone
    group     networks per group
    layered   networks whose layers are compared
    train     inputs to train on, all if None
    probe     inputs that networks are compared on, all if None
    options   of the network, beside those the domain gives it
    training  settings of the training, beside those of the domain
    """

    seeds: int = 10
    group: int = 5
    layered: int = 5
    train: int | None = None
    probe: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def override(self, changes: Mapping[str, Any]) -> Preset:
        """This preset but for some fields; options and training are added to."""
        names = [one.name for one in fields(self)]
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
    kind: Kind | None = None
    share: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """All that the weights of one network depend on, and what it is called."""

    group: str
    number: int
    seed: int
    data: str
    address: str
    options: dict[str, Any]
    training: dict[str, Any]
    kind: Kind | None = None
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
class Case:
    """What is asked of a domain: a data set, a network, how much of it, and which repetition."""

    data: str
    network: str
    preset: Preset
    preset_name: str
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Stack:
    """The layers of one network, the first first.

    rows       every layer as a matrix; maps are averaged, so that they can be held against layers without maps
    flat       layers with maps, all positions in one row
    positions  layers with maps, positions as rows
    """

    rows: Mapping[str, Activations]
    flat: Mapping[str, Activations] = field(default_factory=dict)
    positions: Mapping[str, Activations] = field(default_factory=dict)


class Domain:
    """One domain. Subclasses set the class variables and say how networks are built, changed and looked at."""

    name: ClassVar[str] = ""
    kind: ClassVar[str] = ""  # of inputs: graph, text, image
    data: ClassVar[tuple[str, ...]] = ()
    networks: ClassVar[Mapping[str, str]] = MappingProxyType({})  # addresses by name
    test_split: ClassVar[tuple[str, ...]] = ("test", "dev", "val")
    version: ClassVar[int] = 1  # raised where networks are made in another way, so that old runs are not resumed

    # --- what is asked for ------------------------------------------------------------------------

    def case(self, data: str, network: str, preset: str | Mapping[str, Any], seed: int = 0) -> Case:
        """A data set and a network of this domain, checked, with the preset resolved."""
        held = parse(data).source.domain
        if held != self.kind:
            raise InputError(
                f"the domain {self.name!r} has no data {data!r}, which holds {held} inputs. It has "
                f"{', '.join(self.data)}, and takes any address of {self.kind} inputs."
            )
        if network not in self.networks and ":" not in network:
            raise InputError(
                f"the domain {self.name!r} has no network {network!r}.{did_you_mean(network, self.networks)} It has "
                f"{', '.join(self.networks)}, and takes any address like zoo:NAME."
            )
        if type(seed) is not int or seed < 0:
            raise InputError(f"the seed is {brief(seed)}. Give a whole number from 0.")
        changes = {} if isinstance(preset, str) else dict(preset)
        name = preset if isinstance(preset, str) else str(changes.pop("base", "small"))
        if name not in ("paper", "small"):
            raise InputError(f"no preset named {name!r}.{did_you_mean(name, ('paper', 'small'))} Give paper or small.")
        found = self.preset(name, data, network).override(changes)
        return Case(data, network, found, name if not changes else f"{name}, changed", seed)

    def preset(self, name: str, data: str, network: str) -> Preset:
        """The preset `paper` or `small` for a network on a data set."""
        raise NotImplementedError

    # --- which networks ---------------------------------------------------------------------------

    def levels(self, kind: Kind, case: Case) -> tuple[float, ...]:
        """The strengths of a change, one per group; 0 of labels and augmentation is the standard training."""
        raise NotImplementedError

    def groups(self, grounding: str, case: Case) -> list[Group]:
        """The groups that a grounding needs; none where it cannot be made here."""
        preset = case.preset
        if grounding in ("accuracy", "outputs"):
            return [Group(STANDARD, preset.seeds)]
        if grounding == "layers":
            return [Group(STANDARD, preset.layered)]
        if grounding == "family":
            changed = [group for kind in ("labels", "augmentation") for group in self.groups(kind, case)]
            return [Group(STANDARD, preset.group), *(group for group in changed if group.kind is not None)]
        if grounding in ("labels", "shortcut", "augmentation"):
            return [self._group(grounding, share, preset.group) for share in self.levels(grounding, case)]  # type: ignore[arg-type]
        return []

    def _group(self, kind: Kind, share: float, count: int) -> Group:
        if share == 0 and kind != "shortcut":
            return Group(STANDARD, count)
        return Group(f"{kind} {share:g}", count, kind, share)

    def specs(self, grounding: str, case: Case) -> list[Spec]:
        """The networks of a grounding, group by group."""
        return [
            self.spec(group, number, case) for group in self.groups(grounding, case) for number in range(group.count)
        ]

    def spec(self, group: Group, number: int, case: Case) -> Spec:
        """One network of a group. In `paper` groups have the same seeds, as in the reference."""
        seed = 1000 * case.seed + number + (0 if case.preset_name.startswith("paper") else self._offset(group, case))
        options = {**self.options(case), **group.options, **case.preset.options}
        return Spec(
            group.name,
            number,
            seed,
            case.data,
            self.address(case, seed),
            options,
            {**self.training(case, group), **case.preset.training},
            group.kind,
            group.share,
            self.change_seed(seed, case),
            case.preset.train,
        )

    def _offset(self, group: Group, case: Case) -> int:
        """Other seeds for every changed group: networks trained for a short while are alike by where they started."""
        if group.kind is None:
            return 0
        kinds: tuple[Kind, ...] = ("labels", "shortcut", "augmentation")
        places = [(kind, share) for kind in kinds for share in self.levels(kind, case)]
        return 50 * (1 + places.index((group.kind, group.share)))

    def family(self, spec: Spec) -> str:
        """What kind of training a network had, for the grounding `family`."""
        return spec.kind or STANDARD

    def address(self, case: Case, seed: int) -> str:
        """The address of a network, which may depend on the seed."""
        return self.networks.get(case.network, case.network)

    def options(self, case: Case) -> dict[str, Any]:
        """Options of the network."""
        return {}

    def training(self, case: Case, group: Group) -> dict[str, Any]:
        """Settings of the training."""
        return {}

    def change_seed(self, seed: int, case: Case) -> int:
        """The seed of a change of the data: one for all networks of a run, unless a domain draws anew for each."""
        return case.seed

    # --- how they are made ------------------------------------------------------------------------

    def load(self, data: str, split: str) -> Data:
        """A split of the data; `probe` is the first of the splits for tests that it has."""
        if split == "probe":
            known = parse(data).source.splits
            split = next((name for name in self.test_split if name in known), "test")
        return _dataset(data, split)

    def changed(self, data: Data, spec: Spec, share: float | None = None) -> Data:
        """Random labels, or a shortcut to them, as `likewise.data` makes them; augmentation is left to the training."""
        strength = spec.share if share is None else share
        if spec.kind == "labels":
            return randomise_labels(data, strength, spec.change_seed)
        return add_shortcut(data, strength, spec.change_seed) if spec.kind == "shortcut" else data

    def train_data(self, spec: Spec) -> Data:
        """What a network is trained on."""
        data = self.load(spec.data, "train")
        data = data if spec.train is None else data[: spec.train]
        return self.changed(data, spec)

    def validation_data(self, spec: Spec) -> Data | None:
        """What it is validated on while it trains; None where that decides nothing."""
        return None

    def settings(self, spec: Spec) -> Settings:
        """The settings of its training."""
        return Settings().override({"seed": spec.seed, **spec.training})

    def build(self, spec: Spec, data: Data) -> nn.Module:
        """The network before it is trained."""
        return load_network(spec.address, data=data, seed=spec.seed, untrained=True, **spec.options)

    def probe(self, spec: Spec, case: Case) -> Data:
        """The inputs that networks are compared on; those of the shortcut test hold shortcuts that say nothing."""
        data = self.plain_probe(spec, case)
        return self.changed(data, spec, self.uninformative(case)) if spec.kind == "shortcut" else data

    def plain_probe(self, spec: Spec, case: Case) -> Data:
        """The probe without shortcuts."""
        data = self.load(spec.data, "probe")
        return data if case.preset.probe is None else data[: case.preset.probe]

    def uninformative(self, case: Case) -> float:
        """The share of right shortcuts at which they say nothing."""
        return 0.0

    def checks(self, spec: Spec, case: Case) -> dict[str, Data]:
        """What shows that a change was learned: `fit` on the training data, `shortcut` with right ones, `augmented`."""
        found = {"fit": self.train_data(spec)[:_FIT]}
        if spec.kind == "shortcut":
            found["shortcut"] = self.changed(self.plain_probe(spec, case), spec, 1.0)
        else:
            found["augmented"] = self.augmented(self.probe(spec, case), case)
        return found

    def augmented(self, probe: Data, case: Case) -> Data:
        """The probe under the strongest augmentation of the test, the same for every network."""
        raise NotImplementedError

    # --- what is looked at ------------------------------------------------------------------------

    def view(self, net: nn.Module, probe: Data, **how: Any) -> Activations:
        """The representation that networks are compared by: by default what the classifier is given."""
        found: Activations = extract(net, probe, "penultimate", **how)
        return found

    def stack(self, net: nn.Module, probe: Data, case: Case, **how: Any) -> Stack:
        """The layers for the layer test."""
        raise NotImplementedError


@lru_cache(maxsize=6)
def _dataset(address: str, split: str) -> Data:
    return dataset(address, split=split)


DOMAINS: Registry[Domain] = Registry("domain", group="likewise.domains", modules=("likewise.benchmark.domains.*",))
D = TypeVar("D", bound=type[Domain])


def domain(name: str, *aliases: str) -> Callable[[D], D]:
    """Name a domain; the class is made once, and the first line of its docstring says what it is."""

    def declare(kind: D) -> D:
        kind.name = name
        DOMAINS.add(name, kind(), aliases, module=kind.__module__)
        return kind

    return declare
