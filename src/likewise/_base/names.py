"""Names of networks as tables show them: long addresses without what does not tell them apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONG = 20  # characters from which on a name is shortened
_NAME = re.compile(r"(\S*/)?(?P<base>\S+?)(?P<options>(,\w+=[^\s,#]*)*)(?P<number>#\d+)?")


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the folders and options that do not tell them apart, where one of them is long.

    Example:
        >>> short_names(["vit_tiny_patch16_224,pretrained=false", "resnet18,pretrained=false"])
        ['vit_tiny_patch16_224', 'resnet18']
        >>> short_names(["vit_tiny_patch16_224,depth=2,seed=0", "vit_tiny_patch16_224,depth=2,seed=1"])
        ['vit_tiny_patch16_224,seed=0', 'vit_tiny_patch16_224,seed=1']
    """
    if all(len(name) <= _LONG for name in names):
        return list(names)
    words = [any(letter.isspace() for letter in name) for name in names]  # a sentence stays as it is
    matches = [None if several else _NAME.fullmatch(name) for name, several in zip(names, words, strict=True)]
    bases = [m["base"] + (m["number"] or "") if m else name for m, name in zip(matches, names, strict=True)]
    options = [m["options"].split(",")[1:] if m else [] for m in matches]
    short = []
    for base, values in zip(bases, options, strict=True):
        same_base = [set(other) for name, other in zip(bases, options, strict=True) if name == base]
        short.append(",".join([base, *(value for value in values if value not in set.intersection(*same_base))]))
    return short if len(set(short)) == len(set(names)) else list(names)
