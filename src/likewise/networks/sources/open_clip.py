"""Folders of open_clip (`open_clip_config.json`): one of the two towers, with its transform or its tokenizer."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from likewise._base.optional import require
from likewise.errors import InputError
from likewise.networks.inputs.subnetworks import choose_tower
from likewise.networks.inputs.transforms import Transform, each
from likewise.networks.sources.base import Loaded, Request, weights_only


class Tower(nn.Module):
    """One tower of a network of open_clip, which gives the embedding that both towers share."""

    head_layer = None  # its last layer projects, and names no classes

    def __init__(self, model: nn.Module, part: str) -> None:
        super().__init__()
        self.model, self.part = model, part

    def forward(self, inputs: Tensor) -> Tensor:
        model: Any = self.model
        rows: Tensor = model.encode_image(inputs) if self.part == "vision" else model.encode_text(inputs)
        return rows


def is_open_clip(name: str) -> bool:
    """Whether a folder holds a network of open_clip, and none of transformers."""
    folder = Path(name).expanduser()
    return (folder / "open_clip_config.json").is_file() and not (folder / "config.json").is_file()


def build_open_clip(request: Request) -> Loaded:
    """The tower that is asked for, or that the inputs are for."""
    others = sorted(set(request.options) - {"part"})
    if others:
        raise InputError(f"{request.address} is a network of open_clip, without an option {others[0]!r}. Leave it out.")
    name = choose_tower(("vision", "text"), request.options.get("part"), request.domain, request.address)
    library: Any = require("open_clip", extra="clip", to=f"load {request.address}")
    folder = Path(request.name).expanduser().resolve()
    with weights_only():
        model, _, preprocess = library.create_model_and_transforms(
            f"local-dir:{folder}", load_weights=request.pretrained
        )
    net: Any = Tower(model, name)
    facts: dict[str, Any] = {"settled": {"part": name}, "address": f"hf:{folder}"}
    if name == "text":
        net.tokenize = library.get_tokenizer(f"local-dir:{folder}")
        return Loaded(net, **facts)
    *steps, normalise = preprocess.transforms
    size = tuple(getattr(model.visual, "image_size", ())) or None

    def pixels(image: Any) -> Any:
        for step in steps:
            image = step(image)
        return image

    mean, std = (tuple(map(float, value)) for value in (normalise.mean, normalise.std))
    transform = Transform(partial(each, pixels), f"open_clip: {preprocess}", size=size, mean=mean, std=std)
    return Loaded(net, mean, std, transform=transform, **facts)
