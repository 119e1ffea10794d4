"""What the outputs of a network are called, and which label means which output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from likewise import wordnet
from likewise._base.optional import prepare_torchvision
from likewise.data import Data
from likewise.networks import evaluate, network, save, train
from likewise.networks.class_names import class_names, class_rows, classes_of
from likewise.views.extract import extract
from likewise.wordnet import ClassNames
from tests.networks.helpers import PETS, Blind, named, pets, refused


def test_accuracy_counts_classes_by_name() -> None:
    net = named(3, ("fish", "dog", "cat"), favourite=2)
    assert evaluate(net, pets())[1] == pytest.approx(1 / 3)
    assert evaluate(net, pets()[[0, 3, 6]])[1] == 1  # the cats
    assert refused(lambda: evaluate(Blind(4), pets())) == (
        "the labels of 'pets' do not fit Blind: it has 3 classes ('cat', 'dog', 'fish'), and the "
        "network answers with 4 numbers that have no names. Use a network of these classes."
    )


def test_a_training_validates_by_name() -> None:
    validation = pets()[[0, 3, 6, 2]]  # cats and a fish
    turned = Data("val", "image", validation.inputs, [1, 1, 1, 0], ("fish", "cat"))
    records = [
        train(Blind(3), pets(), epochs=2, validation=held_out, lr=0.1).history[-1] for held_out in (validation, turned)
    ]
    for what in ("validation_accuracy", "validation_loss"):
        assert records[0][what] == records[1][what]
    other = pets(("cat", "dog", "newt"), name="zoo")
    assert refused(lambda: train(Blind(3), pets(), epochs=1, validation=other)) == (
        "'zoo' cannot validate a training on 'pets': of its classes, 'newt' are not surely among "
        "'cat', 'dog', 'fish'. Validate on data of the same classes."
    )


def test_a_trained_network_knows_its_classes_from_its_file(tmp_path: Path) -> None:
    train("zoo:mlp", pets(), epochs=1, out=tmp_path / "run", keep_epochs=True)
    for place in ("run", "run/epochs/0001.safetensors"):
        net = network(str(tmp_path / place))
        assert class_names(net, 3) == ClassNames(PETS)
    turned = pets(("fish", "dog", "cat"))
    view = extract(str(tmp_path / "run"), turned)
    assert view.outputs.labels.tolist() == [2, 1, 0] * 3
    assert extract(str(tmp_path / "run"), pets(("a", "b", "c"))).outputs.labels is None
    save(net, tmp_path / "again.safetensors")
    assert class_names(network(str(tmp_path / "again.safetensors")), 3) == ClassNames(PETS)


def test_more_outputs_than_classes_were_trained() -> None:
    done = train(Blind(5), pets(), epochs=1)
    assert evaluate(done.net, pets())[1] == evaluate(done.net, pets(PETS))[1]
    assert extract(done.net, pets(PETS[::-1])).outputs.labels.tolist() == [2, 1, 0] * 3


def test_a_weights_file_names_the_data_beside_it(tmp_path: Path) -> None:
    save(network("zoo:resnet20"), tmp_path / "full.safetensors")
    from safetensors.torch import load_file, save_file

    save_file(load_file(tmp_path / "full.safetensors"), tmp_path / "mine.safetensors")
    (tmp_path / "models.json").write_text('{"dataset": "CIFAR-10", "models": {"mine": {}}}')
    net = network(f"zoo:resnet20@{tmp_path / 'mine.safetensors'}")
    assert class_names(net, 10) == wordnet.listed("cifar10")
    images = torch.rand(4, 3, 32, 32)
    ten = tuple("0123456789")
    assert extract(net, Data("mnist", "image", images, [0, 1, 2, 3], ten)).outputs.labels is None


def test_published_cifar_networks_keep_their_labels(real_data: Path) -> None:
    address = f"zoo:resnet20@{real_data / 'cifar10_resnets' / 'resnet20.safetensors'}"
    assert class_names(network(address), 10) == wordnet.listed("cifar10")
    view = extract(address, "cifar10:test[:50]")
    assert float((view.outputs.predictions == view.outputs.labels).float().mean()) > 0.8


def test_networks_of_torchvision_and_timm_are_of_imagenet(vision: None) -> None:
    import timm
    import torchvision

    imagenet = wordnet.listed("imagenet1k")
    assert class_names(torchvision.models.squeezenet1_1(), 1000) == imagenet
    assert class_names(torchvision.models.squeezenet1_1(num_classes=10), 10) is None
    small = timm.create_model("test_resnet")
    assert class_names(small, 1000) == imagenet
    assert class_names(timm.create_model("test_resnet", num_classes=10), 10) is None
    view = extract(small, Data("f", "image", torch.rand(3, 3, 64, 64), [0, 1, 2], PETS), name="net")
    assert view.outputs.labels is None
    assert view.unlabelled == (
        "the labels of 'f' do not fit 'net': of its 3 classes, 'cat', 'dog', 'fish' are not surely "
        "among the network's 1000 ('tench', 'goldfish', 'great white shark' and 997 more). Name them "
        "as the network does, or by WordNet id."
    )


def test_labels_of_transformers_are_carried_over_by_name() -> None:
    prepare_torchvision()  # transformers does not import where torchvision does not
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=50,
        id2label={0: "POSITIVE", 1: "NEGATIVE"},
    )
    net = transformers.BertForSequenceClassification(config)
    reviews = ["good", "bad", "fine"]
    data = Data("sst2", "text", reviews, [1, 0, 1], ("negative", "positive"))
    net.tokenize = lambda texts: {"input_ids": torch.tensor([[len(text)] * 3 for text in texts])}
    assert extract(net, data).outputs.labels.tolist() == [0, 1, 0]
    answers = net.eval()(**net.tokenize(reviews)).logits.argmax(dim=1)
    right = (answers == torch.tensor([0, 1, 0])).float().mean()
    assert evaluate(net, data)[1] == pytest.approx(float(right))
    net.config.id2label = {0: "entailment", 1: "contradiction"}
    assert extract(net, data).outputs.labels is None
    net.config.id2label = {0: "LABEL_0", 1: "LABEL_1"}  # says nothing
    assert extract(net, data).outputs.labels.tolist() == [1, 0, 1]
    config.id2label = {0: "Negative", 1: "Neutral", 2: "Positive"}
    three = transformers.BertForSequenceClassification(config)
    three.tokenize = net.tokenize
    assert extract(three, data).outputs.labels.tolist() == [2, 0, 2]
    three.config.id2label = {i: f"LABEL_{i}" for i in range(3)}
    assert extract(three, data).outputs.labels is None


def test_classes_that_are_numbers_are_counted_too() -> None:
    numbered = pets((0, 1, 2))  # type: ignore[arg-type]
    assert extract(Blind(3), numbered).outputs.labels is not None
    assert extract(Blind(4), numbered).outputs.labels is None


def test_data_that_names_no_classes_is_taken_at_its_word() -> None:
    batches = [(torch.rand(4, 3, 2, 2), torch.arange(4))]
    assert classes_of(batches) is None
    assert extract(Blind(1000), batches).outputs.labels.tolist() == [0, 1, 2, 3]


COCO91 = ["__background__", *wordnet.classes("coco80").names]  # torchvision's list, without its gaps
for gap in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83):
    COCO91.insert(gap, "N/A")


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("name", "outputs", "first", "last"),
    [
        ("retinanet_resnet50_fpn", 91, "person", "toothbrush"),
        ("deeplabv3_resnet50", 21, "aeroplane", "tvmonitor"),
        ("r3d_18", 400, "abseiling", "zumba"),
    ],
)
def test_the_classes_of_torchvision_are_those_its_weights_were_trained_on(
    name: str, outputs: int, first: str, last: str
) -> None:
    from torchvision import models

    backbone = {} if name == "r3d_18" else {"weights_backbone": None}
    with torch.device("meta"):
        net = models.get_model(name, weights=None, **backbone)
        other = models.get_model(name, weights=None, num_classes=outputs - 1, **backbone)
    weights = models.get_model_weights(name).DEFAULT
    known = class_names(net, outputs)
    assert known is not None
    assert list(known.names) == weights.meta["categories"]
    rows, names = class_rows(net, outputs)
    assert names is not None
    assert (names.names[0], names.names[-1], len(rows)) == (first, last, len(names))
    assert len(rows) == outputs - sum(n in ("N/A", "__background__") for n in known.names)
    background = int(name == "retinanet_resnet50_fpn")  # a detector has it first, whatever it is trained on
    assert class_rows(other, outputs - 1) == (list(range(background, outputs - 1)), None)


@pytest.mark.usefixtures("vision")
def test_coco_counts_to_90_and_has_80_classes() -> None:
    from torchvision import models

    assert models.get_model_weights("ssd300_vgg16").DEFAULT.meta["categories"] == COCO91
    with torch.device("meta"):
        net = models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    rows, names = class_rows(net, 91)
    assert names == wordnet.listed("coco80")
    assert [COCO91[i] for i in rows] == list(wordnet.classes("coco80").names)


@pytest.mark.parametrize(
    ("kind", "labels", "extra"),
    [("detr", ["N/A", *COCO91[1:]], 1), ("conditional-detr", COCO91, 0), ("yolos", COCO91, 1)],
)
def test_detectors_of_transformers_leave_out_what_is_no_class(kind: str, labels: list[str], extra: int) -> None:
    net = tiny(kind)
    net.config.id2label = dict(enumerate(labels))
    assert len(labels) == net.config.num_labels == 91
    rows, names = class_rows(net, 91 + extra)
    assert (len(rows), names) == (80, wordnet.listed("coco80"))
    assert 91 not in rows
    net.config.id2label = {i: f"LABEL_{i}" for i in range(91)}
    assert class_rows(net, 91 + extra) == (list(range(91)), None)


def test_a_segmenter_of_133_classes_has_134_outputs() -> None:
    net = tiny("mask2former")
    net.config.id2label = {i: f"thing {i}" for i in range(133)}
    rows, names = class_rows(net, 134)
    assert (rows, names) == (list(range(133)), ClassNames(tuple(f"thing {i}" for i in range(133))))


def test_names_that_were_never_given_are_no_classes_beside_those_that_were() -> None:
    net = tiny("detr-panoptic")
    net.config.id2label = {0: "N/A", 1: "person", 2: "LABEL_2", 3: "rug"}
    assert class_rows(net, 5) == ([1, 3], ClassNames(("person", "rug")))
    net.config.id2label = {"person": 0, "rug": 1}  # turned around
    assert class_rows(net, 2) == ([0, 1], None)


def test_one_output_more_than_a_classifier_declares_is_no_missing_object() -> None:
    net = tiny("vit-classifier")
    net.config.id2label = {0: "cat", 1: "dog"}
    assert class_rows(net, 3) == ([0, 1, 2], None)


def test_labels_of_a_folder_are_found_among_the_names_of_a_configuration() -> None:
    net = tiny("vit-classifier")
    net.config.id2label = {0: "N/A", 1: "hot dog", 2: "cell phone"}
    data = Data("folder", "image", torch.rand(3, 3, 32, 32), [0, 1, 0], ("Cell_Phone", "hot-dog"))
    assert extract(net, data).outputs.labels.tolist() == [2, 1, 2]


def tiny(kind: str) -> Any:
    prepare_torchvision()  # transformers does not import where torchvision does not
    pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import build

    return build(kind)
