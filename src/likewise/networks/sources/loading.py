"""How the weights of transformers are loaded: rounded to fewer bits on the way, or spread over devices and the disk."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from likewise._base.optional import require
from likewise.errors import MissingDependencyError
from likewise.networks.sources.base import Request


def loading(request: Request, bits: int | None, device_map: Any) -> dict[str, Any]:
    """What `from_pretrained` is told, beside the configuration."""
    options: dict[str, Any] = {}
    if bits is not None:
        options["quantization_config"] = _rounding(request, bits)
    if device_map is not None:
        require("accelerate", extra="offload", to=f"load {request.address} over devices")
        options |= {"device_map": device_map, "offload_folder": _folder().name}
    return options


def _rounding(request: Request, bits: int) -> Any:
    """What rounds weights to so many bits: bitsandbytes, or torchao."""
    transformers = import_module("transformers")
    if find_spec("bitsandbytes") is not None:
        return transformers.BitsAndBytesConfig(load_in_8bit=bits == 8, load_in_4bit=bits == 4)
    if find_spec("torchao") is None:
        raise MissingDependencyError(
            f"to load {request.address} in {bits} bits, bitsandbytes or torchao is needed: pip install bitsandbytes."
        )
    kinds = import_module("torchao.quantization")
    return transformers.TorchAoConfig(kinds.Int8WeightOnlyConfig() if bits == 8 else kinds.Int4WeightOnlyConfig())


@cache
def _folder() -> TemporaryDirectory[str]:
    """Where weights are put that no file holds as they are, until the process ends."""
    return TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True)
