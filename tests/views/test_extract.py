"""Extraction: every way in which activations are commonly got wrong has its test here."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise import measures
from likewise.errors import ForwardError, InputError, LikewiseError
from likewise.networks.inputs.normalisation import unwrapped
from likewise.views.activations import Views
from likewise.views.extract import extract
from tests.conftest import refused
from tests.views.helpers import _tiny, shown


class Tiny(nn.Module):
    """Maps, an in-place operation right behind a layer, and a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.fc = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.relu(self.norm(self.conv(images))).mean(dim=(2, 3)))


class Tupled(nn.Module):
    """A recurrent layer (a tuple, time first), a mapping, and a list without tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 6)
        self.named = Named()
        self.words = Words()

    def forward(self, series: Tensor) -> dict[str, Tensor]:
        states, _ = self.rnn(series.transpose(0, 1))
        self.words(states)
        return self.named(states[-1])


class Named(nn.Module):
    def forward(self, rows: Tensor) -> dict[str, Tensor]:
        return OrderedDict(loss=rows.sum(), logits=rows[:, :4])


class Words(nn.Module):
    def forward(self, rows: Tensor) -> list[str]:
        return ["nothing", "here"]


class Repeated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(3, 3)
        self.unused = nn.Linear(3, 3)

    def forward(self, rows: Tensor) -> Tensor:
        return self.step(self.step(self.step(rows)))


def _state(net: nn.Module) -> dict[str, object]:
    return {
        "modes": [part.training for part in net.modules()],
        "hooks": [(dict(part._forward_hooks), dict(part._forward_pre_hooks)) for part in net.modules()],
        "needs": [value.requires_grad for value in net.parameters()],
        "devices": [value.device for value in net.parameters()],
    }


@pytest.fixture
def used() -> Iterator[nn.Module]:
    """A network in use, part of it in evaluation mode, with a hook and with gradients; it is to be left as it was."""
    net = Tiny().train()
    net.norm.eval()
    net.fc.bias.requires_grad_(False)
    net.conv.register_forward_hook(lambda *_: None)
    net(torch.rand(4, 3, 6, 6)).sum().backward()
    state, weights = _state(net), copy.deepcopy(net.state_dict())
    grads = [None if value.grad is None else value.grad.clone() for value in net.parameters()]
    yield net
    assert _state(net) == state
    assert all(torch.equal(value, weights[key]) for key, value in net.state_dict().items())
    for value, before in zip(net.parameters(), grads, strict=True):
        assert before is value.grad is None or torch.equal(before, value.grad)
    assert torch.is_grad_enabled()


def test_all_layers_come_from_one_pass() -> None:
    net = Tiny()
    passes: list[int] = []
    net.conv.register_forward_hook(lambda _conv, inputs, _maps: passes.append(len(inputs[0])))
    views = extract(net, torch.rand(10, 3, 6, 6), layers="all", reduce="mean", batch_size=4)
    assert list(views) == ["conv", "norm", "relu", "fc"]
    assert passes == [4, 2, 2, 4, 2]  # two inputs twice: whether it answers at random


def test_rows_are_what_the_layer_gave_before_an_in_place_operation() -> None:
    net, images = Tiny().eval(), torch.rand(10, 3, 6, 6)
    with torch.no_grad():
        expected = net.norm(net.conv(images)).flatten(1)
    assert (expected < 0).any()
    found = extract(net, images, layers="norm", reduce="flatten", batch_size=4).values
    torch.testing.assert_close(found.float(), expected)


def test_the_penultimate_view_is_what_the_classifier_is_given() -> None:
    net, images = Tiny().eval(), torch.rand(10, 3, 6, 6)
    view = extract(net, images)
    with torch.no_grad():
        torch.testing.assert_close(net.fc(view.values.float()), net(images))
    assert repr(view) == "Activations('Tiny', n=10, d=4)"


def test_outputs_come_from_the_same_pass_with_labels_and_predictions() -> None:
    net, images, labels = Tiny().eval(), torch.rand(10, 3, 6, 6), torch.arange(10) % 5
    batches = [(images[:6], labels[:6]), (images[6:], labels[6:])]
    outputs = extract(net, batches).outputs
    with torch.no_grad():
        torch.testing.assert_close(outputs.logits.float(), net(images))
    assert outputs.labels.tolist() == labels.tolist()
    assert outputs.predictions.tolist() == net(images).argmax(1).tolist()


def test_logits_can_be_asked_for_as_a_layer() -> None:
    net, images = Tiny().eval(), torch.rand(10, 3, 6, 6)
    with torch.no_grad():
        torch.testing.assert_close(extract(net, images, "logits").values.float(), net(images))


def test_labels_a_network_has_no_class_for_are_left_out_with_a_warning() -> None:
    batches = [(torch.rand(8, 3, 6, 6), torch.arange(8))]
    sentence = (
        r"the labels for 'Tiny' must be 8 whole numbers from 0 to 4, got numbers from 0 to 7. "
        r"Its outputs are kept without labels."
    )
    with pytest.warns(UserWarning, match=sentence):
        assert extract(Tiny(), batches).outputs.labels is None


def test_tuples_mappings_and_time_first_layers_give_one_row_an_input() -> None:
    net, series = Tupled().eval(), torch.rand(9, 7, 3)
    views = extract(net, series, layers=["rnn", "named"], reduce="last", batch_size=4)
    with torch.no_grad():
        states = net.rnn(series.transpose(0, 1))[0]
    torch.testing.assert_close(views["rnn"].values.float(), states[-1])
    torch.testing.assert_close(views["named"].values.float(), states[-1][:, :4])
    torch.testing.assert_close(views["rnn"].outputs.logits.float(), states[-1][:, :4])


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_a_model_output_of_transformers_is_understood() -> None:
    net = likewise.network("zoo:bert-tiny")
    view = extract(net, ["one text", "another longer text"], layers="encoder", reduce="cls")
    assert view.n == 2


def test_a_layer_without_activations_is_left_out_of_a_glob() -> None:
    with pytest.warns(UserWarning, match="1 layers of 'Tupled' are left out, the first because"):
        views = extract(Tupled(), torch.rand(4, 7, 3), layers="*", reduce="last")
    assert list(views) == ["rnn", "named"]


class MapsThenTokens(nn.Module):
    """Blocks of maps, then blocks of tokens, the last of which also gives something per token."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)) for _ in range(2))
        self.tokens = nn.ModuleList(PerToken() for _ in range(2))

    def forward(self, images: Tensor) -> Tensor:
        for block in self.maps:
            images = block(images)
        tokens = images.flatten(2).transpose(1, 2)
        for block in self.tokens:
            tokens = block(tokens)[1]
        return tokens.mean(dim=1)


class PerToken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        tokens = self.second(self.first(tokens))
        return tokens.flatten(0, 1)[:, None, :], tokens


def test_a_reduction_fits_the_layers_that_are_named() -> None:
    net, images = MapsThenTokens().eval(), torch.rand(6, 3, 4, 4)
    assert list(extract(net, images, "blocks", reduce="mean")) == ["maps.0", "maps.1", "tokens.0", "tokens.1"]
    assert list(extract(net, images, "tokens.?", reduce="cls")) == ["tokens.0", "tokens.1"]


def test_of_what_a_layer_gives_the_part_with_one_entry_per_input_counts() -> None:
    net, images = MapsThenTokens().eval(), torch.rand(6, 3, 4, 4)
    view = extract(net, images, "tokens.1", reduce="mean")
    with torch.no_grad():
        torch.testing.assert_close(view.values, net(images))


def test_every_call_of_a_repeated_layer_has_its_own_name() -> None:
    net, rows = Repeated(), torch.rand(6, 3)
    views = extract(net, rows, layers=["step", "step#3"])
    with torch.no_grad():
        torch.testing.assert_close(views["step"].values.float(), net.step(rows))
        torch.testing.assert_close(views["step#3"].values.float(), net(rows))
    assert list(extract(net, rows, layers="step*")) == ["step", "step#2", "step#3"]


def test_data_parallel_gives_the_whole_batch_under_plain_names() -> None:
    net, images = Tiny(), torch.rand(10, 3, 6, 6)
    wrapped = extract(nn.DataParallel(net), images, layers="norm", reduce="mean")
    assert torch.equal(wrapped.values, extract(net, images, layers="norm", reduce="mean").values)


def test_a_last_batch_of_one_counts_even_where_the_network_squeezes() -> None:
    class Squeezing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.flat = Flat()
            self.fc = nn.Linear(3, 2)

        def forward(self, images: Tensor) -> Tensor:
            return self.fc(self.flat(self.pool(images)))

    class Flat(nn.Module):
        def forward(self, maps: Tensor) -> Tensor:
            return maps.squeeze()

    images = torch.rand(5, 3, 4, 4)
    view = extract(Squeezing(), images, layers="flat", batch_size=4)
    torch.testing.assert_close(view.values.float(), images.mean(dim=(2, 3)))
    assert view.outputs.logits.shape == (5, 2)


@pytest.mark.parametrize("batch_size", [1, 3, 4, 100])
def test_views_and_probes_do_not_depend_on_the_batch_size(batch_size: int) -> None:
    net, images = Tiny(), torch.rand(10, 3, 6, 6)
    whole = extract(net, images, layers="conv", reduce="mean", batch_size=10)
    cut = extract(net, images, layers="conv", reduce="mean", batch_size=batch_size)
    torch.testing.assert_close(cut.values, whole.values, rtol=1e-6, atol=1e-6)
    assert cut.probe == whole.probe


def test_other_inputs_or_another_order_make_another_probe() -> None:
    net, images = Tiny(), torch.rand(10, 3, 6, 6)
    probes = {extract(net, shown).probe for shown in (images, images.flip(0), images[:9])}
    assert len(probes) == 3


def test_positions_as_rows_are_never_taken_for_inputs() -> None:
    net, images = Tiny().eval(), torch.rand(10, 3, 6, 6)
    view = extract(net, images, layers="conv", reduce="spatial")
    with torch.no_grad():
        expected = net.conv(images).permute(0, 2, 3, 1).reshape(-1, 4)
    torch.testing.assert_close(view.values.float(), expected)
    assert view.outputs is None
    assert view.probe == f"{extract(net, images).probe}:360 positions"


def test_everything_is_recorded_in_the_view() -> None:
    view = extract(Tiny(), torch.rand(10, 3, 6, 6), layers="conv", reduce="mean", name="mine")
    assert view.name == "mine"
    assert view.about == {
        "network": "mine",
        "layer": "conv",
        "kind": "Conv2d",
        "reduction": "mean",
        "data": "Tensor",
        "probe": view.probe,
        "likewise": likewise.__version__,
        "torch": torch.__version__,
    }


def test_datasets_and_loaders_are_shown_in_batches() -> None:
    net, images = Tiny(), torch.rand(10, 3, 6, 6)
    dataset = torch.utils.data.TensorDataset(images, torch.arange(10) % 5)
    view = extract(net, images)
    assert torch.equal(extract(net, dataset).values, view.values)
    loader = torch.utils.data.DataLoader(dataset, batch_size=10)
    assert extract(net, loader).outputs.labels.tolist() == (torch.arange(10) % 5).tolist()


@pytest.mark.parametrize(
    "batch",
    [
        [torch.ones(4, 3, 6, 6)],
        (torch.ones(4, 3, 6, 6), torch.rand(4)),
        (torch.ones(4, 3, 6, 6), [0, 1, 2, 3], "path"),
    ],
    ids=["inputs alone", "targets that are no classes", "more than labels"],
)
def test_of_a_batch_the_first_part_is_shown(batch: list) -> None:
    assert extract(Tiny(), [batch]).n == 4


def test_a_single_network_may_be_chosen_for_by_its_name() -> None:
    images = torch.rand(4, 3, 6, 6)
    expected = extract(Tiny(), images, layers="conv", reduce="mean").shape
    assert extract(Tiny(), images, layers={"Tiny": "conv"}, reduce="mean").shape == expected
    assert extract(Tiny(), images, layers={"it": "conv"}, head={"it": "fc"}, reduce="mean", name="it").shape == expected


def test_views_of_several_layers_are_a_mapping_in_the_order_of_the_request() -> None:
    views = extract(Tiny(), torch.rand(10, 3, 6, 6), layers=["fc", "conv"], reduce="mean")
    assert isinstance(views, Views)
    assert list(views) == ["fc", "conv"]
    assert views["fc"].name == "Tiny/fc"


def test_a_network_in_use_is_left_as_it_was(used: nn.Module) -> None:
    extract(used, torch.rand(10, 3, 6, 6), layers="all", reduce="mean", device="cpu")
    extract(used, torch.rand(10, 3, 6, 6))


def test_a_network_is_left_as_it_was_when_the_data_breaks_off(used: nn.Module) -> None:
    def breaking() -> Iterator[Tensor]:
        yield torch.rand(4, 3, 6, 6)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        extract(used, breaking(), layers="all", reduce="mean")


def test_a_failing_network_is_named_with_layer_and_batch_and_left_as_it_was(used: nn.Module) -> None:
    batches = [torch.rand(4, 3, 6, 6), torch.rand(4, 2, 6, 6)]
    with pytest.raises(ForwardError) as caught:
        extract(used, batches, layers="all", reduce="mean", name="mine")
    assert str(caught.value) == (
        "'mine' failed in layer 'conv' (Conv2d) on batch 2 (inputs 4 to 7, (4, 2, 6, 6) float32): "
        "RuntimeError: Given groups=1, weight of size [4, 3, 3, 3], expected input[4, 2, 6, 6] to "
        "have 3 channels, but got 2 channels instead. Check that the network takes inputs of this "
        "shape and type."
    )


IMAGES = torch.rand(4, 3, 6, 6)


@pytest.mark.parametrize(
    ("net", "data", "options", "sentence"),
    [
        (Tiny, IMAGES, {"layers": []}, "no layers of 'Tiny' were asked for. Name at least one, or 'all'."),
        (Tiny, IMAGES, {"batch_size": 0}, "batch_size is 0. Give at least 1."),
        (
            Tiny,
            IMAGES,
            {"layers": "conv", "reduce": "maen"},
            "no reduction named 'maen'. Did you mean 'mean'? There are mean, cls, last, flatten, "
            "spatial, pool7, pool7-spatial.",
        ),
        (
            Tiny,
            5,
            {},
            "data is a int, which gives no batches. Pass data, an address, an array or an iterable of batches.",
        ),
        (Tiny, [], {}, "the data gave no inputs. Pass at least two."),
        (
            Tiny,
            IMAGES,
            {"layers": "conv"},
            "'conv' of 'Tiny' has shape (4, 4, 6, 6), not (inputs, neurons). "
            "Choose a reduction of the maps: reduce='mean', 'flatten' or 'spatial'.",
        ),
        (
            Tiny,
            [IMAGES, torch.rand(4, 3, 8, 8)],
            {"layers": "conv", "reduce": "flatten"},
            "'conv' of 'Tiny' has 144 columns in the first batch and 256 in a later one. "
            "Give inputs of one size, or choose reduce='mean', 'cls' or 'last'.",
        ),
        (
            Repeated,
            torch.rand(6, 3),
            {"layers": "unused"},
            "'unused' of 'Repeated' is not called in its forward pass. `likewise layers` lists what is.",
        ),
        (
            lambda: likewise.network("zoo:resnet20"),
            torch.rand(2, 3, 32, 32),
            {"layers": "leyer1.0*", "reduce": "mean", "name": "resnet20"},
            "no layer of 'resnet20' matches 'leyer1.0*'. "
            "The nearest are 'layer1.0', 'layer3.0', 'layer2.0'; `likewise layers` lists all.",
        ),
        (
            lambda: nn.Sequential(nn.Flatten(0, 1), nn.Linear(4, 2), nn.Unflatten(0, (-1, 3))),
            torch.rand(5, 3, 4),
            {"layers": "1"},
            "'1' of 'Sequential' gives shape (15, 2) for 5 inputs, so its first axis is not the inputs."
            " Choose another layer.",
        ),
        (
            lambda: MapsThenTokens().eval(),
            torch.rand(6, 3, 4, 4),
            {"layers": "blocks", "reduce": "cls"},
            "reduce='cls' does not fit 2 of the 4 blocks of 'MapsThenTokens': 'maps.0' of 'MapsThenTokens' holds maps, "
            "which have no 'cls' token. Choose reduce='mean', 'flatten' or 'spatial'. Or name the layers it fits, as "
            "in layers=['layers.0', 'layers.1'].",
        ),
        (
            Tupled,
            torch.rand(4, 7, 3),
            {"layers": "words"},
            "'words' of 'Tupled' gives no tensor, not activations. Choose another layer.",
        ),
    ],
)
def test_requests_that_mean_nothing_are_refused(
    net: Callable[[], nn.Module], data: Any, options: dict[str, Any], sentence: str
) -> None:
    assert refused(lambda: extract(net(), data, **options), LikewiseError) == sentence


def test_maps_with_channels_last_are_averaged_over_positions() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 2, stride=2)
            self.block = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8))

        def forward(self, images: Tensor) -> Tensor:
            return self.block(self.conv(images).permute(0, 2, 3, 1)).mean(dim=(1, 2))

    net, images = Last().eval(), torch.rand(10, 3, 6, 6)
    views = extract(net, images, layers=["conv", "block"], reduce="mean")
    with torch.no_grad():
        torch.testing.assert_close(views["conv"].values.float(), net.conv(images).mean(dim=(2, 3)))
        torch.testing.assert_close(views["block"].values.float(), net(images))


@pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")
def test_tokens_of_a_vision_transformer_are_reduced_by_name() -> None:
    net = likewise.network("timm:test_vit,pretrained=false").eval()
    images = torch.rand(3, 3, 160, 160)
    tokens = []
    with torch.no_grad():
        hook = unwrapped(net).blocks[0].register_forward_hook(lambda *a: tokens.append(a[2]))
        net(images)
        hook.remove()
    for how, expected in {
        "cls": tokens[0][:, 0],
        "last": tokens[0][:, -1],
        "mean": tokens[0].mean(dim=1),
        "flatten": tokens[0].flatten(1),
    }.items():
        found = extract(net, images, layers="blocks.0", reduce=how)
        torch.testing.assert_close(found.values.float(), expected)


def test_a_glob_leaves_out_layers_that_cannot_be_reduced_so() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 2, stride=2), nn.Flatten(2), nn.Linear(9, 2))
    with pytest.warns(UserWarning, match=r"1 layers .* because '0' of 'Sequential' holds maps"):
        views = extract(net, torch.rand(5, 3, 6, 6), layers="all", reduce="cls")
    assert list(views) == ["1", "2"]


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("how", ["cls", "mean", "last", "spatial"])
def test_padding_of_texts_changes_nothing(how: str) -> None:
    net = likewise.network("zoo:bert-tiny")
    texts = ["short", "a text of some more words", "and one between"]
    padded = extract(net, texts, layers="blocks", reduce=how, batch_size=3)
    alone = extract(net, texts, layers="blocks", reduce=how, batch_size=1)
    assert padded
    for layer, view in padded.items():
        torch.testing.assert_close(view.values, alone[layer].values, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_flattened_tokens_of_unequal_texts_are_refused() -> None:
    net = likewise.network("zoo:bert-tiny")
    with pytest.raises(InputError, match="Give inputs of one size, or choose reduce='mean'"):
        extract(net, ["short", "a longer text"], "blocks", reduce="flatten", batch_size=1)


@pytest.mark.skipif(find_spec("torch_geometric") is None, reason="torch_geometric is not installed")
def test_of_a_graph_only_the_nodes_asked_for_are_kept() -> None:
    data = likewise.dataset("digits-graph:test")
    batch, _ = next(data.batches())
    net = likewise.network(f"zoo:gcn,features={batch['x'].shape[1]},classes=10").eval()
    views = extract(net, data, layers="convs.*", reduce=None)
    blocks = extract(net, data, layers="blocks")
    assert list(blocks) == ["convs.0", "convs.1", "convs.2"]
    with torch.no_grad():
        first = batch.rows(net.convs[0](batch["x"], batch["edge_index"]))
        answer = batch.rows(net(**batch))
    assert len(first) == len(data) < len(batch["x"])
    torch.testing.assert_close(views["convs.0"].values.float(), first)
    torch.testing.assert_close(views["convs.0"].outputs.logits.float(), answer)
    assert views["convs.0"].outputs.labels.tolist() == data.labels.tolist()
    assert views["convs.0"].probe == data.probe


def test_views_of_arrays_need_neither_networks_nor_data() -> None:
    script = (
        "import sys, likewise; likewise.Activations;"
        "print([m for m in sys.modules if m.startswith(('likewise.networks', 'likewise.data'))])"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize("stored", [False, True])
def test_half_precision_of_a_network_is_remembered(tmp_path, stored) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Linear(5, 12), torch.nn.ReLU())
    store = tmp_path if stored else None
    x = torch.randn(200, 5)
    view = likewise.extract(net.bfloat16(), x, "1", store=store)
    assert view.values.dtype == torch.float32
    assert view.eps == torch.finfo(torch.bfloat16).eps
    assert likewise.extract(net.float(), x, "1", store=store).eps == torch.finfo(torch.float32).eps
    # five inputs and a bias: rank five, not the twelve that rounding would make of it
    other = np.random.default_rng(0).normal(size=(200, 12))
    assert measures.gulp(view, other) < math.sqrt(5 + 12)


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(InputError) as caught:
        shown(_tiny(), torch.rand(10, 8), "0", device=device)
    assert str(caught.value) == (
        f"device {device!r} cannot be used here. Leave it out, or name one that torch has, such as 'cpu'."
    )


def test_a_network_of_the_zoo_is_built_for_the_data_it_is_shown() -> None:
    assert shown("zoo:mlp", "digits:test[:20]").n == 20


def test_a_network_for_another_size_says_which_and_the_remedy_works() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 5, stride=4), nn.Flatten(), nn.Linear(98, 3))  # 7 × 7 after 32
    with pytest.raises(ForwardError) as caught:
        extract(net, "digits:test[:4]", layers="0", reduce="mean", name="mine")
    assert str(caught.value).endswith("It takes images of 32 × 32: add ',size=32' to the address of the data.")
    assert extract(net, "digits:test[:4],size=32", layers="0", reduce="mean").shape == (4, 2)


def test_an_error_that_is_not_of_the_size_names_no_size() -> None:
    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if images.any():
                raise RuntimeError("no")
            return self.conv(images).mean(dim=(2, 3))

    with pytest.raises(ForwardError, match=r"Check that the network takes inputs of this shape and type\.$"):
        extract(Picky(), "digits:test[:4]", layers="conv", reduce="mean")
