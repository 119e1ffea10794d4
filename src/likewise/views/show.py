"""How networks are shown data: the options that every verb and command shares, written and checked once.

A verb takes `data` and `layers` by name, the rest as `**options`, and reads them by `Show.read`. The commands derive
their options from the fields of `Show`. `ShowOptions` repeats names and types for editors and type checkers, which
cannot read them off a dataclass; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from likewise._base.names import short_names
from likewise.errors import InputError, OptionError, brief, did_you_mean, quoted_list

if TYPE_CHECKING:
    from likewise.views.reduction import Reduction


class ShowOptions(TypedDict, total=False):
    """The fields of `Show` as keywords of a function, but for `data` and `layers`."""

    head: str | Mapping[str, str] | None
    reduce: Reduction | str | None
    transform: Any
    mean: Any
    std: Any
    batch_size: int | None
    num_workers: int | None
    device: Any
    dtype: str | None
    store: Any
    progress: bool
    engine: Any
    workers: int | None
    engine_options: Mapping[str, Any] | str | None


ENGINE = ("engine", "workers", "engine_options")  # fields of long jobs, which run on engines


def _facts(help: str, option: Any = None, least: int | None = None) -> dict[str, Any]:
    """What the commands say of a field, its type as an option of a command, where commands have one, and its least."""
    return {"help": help, "option": option, "least": least}


@dataclass(frozen=True)
class Show:
    """How networks are shown data, for every function that looks at networks.

    Attributes:
        data: What networks are shown: an address such as "cifar10:test[:1000]", data, an array `(n, ...)`, a dataset,
            or an iterable of batches.
        layers: The layers to look at, for all networks or as `{network: layers}`. A name ("layer1.0"), a glob
            ("layer*.conv1"), "all", "blocks", "penultimate" (what the classifier receives), "embedding" (the
            representation of a network without classifier) or "logits". By default "penultimate" where there is a
            classifier, else "embedding".
        head: The name of the classifier, where it cannot be found; for all networks or as `{network: name}`.
        reduce: How maps and tokens become one row per input: "mean", "cls", "last", "flatten" or "spatial".
        transform: A function from a PIL image to the tensor that the network takes, normalised if it wants that, or
            "FILE.py:function"; for all networks or as `{network: function}`. By default the transform that comes with a
            network, and images as the data has them where none does. Networks that are attacked take one that only
            normalises.
        mean: What images in [0, 1] are normalised by: a number, or one per channel; for all networks or as
            `{network: mean}`. By default what comes with a network. What an address says takes precedence.
        std: The deviation they are divided by, in the same forms.
        batch_size: How many inputs are shown at a time. By default as many as fit; rows depend on it by rounding only.
        num_workers: How many processes decode image files ahead of the network. By default one per core, and none where
            the decoded images fit in memory and the network runs on the CPU.
        device: Where networks run and views are compared, such as "cuda:0". By default networks of an address run on
            the accelerator, if there is one, modules where they are, and views are compared where they are kept.
        dtype: The precision networks run in: "float32", or by autocast "float16" or "bfloat16". By default that of
            their weights.
        store: A folder: activations and scores are kept there at once. Rerun with the same folder to resume.
        progress: Whether progress is shown.
        engine: Where long jobs run: None for this process, "processes", "dask", "ray", "slurm", any of these with an
            address ("dask:tcp://10.0.0.1:8786"), or an executor. Workers are sent addresses and leave what they make in
            the store.
        workers: How many tasks run at a time, where the engine leaves it open.
        engine_options: What the engine's library takes for every task, such as `{"num_gpus": 1}` of Ray, or typed:
            "num_gpus=1".
    """

    data: Any = field(default=None, metadata=_facts("What to show networks, like cifar10:test[:1000].", str | None))
    layers: str | Sequence[str] | Mapping[str, Any] | None = field(
        default=None,
        metadata=_facts("Layers to look at; NETWORK:LAYER for one network. May be repeated.", list[str] | None),
    )
    head: str | Mapping[str, str] | None = field(
        default=None, metadata=_facts("The classifier, if it cannot be found; or NETWORK:LAYER.", list[str] | None)
    )
    reduce: Any = field(
        default=None, metadata=_facts("For tokens and maps: mean, cls, last, flatten, spatial.", str | None)
    )
    transform: Any = field(default=None, metadata=_facts("FILE.py:function, from a PIL image to a tensor.", str | None))
    mean: Any = field(
        default=None, metadata=_facts("Images are normalised by it: 0.5, or one per channel.", str | None)
    )
    std: Any = field(
        default=None, metadata=_facts("The deviation they are divided by: 0.5, or one per channel.", str | None)
    )
    batch_size: int | None = field(
        default=None, metadata=_facts("Inputs shown at a time; else as many as fit.", int | None, 1)
    )
    num_workers: int | None = field(
        default=None, metadata=_facts("Processes that decode image files ahead; else as many as help.", int | None)
    )
    device: Any = field(default=None, metadata=_facts("Such as cuda:0.", str | None))
    dtype: str | None = field(
        default=None, metadata=_facts("Precision: float32, or float16, bfloat16 by autocast.", str | None)
    )
    store: Any = field(default=None, metadata=_facts("Folder to keep activations and scores in.", Path | None))
    progress: bool = field(default=True, metadata=_facts("Whether progress is shown."))
    engine: Any = field(
        default=None, metadata=_facts("Where it runs: processes[:N], dask[:ADDRESS], ray[:ADDRESS], slurm.", str | None)
    )
    workers: int | None = field(default=None, metadata=_facts("Tasks at a time on the engine.", int | None, 1))
    engine_options: Mapping[str, Any] | str | None = field(
        default=None, metadata=_facts("What every task takes, like num_gpus=1 or slurm_partition=gpu.", str | None)
    )

    def __post_init__(self) -> None:
        if self.batch_size is not None and not (isinstance(self.batch_size, Integral) and self.batch_size >= 1):
            raise InputError(f"batch_size is {brief(self.batch_size)}. Give at least 1.")
        if self.num_workers is not None and not (isinstance(self.num_workers, Integral) and self.num_workers >= 0):
            raise InputError(f"num_workers is {brief(self.num_workers)}. Give 0 or more.")
        if self.store is not None and not (isinstance(self.store, (str, PathLike)) or hasattr(self.store, "path")):
            raise InputError(f"store is {brief(self.store)}. Give a folder.")
        if (self.mean is None) != (self.std is None) or (self.mean is not None and self.transform is not None):
            names = [name for name in ("mean", "std", "transform") if getattr(self, name) is not None]
            raise InputError(
                f"{' and '.join(names)} does not say how images are normalised. Give mean and std, or transform alone."
            )
        if isinstance(self.reduce, str):
            from likewise.views.reduction import check_reduction

            check_reduction(self.reduce)
        if self.dtype is not None:
            from likewise.networks.forward import check_dtype

            check_dtype(self.dtype)
        if self.engine is None and (self.workers is not None or self.engine_options is not None):
            from likewise.work.engines import engine_settings

            engine_settings(None, self.workers, self.engine_options)  # refused

    @classmethod
    def read(
        cls,
        verb: str,
        options: Mapping[str, Any],
        *,
        without: Collection[str] = (),
        long: bool = False,
        **named: Any,
    ) -> tuple[Show, dict[str, Any]]:
        """What the keywords of a call say about showing networks.

        Args:
            verb: The function that was called, for messages.
            options: The keywords it received beside those of its signature.
            without: Fields that mean nothing in this function.
            long: Whether it is a long job, which takes an engine.
            **named: Fields that are in its signature.

        Returns:
            The options, and the keywords that are none of them.

        Raises:
            OptionError: A field means nothing here.
        """
        names = {entry.name for entry in fields(cls)}
        without = {*without, *(() if long else ENGINE)}
        for name in options:
            if name in without:
                raise OptionError(f"{verb} has no use for {name}. Leave it out.")
        shared = {name: value for name, value in options.items() if name in names}
        return cls(**named, **shared), {name: value for name, value in options.items() if name not in names}

    @classmethod
    def only(
        cls,
        verb: str,
        options: Mapping[str, Any],
        *,
        without: Collection[str] = (),
        long: bool = False,
        **named: Any,
    ) -> Show:
        """The same for a function that takes no other keywords.

        Args:
            verb: The function that was called, for messages.
            options: The keywords it received beside those of its signature.
            without: Fields that mean nothing in this function.
            long: Whether it is a long job, which takes an engine.
            **named: Fields that are in its signature.

        Returns:
            The options.

        Raises:
            OptionError: A keyword is unknown, or means nothing here.
        """
        show, rest = cls.read(verb, options, without=without, long=long, **named)
        for name in rest:
            raise OptionError(unknown_option(verb, name, without=without))
        return show

    def check_unused(self, verb: str, but: Collection[str] = ()) -> None:
        """Refuse options for networks where there are none.

        Args:
            verb: The function that was called.
            but: Fields that this function takes with arrays too.
        """
        used = ("store", "progress", "reduce", "device", *ENGINE, *but)
        for entry in fields(self):
            if entry.name not in used and getattr(self, entry.name) is not None:
                raise OptionError(
                    f"{entry.name} says how networks are shown data, and {verb} was given arrays. Leave it out."
                )

    def with_engine(self) -> Show:
        """The same with the engine itself in place of its name and options."""
        from likewise.work.engines import engine_of

        if self.engine is None and self.workers is None and self.engine_options is None:
            return self
        engine = engine_of(self.engine, workers=self.workers, options=self.engine_options)
        return replace(self, engine=engine, workers=None, engine_options=None)

    def is_for_engine(self) -> bool:
        """Whether workers of an engine look at networks by address, and leave views in a store."""
        from likewise.work.tasks import is_remote

        return isinstance(self.data, str) and self.store is not None and is_remote(self.engine)

    def for_workers(self) -> Show:
        """The same in a worker: without an engine, in silence, with the store by its folder."""
        folder = None if self.store is None else Path(self.store).absolute()
        return replace(self, engine=None, workers=None, engine_options=None, progress=False, store=folder)

    def check_data(self, verb: str, network: str) -> None:
        """Refuse a network without data to show it.

        Args:
            verb: The function that was called.
            network: What the network is called in the message.
        """
        if self.data is None:
            raise InputError(
                f"{network} is a network, and {verb} needs to know what to show it. Pass data=, like "
                "data='cifar10:test[:1000]'."
            )

    def check_one_layer(self, verb: str) -> None:
        """Refuse several layers of one network.

        Args:
            verb: The function that was called.
        """
        from likewise.views.hooks import is_pattern

        for layer in self.layers.values() if isinstance(self.layers, Mapping) else [self.layers]:
            if is_pattern(layer):
                raise InputError(
                    f"{verb} looks at one layer of each network, and layers={layer!r} may mean several. Name one, "
                    "as in layers='penultimate' or layers={network: layer}, or use likewise.layerwise."
                )

    def per_network(self, networks: Mapping[str, Any]) -> dict[str, Show]:
        """One `Show` per network: what is chosen for it by its name, its address or as tables name it.

        Args:
            networks: Addresses or modules by name.

        Returns:
            The options of each network, by name.

        Raises:
            InputError: Something is chosen for a network that is not among them.
        """
        choices = ("layers", "head", "transform", "mean", "std")
        if not any(isinstance(getattr(self, choice), Mapping) for choice in choices):
            return dict.fromkeys(networks, self)
        aliases = {
            name: (name, network, short)
            for (name, network), short in zip(networks.items(), short_names(list(networks)), strict=True)
        }
        for choice in choices:
            self._check_choice(choice, aliases)
        return {
            name: replace(self, **{choice: _choice(getattr(self, choice), names) for choice in choices})
            for name, names in aliases.items()
        }

    def for_network(self, network: Any) -> tuple[Any, Show]:
        """A network that normalises as is chosen for it, and how it is shown beside that.

        Args:
            network: An address or a module; what an address says of images takes precedence.

        Returns:
            The address or module, and the options without a mean and deviation.
        """
        if self.transform is None and self.mean is None:
            return network, self
        from likewise.networks.address import normalised, says_how_shown

        if isinstance(network, str) and says_how_shown(network):
            return network, replace(self, transform=None, mean=None, std=None)
        if self.mean is None:
            return network, self
        return normalised(network, self.mean, self.std), replace(self, mean=None, std=None)

    def for_attack(self, network: Any) -> Any:
        """A network that is shown pixels in [0, 1], as attacks need, with what is chosen for it as its own first part.

        Args:
            network: An address or a module; what an address says of images takes precedence.

        Raises:
            InputError: A transform is chosen for a module, or is no "FILE.py:function".
        """
        network, show = self.for_network(network)
        if show.transform is None:
            return network
        if isinstance(network, str) and isinstance(show.transform, str):
            return f"{network},transform={show.transform}"
        raise InputError(
            "networks are attacked in pixels between 0 and 1, so a transform is taken of an address and as "
            "'FILE.py:function' alone. Give mean and std."
        )

    def _check_choice(self, name: str, aliases: Mapping[str, tuple[Any, ...]]) -> None:
        choice = getattr(self, name)
        if not isinstance(choice, Mapping):
            return
        names = {alias for group in aliases.values() for alias in group if isinstance(alias, str)}
        for network in choice:
            if network not in names:
                kind = {"transform": "function", "mean": "number", "std": "number"}.get(name, "layer")
                raise InputError(
                    f"{name} names a {kind} of {network!r}, and the networks are {quoted_list(list(aliases))}. "
                    f"Give {name}={{network: {kind}}} by these names."
                )


def _choice(choice: Any, names: Sequence[Any]) -> Any:
    if not isinstance(choice, Mapping):
        return choice
    return next((choice[name] for name in names if isinstance(name, str) and name in choice), None)


def unknown_option(verb: str, name: str, others: Collection[str] = (), *, without: Collection[str] = ()) -> str:
    """The sentence for a keyword that a function does not have, with the nearest of its own and those of `Show`.

    >>> unknown_option("extract", "batchsize")
    "extract has no option 'batchsize'. Did you mean 'batch_size'?"
    """
    names = [entry.name for entry in fields(Show) if entry.name not in without]
    return f"{verb} has no option {name!r}.{did_you_mean(name, [*names, *others])}"


def options_for_worker(options: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call as a worker repeats it: without an engine, in silence, with the store by its folder.

    Args:
        options: Keywords, among them fields of `Show`.
    """
    plain = {name: value for name, value in options.items() if name not in ENGINE}
    store = plain.get("store")
    return {**plain, "progress": False, "store": None if store is None else Path(store).absolute()}
