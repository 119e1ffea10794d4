"""Options from the fields of a class: where a command says `**show` or `**settings`, they are spelled out here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from typing import Annotated, Any

from typer import Option

from likewise.errors import LARGEST_SEED, InputError
from likewise.views.show import ENGINE, Show

LEFT_OUT = ("progress",)  # what a command always shows
ONE_LAYER = "The layer to look at; NETWORK:LAYER for one network. May be repeated."
ROWS = "How maps and tokens become rows; by default flatten, mean for text."
FOR_LAYERS = ("layers", "head", "reduce", "dtype")  # of no use where networks are attacked as a whole


def option(name: str, kind: Any, default: Any, help: str, least: float | None = None) -> inspect.Parameter:
    """One option of a command."""
    annotation = Annotated[kind, Option(help=help, min=least)]
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def seed_option(help: str) -> Any:
    """An option that draws, in the range that every generator takes."""
    return Option(help=help, min=0, max=LARGEST_SEED, metavar="INTEGER")


def spell_out(command: Callable[..., None], options: Iterable[inspect.Parameter]) -> None:
    """Put options in place of the `**keywords` of a command, before those that say how it prints."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [entry for entry in signature.parameters.values() if entry.kind is not entry.VAR_KEYWORD]
    printing = [entry for entry in parameters if entry.name.startswith("as_")]
    others = [entry for entry in parameters if entry not in printing]
    command.__signature__ = signature.replace(parameters=[*others, *options, *printing])  # type: ignore[attr-defined]


def show_options(
    *, without: Collection[str] = (), long: bool = False, **helps: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `Show` for its `**show`, `without` some, with other `helps` for some.

    A `long` job has --engine, --workers and --engine-options.
    """
    without = {*without, *(() if long else ENGINE)}

    names = [field.name for field in fields(Show) if field.name not in {*without, *LEFT_OUT}]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        spell_out(command, shown(names, **helps))
        return command

    return decorate


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a long job that does not take `Show` the options --engine, --workers and --engine-options, for `**where`."""
    spell_out(command, shown(ENGINE))
    return command


def flags(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their flags, as they are typed: --engine-options."""
    return {f"--{name.replace('_', '-')}": value for name, value in options.items()}


def shown(names: Collection[str], **helps: str) -> list[inspect.Parameter]:
    """Fields of `Show` as options, with other `helps` for some."""
    return [
        option(field.name, facts["option"], None, helps.get(field.name, facts["help"]), facts["least"])
        for field in fields(Show)
        if field.name in names
        for facts in [field.metadata]
    ]


def show_keywords(show: dict[str, Any], networks: Collection[str] = (), *, several: bool = False) -> dict[str, Any]:
    """The options of `Show` that were typed, for a function of these networks or of one: layers and heads by network.

    Each network has one layer, or `several`.
    """
    options = {name: value for name, value in show.items() if value not in (None, [])}
    for name in {"layers", "head"} & set(options):
        choices = by_network(options[name], networks or [""])
        if name == "layers" and several:
            options[name] = choices
            continue
        for network, layers in choices.items():
            if len(layers) > 1:
                raise InputError(
                    f"--{name} was given {layers[0]!r} and {layers[1]!r} for {network!r}. Give each network one: "
                    f"--{name} NETWORK:LAYER."
                )
        single = {network: layer for network, [layer] in choices.items()}
        options[name] = single if networks else next(iter(single.values()))
    return options


def by_network(words: list[str], networks: Collection[str]) -> dict[str, list[str]]:
    """Layers as a command line names them, by network: `LAYER` for all of them, or `NETWORK:LAYER`.

    >>> by_network(["penultimate", "gpt2:ln_f"], ["bert", "gpt2"])
    {'bert': ['penultimate'], 'gpt2': ['ln_f']}
    """
    layers: dict[str, list[str]] = {}
    for word in words:
        network, _, layer = word.rpartition(":")
        layers.setdefault(network, []).append(layer)
    every = layers.pop("", [])
    return (dict.fromkeys(networks, every) if every else {}) | layers
