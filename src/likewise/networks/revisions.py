"""Addresses that name revisions: one address per revision for those that name several, `hf:NAME@step1000,step2000`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from likewise.networks.address import has_prefix, split


def expand(addresses: Iterable[Any]) -> list[Any]:
    """One address per revision for those that name several; everything else as it is.

    >>> expand(["hf:org/name,part=text@step1000,step2000", "zoo:lenet"])
    ['hf:org/name,part=text@step1000', 'hf:org/name,part=text@step2000', 'zoo:lenet']
    """
    return [one for address in addresses for one in _each(address)]


def revision_of(address: str) -> str | None:
    """The revision an address names, None where it names none or is a file.

    >>> revision_of("hf:org/name@v1.0"), revision_of("zoo:lenet@a.safetensors"), revision_of("a.safetensors")
    ('v1.0', None, None)
    """
    if not has_prefix(address):
        return None
    revision = split(address)[0].options.get("revision")
    return None if revision is None else str(revision)


def _each(address: Any) -> list[Any]:
    if not isinstance(address, str) or not has_prefix(address):
        return [address]
    revisions = split(address)[1]
    if len(revisions) < 2:
        return [address]
    start, _, end = address.partition("@")
    options = "".join(f",{word}" for word in end.split(",") if "=" in word)
    return [f"{start}{options}@{revision}" for revision in revisions]
