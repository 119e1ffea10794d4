"""`timm:NAME`: image networks of timm, with their published weights and normalisation."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from likewise._base.optional import prepare_torchvision, require
from likewise.errors import InputError
from likewise.networks.inputs.transforms import Transform, each
from likewise.networks.sources import base
from likewise.networks.sources.base import SIZES, Loaded, NetworkInfo, Request, Source, source

_HEADER_OPTIONS = (
    SIZES
    | {"num_classes", "in_chans", "img_size", "patch_size", "global_pool", "embed_dim", "depth"}
    | {"depths", "num_heads", "mlp_ratio", "window_size", "qkv_bias", "class_token", "drop_rate"}
    | {"drop_path_rate", "attn_drop_rate", "proj_drop_rate", "output_stride", "act_layer"}
    | {"channels_last", "width", "groups", "width_per_group", "cardinality", "base_width"}
)


@source("timm")
class Timm(Source):
    """Networks of timm; a name with a colon in it is timm's own address of a hub or folder."""

    sized_by: ClassVar[Collection[str]] = ("classes", "channels")
    allowed_in_headers: ClassVar[Collection[str] | None] = _HEADER_OPTIONS

    def build(self, request: Request) -> Loaded:
        prepare_torchvision()
        require("torchvision", extra="vision", to=f"load {request.address}")  # timm cannot do without it
        timm = require("timm", extra="vision", to=f"load {request.address}")
        if ":" not in request.name:
            base.check_known(request, timm.list_models() + timm.list_pretrained(), "timm")
            if request.pretrained and not timm.is_model_pretrained(request.name):
                raise InputError(
                    f"timm has no published weights for {request.name!r}. Add '@weights.safetensors', or take it "
                    f"untrained: '{request.address},pretrained=false'."
                )
        options = base.translate(request.options, {"classes": "num_classes", "channels": "in_chans"})
        net = base.fetch(lambda: timm.create_model(request.name, pretrained=request.pretrained, **options), request)
        channels, size = options.get("in_chans", 3), options.get("img_size")
        config = timm.data.resolve_model_data_config(net)
        if size is not None:
            config["input_size"] = (channels, *(size if isinstance(size, (list, tuple)) else (size, size)))
        fits = len(config["mean"]) == len(config["std"]) == channels
        mean, std = (tuple(config["mean"]), tuple(config["std"])) if fits else (None, None)
        transform = _transform(timm, config, channels) if channels in (1, 3) else None
        return Loaded(net, mean, std, transform=transform)

    def names(self) -> Iterator[NetworkInfo]:
        if find_spec("timm") is None or find_spec("torchvision") is None:  # timm imports it
            return
        prepare_torchvision()
        timm = import_module("timm")
        published = set(timm.list_models(pretrained=True, include_tags=False))
        for name in timm.list_models():
            yield NetworkInfo(f"timm:{name}", "image", "published weights" if name in published else "untrained")

    def is_elsewhere(self, name: str) -> bool:
        return ":" in name


def _transform(timm: Any, config: dict[str, Any], channels: int) -> Transform:
    """timm's own transform for evaluation, without the normalisation."""
    one = timm.data.create_transform(**config, is_training=False, normalize=False)
    height, width = config["input_size"][-2:]
    crop, mode, interpolation = config["crop_pct"], config["crop_mode"], config["interpolation"]
    recipe = f"timm: {height} × {width}, crop {crop:g} ({mode}), {interpolation}"
    return Transform(
        lambda images: each(one, images).float() / 255,
        recipe,
        size=(height, width),
        crop=crop,
        interpolation=interpolation,
        channels=channels,
    )
