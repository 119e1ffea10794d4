"""`torchvision:NAME`: image classifiers of torchvision, with their published weights and normalisation."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import import_module
from importlib.util import find_spec

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require
from likewise.errors import InputError
from likewise.networks.sources import base
from likewise.networks.sources.base import SIZES, Loaded, NetworkInfo, Request, Source, source

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_HEADER_OPTIONS = (
    SIZES
    | {"num_classes", "dropout", "stochastic_depth_prob", "width_mult", "groups", "aux_logits"}
    | {"width_per_group", "image_size", "patch_size", "attention_dropout", "transform_input"}
    | {"growth_rate", "drop_rate", "init_weights", "zero_init_residual"}
)


@source("torchvision")
class Torchvision(Source):
    """Image classifiers of torchvision."""

    def build(self, request: Request) -> Loaded:
        prepare_torchvision()
        models = require("torchvision.models", extra="vision", to=f"load {request.address}")
        classifiers = models.list_models(module=models)
        if request.name not in classifiers and request.name in models.list_models():
            raise InputError(
                f"torchvision's {request.name!r} is no classifier of images, and only those have an "
                "address. Build it and pass the module: "
                f"torchvision.models.get_model({request.name!r}, weights='DEFAULT')."
            )
        base.check_known(request, classifiers, "torchvision")
        options = base.translate(request.options, {"classes": "num_classes"})
        weights = models.get_model_weights(request.name).DEFAULT if request.pretrained else None
        net = base.fetch(lambda: models.get_model(request.name, weights=weights, **options), request)
        preset = weights.transforms() if weights is not None else None
        mean, std = getattr(preset, "mean", IMAGENET_MEAN), getattr(preset, "std", IMAGENET_STD)
        return base.with_normalisation(net, mean, std, 3)

    def accepts(self, name: str) -> Collection[str]:
        return ("classes",)

    def names(self) -> Iterator[NetworkInfo]:
        if find_spec("torchvision") is None:
            return
        prepare_torchvision()
        models = import_module("torchvision.models")
        for name in models.list_models(module=models):
            yield NetworkInfo(f"torchvision:{name}", "image", "published weights")

    def header_options(self, name: str) -> Collection[str]:
        return _HEADER_OPTIONS
