"""Settings by name: recipes of published trainings, as far as their papers tell them."""

from __future__ import annotations

from likewise._base.registry import Registry
from likewise.networks.training.settings import Settings

PRESETS: Registry[Settings] = Registry("preset", group="likewise.presets", modules=(__name__,))

# Deep Similarity Inspector, appendix A.2: 400 epochs, a linear warm-up, a lower rate on a plateau, seven augmentations,
# and CutMix for vision transformers. It does not tell optimisers, rates, the length of the warm-up and how far the
# augmentations go: those are ours.
_DSI = Settings(
    epochs=400,
    schedule="plateau",
    warmup=5,
    optimiser="sgd",
    lr=0.05,
    augment=("resized-crop", "flip", "rotation", "blur", "jitter", "perspective", "affine"),
)
PRESETS.add("dsi", _DSI, module=__name__)
PRESETS.add(
    "dsi-vit",
    _DSI.override({"optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.05, "cutmix": 1.0}),
    module=__name__,
)


def preset(name: str) -> Settings:
    """The settings of a published training, as `train(settings=...)` takes them.

    Args:
        name: "dsi" (Deep Similarity Inspector, for convolutional networks) or "dsi-vit" (with CutMix and AdamW).

    Raises:
        UnknownNameError: There is no such preset.

    Example:
        >>> preset("dsi").augment
        ('resized-crop', 'flip', 'rotation', 'blur', 'jitter', 'perspective', 'affine')
    """
    return PRESETS.get(name)
