"""Files as a stranger would write them: links, pipes, bombs, and records that say something else.

Forged files carry a right checksum, and the list of files is taken away: what they say may differ from what was
saved, and is only asked not to break the reader, to be answered in time and to lead nowhere else.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import random
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from likewise._base import sealed
from likewise._base.hashing import facts_digest
from likewise._base.manifest import MANIFEST
from likewise.comparison.recordings.recording import ENDING
from tests.fuzz.damage import flipped
from tests.fuzz.files import Hostile

TENSORS = (sealed.ENDING, ENDING)
_DEEP: Any = json.loads("[" * 60 + "]" * 60)
_HEADER = "__metadata__"


def link_outside(path: Path, chance: random.Random, outside: Path) -> None:
    """A link to the same content elsewhere: whoever follows it has read outside."""
    (outside / path.name).write_bytes(path.read_bytes())
    path.unlink()
    target = outside / path.name
    path.symlink_to(target if chance.random() < 0.5 else os.path.relpath(target, path.parent))


def link_in_a_circle(path: Path, chance: random.Random, outside: Path) -> None:
    """A link to itself."""
    path.unlink()
    path.symlink_to(path.name)


def pipe(path: Path, chance: random.Random, outside: Path) -> None:
    """A pipe, which would wait for ever."""
    path.unlink()
    os.mkfifo(path)


def device(path: Path, chance: random.Random, outside: Path) -> None:
    """A device, which would never end."""
    path.unlink()
    path.symlink_to("/dev/urandom")


def folder_instead(path: Path, chance: random.Random, outside: Path) -> None:
    """A folder of the same name."""
    path.unlink()
    path.mkdir()


def zeros(path: Path, chance: random.Random, outside: Path) -> None:
    """400 MB of zeros, in place of the file or behind it."""
    path.unlink() if chance.random() < 0.5 else None
    with path.open("ab") as file:
        file.truncate(400_000_000)


def archive_bomb(path: Path, chance: random.Random, outside: Path) -> None:
    """A small archive that claims to unpack to gigabytes."""
    words = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**29},), }}\n".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words + bytes(2**16))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(content)


def deep(path: Path, chance: random.Random, outside: Path) -> None:
    """Brackets within brackets, as the text, or as the header of tensors."""
    text = chance.choice((b"[" * 100_000, b'{"a":' * 100_000, b'{"__metadata__":' + b"[" * 5000 + b"]" * 5000 + b"}"))
    path.write_bytes(struct.pack("<Q", len(text)) + text if path.suffix in TENSORS else text)


def forged(path: Path, chance: random.Random, outside: Path) -> None:
    """Something else is said, with a right checksum and without a list of files."""
    for folder in path.parents[:4]:
        if (folder / MANIFEST).is_file() and path.name != MANIFEST:
            (folder / MANIFEST).unlink()
    forge = {
        ".json": _record,
        ".csv": _table,
        ".npy": _array,
        ".scores": _lines,
        **dict.fromkeys(TENSORS, _tensors),
    }.get(path.suffix)
    if forge is None:
        path.write_bytes(chance.choice((flipped(path.read_bytes() or b"x", chance), b"\0", "\x1b[31m\u202e".encode())))
    else:
        forge(path, chance, outside)


HOSTILE: tuple[Hostile, ...] = (
    *(link_outside, link_in_a_circle, pipe, device, folder_instead, zeros, archive_bomb, deep),
    *(forged,) * 10,
)


def mutated(value: Any, chance: random.Random, outside: Path) -> Any:
    """A value of JSON in which one entry is missing, added, or something else."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.8:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.15:
            items = [(k, v) for k, v in _items(value) if k != key]
            return dict(items) if isinstance(value, dict) else [v for _, v in items]
        items = [(k, mutated(v, chance, outside) if k == key else v) for k, v in _items(value)]
        return dict(items) if isinstance(value, dict) else [v for _, v in items]
    secret = outside / "secret.npy"
    words = ("", "a\0b", "x" * 5000, "=1+1", str(secret), f"../{outside.name}/secret.npy", "/etc/hostname")
    more = ("imagefolder:/etc", "cifar100", "evil.py:build", "\ud800", "none", "../..", ".")
    numbers = (0, 3, -1, 1.5, 10**400, 2**62, math.nan, math.inf, True)
    return chance.choice((None, [], {}, [None], {"a": []}, _DEEP, *words, *more, *numbers))


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def _text(value: Any) -> str:
    return json.dumps(value)


def _record(path: Path, chance: random.Random, outside: Path) -> None:
    record = mutated(json.loads(path.read_bytes()), chance, outside)
    if isinstance(record, dict) and "checksum" in record:
        facts = {name: value for name, value in record.items() if name != "checksum"}
        with contextlib.suppress(UnicodeEncodeError):
            record["checksum"] = facts_digest(facts)
    path.write_text(_text(record))


def _lines(path: Path, chance: random.Random, outside: Path) -> None:
    rows = json.loads(path.read_bytes().splitlines()[0].partition(b" ")[2])
    text = _text(mutated(rows, chance, outside))
    path.write_text(f"{zlib.crc32(text.encode()):08x} {text}\n")


def _table(path: Path, chance: random.Random, outside: Path) -> None:
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    row = rows[chance.choice((0, chance.randrange(len(rows))))]
    column, odd = chance.randrange(len(row)), chance.choice(("", "nan", "inf", "1e999", "=1+1", '"', "x" * 5000, "-1"))
    row[column] = odd
    if chance.random() < 0.3:
        rows = [line[:column] + line[column + 1 :] for line in rows]
    if chance.random() < 0.1:
        rows.append(["," * 10_000])
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def _tensors(path: Path, chance: random.Random, outside: Path) -> None:
    tensors, metadata = load_file(path), sealed.read_metadata(path)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    if metadata and chance.random() < 0.7:
        name = chance.choice(list(metadata))
        try:
            metadata[name] = _text(mutated(json.loads(metadata[name]), chance, outside))
        except ValueError:
            metadata[name] = chance.choice(("", "{", "x" * 5000))
    elif tensors:
        name = chance.choice(list(tensors))
        values = tensors.pop(name)
        odd = (None, values.flatten(), values[:1], values.double() * math.nan, torch.zeros(0), torch.tensor(3.0))
        new = chance.choice((*odd, values.to(torch.int64) * 2**40 - 1, values != values))
        tensors |= {} if new is None else {name: new.contiguous()}
    path.unlink()
    sealed.write(path, tensors, metadata, ending=path.suffix)


def _array(path: Path, chance: random.Random, outside: Path) -> None:
    values = np.load(path)
    odd = (np.array("text"), np.array(3.0), values[:1], values.ravel(), values * np.nan, np.zeros((0, 3)))
    np.save(path, chance.choice((*odd, values > 0, np.array([{}], dtype=object))), allow_pickle=True)
