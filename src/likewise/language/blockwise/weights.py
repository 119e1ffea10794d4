"""The weights of a network that is read block by block: loaded from its files part by part, and let go again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.sources.shards import Shards


class Weights:
    """Loads the weights of parts of a network from its files, and lets go of them.

    Args:
        net: The network, its weights without values.
        shards: Its files.
        address: What messages call it.
        device: Where weights are put.
        raised: Whether they are kept in single precision, whatever that of the files is.
        parts: Modules that are loaded one at a time; all else is loaded once and stays.
        remedy: What messages say to do otherwise.
    """

    def __init__(
        self,
        net: Any,
        shards: Shards,
        address: str,
        device: torch.device,
        *,
        raised: bool,
        parts: Sequence[nn.Module],
        remedy: str,
    ) -> None:
        self._net, self._shards, self._address, self._remedy = net, shards, address, remedy
        self._device, self._raised, self._parts = device, raised, parts
        self._names = {id(module): name for name, module in net.named_modules()}
        self._values: dict[str, Tensor] = dict(net.state_dict(keep_vars=True))
        self._loaded: set[str] = set()
        self._sources = self._find()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor of the network that its files hold."""
        return {key: tuple(self._values[key].shape) for key in self._values if key in self._sources}

    def loaded(self) -> dict[str, Tensor]:
        """Tensors that are in memory now."""
        state = self._net.state_dict()
        return {key: state[key] for key in self._values if key in self._loaded}

    def read(self, key: str) -> Tensor:
        """One tensor by itself, in the precision of its file."""
        source = self._sources[key]
        return self._shards.read([source])[source]

    def _find(self) -> dict[str, str]:
        """The tensor of the files that every weight is; tied weights have one."""
        tied: dict[int, list[str]] = {}
        for key, value in self._values.items():
            tied.setdefault(id(value), []).append(key)
        base = f"{getattr(self._net, 'base_model_prefix', '')}."
        sources: dict[str, str] = {}
        for key, value in self._values.items():
            names = [form for one in (key, *tied[id(value)]) for form in (one, one.removeprefix(base), base + one)]
            source = next((name for name in names if name in self._shards.files), None)
            if source is not None:
                sources[key] = source
            elif isinstance(value, nn.Parameter):
                raise InputError(
                    f"the files of {self._address} have no tensor of the name {key!r}, so it cannot be read block by "
                    f"block. {self._remedy}"
                )
        return sources

    def load_rest(self) -> None:
        """Load what belongs to no part; it stays."""
        prefixes = tuple(f"{self._names[id(part)]}." for part in self._parts)
        self._load([key for key in self._values if not key.startswith(prefixes)])
        for module in self._net.modules():
            for name, value in module._buffers.items():
                module._buffers[name] = None if value is None else value.to(self._device)

    def load(self, part: nn.Module) -> None:
        """Load a part of the network."""
        self._load(self._keys(part))

    @contextmanager
    def of(self, part: nn.Module) -> Iterator[None]:
        """A part of the network with its weights meanwhile."""
        self.load(part)
        try:
            yield
        finally:
            self.free(part)

    def free(self, part: nn.Module) -> None:
        """Let go of the weights of a part."""
        for key in self._loaded.intersection(self._keys(part)):
            _put(self._net, key, self._values[key])
            self._loaded.discard(key)

    def _keys(self, part: nn.Module) -> list[str]:
        return [key for key in self._values if key.startswith(f"{self._names[id(part)]}.")]

    def _load(self, keys: Sequence[str]) -> None:
        keys = [key for key in keys if key in self._sources and key not in self._loaded]
        tensors = self._shards.read({self._sources[key] for key in keys})
        for key in keys:
            value, tensor = self._values[key], tensors[self._sources[key]]
            if value.shape != tensor.shape:
                raise InputError(
                    f"the weights of {self._address} do not fit it: {key} has {tuple(tensor.shape)} there and "
                    f"{tuple(value.shape)} here. Leave options out of its address."
                )
            dtype = torch.float32 if self._raised and value.is_floating_point() else value.dtype
            _put(self._net, key, tensor.to(self._device, dtype))
            self._loaded.add(key)


def _put(net: nn.Module, key: str, value: Tensor) -> None:
    """Put a tensor into a network as the weight or buffer of a name."""
    place, _, name = key.rpartition(".")
    module = net.get_submodule(place)
    if name in module._buffers:
        module._buffers[name] = value
    else:
        module._parameters[name] = (
            value if isinstance(value, nn.Parameter) else nn.Parameter(value, requires_grad=False)
        )
