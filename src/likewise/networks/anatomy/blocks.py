"""The blocks of a network: residual blocks and transformer layers, whatever their modules are called.

One rule for all libraries, by structure:

- A *row* is what is numbered in one place: `layers.0`, `layers.1`; `inception3a`, `inception3b`; `s1.b1`, `s1.b2`.
- A *block* stands in a row and is more than one layer: it has two linear layers or convolutions at least, not counting
  depthwise ones. So stems, patch embeddings, mergings and transitions are none, and neither is what is called stem,
  head, classifier, auxiliary or by the places of boxes.
- A *stage* is no block but a row of them: most of its layers are in one row that it holds itself, in which a class
  comes more than once. Nothing else in a stage counts. Without such a row it is a block, and rows in it its branches.
- Of blocks within blocks the outermost count; what stands between blocks in one container is one too.
- A recurrent layer (LSTM, GRU, RNN) outside of the blocks is one.

Where there are no blocks, modules around a single layer are; where there are none, the convolutions and linear layers
themselves, without those of a classifier with a name of its own. `docs/layers.md` shows what this gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from torch import nn

from likewise.networks.anatomy.layers import has_matrix, submodules

_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)  # their matrices have other names
_BESIDE = re.compile(
    r"(^|\.)((\w+_)?stem|aux|bbox|((\w+_)?heads?|classifier|pre_logits|class_embed)(?![a-z]))", re.IGNORECASE
)
_MOST = 0.6  # the share of a stage's layers that is in its row


def blocks(modules: Mapping[str, nn.Module]) -> list[str]:
    """The repeated parts a network is built of: residual blocks, transformer layers, else its layers.

    >>> from likewise.networks.anatomy.layers import submodules
    >>> blocks(submodules(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))))
    ['0', '2']
    >>> blocks(submodules(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2, enable_nested_tensor=False)))
    ['layers.0', 'layers.1']
    >>> blocks({"words": nn.Embedding(9, 4), "lstm": nn.LSTM(4, 4), "fc": nn.Linear(4, 2)})
    ['words', 'lstm', 'fc']
    """
    body = {name: module for name, module in modules.items() if not _BESIDE.search(name)}
    trees = (_Tree(body, partial(_layers, depthwise=False), 2), _Tree(body, _layers, 2), _Tree(body, _layers, 1))
    repeated = next(filter(None, (tree.blocks() for tree in trees)), [])
    if repeated:
        recurrent = [name for name, module in body.items() if isinstance(module, _RECURRENT)]
        beside = {name for name in recurrent if not any(name.startswith(f"{block}.") for block in repeated)}
        return [name for name in body if name in beside or name in set(repeated)] if beside else repeated
    leaves = [name for name, module in body.items() if _is_leaf(module)]
    return leaves or [name for name, module in modules.items() if _is_leaf(module)]


@dataclass(frozen=True)
class _Tree:
    """The modules of a network, with what counts as a layer of a block and the least number of them."""

    modules: Mapping[str, nn.Module]
    layers_of: Callable[[nn.Module], int]
    least: int
    sizes: dict[str, int] = field(default_factory=dict)

    def blocks(self) -> list[str]:
        """The names of the blocks, in order; none where nothing is one."""
        stages = self._stages
        left = [name for name in self.entries if not self._is_beside_row(name)]
        parts = [name for name in left if self.kinds[name] not in stages and self.size(name) >= self.least]
        often = Counter(self.kinds[name] for name in parts)
        many = Counter(_row_of(name) for name in parts if name not in self.held)
        places = {_row_of(name) for name in parts if self._is_certain(name, often, many)}
        places = places or {_row_of(name) for name in parts if not self._is_plain(name)}
        whole = [n for n in left if _row_of(n) in places and (n in self.held or self.kinds[n] not in stages)]
        return [name for name in whole if not any(name.startswith(f"{other}.") for other in whole)]

    def _is_certain(self, name: str, often: Mapping[Any, int], many: Mapping[str, int]) -> bool:
        if name not in self.held:
            return many[_row_of(name)] > 1
        return often[self.kinds[name]] > 1 or isinstance(self.modules.get(name.rpartition(".")[0]), nn.ModuleList)

    def size(self, name: str) -> int:
        """How many layers a module holds, those that count."""
        if name not in self.sizes:
            self.sizes[name] = self.layers_of(self.modules[name])
        return self.sizes[name]

    @cached_property
    def held(self) -> set[str]:
        """What is numbered in a container."""
        return {name for name in self._able if self._is_held(name)}

    @cached_property
    def entries(self) -> list[str]:
        """What stands in a row: in a container, or by the number in its name."""
        rows = Counter(_row_of(name) for name in self._able)
        # attributes inside an entry of a container are parts of that entry
        free = [name for name in self._able if not any(name.startswith(f"{other}.") for other in self.held)]
        numbered = {name for name in free if _is_numbered(name) and rows[_row_of(name)] > 1}
        return [name for name in self._able if name in self.held or name in numbered]

    @cached_property
    def kinds(self) -> dict[str, Any]:
        """The class of every entry; of a plain Sequential, the classes in it."""
        return {
            name: tuple(map(type, self.modules[name].children())) if self._is_plain(name) else type(self.modules[name])
            for name in self.entries
        }

    @cached_property
    def _able(self) -> list[str]:
        return [name for name, module in self.modules.items() if self._is_able(module)]

    def _is_able(self, module: nn.Module) -> bool:
        if not submodules(module) or _is_container(module) or _layers(module) < self.least:
            return False
        return self.least > 1 or type(module) not in _CONTAINERS

    @cached_property
    def _rows(self) -> dict[str, list[str]]:
        """The row of blocks with most layers that an entry holds itself."""
        largest = {}
        for name in self.entries:
            rows: dict[str, list[str]] = {}
            for other in self.entries:
                if self._holds(name, other) and self.size(other) >= self.least:
                    rows.setdefault(_row_of(other), []).append(other)
            loose = [key for key, row in rows.items() if row[0] not in self.held]
            if len(loose) > 1:  # the branches of a cell: `left1`, `right1`, `left2`, ...
                rows = {key: row for key, row in rows.items() if key not in loose}
            largest[name] = max(rows.values(), key=self._sum, default=[])
        return largest

    @cached_property
    def _stages(self) -> set[Any]:
        """The classes that are rows of blocks: in one of them a class comes twice, or all hold a single block."""
        rows = {name: row if self._sum(row) > _MOST * self.size(name) else [] for name, row in self._rows.items()}
        repeating = {self.kinds[name] for name, row in rows.items() if len(row) > len({*map(self.kinds.get, row)})}
        lengths: dict[Any, set[int]] = {}
        for name, row in rows.items():
            lengths.setdefault(self.kinds[name], set()).add(len(row))
        return repeating | {kind for kind, counts in lengths.items() if counts == {1}}

    def _sum(self, names: list[str]) -> int:
        return sum(map(self.size, names))

    def _is_beside_row(self, name: str) -> bool:
        """Whether an entry is in a stage, and not in its row: a way to a smaller size."""
        return any(
            row and name.startswith(f"{stage}.") and not any(f"{name}.".startswith(f"{entry}.") for entry in row)
            for stage, row in self._rows.items()
            if self.kinds[stage] in self._stages
        )

    def _holds(self, name: str, other: str) -> bool:
        """Whether there is nothing but containers between a module and one inside it."""
        if not other.startswith(f"{name}."):
            return False
        above = other.rpartition(".")[0]
        while above != name:
            if not _is_container(self.modules[above]):
                return False
            above = above.rpartition(".")[0]
        return True

    def _is_held(self, name: str) -> bool:
        above, _, last = name.rpartition(".")
        if not above:
            return last.isdigit()
        return isinstance(self.modules.get(above), _CONTAINERS) and _is_numbered(name)

    def _is_plain(self, name: str) -> bool:
        return type(self.modules[name]) in _CONTAINERS


def _layers(module: nn.Module, depthwise: bool = True) -> int:
    """How many linear layers and convolutions a module holds; depthwise ones go with those that mix their channels."""
    inside = {module: None, **dict.fromkeys(submodules(module).values())}
    return sum(_is_layer(layer) and (depthwise or not _is_depthwise(layer)) for layer in inside)


def _is_leaf(module: nn.Module) -> bool:
    return has_matrix(module) or isinstance(module, _RECURRENT)


def _is_layer(module: nn.Module) -> bool:
    return _is_leaf(module) and not isinstance(module, nn.Embedding)


def _is_depthwise(module: nn.Module) -> bool:
    groups: Any = getattr(module, "groups", 1)
    return isinstance(module, nn.modules.conv._ConvNd) and 1 < groups == module.in_channels


def _is_container(module: nn.Module) -> bool:
    """Whether a module only holds others: no layer itself, and no forward pass of its own."""
    if not isinstance(module, _CONTAINERS) or any(has_matrix(child) for child in module.children()):
        return False
    return not isinstance(module, nn.Sequential) or type(module).forward is nn.Sequential.forward


def _is_numbered(name: str) -> bool:
    last = name.rpartition(".")[2]
    return _row_of(last) != last


def _row_of(name: str) -> str:
    """A name without its numbers: the same for all that stand in one row."""
    return re.sub(r"\d+[a-z]?(?![a-z])", "#", name)
