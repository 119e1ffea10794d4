"""The networks that `studies/networks.py` asks about, each with its library's own answers, written by hand.

timm answers by its own transform, `pre_logits`, `get_classifier` and the groups it scales learning rates by. For
torchvision and transformers the class layers were read from their sources, inputs come from their own presets and
processors, and representations from hooks or outputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise._base.optional import prepare_torchvision

prepare_torchvision()

import timm  # noqa: E402
import torchvision  # noqa: E402
import transformers  # noqa: E402
from tests.fuzz import tiny_transformers  # noqa: E402

transformers.utils.logging.disable_progress_bar()


@dataclass(frozen=True)
class Subject:
    """A network to ask about, with its library's answers; None where the library has none.

    `inputs` is the library's own transform of decoded photos, `rows` its own representation of those inputs, `heads`
    the names of its class layers, `blocks` whether what we call blocks agrees with what it says of them. `reduce` is
    chosen where only a person could choose: for the things a detector finds, and the positions of a segmenter, whose
    images are of different sizes and come one at a time. `prepare` makes the files an address names.
    """

    library: str
    family: str
    address: str
    data: str = "photos"
    inputs: Callable[[nn.Module, list[Any]], Any] | None = None
    rows: Callable[[nn.Module, Any], Tensor] | None = None
    heads: Callable[[nn.Module], list[str]] | None = None
    blocks: Callable[[nn.Module, list[str]], bool | None] | None = None
    runs: bool = True
    reduce: str | None = None
    batch_size: int | None = None
    prepare: Callable[[], object] = lambda: None

    @property
    def name(self) -> str:
        return self.address.partition(":")[2].partition(",")[0].rpartition("/")[2]


# timm


def timm_subjects() -> Iterator[Subject]:
    """One member of every family."""
    families: dict[str, list[str]] = {}
    for name in timm.list_models():
        families.setdefault(timm.model_entrypoint(name).__module__.rpartition(".")[2], []).append(name)
    for family, names in sorted(families.items()):
        name = CHEAPEST.get(family) or min(names, key=len)
        yield Subject(
            "timm",
            family,
            f"timm:{name},pretrained=false",
            inputs=_timm_inputs,
            rows=_timm_rows,
            heads=_timm_heads,
            blocks=_timm_blocks,
        )


def _timm_inputs(net: nn.Module, images: list[Any]) -> Tensor:
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(net))
    return torch.stack([transform(image) for image in images])


def _timm_rows(net: Any, inputs: Tensor) -> Tensor:
    own: Tensor = net.forward_head(net.forward_features(inputs), pre_logits=True)
    return own


def _timm_heads(net: Any) -> list[str]:
    found = net.get_classifier()
    parts = found if isinstance(found, (tuple, list, nn.ModuleList)) else [found]
    within = {id(inner) for part in parts for inner in part.modules() if _has_matrix(inner)}
    return [name for name, part in net.named_modules() if id(part) in within]


def _has_matrix(part: nn.Module) -> bool:
    return isinstance(part, (nn.Linear, nn.Conv2d))


def _timm_blocks(net: Any, found: list[str]) -> bool | None:
    """Whether blocks nest with the groups timm scales learning rates by, none of them reaching into the stem."""
    try:
        groups = net.group_matcher(coarse=False)
    except (AttributeError, TypeError, AssertionError, NotImplementedError):
        return None
    if not isinstance(groups, dict) or "blocks" not in groups:
        return None
    rules = [(kind, rule) for kind in ("stem", "blocks") for rule in _rules(groups.get(kind, []))]
    members: dict[Any, set[str]] = {}
    for name, _ in net.named_parameters():
        for number, (kind, rule) in enumerate(rules):
            match = re.match(rule, name)
            if match:
                members.setdefault((kind, number, match.groups()), set()).add(name)
                break
    names = [name for name, _ in net.named_parameters()]
    for block in found:
        held = {name for name in names if name.startswith(f"{block}.")}
        for (kind, *_), group in members.items():
            if held & group and (kind == "stem" or not (held <= group or group <= held)):
                return False
    return True


def _rules(given: Any) -> list[str]:
    """The regular expressions of one kind of group: one, or several with their place in the order."""
    return [given] if isinstance(given, str) else [rule if isinstance(rule, str) else rule[0] for rule in given]


CHEAPEST = {  # the fewest parameters and pixels, so that all of them run in minutes
    "beit": "beit_base_patch16_224",
    "byoanet": "halonet_h1",
    "byobnet": "gernet_s",
    "cait": "cait_xxs24_224",
    "coat": "coat_tiny",
    "convit": "convit_tiny",
    "convmixer": "convmixer_768_32",
    "convnext": "convnext_atto",
    "cpubone": "cpubone_nano",
    "crossvit": "crossvit_tiny_240",
    "csatv2": "csatv2",
    "cspnet": "cs3darknet_s",
    "davit": "davit_tiny",
    "deepseek_vit": "deepseek_vit_412m",
    "deit": "deit_tiny_patch16_224",
    "densenet": "densenet121",
    "dla": "dla46x_c",
    "dpn": "dpn48b",
    "edgenext": "edgenext_xx_small",
    "efficientformer": "efficientformer_l1",
    "efficientformer_v2": "efficientformerv2_s0",
    "efficientnet": "tinynet_e",
    "efficientvim": "efficientvim_m1",
    "efficientvit_mit": "efficientvit_b0",
    "efficientvit_msra": "efficientvit_m0",
    "eva": "eva02_tiny_patch14_224",
    "fasternet": "fasternet_t0",
    "fastvit": "fastvit_t8",
    "focalnet": "focalnet_tiny_srf",
    "gcvit": "gcvit_xxtiny",
    "gemma4_vit": "gemma4_vit_167m",
    "ghostnet": "ghostnet_050",
    "hardcorenas": "hardcorenas_b",
    "hgnet": "hgnetv2_b0",
    "hiera": "hiera_tiny_224",
    "hieradet_sam2": "hieradet_small",
    "hrnet": "hrnet_w18_small",
    "iformer": "iformer_t",
    "inception_next": "inception_next_atto",
    "inception_resnet_v2": "inception_resnet_v2",
    "inception_v3": "inception_v3",
    "inception_v4": "inception_v4",
    "lcnetv2": "lcnetv2_small",
    "levit": "levit_128s",
    "lowformer": "lowformer_b0",
    "mambaout": "mambaout_femto",
    "maxxvit": "maxvit_nano_rw_256",
    "metaformer": "poolformer_s12",
    "mlp_mixer": "gmlp_ti16_224",
    "mobilenetv3": "mobilenetv3_small_050",
    "mobilenetv5": "mobilenetv5_base",
    "mobilevit": "mobilevit_xxs",
    "mvitv2": "mvitv2_tiny",
    "naflexvit": "naflexvit_base_patch16_parfac_gap",
    "nasnet": "nasnetalarge",
    "nest": "nest_tiny",
    "nextvit": "nextvit_small",
    "nfnet": "nfnet_l0",
    "pit": "pit_ti_224",
    "pnasnet": "pnasnet5large",
    "pvt_v2": "pvt_v2_b0",
    "qwen3_vit": "qwen3_vit_88m",
    "rdnet": "rdnet_tiny",
    "regnet": "regnetx_002",
    "repghost": "repghostnet_050",
    "repvit": "repvit_m1",
    "res2net": "res2next50",
    "resnest": "resnest14d",
    "resnet": "resnet10t",
    "resnetv2": "resnetv2_18",
    "rexnet": "rexnet_100",
    "selecsls": "selecsls42",
    "senet": "legacy_seresnet18",
    "sequencer": "sequencer2d_s",
    "shvit": "shvit_s1",
    "sknet": "skresnet18",
    "starnet": "starnet_s050",
    "swiftformer": "swiftformer_xs",
    "swin_transformer": "swin_tiny_patch4_window7_224",
    "swin_transformer_v2": "swinv2_tiny_window8_256",
    "swin_transformer_v2_cr": "swinv2_cr_tiny_224",
    "tiny_vit": "tiny_vit_5m_224",
    "tnt": "tnt_s_legacy_patch16_224",
    "tresnet": "tresnet_m",
    "twins": "twins_svt_small",
    "vgg": "vgg11",
    "visformer": "visformer_tiny",
    "vision_transformer": "vit_tiny_patch16_224",
    "vision_transformer_hybrid": "vit_tiny_r_s16_p8_224",
    "vision_transformer_relpos": "vit_srelpos_small_patch16_224",
    "vision_transformer_sam": "samvit_base_patch16_224",
    "vitamin": "vitamin_small_224",
    "volo": "volo_d1_224",
    "vovnet": "ese_vovnet19b_slim_dw",
    "xception": "legacy_xception",
    "xception_aligned": "xception41p",
    "xcit": "xcit_nano_12_p8_224",
}


# torchvision

CLASS_LAYERS = {  # by reading torchvision's sources
    "alexnet": ["classifier.6"],
    "convnext": ["classifier.2"],
    "deeplabv3": ["classifier.4"],
    "densenet": ["classifier"],
    "efficientnet": ["classifier.1"],
    "fasterrcnn": ["roi_heads.box_predictor.cls_score"],
    "fcn": ["classifier.4"],
    "fcos": ["head.classification_head.cls_logits"],
    "googlenet": ["fc"],
    "inception": ["fc"],
    "keypointrcnn": ["roi_heads.box_predictor.cls_score"],
    "lraspp": ["classifier.low_classifier", "classifier.high_classifier"],
    "maskrcnn": ["roi_heads.box_predictor.cls_score"],
    "maxvit": ["classifier.5"],
    "mnasnet": ["classifier.1"],
    "mobilenet_v2": ["classifier.1"],
    "mobilenet_v3": ["classifier.3"],
    "regnet": ["fc"],
    "resnet": ["fc"],
    "resnext": ["fc"],
    "retinanet": ["head.classification_head.cls_logits"],
    "shufflenet": ["fc"],
    "squeezenet": ["classifier.1"],
    "ssd": ["head.classification_head"],  # its rows are those of six convolutions, one per level
    "swin": ["head"],
    "vgg": ["classifier.6"],
    "vit": ["heads.head"],
    "wide_resnet": ["fc"],
}


def torchvision_subjects() -> Iterator[Subject]:
    """Every classifier, detector and segmenter."""
    models = torchvision.models
    detectors = models.list_models(module=models.detection)
    for name in [
        *models.list_models(module=models),
        *models.list_models(module=models.segmentation),
        *detectors,
    ]:
        family = max((key for key in CLASS_LAYERS if name.startswith(key)), key=len)
        plain = name in models.list_models(module=models)
        yield Subject(
            "torchvision",
            family,
            f"torchvision:{name},pretrained=false",
            inputs=_torchvision_inputs(name, stacked=plain),
            rows=_before(CLASS_LAYERS[family][0]) if plain else None,
            heads=_named(CLASS_LAYERS[family]),
            runs=name not in detectors,
            reduce=None if plain else "mean",
            batch_size=None if plain else 1,
        )


def _torchvision_inputs(name: str, *, stacked: bool) -> Callable[[nn.Module, list[Any]], Any]:
    """The transform of a network's published weights; of detectors and segmenters, one size per image."""
    published = torchvision.models.get_model_weights(name)
    # the default weights of ViT-H are for 518 pixels, which a network without weights is not built for
    preset = (published.IMAGENET1K_SWAG_LINEAR_V1 if name == "vit_h_14" else published.DEFAULT).transforms()

    def inputs(_net: nn.Module, images: list[Any]) -> Any:
        made = [preset(image) for image in images]
        return torch.stack(made) if stacked else made

    return inputs


def _named(layers: list[str]) -> Callable[[nn.Module], list[str]]:
    return lambda _net: layers


def _before(layer: str) -> Callable[[nn.Module, Any], Tensor]:
    """What a layer is given, by a hook of our own."""

    def rows(net: nn.Module, inputs: Any) -> Tensor:
        given: list[Tensor] = []
        hook = net.get_submodule(layer).register_forward_pre_hook(lambda _module, args: given.append(args[0]))
        try:
            net(**inputs) if isinstance(inputs, dict) else net(inputs)
        finally:
            hook.remove()
        return given[-1]

    return rows


# transformers

TEXTS = ["the cat sat on the mat .", "a dog ran", "the film was not very good , and the bird was bad !", "fish"]
HF_CLASS_LAYERS = {  # the class layers of what is no plain `classifier`, by reading the library's sources
    "bart-classifier": ["classification_head.out_proj"],
    "bit": ["classifier.1"],
    "ast": ["classifier.dense"],
    "beit-segmenter": ["decode_head.classifier"],
    "conditional-detr": ["class_labels_classifier"],
    "deformable-detr": [f"class_embed.{i}" for i in range(6)],
    "detr": ["class_labels_classifier"],
    "detr-panoptic": ["detr.class_labels_classifier"],
    "gpt2-classifier": ["score"],
    "levit": ["classifier.linear"],
    "mask2former": ["class_predictor"],
    "maskformer": ["class_predictor"],
    "regnet": ["classifier.1"],
    "resnet": ["classifier.1"],
    "roberta-classifier": ["classifier.out_proj"],
    "rt-detr": ["model.decoder.class_embed.1"],
    "segformer": ["decode_head.classifier"],
    "table-transformer": ["class_labels_classifier"],
    "upernet": ["decode_head.classifier"],
    "yolos": ["class_labels_classifier.layers.2"],
}
TOKENS = {"text": "mean", "text decoder": "last", "state space": "last", "encoder-decoder": "mean", "audio": "mean"}


def transformers_subjects(folder: Path) -> Iterator[Subject]:
    """One tiny random network per architecture, each from a folder of its own."""
    for kind, tiny in tiny_transformers.KINDS.items():
        place = folder / kind
        classifies = "classification" in tiny.task
        layers = HF_CLASS_LAYERS.get(kind, ["classifier"])
        looks = tiny.task.startswith("image") or tiny.task in ("detection", "segmentation", "two towers")
        yield Subject(
            "transformers",
            tiny.task,
            f"hf:{place}" + (",part=vision" if tiny.task == "two towers" else ""),
            data="photos" if looks else "sounds" if tiny.task.startswith("audio") else "texts",
            inputs=_processed(place) if looks else None,
            rows=_before(layers[0]) if classifies else _embedding(tiny.task),
            heads=_named(layers) if classifies or tiny.task in ("detection", "segmentation") else None,
            reduce="mean" if tiny.task in ("detection", "segmentation") else None,
            prepare=partial(tiny_transformers.save, kind, place),
            blocks=_depth if tiny.task in ("text", "text decoder", "state space", "image") else None,
        )


def _processed(place: Path) -> Callable[[nn.Module, list[Any]], Any]:
    """What the folder's own image processor makes of photos."""

    def inputs(_net: nn.Module, images: list[Any]) -> Any:
        made = dict(transformers.AutoImageProcessor.from_pretrained(place)(images=images, return_tensors="pt"))
        return made["pixel_values"] if set(made) == {"pixel_values"} else made

    return inputs


def _embedding(task: str) -> Callable[[nn.Module, Any], Tensor] | None:
    """The pooled output; else the tokens of the last states, real ones only, reduced as the task has it."""
    if task in ("detection", "segmentation"):
        return None

    def rows(net: Any, inputs: Any) -> Tensor:
        given = inputs if isinstance(inputs, dict) else {net.main_input_name: inputs}
        answer = net(**given)
        for name in ("image_embeds", "pooler_output"):
            if getattr(answer, name, None) is not None:
                pooled: Tensor = getattr(answer, name)
                return pooled
        states: Tensor = answer.last_hidden_state
        if states.ndim == 4:
            return states.mean(dim=(2, 3))
        if task not in TOKENS:
            return states[:, 0] if hasattr(net.embeddings, "cls_token") else states.mean(dim=1)
        mask = _real(net, given, states.shape[1]) if task == "audio" else given["attention_mask"]
        if TOKENS[task] == "mean":
            return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        places = mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)
        return states[torch.arange(len(states)), places]

    return rows


def _real(net: Any, given: dict[str, Tensor], frames: int) -> Tensor:
    """Which frames of the sounds are no padding, by what the architecture says of its convolutions."""
    samples = torch.tensor([len(sound) for sound in sounds()])
    if hasattr(net, "_get_feature_vector_attention_mask") and "input_features" in given:
        mask: Tensor = net._get_feature_vector_attention_mask(frames, given["attention_mask"])
        return mask
    if hasattr(net, "_get_feat_extract_output_lengths") and "input_values" in given:
        ends = net._get_feat_extract_output_lengths(samples)
    else:  # Whisper: a frame is two steps of 160 samples
        ends = (samples + 319) // 320
    return (torch.arange(frames)[None] < ends[:, None]).long()


def sounds() -> list[np.ndarray]:
    """Noise of different lengths."""
    draw = np.random.default_rng(0)
    return [draw.normal(size=length).astype(np.float32) for length in (4000, 6000, 5000, 4500)]


def _depth(net: Any, found: list[str]) -> bool | None:
    """Whether there are as many blocks as the configuration says there are layers."""
    config = net.config
    depths = getattr(config, "depths", None)
    wanted = sum(depths) if depths else getattr(config, "num_hidden_layers", None)
    wanted = getattr(config, "num_hidden_groups", wanted)  # ALBERT calls one layer again and again
    return None if wanted is None else len(found) == wanted + getattr(config, "num_decoder_layers", 0)


def subjects(library: str, folder: Path) -> Iterator[Subject]:
    """The networks of one library."""
    if library == "transformers":
        yield from transformers_subjects(folder)
    else:
        yield from {"timm": timm_subjects, "torchvision": torchvision_subjects}[library]()
