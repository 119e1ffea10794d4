"""Which layers: names, globs, and the words `all`, `blocks`, `penultimate`, `embedding` and `logits`.

A layer is named as in `network.named_modules()`; wrappers that add nothing to look at
(DataParallel, a compiled network, normalisation of the input) do not show in names. A layer called
several times in one pass has one name a call: `attention`, `attention#2`. How often that is shows
only in a pass, so patterns are matched twice: before the first batch against modules, after it
against calls.
"""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from likewise.errors import InputError, UnknownNameError
from likewise.networks.normalise import unwrapped
from likewise.networks.parts import named_parts
from likewise.views.blocks import blocks

LOGITS, PENULTIMATE, EMBEDDING = "logits", "penultimate", "embedding"
Layers = str | Sequence[str] | None  # None: penultimate where there is a classifier, else embedding


def is_pattern(layers: Layers) -> bool:
    """Whether a request may mean several layers."""
    if not isinstance(layers, str):
        return layers is not None
    return layers in ("all", "blocks") or any(mark in layers for mark in "*?[")


class Selection:
    """A request for layers, resolved against a network."""

    def __init__(self, network: nn.Module, layers: Layers, label: str) -> None:
        self.default = layers is None
        self.asked = [PENULTIMATE] if layers is None else [layers] if isinstance(layers, str) else list(layers)
        self.label = label
        self.modules = named_layers(network)
        if not self.asked:
            raise InputError(f"no layers of {label} were asked for. Name at least one, or 'all'.")
        for word in (PENULTIMATE, EMBEDDING):
            if word in self.asked and word in self.modules and not self.default:
                raise InputError(
                    f"{word!r} of {label} may be its layer of that name or what the word stands for. Ask for "
                    f"'[{word[0]}]{word[1:]}', which is the layer, or leave layers out for the other."
                )
        if set(self.asked) != {LOGITS}:
            self._check_open(unwrapped(network))
        self._patterns = {asked: self._expanded(asked) for asked in self.asked}

    def take_embedding(self) -> None:
        """Without a classifier, the default is the embedding."""
        self.asked, self._patterns = [EMBEDDING], {EMBEDDING: [EMBEDDING]}

    def hooked(self) -> dict[str, nn.Module]:
        """The modules that may hold what was asked for; an error where a request has none."""
        found: dict[str, nn.Module] = {}
        for asked, patterns in self._patterns.items():
            if asked in (PENULTIMATE, EMBEDDING):
                continue
            names = _matching(self.modules, [pattern.partition("#")[0] for pattern in patterns])
            if not names and asked != LOGITS:
                raise UnknownNameError(f"no layer of {self.label} matches {asked!r}.{nearest(asked, self.modules)}")
            found |= {name: self.modules[name] for name in names}
        return found

    def chosen(self, calls: Sequence[str]) -> list[str]:
        """The calls of one pass that were asked for, in the order of the requests."""
        found: dict[str, None] = {}
        for asked, patterns in self._patterns.items():
            names = _matching(calls, patterns)
            if not names:
                raise UnknownNameError(
                    f"{asked!r} of {self.label} is not called in its forward pass. `likewise layers` lists what is."
                )
            found |= dict.fromkeys(names)
        return list(found)

    def _check_open(self, network: nn.Module) -> None:
        """Refuse networks that cannot be looked into, or not yet."""
        if any(isinstance(part, torch.jit.ScriptModule) for part in network.modules()):
            raise InputError(
                f"{self.label} is compiled by TorchScript, so nothing but its 'logits' can be "
                "watched. Pass the module it was made from."
            )
        for name, part in self.modules.items():
            if any(is_lazy(value) for value in part.parameters(recurse=False)):
                raise InputError(
                    f"{name!r} of {self.label} is a {type(part).__name__}, whose size shows with "
                    "its first inputs. Show it some before: network(inputs)."
                )

    def _expanded(self, asked: str) -> list[str]:
        if asked == "all":
            return ["*"]
        if asked == "blocks":
            names = [glob.escape(name) for name in blocks(self.modules)]
            return [*names, *(f"{name}#*" for name in names)]
        return [asked]


def named_layers(network: nn.Module) -> dict[str, nn.Module]:
    """Every part of a network by name, without the network itself."""
    return named_parts(unwrapped(network))


def nearest(asked: str, names: Iterable[str]) -> str:
    """' The nearest are ...' for an error sentence; the first where none is near."""
    known = list(names)
    plain = asked.replace("*", "").replace("?", "").rstrip(".")
    close = get_close_matches(plain, known, n=3, cutoff=0.3)
    shown = ", ".join(repr(name) for name in close or known[:3])
    return f" The {'nearest' if close else 'first'} are {shown}; `likewise layers` lists all."


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    return [n for n in names if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns)]
