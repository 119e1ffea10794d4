"""One answer to what is penultimate: for extraction, for the inspector, and for class similarity."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError
from likewise.networks import head, logits
from likewise.networks.anatomy.outputs import fields
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
    view = extract(WRAPPERS[wrap](net), ROWS, "penultimate", reduce="mean")
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
        shown(Recurrent(), torch.rand(10, 6, 8), "penultimate", reduce="mean")


def test_where_the_answer_comes_from_no_linear_layer_the_way_to_name_one_is_said() -> None:
    net = nn.Sequential(nn.Linear(8, 5), nn.LayerNorm(5))
    net.register_module("beside", nn.Linear(2, 2))
    net.forward = lambda rows: net[1](net[0](rows))
    assert refused(lambda: shown(net, torch.rand(10, 8), "penultimate")) == (
        "'Sequential' has no classifier that could be found, so nothing is penultimate: the last layer its answer "
        "needs, '1', is a LayerNorm. Ask for layers='embedding', its representation, or name the "
        "classifier: head='name'."
    )
    assert shown(net, torch.rand(10, 8), "embedding").d == 5
    assert shown(net, torch.rand(10, 8), "penultimate", head="0").d == 8
    net.head_layer = "0"
    assert shown(net, torch.rand(10, 8)).d == 8


class Pair(nn.Module):
    """Gives its features beside its answer, in either order or by name."""

    def __init__(self, give: Any, features: int = 16) -> None:
        super().__init__()
        self.body, self.fc, self.give = nn.Linear(8, features), nn.Linear(features, 10), give

    def forward(self, rows: Tensor) -> Any:
        features = self.body(rows)
        return self.give(features, self.fc(features))


@pytest.mark.parametrize(
    "give",
    [
        lambda features, logits: (features, logits),
        lambda features, logits: (logits, features),
        lambda features, logits: {"features": features, "out": logits},
        lambda features, logits: (features[:, :, None, None].expand(-1, -1, 2, 2), logits),
        lambda features, logits: [features, logits.softmax(dim=1)],
    ],
    ids=["features first", "logits first", "by name", "maps first", "a softmax after it"],
)
def test_features_beside_the_answer_are_not_taken_for_it(give: Any) -> None:
    net, rows = Pair(give).eval(), torch.rand(12, 8)
    view = shown(net, rows)
    with torch.no_grad():
        torch.testing.assert_close(view.values, net.body(rows))
        answer = next(value for value in fields(net(rows)).values() if value.shape == (12, 10))
        torch.testing.assert_close(view.outputs.logits, answer)
        torch.testing.assert_close(logits(net, rows), answer)
        torch.testing.assert_close(shown(net, rows, "logits").values, answer)


class Apart(nn.Module):
    """Two answers of different width, of which neither is made from the other."""

    def __init__(self) -> None:
        super().__init__()
        self.colour, self.shape = nn.Linear(8, 3), nn.Linear(8, 5)

    def forward(self, rows: Tensor) -> Any:
        return self.colour(rows), self.shape(rows)


def test_where_nothing_says_which_is_the_answer_both_are_named_and_the_remedy_works() -> None:
    net, rows = Apart().eval(), torch.rand(12, 8)
    error = (
        "gives several tensors and nothing says which is its answer: 0 (12, 3), 1 (12, 5). Name the layer that gives "
        "it: head='name' where it is asked for, or net.head_layer = 'name'."
    )
    assert refused(lambda: shown(net, rows, "logits")) == f"'Apart' {error}"
    assert refused(lambda: logits(net, rows)) == f"Apart {error}"
    assert refused(lambda: shown(net, rows)) == f"Apart {error.replace('12', '2')}"
    assert shown(net, rows, "colour").outputs is None  # a layer by name needs no answer
    for name, width in (("colour", 3), ("shape", 5)):
        named = shown(net, rows, head=name)
        assert (named.d, named.outputs.logits.shape[1]) == (8, width)
        net.head_layer = name
        assert logits(net, rows).shape[1] == shown(net, rows).outputs.logits.shape[1] == width
        del net.head_layer


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("crossvit_9_240", {"img_size": 240}),
        ("deit_tiny_distilled_patch16_224", {"img_size": 32, "depth": 2}),
        ("levit_128s", {}),
        ("efficientvit_m0", {}),
        ("caformer_s18", {}),
        ("sequencer2d_s", {"layers": (1, 1, 1, 1), "embed_dims": (16, 16, 16, 16), "hidden_sizes": (4, 4, 4, 4)}),
        ("resnetv2_50", {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)}),
        ("dla34", {"channels": (8, 8, 8, 8, 16, 16)}),
    ],
)
def test_penultimate_is_what_timm_calls_pre_logits(name: str, options: dict[str, Any]) -> None:
    timm = pytest.importorskip("timm")
    net = timm.create_model(name, num_classes=7, **options).eval()
    size = options.get("img_size", 224 if name in ("levit_128s", "efficientvit_m0") else 64)
    for name, value in net.state_dict().items():  # norms that change nothing would hide where they are
        if name.endswith(("bias", "running_mean")):
            value += 0.1 * torch.rand_like(value)
    images = torch.rand(3, 3, size, size)
    with torch.no_grad():
        expected = net.forward_head(net.forward_features(images), pre_logits=True).flatten(1)
        answer = net(images)
    view = shown(net, images)
    torch.testing.assert_close(view.values.float(), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(view.outputs.logits.float(), answer, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("vision")
def test_a_classifier_of_windows_in_time_is_found_and_asks_for_a_reduction() -> None:
    from torchvision.models.video import s3d

    net, films = s3d(weights=None, num_classes=5).eval(), torch.rand(2, 3, 14, 64, 64)
    net.avgpool = nn.Identity()
    assert refused(lambda: shown(net, films)) == (
        "'penultimate' of 'S3D' has shape (2, 1024, 2, 2, 2), not (inputs, neurons). Choose a reduction of the maps: "
        "reduce='mean', 'flatten' or 'spatial'."
    )
    view = shown(net, films, reduce="mean")
    with torch.no_grad():
        classifier = net.classifier[1]
        answer = view.values.float() @ classifier.weight.flatten(1).T + classifier.bias
        torch.testing.assert_close(answer, net(films), atol=1e-4, rtol=1e-4)
    net.avgpool = nn.AvgPool3d(2)  # one place is left, so there is nothing to choose
    torch.testing.assert_close(shown(net, films).values, view.values, atol=1e-4, rtol=1e-4)
