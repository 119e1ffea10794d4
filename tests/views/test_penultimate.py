"""One answer to what is penultimate: for extraction, for the inspector, and for class similarity."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import likewise
from likewise._base.compat import prepare_torchvision
from likewise.classes import Inspector, from_weights
from likewise.classes.classifier import Tap
from likewise.data import Data
from likewise.errors import InputError, UnknownNameError
from likewise.networks import head, train
from likewise.views.extract import extract

ROWS = torch.rand(8, 4, generator=torch.Generator().manual_seed(0))


class Backwards(nn.Module):
    """Declares its classifier before what comes before it."""

    def __init__(self, classifier: nn.Module | None = None) -> None:
        super().__init__()
        self.fc = classifier or nn.Linear(6, 3)
        self.body = nn.Linear(4, 6)

    def features(self, rows: Tensor) -> Tensor:
        return torch.relu(self.body(rows.flatten(1)))

    def forward(self, rows: Tensor) -> Any:
        return self.fc(self.features(rows))


class Softmaxed(Backwards):
    def forward(self, rows: Tensor) -> Any:
        return self.fc(self.features(rows)).softmax(dim=1)


class TwoHeads(Backwards):
    """Two layers could answer; the one that is declared last does not."""

    def __init__(self) -> None:
        super().__init__()
        self.aux = nn.Linear(6, 3)

    def forward(self, rows: Tensor) -> Any:
        features = self.features(rows)
        return self.fc(features), self.aux(features + 1)


class OneByOne(Backwards):
    """A classifier of 1 x 1 windows, then the mean."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(6, 3, 1))

    def forward(self, rows: Tensor) -> Any:
        return self.fc(self.features(rows)[:, :, None, None]).flatten(1)


class Reused(Backwards):
    """Its classifier answers twice; what it returns is the second answer."""

    def forward(self, rows: Tensor) -> Any:
        first = self.fc(torch.tanh(self.body(rows.flatten(1))))
        return self.fc(self.features(rows)) + 0 * first.detach().sum()


class ReusedExactly(Backwards):
    def forward(self, rows: Tensor) -> Any:
        self.fc(torch.tanh(self.body(rows.flatten(1))))
        return self.fc(self.features(rows))


NETS: dict[str, Callable[[], nn.Module]] = {
    "declared first": Backwards,
    "a softmax after it": Softmaxed,
    "two heads": TwoHeads,
    "1 x 1 windows": OneByOne,
    "weight norm": lambda: Backwards(parametrizations.weight_norm(nn.Linear(6, 3))),
    "called twice, then changed": Reused,
    "called twice": ReusedExactly,
}


WRAPPERS: dict[str, Callable[[nn.Module], Any]] = {
    "bare": lambda net: net,
    "DataParallel": nn.DataParallel,
    "compiled": lambda net: torch.compile(net, backend="eager"),
}


@pytest.fixture(params=NETS)
def net(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(1)
    return NETS[request.param]().eval()


def rows_of(net: Any) -> Tensor:
    weight: Tensor = net.fc.weight.detach()
    return weight.flatten(1)


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as error:
        act()
    return str(error.value)


def images() -> Data:
    draw = torch.Generator().manual_seed(2)
    return Data("few", "image", torch.rand(12, 1, 2, 2, generator=draw), torch.arange(12) % 3, tuple("abc"))


class Imaged(Backwards):
    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows.flatten(1))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def shown(*args: object, **options: object) -> object:
    return extract(*args, progress=False, **options)


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


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("wrap", ["bare", "DataParallel"])
def test_the_tap_takes_the_same_from_the_first_batch_on(net: Any, training: bool, wrap: str) -> None:
    wrapped = WRAPPERS[wrap](net).train(training)
    tap = Tap(wrapped)
    state = torch.get_rng_state()
    for batch in (ROWS[:5], ROWS[5:], ROWS):
        with torch.no_grad():
            wrapped(batch)
            torch.testing.assert_close(tap.take(), net.features(batch))
    assert tap.layer == "fc"
    assert net.training is training
    assert torch.equal(torch.get_rng_state(), state)
    tap.close()
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())


def test_a_compiled_network_gives_the_tap_the_right_features_or_none() -> None:
    net = Backwards().eval()
    compiled: Any = torch.compile(net, backend="eager")
    tap = Tap(compiled)
    for batch in (ROWS[:5], ROWS):
        with torch.no_grad():
            compiled(batch)
            seen = tap.take(compiled(batch))
            assert seen is None or torch.equal(seen, net.features(batch))
    tap.close()


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
        "TwoHeads has no classifier that could be found: 'fc', 'aux' could each be it, and only a "
        "forward pass tells which. Name the layer yourself: head='name' where it is asked for, or "
        "net.head_layer = 'name'."
    )


def test_a_layer_can_be_named_wherever_the_refusal_says_so(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.LayerNorm(3))
    with pytest.raises(InputError, match="head='name' where it is asked for"):
        extract(net, ROWS)
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
        f"{module}:build",
        data,
        epochs=2,
        validation=data,
        out=tmp_path / "run",
        keep_epochs=True,
        callbacks=[watching],
    )
    epochs = [f"{module}:build@{tmp_path}/run/epochs/000{number}.safetensors" for number in (1, 2)]
    afterwards = inspect(epochs, data, progress=False)
    for name in ("weights", "features"):
        np.testing.assert_allclose(afterwards.matrices(2)[name].values, watching.matrices(2)[name].values, atol=1e-6)


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
        assert "'AuxLogits.fc', 'fc' could each be it" in refused(lambda: head(inception))
        for name in ("test_vit", "test_resnet", "test_efficientnet"):
            net = timm.create_model(name)
            found = net.get_submodule(head(net).layer_name)
            assert found is net.get_classifier()


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


def test_a_step_that_calls_parts_of_the_network_tells_the_answer() -> None:
    net = TwoHeads()
    tap = Tap(net, trusts_network=False)
    for batch in (ROWS, ROWS[:3]):
        tap.start()
        features = net.features(batch)
        net.aux(features)
        logits = net.fc(features)
        torch.testing.assert_close(tap.take(logits), features.detach())
    assert tap.layer == "fc"


def test_a_network_that_returns_features_is_not_taken_for_its_answer() -> None:
    class Embeds(Backwards):
        def forward(self, rows: Tensor) -> Any:
            return self.features(rows)

    net = Embeds()
    tap = Tap(net, trusts_network=False)
    logits = net.fc(net(ROWS))
    torch.testing.assert_close(tap.take(logits), net.features(ROWS).detach())
    assert tap.layer == "fc"


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
        shown(Recurrent(), torch.rand(10, 6, 8), reduce="mean")


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.usefixtures("vision")
def test_of_an_encoder_of_text_the_pooled_state_is_penultimate() -> None:
    import transformers

    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    net = transformers.BertModel(config).eval()
    words = {"input_ids": torch.randint(0, 50, (6, 9))}
    with torch.no_grad():
        expected = net(**words).last_hidden_state[:, 0]
    torch.testing.assert_close(shown(net, [words], reduce="mean").values, expected)


def test_where_the_answer_comes_from_no_linear_layer_the_way_to_name_one_is_said() -> None:
    net = nn.Sequential(nn.Linear(8, 5), nn.LayerNorm(5))
    net.register_module("beside", nn.Linear(2, 2))
    net.forward = lambda rows: net[1](net[0](rows))
    with pytest.raises(InputError) as caught:
        shown(net, torch.rand(10, 8))
    assert str(caught.value) == (
        "Sequential has no classifier that could be found: the last layer its answer needs, '1', "
        "is a LayerNorm. Name the layer yourself: head='name' where it is asked for, or "
        "net.head_layer = 'name'."
    )
    net.head_layer = "0"
    assert shown(net, torch.rand(10, 8)).d == 8
