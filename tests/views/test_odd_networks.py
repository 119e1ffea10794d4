"""Networks that order, answer and are asked otherwise: every input keeps its row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError
from likewise.networks import Normalised
from likewise.views.extract import extract


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


def test_bytes_are_shown_as_images() -> None:
    net = Normalised(nn.Sequential(nn.Conv2d(3, 4, 3)), [0.5] * 3, [0.2] * 3)
    images = torch.randint(0, 256, (5, 3, 6, 6), dtype=torch.uint8)
    found, expected = (shown(net, part, "0", "mean").values for part in (images, images / 255))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("low", "high", "range_"), [(0, 255, "0 to 255"), (-2, 2.5, "-2 to 2.5")])
def test_images_out_of_range_are_refused(low: float, high: float, range_: str) -> None:
    net = nn.DataParallel(Normalised(nn.Sequential(nn.Conv2d(3, 4, 3)), [0.5] * 3, [0.2] * 3))
    images = torch.linspace(low, high, 5 * 3 * 36).reshape(5, 3, 6, 6)
    with pytest.raises(InputError) as caught:
        shown(net, images, "0", "mean", name="mine")
    assert str(caught.value) == (
        f"the images shown to 'mine' run from {range_}, not within [0, 1]. "
        "Divide bytes by 255, and leave normalisation to the network."
    )


def _tiny() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)).eval()


@pytest.mark.parametrize("folder", [False, True], ids=["in memory", "in a folder"])
@pytest.mark.parametrize(
    ("labels", "what"),
    [
        (torch.tensor([0, -100, 2, 1]), "numbers from -100 to 2"),
        (torch.tensor([[0, 1]] * 4), "int64 of shape (4, 2)"),
        (torch.rand(4).bfloat16(), "bfloat16 of shape (4,)"),
    ],
)
def test_labels_that_are_no_classes_cost_no_rows(labels: Tensor, what: str, folder: bool, tmp_path: Path) -> None:
    batches = [{"input": torch.rand(4, 8), "labels": labels}]
    store = tmp_path if folder else None
    sentence = (
        f"the labels for 'Sequential' must be 4 whole numbers from 0, got {what}. Its outputs are kept without labels."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(sentence)}$"):
        view = shown(_tiny(), batches, "0", store=store)
    assert view.n == 4
    assert view.outputs.labels is None


@pytest.mark.parametrize(
    "labels",
    [["good", "bad"], [torch.zeros(2, 3), torch.zeros(2, 5)], [torch.tensor(1), torch.tensor(2)]],
    ids=["words", "as many as tokens", "one a batch"],
)
def test_what_stands_in_the_place_of_labels_costs_no_rows(labels: list) -> None:
    batches = [{"input": torch.rand(2, 8), "labels": value} for value in labels]
    view = shown(_tiny(), batches, "0")
    assert view.n == 4
    assert view.outputs.labels is None


def test_targets_in_half_precision_are_no_labels() -> None:
    view = shown(_tiny(), [(torch.rand(4, 8), torch.rand(4).bfloat16())], "0")
    assert view.outputs.labels is None


@pytest.mark.parametrize("folder", [False, True], ids=["in memory", "in a folder"])
def test_an_infinite_answer_costs_no_rows(folder: bool, tmp_path: Path) -> None:
    class Masked(nn.Module):
        def forward(self, rows: Tensor) -> Tensor:
            return rows.masked_fill(rows > 0.99, -torch.inf)

    net, rows = nn.Sequential(nn.Identity(), Masked()), torch.rand(10, 3) / 2
    rows[7, 1] = 1
    sentence = "'Sequential' answers with numbers that are not finite. Its rows are kept without outputs."
    store = tmp_path if folder else None
    with pytest.warns(UserWarning, match=sentence):
        view = shown(net, rows, "0", store=store, batch_size=5)
    assert view.outputs is None
    assert torch.equal(view.values, rows)
    with (
        pytest.warns(UserWarning, match=sentence),
        pytest.raises(InputError, match="has NaN or infinite entries in 1 of 10 rows"),
    ):
        shown(net, rows, "logits", store=store)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.filterwarnings("ignore:the labels for .* must be")
def test_networks_of_any_precision_are_shown_data(dtype: torch.dtype) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5)).to(dtype)
    data = likewise.dataset("digits:test[:20]")
    found = shown(net, data, "1")
    images, _ = next(data.batches(20))
    with torch.no_grad():
        expected = net(images.to(dtype))
    torch.testing.assert_close(found.values, expected.to(found.values.dtype))
    assert found.probe == data.probe


@pytest.mark.parametrize("form", ["whole", "batches", "mappings", "read only"])
def test_arrays_are_shown_like_tensors(form: str) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = _tiny()

        def forward(self, input: Tensor) -> Tensor:
            return self.net(input)

    net, rows, labels = Named(), np.random.default_rng(0).random((10, 8)), np.arange(10) % 3
    data = {
        "whole": rows,
        "batches": [(rows[:5], labels[:5]), (rows[5:], labels[5:])],
        "mappings": [{"input": rows, "labels": labels}],
        "read only": np.broadcast_to(rows, rows.shape),
    }[form]
    found = shown(net, data, "net.0")
    expected = shown(net, torch.from_numpy(rows).float(), "net.0")
    torch.testing.assert_close(found.values, expected.values)
    if form in ("batches", "mappings"):
        assert found.outputs.labels.tolist() == labels.tolist()


@dataclass
class Answer:
    loss: Tensor
    logits: Tensor


@pytest.mark.parametrize("kind", [Answer, SimpleNamespace])
def test_an_answer_in_an_object_is_found(kind: type) -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = _tiny()

        def forward(self, rows: Tensor) -> object:
            logits = self.net(rows)
            return kind(loss=logits.sum(), logits=logits)

    net, rows = Wrapped(), torch.rand(10, 8)
    with torch.no_grad():
        expected = net.net(rows)
    torch.testing.assert_close(shown(net, rows, "logits").values, expected)
    torch.testing.assert_close(shown(net, rows).outputs.logits, expected)


@pytest.mark.parametrize("batch_size", [10, 9])
def test_one_squeezed_number_an_input_is_an_answer(batch_size: int) -> None:
    class Binary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.fc = nn.Linear(8, 4), nn.Linear(4, 1)

        def forward(self, rows: Tensor) -> Tensor:
            return self.fc(self.body(rows)).squeeze(1)

    net, rows = Binary(), torch.rand(10, 8)
    with torch.no_grad():
        expected = net(rows)[:, None]
    torch.testing.assert_close(shown(net, rows, "logits", batch_size=batch_size).values, expected)
    view = shown(net, rows, batch_size=batch_size)
    assert view.d == 4
    torch.testing.assert_close(view.outputs.logits, expected)


@pytest.mark.filterwarnings("ignore:the labels for .* must be")
@pytest.mark.parametrize("form", ["tensor", "array", "dataset", "data"])
def test_extraction_draws_nothing_from_the_callers_generator(form: str) -> None:
    rows = torch.rand(10, 64)
    data = {
        "tensor": rows,
        "array": rows.numpy(),
        "dataset": torch.utils.data.TensorDataset(rows, torch.arange(10) % 3),
        "data": likewise.dataset("digits:test[:20]"),
    }[form]
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.Dropout(), nn.Linear(5, 3))
    before = torch.get_rng_state()
    shown(net, data, ["penultimate", "1"], "mean")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(InputError) as caught:
        shown(_tiny(), torch.rand(10, 8), "0", device=device)
    assert str(caught.value) == (
        f"device {device!r} cannot be used here. Leave it out, or name one that torch has, such as 'cpu'."
    )
