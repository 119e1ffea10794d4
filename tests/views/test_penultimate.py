"""One answer to what is penultimate: for extraction, for the inspector, and for class similarity."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError
from likewise.networks import head
from likewise.views.extract import extract
from tests.views.helpers import (
    ROWS,
    WRAPPERS,
    Backwards,
    refused,
    shown,
)


class HeadFirst(nn.Module):
    """A classifier that is written down before the body."""

    def __init__(self, after: nn.Module | None = None) -> None:
        super().__init__()
        self.head = nn.Linear(6, 3)
        self.body = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 6), nn.ReLU())
        self.after = after or nn.Identity()

    def forward(self, rows: Tensor) -> Tensor:
        return self.after(self.head(self.body(rows)))


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_extraction_takes_the_input_of_the_layer_that_answers(net: Any, wrap: str) -> None:
    with torch.no_grad():
        expected = net.features(ROWS)
    view = extract(WRAPPERS[wrap](net), ROWS, "penultimate", "mean")
    torch.testing.assert_close(view.values.float(), expected)


def test_compare_and_layerwise_take_the_name_too() -> None:

    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.LayerNorm(3))
    options: dict[str, Any] = {"data": ROWS, "progress": False}
    expected = likewise.compare(net[:2](ROWS).detach(), ROWS, "cka")
    assert likewise.compare(net, ROWS, "cka", head="2", **options) == pytest.approx(float(expected))
    both = {"named": net, "found": Backwards()}
    found = likewise.compare(both, "cka", head={"named": "2"}, **options)
    assert found.values[0, 1] < 1
    assert refused(lambda: likewise.compare(both, "cka", head={"other": "2"}, **options)) == (
        "head names a layer of 'other', and the networks are 'named', 'found'. Give "
        "head={network: layer} by these names."
    )
    for measure in ("cka-debiased", "cka"):  # streamed, and not
        matrix = likewise.layerwise(net, layers=["0", "penultimate"], head="2", measure=measure, **options)
        assert list(matrix.rows) == ["0", "penultimate"]


def test_the_networks_of_the_libraries_are_found_without_inputs(vision: None) -> None:
    import timm
    from torchvision import models

    expected = {
        "resnet18": "fc",
        "vgg11": "classifier.6",
        "alexnet": "classifier.6",
        "densenet121": "classifier",
        "mobilenet_v2": "classifier.1",
        "mobilenet_v3_small": "classifier.3",
        "swin_t": "head",
        "vit_b_16": "heads.head",
        "convnext_tiny": "classifier.2",
        "squeezenet1_1": "classifier.1",
        "efficientnet_b0": "classifier.1",
        "shufflenet_v2_x0_5": "fc",
        "mnasnet0_5": "classifier.1",
    }
    with torch.device("meta"):
        for name, layer in expected.items():
            assert head(models.get_model(name, weights=None)).layer_name == layer, name
        inception = models.inception_v3(weights=None, init_weights=False)
        assert head(inception).layer_name == "fc"  # not AuxLogits.fc
        for name in ("test_vit", "test_resnet", "test_efficientnet"):
            net = timm.create_model(name)
            found = net.get_submodule(head(net).layer_name)
            assert found is net.get_classifier()


@pytest.mark.parametrize("after", [nn.Identity(), nn.LogSoftmax(1), nn.Flatten(0)])
def test_the_classifier_is_the_layer_that_answers_wherever_it_is_written(after: nn.Module) -> None:
    net, rows = HeadFirst(after).eval(), torch.rand(10, 8)
    with torch.no_grad():
        expected = net.body(rows)
    torch.testing.assert_close(shown(net, rows).values, expected)


def test_a_body_that_ends_in_a_normalisation_does_not_hide_the_classifier() -> None:
    net, rows = HeadFirst().eval(), torch.rand(10, 8)
    net.body.append(nn.BatchNorm1d(6).eval())
    with torch.no_grad():
        torch.testing.assert_close(shown(net, rows).values, net.body(rows))


@pytest.mark.usefixtures("vision")
def test_the_classifier_of_a_segmentation_network_is_not_its_auxiliary_one() -> None:
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    net = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, aux_loss=True)
    assert shown(net, torch.rand(2, 3, 64, 64), reduce="mean").d == 256


@pytest.mark.parametrize("part", [0, 1], ids=["outputs", "last state"])
def test_the_linear_layer_before_a_recurrent_answer_is_no_classifier(part: int) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(5, 4, batch_first=True)
            self.enter = nn.Linear(8, 5)

        def forward(self, series: Tensor) -> Tensor:
            return self.rnn(self.enter(series))[part].reshape(len(series), -1)

    with pytest.raises(InputError, match="the last layer its answer needs, 'rnn', is a GRU"):
        shown(Recurrent(), torch.rand(10, 6, 8), "penultimate", "mean")


def test_where_the_answer_comes_from_no_linear_layer_the_way_to_name_one_is_said() -> None:
    net = nn.Sequential(nn.Linear(8, 5), nn.LayerNorm(5))
    net.register_module("beside", nn.Linear(2, 2))
    net.forward = lambda rows: net[1](net[0](rows))
    assert refused(lambda: shown(net, torch.rand(10, 8), "penultimate")) == (
        "'Sequential' has no classifier that could be found, so nothing is penultimate: the last layer its answer "
        "needs, '1', is a LayerNorm. Ask for layers='embedding', what it gives to whoever uses it, or name the "
        "classifier: head='name'."
    )
    assert shown(net, torch.rand(10, 8), "embedding").d == 5
    assert shown(net, torch.rand(10, 8), "penultimate", head="0").d == 8
    net.head_layer = "0"
    assert shown(net, torch.rand(10, 8)).d == 8
