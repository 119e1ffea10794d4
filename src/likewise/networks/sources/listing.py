"""Which networks there are: those of the zoo, and by pattern those of the installed libraries."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec

from likewise._base.compat import prepare_torchvision
from likewise.networks.zoo.registry import ZOO


@dataclass(frozen=True)
class Listed:
    """A network that can be asked for."""

    address: str
    domain: str
    summary: str


def listed(pattern: str = "") -> list[Listed]:
    """The zoo; with a pattern, whatever matches it there, in timm and in torchvision.

    The pattern is matched against the name and against the whole address.

    >>> [found.address for found in listed("zoo:resnet2*")]
    ['zoo:resnet20', 'zoo:resnet20-b']
    """
    if not pattern:
        return _zoo()
    others = [] if pattern.startswith("zoo:") else [*_torchvision(), *_timm()]
    return [
        found
        for found in [*_zoo(), *others]
        if fnmatch(found.address, pattern) or fnmatch(found.address.partition(":")[2], pattern)
    ]


def _zoo() -> list[Listed]:
    return [Listed(f"zoo:{entry.name}", entry.domain, entry.summary) for entry in ZOO]


def _torchvision() -> list[Listed]:
    if find_spec("torchvision") is None:
        return []
    prepare_torchvision()
    models = import_module("torchvision.models")
    names = models.list_models(module=models)
    return [Listed(f"torchvision:{name}", "image", "published weights") for name in names]


def _timm() -> list[Listed]:
    if find_spec("timm") is None or find_spec("torchvision") is None:  # timm imports it
        return []
    prepare_torchvision()
    timm = import_module("timm")
    published = set(timm.list_models(pretrained=True, include_tags=False))
    return [
        Listed(f"timm:{name}", "image", "published weights" if name in published else "untrained")
        for name in timm.list_models()
    ]
