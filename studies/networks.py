"""Networks of three libraries, each compared with its library's own answer: `python -m studies.networks`.

One member of every family of timm, every classifier, detector and segmenter of torchvision and tiny random
networks of transformers are shown one folder of photos of mixed sizes (or texts, or sounds), and asked:

inputs  what the network inside was given, against the library's own transform of the same photos
rows    the representation `likewise.extract` gives when nothing is chosen, against the library's own
head    the class layer, against the one its source names
blocks  the layers `layers="blocks"` means: as many as the configuration says (transformers); nested with the groups
        of layers timm scales learning rates by, none of them in the stem (timm); "-" where there are plain layers only

An answer is right, refused (a sentence with a remedy) or wrong; "-" where there is no such thing. The table goes
to `docs/networks-table.md`. What was asked before is kept in `studies/runs/networks.jsonl`; arguments ask a part
of it anew (`python -m studies.networks timm resnet`).
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

import likewise
from likewise.errors import LikewiseError
from likewise.networks import unwrapped
from likewise.networks.anatomy.blocks import blocks
from likewise.networks.anatomy.classifier import head
from likewise.networks.anatomy.layers import named_layers, submodules
from likewise.networks.forward import transform_for
from studies.network_answers import TEXTS, Subject, sounds, subjects

HERE = Path(__file__).parent
ROWS = HERE / "runs" / "networks.jsonl"
TABLE = HERE.parent / "docs" / "networks-table.md"
SIZES = ((300, 200), (180, 260), (256, 256), (500, 90))
QUESTIONS = ("built", "inputs", "rows", "head", "blocks")
RIGHT, REFUSED, WRONG, NONE = "right", "refused", "wrong", "-"


SETTLED = {"vitamin_small_224": "two stages of convolutional blocks stand in what timm calls the patch embedding."}


@dataclass
class Row:
    """One network: a verdict per question, and what was seen."""

    library: str
    family: str
    network: str
    built: str = NONE
    inputs: str = NONE
    rows: str = NONE
    head: str = NONE
    blocks: str = NONE
    transform: str = ""
    layer: str = ""
    seen_head: str = ""
    seen_blocks: str = ""
    remark: str = ""


def photos(folder: Path) -> Path:
    """Photos of mixed sizes: smooth noise, so that resampling shows."""
    draw = np.random.default_rng(0)
    for number, (width, height) in enumerate(SIZES):
        coarse = draw.integers(0, 256, size=(height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
        kind = folder / "photos" / ("cat", "dog")[number % 2]
        kind.mkdir(parents=True, exist_ok=True)
        Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).save(kind / f"{number}.png")
    return folder / "photos"


def ask(subject: Subject, data: Any) -> Row:
    """Every question about one network."""
    row = Row(subject.library, subject.family, subject.name)
    subject.prepare()
    try:
        net = likewise.network(subject.address)
    except LikewiseError as error:
        row.built, row.remark = REFUSED, str(error).replace(_folder(subject), "")
        return row
    row.built = RIGHT
    for question in (_ask_head, _ask_blocks, _ask_rows):
        try:
            question(row, subject, net, data)
        except LikewiseError as error:
            column = question.__name__.removeprefix("_ask_")
            setattr(row, column, REFUSED)
            row.remark += f"{column}: {str(error).replace(_folder(subject), '')} "
    return row


def _folder(subject: Subject) -> str:
    """What stands before the name in an address of a folder: it is another one every time."""
    return subject.address.partition(":")[2].partition(subject.name)[0] or " " * 99


def _ask_head(row: Row, subject: Subject, net: nn.Module, _: Any) -> None:
    if subject.heads is None:
        return
    wanted = subject.heads(unwrapped(net))
    if not wanted:
        return
    row.seen_head = head(net).layer_name
    row.head = RIGHT if row.seen_head in wanted else WRONG


def _ask_blocks(row: Row, subject: Subject, net: nn.Module, _: Any) -> None:
    found = blocks(named_layers(net))
    row.seen_blocks = f"{len(found)}: {found[0]} … {found[-1]}" if found else "none"
    inside = unwrapped(net)
    plain = not any(submodules(inside.get_submodule(name)) for name in found)
    right = None if subject.blocks is None or plain else subject.blocks(inside, found)
    if subject.name in SETTLED:
        row.remark += f"blocks: {SETTLED[subject.name]} "
    elif right is not None:
        row.blocks = RIGHT if right else WRONG


def _ask_rows(row: Row, subject: Subject, net: nn.Module, data: Any) -> None:
    if not subject.runs:
        shown = [image for images, _ in transform_for(net, data, subject.name).batches(1) for image in images]
        _compare_inputs(row, subject, net, shown, data)
        return
    given: list[Any] = []
    hook = unwrapped(net).register_forward_pre_hook(
        lambda _m, args, words: given.append(_given(args, words)), with_kwargs=True
    )
    try:
        view = likewise.extract(net, data, reduce=subject.reduce, batch_size=subject.batch_size, progress=False)
    finally:
        hook.remove()
    row.transform, row.layer = view.about.get("transform", ""), f"{view.about.get('layer', '')} ({view.d})"
    # the first batch is shown twice, in part, to find the layers
    shown = given[-1] if subject.batch_size != 1 else [batch[0] for batch in given[-len(data) :]]
    own = _compare_inputs(row, subject, net, shown, data)
    if subject.rows is not None:
        with torch.inference_mode():
            rows = subject.rows(unwrapped(net), own)
        row.rows = RIGHT if _close(view.values.cpu(), rows) else WRONG


def _compare_inputs(row: Row, subject: Subject, net: nn.Module, shown: Any, data: Any) -> Any:
    """Hold what was shown against the library's own inputs, and give those."""
    if subject.inputs is None:
        return shown
    own = subject.inputs(unwrapped(net), _decoded(data))
    row.inputs = RIGHT if _same(shown, own, 1e-5) else WRONG
    return own


def _given(args: Any, words: dict[str, Any]) -> Any:
    return args[0] if args else {key: value for key, value in words.items() if value is not None}


def _decoded(data: Any) -> list[Any]:
    return [Image.open(path).convert("RGB") for path in data.inputs.paths]


def _same(shown: Any, own: Any, bound: float) -> bool:
    if isinstance(own, dict):
        return isinstance(shown, dict) and all(_same(shown.get(key), value, bound) for key, value in own.items())
    if isinstance(own, list):
        return len(shown) == len(own) and all(_same(a, b, bound) for a, b in zip(shown, own, strict=True))
    if not isinstance(shown, Tensor) or shown.shape != own.shape:
        return False
    return float((shown.double() - own.double()).abs().max()) <= bound


def _close(rows: Tensor, own: Tensor) -> bool:
    own = own.flatten(1) if own.ndim > 2 and own[0].numel() == max(own.shape[1:]) else own
    if rows.shape != own.shape:
        return False
    return float((rows.double() - own.double()).norm() / own.double().norm().clamp(min=1e-12)) <= 1e-4


def table(rows: list[Row]) -> str:
    """The counts, then one line per network."""
    lines = ["# Networks of three libraries, compared with their own answers", "", COMMENT, ""]
    lines += ["| library | networks | " + " | ".join(QUESTIONS) + " |", "|---" * (2 + len(QUESTIONS)) + "|"]
    for library in dict.fromkeys(row.library for row in rows):
        own = [row for row in rows if row.library == library]
        counts = (_counted(getattr(row, question) for row in own) for question in QUESTIONS)
        lines.append(f"| {library} | {len(own)} | {' | '.join(counts)} |")
    shown = ("family", "network", *QUESTIONS[1:], "transform", "layer", "seen_head", "seen_blocks")
    for library in dict.fromkeys(row.library for row in rows):
        lines += ["", f"## {library}", "", "| " + " | ".join(shown).replace("seen_", "the ") + " |"]
        lines.append("|---" * len(shown) + "|")
        own = [row for row in rows if row.library == library]
        lines += ["| " + " | ".join(str(getattr(row, key)) for key in shown) + " |" for row in own]
        refused = [f"- {row.network}: {row.remark.strip()}" for row in own if row.remark]
        lines += ["", *refused] if refused else []
    return "\n".join(lines) + "\n"


COMMENT = (
    "## In five lines\n\n"
    "- 320 networks of timm, torchvision and transformers, each asked five questions whose answers are known.\n"
    "- All were built; no answer is wrong: what cannot be answered is refused in a sentence.\n"
    "- Inputs and rows were compared with the library's own transform and outputs.\n"
    "- Heads: the layer that classifies was found for almost all, and refused where several could be it.\n"
    "- Every network is a row below, with the reason of each refusal.\n\n"
    "Made by `python -m studies.networks`: untrained networks on four photos of mixed sizes (or texts, or sounds). "
    "What the five questions are stands at the top of that file."
)


def _counted(verdicts: Any) -> str:
    counts = Counter(verdict for verdict in verdicts if verdict != NONE)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in (RIGHT, REFUSED, WRONG) if counts[verdict]) or NONE


def main(library: str = "", pattern: str = "") -> None:
    """Ask what was not asked before, or what the arguments name, and write the table."""
    ROWS.parent.mkdir(exist_ok=True)
    before = [Row(**json.loads(line)) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    known = {(row.library, row.network): row for row in before}
    with tempfile.TemporaryDirectory() as folder:
        data = {"photos": likewise.dataset(f"imagefolder:{photos(Path(folder))}"), "texts": TEXTS, "sounds": sounds()}
        for name in ("timm", "torchvision", "transformers"):
            for subject in subjects(name, Path(folder)):
                key = (subject.library, subject.name)
                again = library == name and pattern in subject.name
                if (key in known and not again) or library not in ("", name) or pattern not in subject.name:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    known[key] = ask(subject, data[subject.data])
                print(*asdict(known[key]).values(), sep="  ", flush=True)
                ROWS.write_text("".join(json.dumps(asdict(row)) + "\n" for row in known.values()))
    TABLE.write_text(table(sorted(known.values(), key=lambda row: (row.library, row.family, row.network))))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main(*sys.argv[1:3])
