"""Ways to damage a file, each drawn from a seed: what disks, networks and editors do to bytes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Damage = Callable[[bytes, random.Random], bytes]


def cut(content: bytes, chance: random.Random) -> bytes:
    """The end is missing: a download or a copy that was stopped."""
    return content[: chance.randrange(len(content))]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """One to eight bits are the other way round."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def edited_start(content: bytes, chance: random.Random) -> bytes:
    """A few of the first bytes are others: most formats keep there what they are."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        changed[chance.randrange(min(256, len(changed)))] = chance.randrange(256)
    return bytes(changed)


def edited_number(content: bytes, chance: random.Random) -> bytes:
    """A number written as text, such as a shape, is another."""
    digits = list(re.finditer(rb"\d+", content[:4096])) or list(re.finditer(rb"\d+", content))
    if not digits:
        return flipped(content, chance)
    match = chance.choice(digits)
    numbers = (b"0", b"-1", b"7", b"99999999999", b"1e400", b"9" * 400, match[0] + b"0")
    return content[: match.start()] + chance.choice(numbers) + content[match.end() :]


def zeroed(content: bytes, chance: random.Random) -> bytes:
    """A stretch of zeros: a block that never reached the disk."""
    start = chance.randrange(len(content))
    length = min(chance.choice((1, 16, 512, 4096)), len(content) - start)
    return content[:start] + bytes(length) + content[start + length :]


def swapped(content: bytes, chance: random.Random) -> bytes:
    """Two stretches changed places."""
    a, b, c, d = sorted(chance.sample(range(len(content) + 1), 4)) if len(content) > 4 else (0,) * 4
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def grown(content: bytes, chance: random.Random) -> bytes:
    """Bytes that do not belong there, in the middle or behind the end."""
    start = chance.choice((len(content), chance.randrange(len(content))))
    return content[:start] + chance.randbytes(chance.choice((1, 8, 100))) + content[start:]


def replaced(content: bytes, chance: random.Random) -> bytes:
    """Something else altogether."""
    others = (b"", b"\0", b"\x80\x04K\x01.", b"PK\x03\x04", b"<html>not found</html>")
    return chance.choice((*others, chance.randbytes(len(content)), bytes(len(content))))


WAYS: tuple[Damage, ...] = (cut, flipped, edited_start, edited_number, zeroed, swapped, grown, replaced)
