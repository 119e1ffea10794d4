"""What is read of networks: the rows of a classifier, its classes, and features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from likewise import wordnet
from likewise._base.optional import prepare_torchvision
from likewise.classes import Inspector, alignment, from_weights, from_wordnet
from likewise.classes.batches import Tap
from likewise.errors import InputError, UnknownNameError
from likewise.networks import head, train
from likewise.views.extract import extract
from tests.views.helpers import NETS, ROWS, Backwards, Imaged, TwoHeads, images, refused, rows_of


@pytest.fixture(params=NETS)
def net(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(1)
    return NETS[request.param]().eval()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_weights_are_those_of_the_layer_that_answers(net: Any) -> None:
    expected = from_weights(rows_of(net)).values
    np.testing.assert_array_equal(from_weights(net, inputs=ROWS).values, expected)
    np.testing.assert_array_equal(from_weights(net, head="fc").values, expected)


def test_without_inputs_the_one_layer_that_no_other_takes_up_is_the_classifier() -> None:
    net = Backwards()
    assert head(net).layer_name == "fc"
    np.testing.assert_array_equal(from_weights(net).values, from_weights(rows_of(net)).values)


def test_where_several_layers_could_be_the_classifier_none_is_guessed() -> None:
    assert refused(lambda: from_weights(TwoHeads())) == (
        "TwoHeads has no classifier that could be found: by the shapes of its layers, "
        "'fc', 'aux' could each be it, and only a "
        "forward pass tells which. Name the layer yourself: head='name' where it is asked for, or "
        "net.head_layer = 'name'. Or take class means: from_features(net, data), on the command line --data."
    )


def test_a_layer_can_be_named_wherever_the_refusal_says_so(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.LayerNorm(3))
    with pytest.raises(InputError, match="name the classifier: head='name'"):
        extract(net, ROWS, "penultimate")
    expected = net[:2](ROWS).detach()
    for store in (None, tmp_path, tmp_path):
        found = extract(net, ROWS, head="2", store=store).values
        torch.testing.assert_close(found.float(), expected)
    # another head, another view: never the file of the first
    other = extract(net, ROWS, head="0", store=tmp_path)
    torch.testing.assert_close(other.values.float(), ROWS)
    assert len(from_weights(net, head="2")) == 3
    with pytest.raises(UnknownNameError, match="Sequential has no layer named 'fc'"):
        extract(net, ROWS, head="fc")
    with pytest.raises(UnknownNameError, match="Sequential has no layer named 'fc'"):
        Tap(net, "fc")


def test_the_inspector_sees_features_and_weights_of_the_layer_that_answers() -> None:
    torch.manual_seed(0)
    net, data = Imaged(), images()
    inspector = Inspector(data)
    train(net, data, epochs=1, validation=data, callbacks=[inspector])
    with torch.no_grad():
        features = net.features(data.inputs.flatten(1))
    from likewise.classes import from_features

    found = inspector.matrices(1)
    expected = from_features(features, data.labels, data.classes)
    np.testing.assert_allclose(found["features"].values, expected.values, atol=1e-6)
    np.testing.assert_allclose(found["weights"].values, from_weights(rows_of(net)).values, atol=1e-6)
    assert inspector.answering == "fc"


def test_an_inspection_afterwards_finds_the_same(tmp_path: Path) -> None:
    from likewise.classes import inspect

    module = tmp_path / "mine.py"
    module.write_text(
        "import torch\n"
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.fc, self.body = nn.Linear(6, 3), nn.Linear(4, 6)\n"
        "        self.aux = nn.Linear(6, 3)\n"
        "    def forward(self, x):\n"
        "        return self.fc(torch.relu(self.body(x.flatten(1))))\n"
        "def build():\n"
        "    return Net()\n"
    )
    data, watching = images(), Inspector(images())
    train(
        f"{module}:build", data, epochs=2, validation=data, out=tmp_path / "run", keep_epochs=True, callbacks=[watching]
    )
    epochs = [f"{module}:build@{tmp_path}/run/epochs/000{number}.safetensors" for number in (1, 2)]
    afterwards = inspect(epochs, data, progress=False)
    for name in ("weights", "features"):
        np.testing.assert_allclose(afterwards.matrices(2)[name].values, watching.matrices(2)[name].values, atol=1e-6)


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "DistilBert", "GPT2"])
def test_classifiers_of_transformers_are_found_either_way(kind: str) -> None:
    prepare_torchvision()  # transformers does not import where torchvision does not
    transformers = pytest.importorskip("transformers")
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 50,
        "num_labels": 3,
        "n_embd": 16,
        "n_layer": 1,
        "n_head": 2,
        "dim": 16,
        "n_layers": 1,
        "n_heads": 2,
        "hidden_dim": 16,
        "pad_token_id": 0,
    }
    config = getattr(transformers, f"{kind}Config")()
    for name, value in sizes.items():
        if hasattr(config, name):
            setattr(config, name, value)
    net = getattr(transformers, f"{kind}ForSequenceClassification")(config).eval()
    layer = {"GPT2": "score", "Roberta": "classifier.out_proj"}.get(kind, "classifier")
    words = {"input_ids": torch.randint(1, 50, (3, 5))}
    expected = from_weights(net.get_submodule(layer).weight).values
    np.testing.assert_array_equal(from_weights(net, classes=list("abc")).values, expected)
    np.testing.assert_array_equal(from_weights(net, inputs=words).values, expected)
    tap = Tap(net)
    with torch.no_grad():
        net(**words)
    assert tap.layer == layer
    tap.close()


def test_the_inspector_refuses_a_network_that_counts_its_classes_otherwise() -> None:
    data = images()
    with pytest.raises(InputError) as error:
        train(Imaged(), data, epochs=1, validation=data, callbacks=[Inspector(["b", "a", "c"])])
    assert str(error.value) == (
        "'b' is class 0 of the inspector and class 1 of the network. Give the inspector the "
        "network's order: 'a', 'b', 'c'."
    )


def test_weights_follow_the_classes_that_are_asked_for() -> None:
    net, data = Imaged(), images()
    train(net, data, epochs=1)
    own = from_weights(net)
    assert own.classes == ("a", "b", "c")  # the network knows them
    turned = from_weights(net, ["c", "a", "b"])
    np.testing.assert_array_equal(turned.values, own.only(["c", "a", "b"]).values)


def test_the_classes_of_a_detector_meet_wordnet() -> None:
    prepare_torchvision()
    pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import build

    coco = wordnet.classes("coco80").names
    net = build("yolos")
    labels = [*coco, "N/A"][::-1]
    net.class_labels_classifier.layers[2] = nn.Linear(32, 82)
    net.config.id2label = dict(enumerate(labels))
    own = from_weights(net)
    assert own.about == {"width": 32, "layer": "class_labels_classifier.layers.2", "left_out": 2}
    assert own.classes == coco[::-1]
    found = own.only("coco80")
    weight = net.class_labels_classifier.layers[2].weight.detach()
    assert np.array_equal(found.values, from_weights(weight[1:81].flip(0)).values)
    assert (found.classes, found.wnids) == (coco, wordnet.classes("coco80").wnids)
    assert alignment(found, from_wordnet("coco80")).chance.random > 0.7
    everything = from_weights(net, [*labels, "no object"])
    assert (len(everything), everything.classes[-1]) == (82, "no object")


@pytest.mark.usefixtures("vision")
def test_the_class_layer_of_an_address_is_read_without_a_run() -> None:
    found = from_weights("torchvision:ssdlite320_mobilenet_v3_large,pretrained=false")
    assert found.classes == wordnet.classes("coco80").names
    assert found.about == {"width": 13824, "layer": "head.classification_head", "left_out": 11}


@pytest.mark.usefixtures("vision")
def test_the_background_of_a_detector_trained_on_other_classes_is_left_out() -> None:
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    net = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=4)
    weight = net.roi_heads.box_predictor.cls_score.weight
    found = from_weights(net, ["cat", "dog", "ship"])
    assert np.array_equal(found.values, from_weights(weight[1:]).values)
    assert found.about["left_out"] == 1
    assert len(from_weights(net, ["nothing", "cat", "dog", "ship"])) == 4


def test_a_list_is_found_among_the_classes_or_refused() -> None:
    own = from_weights(torch.eye(3), ["cat", "dog", "ship"])
    with pytest.raises(UnknownNameError) as error:
        own.only("cifar1")
    assert str(error.value) == (
        "no class list named 'cifar1'. Known are cifar10, cifar100, coco80, fashion-mnist, imagenet1k, mini-imagenet, "
        "tiny-imagenet, voc20. Did you mean 'cifar10'?"
    )
    with pytest.raises(InputError) as error:
        own.only("cifar10")
    assert str(error.value) == (
        "NCSM has no class that is surely 'airplane', 'automobile', 'bird' and 4 more; it has 'cat', 'dog', 'ship'. "
        "Classes are matched by WordNet id or by name, never by position: name them as it does, or give one WordNet "
        "id per class."
    )
