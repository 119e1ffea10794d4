"""Classifiers: the layer whose input is the penultimate representation, and the rows it has for each class."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import likewise
from likewise.networks import Normalised, head
from tests.networks.helpers import refused

pytestmark = pytest.mark.usefixtures("vision")

REMEDY = "Name the layer yourself: head='name' where it is asked for, or net.head_layer = 'name'."

# The layer by the source of transformers, and which of its answers it gives.
OF_TRANSFORMERS = {
    "detr": ("class_labels_classifier", 4, "logits"),  # one row more: no object
    "detr-panoptic": ("detr.class_labels_classifier", 4, "logits"),
    "conditional-detr": ("class_labels_classifier", 3, "logits"),
    "deformable-detr": ("class_embed.1", 3, "logits"),  # of two blocks of its decoder
    "table-transformer": ("class_labels_classifier", 4, "logits"),
    "yolos": ("class_labels_classifier.layers.2", 4, "logits"),
    "rt-detr": ("model.decoder.class_embed.1", 3, "logits"),
    "segformer": ("decode_head.classifier", 3, "logits"),
    "beit-segmenter": ("decode_head.classifier", 3, ""),  # enlarged afterwards
    "upernet": ("decode_head.classifier", 3, ""),
    "maskformer": ("class_predictor", 4, "class_queries_logits"),
    "mask2former": ("class_predictor", 4, "class_queries_logits"),
    "bert-classifier": ("classifier", 3, "logits"),
    "roberta-classifier": ("classifier.out_proj", 3, "logits"),
    "bart-classifier": ("classification_head.out_proj", 3, "logits"),
    "levit": ("classifier.linear", 3, ""),
    "gpt2": ("lm_head", 30, "logits"),
}


def answer_of(net: nn.Module, layer: str, field: str) -> tuple[torch.Tensor, torch.Tensor]:
    """What a network answers in `field`, and what the layer gave in its last call."""
    given: list[torch.Tensor] = []
    hook = net.get_submodule(layer).register_forward_hook(lambda _part, _args, output: given.append(output))
    text = net.main_input_name == "input_ids"
    inputs = torch.tensor([[2, 5, 6, 29]] * 2) if text else torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        output = net(**{net.main_input_name: inputs})
    hook.remove()
    return output[field], given[-1]


def test_a_network_that_ends_otherwise_has_no_head() -> None:
    assert refused(lambda: head(nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)))) == (
        f"Sequential has no classifier that could be found: its last layer with weights, '1', is a LayerNorm. {REMEDY}"
    )


def test_the_head_is_found_within_wrappers() -> None:
    net = likewise.network("zoo:lenet")
    wrapped = Normalised(nn.DataParallel(net), [0.5] * 3, [0.5] * 3)
    assert head(wrapped).layer_name == "fc"
    assert head(wrapped).weight.data_ptr() == net.fc.weight.data_ptr()


@pytest.mark.parametrize(
    ("address", "layer"),
    [
        ("timm:resnet10t,pretrained=false", "fc"),
        ("timm:vit_tiny_patch16_224,pretrained=false", "head"),
        ("torchvision:squeezenet1_1,pretrained=false", "classifier.1"),
        ("torchvision:mobilenet_v3_small,pretrained=false", "classifier.3"),
    ],
)
def test_networks_of_the_libraries_have_heads(address: str, layer: str) -> None:
    assert head(likewise.network(address)).layer_name == layer


@pytest.mark.parametrize("kind", OF_TRANSFORMERS)
def test_the_class_layer_of_transformers_is_the_one_that_answers(kind: str) -> None:
    pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import build

    net = build(kind)
    layer, rows, field = OF_TRANSFORMERS[kind]
    found = head(net)
    assert found.layer_name == layer
    assert torch.equal(found.weight, net.get_submodule(layer).weight.flatten(1))
    assert len(found.weight) == rows
    if field:
        answer, given = answer_of(net, layer, field)
        assert given.numel() == answer.numel()
        torch.testing.assert_close(given.reshape(answer.shape), answer)


def test_of_a_detector_that_proposes_regions_the_class_layer_is_the_decoders() -> None:
    transformers = pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import DETR, MULTI_SCALE, config

    sizes = DETR | MULTI_SCALE | {"two_stage": True, "with_box_refine": True, "two_stage_num_proposals": 5}
    net = transformers.DeformableDetrForObjectDetection(config(transformers.DeformableDetrConfig, sizes)).eval()
    assert [len(net.class_embed), head(net).layer_name] == [3, "class_embed.1"]  # the third proposes
    answer, given = answer_of(net, "class_embed.1", "logits")
    torch.testing.assert_close(given, answer)


TINY_RT_DETR = {
    "backbone_config": {"model_type": "rt_detr_resnet", "embedding_size": 8, "hidden_sizes": [8] * 4, "depths": [1] * 4}
    | {"layer_type": "basic", "out_features": ["stage2", "stage3", "stage4"]},
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [8] * 3,
    "decoder_in_channels": [32] * 3,
}


@pytest.mark.parametrize(
    ("name", "sizes", "layer", "rows"),
    [
        ("RTDetrV2ForObjectDetection", TINY_RT_DETR, "class_embed.1", 3),  # not model.enc_score_head
        ("DFineForObjectDetection", TINY_RT_DETR, "class_embed.1", 3),
        ("EomtForUniversalSegmentation", {"num_blocks": 1}, "class_predictor", 4),
        (
            "DPTForSemanticSegmentation",
            {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8] * 4}
            | {"fusion_hidden_size": 8},
            "head.head.4",  # not auxiliary_head.head.4
            3,
        ),
        (
            "MobileViTForSemanticSegmentation",
            {
                "hidden_sizes": [8] * 3,
                "neck_hidden_sizes": [3] * 7,
                "aspp_out_channels": 3,
            },  # widths as many as classes
            "segmentation_head.classifier.convolution",
            3,
        ),
    ],
)
def test_later_detectors_and_segmenters_of_transformers_are_found(
    name: str, sizes: dict[str, Any], layer: str, rows: int
) -> None:
    transformers = pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import config

    kind = getattr(transformers, name)
    found = head(kind(config(kind.config_class, sizes)))
    assert (found.layer_name, len(found.weight)) == (layer, rows)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("vit", "its configuration says 3 classes, and none of its layers has as many rows"),
        ("clip", "its configuration says 3 classes, and none of its layers has as many rows"),
        ("dinov2", "its last layer with weights, 'layernorm', is a LayerNorm"),
    ],
)
def test_a_bare_encoder_of_transformers_has_no_class_layer(kind: str, reason: str) -> None:
    pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import build

    net = build(kind)
    assert refused(lambda: head(net)) == (
        f"{type(net).__name__} has no classifier that could be found: {reason}. {REMEDY}"
    )


def test_where_two_layers_answer_both_are_named_and_each_can_be_chosen() -> None:
    transformers = pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import config

    net = transformers.DeiTForImageClassificationWithTeacher(config(transformers.DeiTConfig, {}))
    assert refused(lambda: head(net)) == (
        "DeiTForImageClassificationWithTeacher has no classifier that could be found: by the shapes of its layers, "
        "'cls_classifier', "
        f"'distillation_classifier' could each be it, and only a forward pass tells which. {REMEDY}"
    )
    for layer in ("cls_classifier", "distillation_classifier"):
        assert torch.equal(head(net, layer=layer).weight, net.get_submodule(layer).weight)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("caformer_s18", "head.fc.fc2"),  # a small network for a head
        ("sequencer2d_s", "head.fc"),
        ("resnetv2_50", "head.fc"),  # a convolution
        ("vgg11", "head.fc"),
        ("inception_v3", "fc"),
        ("volo_d1_224", "head"),
    ],
)
def test_timms_heads_of_every_kind_are_found(name: str, layer: str) -> None:
    import timm

    with torch.device("meta"):
        net = timm.create_model(name, num_classes=64)  # a width that inner layers have too
    assert head(net).layer_name == layer
    assert len(head(net).weight) == 64


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("deit_tiny_distilled_patch16_224", ("head", "head_dist")),
        ("crossvit_9_240", ("head.0", "head.1")),
        ("levit_128", ("head.linear", "head_dist.linear")),
        ("repvit_m1", ("head.head.l", "head.head_dist.l")),
    ],
)
def test_heads_of_timm_that_answer_together_are_named(name: str, layers: tuple[str, str]) -> None:
    import timm

    with torch.device("meta"):
        net = timm.create_model(name, num_classes=7)
    assert refused(lambda: head(net)) == (
        f"{type(net).__name__} has no classifier that could be found: by its get_classifier, "
        f"{layers[0]!r}, {layers[1]!r} answer "
        f"together, so that no one layer is it. {REMEDY}"
    )
    for layer in layers:
        assert head(net, layer=layer).weight.shape == net.get_submodule(layer).weight.shape


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("fasterrcnn_resnet50_fpn", "roi_heads.box_predictor.cls_score"),  # not rpn.head.cls_logits
        ("maskrcnn_resnet50_fpn_v2", "roi_heads.box_predictor.cls_score"),  # not mask_predictor.mask_fcn_logits
        ("fcn_resnet50", "classifier.4"),
        ("deeplabv3_mobilenet_v3_large", "classifier.4"),
        ("r3d_18", "fc"),
        ("s3d", "classifier.1"),  # a convolution over time
        ("mvit_v2_s", "head.1"),
        ("googlenet", "fc"),
        ("squeezenet1_1", "classifier.1"),
        ("vgg11", "classifier.6"),
    ],
)
def test_the_class_layers_of_torchvision_are_found(name: str, layer: str) -> None:
    net = of_torchvision(name, classes=64)  # a width that inner layers have too
    assert head(net).layer_name == layer
    assert head(net).weight.shape == net.get_submodule(layer).weight.flatten(1).shape


def test_a_part_that_holds_the_class_layer_can_be_named_too() -> None:
    net = of_torchvision("fasterrcnn_resnet50_fpn", classes=5)
    assert head(net, layer="roi_heads").layer_name == "roi_heads.box_predictor.cls_score"  # not bbox_pred
    assert head(of_torchvision("vgg11", classes=5), layer="classifier").layer_name == "classifier.6"


def test_the_two_class_layers_of_lraspp_are_named_and_each_can_be_chosen() -> None:
    net = of_torchvision("lraspp_mobilenet_v3_large", classes=5)
    assert refused(lambda: head(net)) == (
        "LRASPP has no classifier that could be found: by the names its library gives to layers, "
        "'classifier.low_classifier', "
        f"'classifier.high_classifier' answer together, so that no one layer is it. {REMEDY}"
    )
    for layer, width in (("classifier.low_classifier", 40), ("classifier.high_classifier", 128)):
        assert head(net, layer=layer).weight.shape == (5, width)


@pytest.mark.parametrize(
    "name", ["retinanet_resnet50_fpn", "fcos_resnet50_fpn", "ssd300_vgg16", "ssdlite320_mobilenet_v3_large"]
)
def test_a_class_of_a_detector_with_anchors_is_its_rows_at_all_of_them(name: str) -> None:
    """The library's own reshaping of what it answers, applied to what its layers answer by."""
    net, classes = of_torchvision(name, classes=5), 5
    part: Any = net.head.classification_head
    part.to_empty(device="cpu")
    for weight in part.parameters():
        nn.init.normal_(weight)
    rows = part.module_list if hasattr(part, "module_list") else [part.cls_logits]
    last = [row if isinstance(row, nn.Conv2d) else row[-1] for row in rows]
    expected = []
    for layer in last:
        # as a feature map of one place and as many channels as an anchor has weights: (N, A * K, H, W) to (N, HWA, K)
        maps = layer.weight.flatten(1)[None, :, :, None]  # (1, A * K, d, 1)
        n, _, height, width = maps.shape
        maps = maps.view(n, -1, classes, height, width).permute(0, 3, 4, 1, 2)  # (1, d, 1, A, K)
        expected.append(maps.reshape(height, -1, classes).permute(2, 1, 0).flatten(1))  # (K, A * d)
    assert torch.equal(head(net).weight, torch.cat(expected, dim=1))
    assert head(net).bias is None


def of_torchvision(name: str, classes: int) -> nn.Module:
    from torchvision import models

    inside = {name for kind in (models.detection, models.segmentation) for name in models.list_models(module=kind)}
    options: dict[str, Any] = {"weights_backbone": None} if name in inside else {}
    if name == "googlenet":
        options["init_weights"] = False
    with torch.device("meta"):
        net: nn.Module = models.get_model(name, weights=None, num_classes=classes, **options)
    return net
