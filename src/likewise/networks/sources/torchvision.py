"""`torchvision:NAME`: classifiers, detectors, segmenters and video networks, with their published weights.

Detectors normalise by themselves; all others are given the mean and deviation of their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from likewise._base.optional import prepare_torchvision, require
from likewise.errors import InputError
from likewise.networks.inputs.transforms import Transform, each, each_alone
from likewise.networks.sources import base
from likewise.networks.sources.base import SIZES, Loaded, NetworkInfo, Request, Source, source

_HEADER_OPTIONS = (
    SIZES
    | {"num_classes", "dropout", "stochastic_depth_prob", "width_mult", "groups", "aux_logits"}
    | {"width_per_group", "image_size", "patch_size", "attention_dropout", "transform_input"}
    | {"growth_rate", "drop_rate", "init_weights", "zero_init_residual", "aux_loss"}
)
_TASKS = ("", "detection", "segmentation", "video")  # the modules of torchvision.models whose networks have addresses


@source("torchvision")
class Torchvision(Source):
    """Networks of torchvision that classify images, the things in them, their pixels, or videos."""

    sized_by: ClassVar[Collection[str]] = ("classes",)
    allowed_in_headers: ClassVar[Collection[str] | None] = _HEADER_OPTIONS

    def build(self, request: Request) -> Loaded:
        prepare_torchvision()
        models = require("torchvision.models", extra="vision", to=f"load {request.address}")
        tasks = _tasks(models)
        if request.name not in tasks and request.name in models.list_models():
            raise InputError(
                f"torchvision's {request.name!r} has no address: only classifiers, detectors, segmenters and video "
                "networks have one. Build it and pass the module: "
                f"torchvision.models.get_model({request.name!r}, weights='DEFAULT')."
            )
        base.check_known(request, tasks, "torchvision")
        task = tasks[request.name]
        options = base.translate(request.options, {"classes": "num_classes"})
        published = models.get_model_weights(request.name).DEFAULT
        weights = published if request.pretrained else None
        if weights is None and task in ("detection", "segmentation"):
            options = {"weights_backbone": None} | options  # else their backbones would be downloaded
        net = base.fetch(lambda: models.get_model(request.name, weights=weights, **options), request)
        side = getattr(net, "image_size", None)  # of a transformer, which without weights may be built for another size
        built = {"image_size": side} if isinstance(side, int) else {}
        transform = _TRANSFORMS[task](published.transforms, options | built) if task in _TRANSFORMS else None
        if task == "detection":
            return Loaded(net, transform=transform)
        preset = published.transforms()
        return Loaded(net, tuple(preset.mean), tuple(preset.std), transform=transform, video=task == "video")

    def names(self) -> Iterator[NetworkInfo]:
        if find_spec("torchvision") is None:
            return
        prepare_torchvision()
        models = import_module("torchvision.models")
        for name, task in sorted(_tasks(models).items()):
            yield NetworkInfo(f"torchvision:{name}", "video" if task == "video" else "image", "published weights")


def _tasks(models: Any) -> dict[str, str]:
    """Every network that has an address, and what it does: the module it comes from."""
    modules = {task: getattr(models, task) if task else models for task in _TASKS}
    return {name: task for task, module in modules.items() for name in models.list_models(module=module)}


def _of_classifier(preset: Callable[..., Any], options: Mapping[str, Any]) -> Transform:
    """The transform published with weights, without the normalisation; of the size the network is built for."""
    published = preset()
    edge, side = published.resize_size[0], published.crop_size[0]
    if "image_size" in options:
        edge, side = round(edge * options["image_size"] / side), options["image_size"]
    one = preset(**_PLAIN, resize_size=edge, crop_size=side)
    interpolation = published.interpolation.value
    recipe = f"torchvision: {side} × {side} after {edge}, {interpolation}"
    return Transform(partial(each, one), recipe, size=(side, side), crop=side / edge, interpolation=interpolation)


def _of_segmenter(preset: Callable[..., Any], options: Mapping[str, Any]) -> Transform:
    """The shorter side of an image to a size, and all of it kept."""
    published = preset()
    interpolation = published.interpolation.value
    recipe = f"torchvision: shorter side {published.resize_size[0]}, {interpolation}"
    return Transform(partial(each, preset(**_PLAIN)), recipe, interpolation=interpolation)


def _of_detector(preset: Callable[..., Any], options: Mapping[str, Any]) -> Transform:
    """Images as large as they are: a detector takes a list of them, and brings them to size itself."""
    return Transform(partial(each_alone, preset()), "torchvision: as they are", resizes=False)


_PLAIN = {"mean": (0.0,) * 3, "std": (1.0,) * 3}
_TRANSFORMS = {"": _of_classifier, "segmentation": _of_segmenter, "detection": _of_detector}
