"""The inspector inside other people's training loops: one file per library, looked up by its name."""

from collections.abc import Callable
from typing import Any

from likewise._base.registry import Registry

ADAPTERS: Registry[Callable[..., Any]] = Registry(
    "adapter", group="likewise.adapters", modules=("likewise.classes.adapters.*",)
)
