"""Batches of whatever data is, and in parts where they do not fit in memory: nothing but rounding depends on those."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import ForwardError, InputError
from likewise.networks import Normalised
from likewise.networks.forward import transform_for
from likewise.networks.inputs import padding
from likewise.networks.inputs.normalisation import record_transform
from likewise.networks.inputs.transforms import Transform
from likewise.views import batches
from tests.views.helpers import _tiny, shown


def test_bytes_are_shown_as_images() -> None:
    net = Normalised(nn.Sequential(nn.Conv2d(3, 4, 3)), [0.5] * 3, [0.2] * 3)
    images = torch.randint(0, 256, (5, 3, 6, 6), dtype=torch.uint8)
    found, expected = (shown(net, part, "0", reduce="mean").values for part in (images, images / 255))
    torch.testing.assert_close(found, expected)


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
    shown(net, data, ["penultimate", "1"], reduce="mean")
    assert torch.equal(torch.get_rng_state(), before)


class Small(nn.Module):
    """A network for whose memory only so many inputs are few enough."""

    def __init__(
        self, most: int, error: type[Exception] = torch.OutOfMemoryError, says: str = "CUDA out of memory."
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.fc = nn.Linear(6, 5), nn.Linear(5, 3)
        self.most, self.error, self.says = most, error, says
        self.sizes: list[int] = []

    def forward(self, rows: Tensor) -> Tensor:
        self.sizes.append(len(rows))
        if len(rows) > self.most:
            raise self.error(self.says)
        return self.fc(torch.relu(self.body(rows)))


ROWS = torch.rand(600, 6, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("layers", ["penultimate", "body", "all"])
def test_what_does_not_fit_is_shown_in_halves_that_stay(layers: str) -> None:
    small, large = Small(40), Small(10_000)
    found, expected = (shown(net, ROWS, layers) for net in (small, large))
    views = [found] if layers != "all" else [found[name] for name in expected]
    others = [expected] if layers != "all" else list(expected.values())
    for one, other in zip(views, others, strict=True):
        torch.testing.assert_close(one.values, other.values)
        torch.testing.assert_close(one.outputs.logits, other.outputs.logits)
        assert one.probe == other.probe
    first = small.sizes.index(32)
    assert [size for size in small.sizes[:first] if size > 2] == [256, 128, 64]  # then it is known
    assert max(small.sizes[first:]) == 32


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_other_devices_say_it_in_other_words(error: type[Exception]) -> None:
    found = shown(Small(40, error, "MPS backend out of memory (allocated: 9 GB)"), ROWS, "body")
    torch.testing.assert_close(found.values, shown(Small(10_000), ROWS, "body").values)


def test_a_batch_size_that_is_too_large_is_halved_too() -> None:
    net = Small(40)
    shown(net, ROWS, "body", batch_size=100)
    assert net.sizes[:3] == [100, 50, 25]


def test_a_network_too_large_for_one_input_is_refused() -> None:
    with pytest.raises(ForwardError) as error:
        shown(Small(0), ROWS, "body", name="big")
    assert str(error.value) == (
        "'big' does not fit in memory with one input at a time. Choose a smaller network, another device, or "
        "dtype='bfloat16'."
    )


def test_other_errors_are_no_lack_of_memory() -> None:
    with pytest.raises(ForwardError, match="RuntimeError: shapes cannot be multiplied"):
        shown(Small(0, RuntimeError, "shapes cannot be multiplied"), ROWS, "body")


def test_inputs_that_cannot_be_told_apart_are_refused_where_they_do_not_fit() -> None:
    class Shared(Small):
        def forward(self, rows: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(rows * scale)

    with pytest.raises(ForwardError) as error:
        shown(Shared(10), [{"rows": ROWS[:20], "scale": torch.ones(1, 6)}], "body", name="big")
    assert str(error.value) == (
        "'big' does not fit in memory with 20 inputs, which cannot be shown in parts. Choose a smaller network, "
        "another device, or dtype='bfloat16'."
    )


def test_debiased_cka_of_layers_does_not_depend_on_what_fits() -> None:
    found, expected = (likewise.layerwise(Small(most), data=ROWS, progress=False) for most in (40, 10_000))
    torch.testing.assert_close(torch.tensor(found.values), torch.tensor(expected.values))
    assert found.about["batch_size"] == "512"
    other = likewise.layerwise(Small(40), data=ROWS, batch_size=100, progress=False)
    assert abs(other.values - expected.values).max() > 1e-6  # the batch does matter


def test_on_a_cpu_a_part_is_as_large_as_the_largest_layer_lets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Wide(nn.Sequential):
        def forward(self, images: Tensor) -> Tensor:  # type: ignore[override]
            sizes.append(len(images))
            return super().forward(images)

    torch.manual_seed(0)
    net = Wide(nn.Conv2d(3, 8, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    images = torch.rand(300, 3, 32, 32)
    monkeypatch.setattr(batches, "_ROOM", 20 * 8 * 32 * 32 * 4)  # what the convolution gives for 20 inputs
    found = shown(net, images, "2")
    # 2 to find out, then batches of 256 and 44, after the first 20 of them 2 twice to see whether it answers at random
    assert sizes == [2] + [20] + [2, 2] + [20] * 11 + [16] + [20, 20, 4]
    sizes.clear()
    torch.testing.assert_close(shown(net, images, "2", batch_size=256).values, found.values)
    assert sizes == [256, 2, 2, 44]  # asked for, and done


def test_texts_keep_the_padding_of_their_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: set[tuple[int, ...]] = set()

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.words = nn.Embedding(9, 4)

        def tokenize(self, texts: list[str]) -> dict[str, Tensor]:
            longest = max(map(len, texts))
            ids = torch.tensor([[ord(letter) % 9 for letter in text.ljust(longest)] for text in texts])
            mask = torch.tensor([[int(i < len(text)) for i in range(longest)] for text in texts])
            return {"input_ids": ids, "attention_mask": mask}

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            shapes.add(tuple(input_ids.shape))
            return self.words(input_ids)

    texts = ["a" * (1 + i % 7) for i in range(40)]
    monkeypatch.setattr(batches, "_ROOM", 5 * 7 * 4 * 4)  # five texts of seven letters
    found = shown(Words(), texts, "words", reduce="mean").values
    assert shapes == {(2, 7), (5, 7)}
    torch.testing.assert_close(found, shown(Words(), texts, "words", reduce="mean", batch_size=40).values)


@pytest.mark.parametrize("layers", ["penultimate", "blocks"])
def test_a_view_in_half_precision_says_so_and_is_kept_apart(tmp_path: Any, layers: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    passes: list[int] = []
    net[0].register_forward_hook(lambda *_: passes.append(1))

    def view(dtype: str | None) -> Any:
        found = shown(net, ROWS, layers, store=tmp_path, dtype=dtype)
        return found if layers == "penultimate" else found["0"]

    plain, half = view(None), view("bfloat16")
    assert "precision" not in plain.about
    assert half.about["precision"] == "bfloat16"
    assert half.files != plain.files
    assert half.digest != plain.digest
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        body = net[0](ROWS)
    torch.testing.assert_close(half.values, (torch.relu(body) if layers == "penultimate" else body).float())
    before = len(passes)
    assert view("bfloat16").digest == half.digest
    assert len(passes) == before  # answered from the store


def test_comparisons_run_in_the_precision_asked_for() -> None:
    nets = {"a": Small(10_000), "b": Small(10_000)}
    nets["b"].body = nn.Linear(6, 5)
    plain, half = (likewise.compare(nets, "cka", data=ROWS, dtype=dtype, progress=False) for dtype in (None, "float16"))
    assert plain["a", "b"] != half["a", "b"]
    assert plain["a", "b"] == pytest.approx(half["a", "b"], abs=0.01)
    layers = likewise.layerwise(nets["a"], nets["b"], ROWS, dtype="bfloat16", progress=False)
    assert layers.about["precision"] == "bfloat16"
    assert abs(layers.values - likewise.layerwise(nets["a"], nets["b"], ROWS, progress=False).values).max() > 0


@pytest.mark.parametrize(("side", "count"), [(8, 256), (224, 256), (384, 151), (1024, 21), (8000, 1)])
def test_fewer_large_images_are_read_at_a_time(side: int, count: int) -> None:
    images = likewise.dataset("digits:test[:20]")
    assert batches.read_at_once(images) == batches.READ == 256
    asked = likewise.dataset(f"digits:test[:20],size={side}")
    assert batches.read_at_once(asked) == count  # 256 MB of three channels of floats
    net = nn.Identity()
    record_transform(net, Transform(lambda given: given, "its own", size=(side, side)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert batches.read_at_once(transform_for(net, images, "it")) == count
    assert batches.read_at_once(ROWS) == 256


def test_a_batch_of_nothing_is_refused() -> None:
    acts: list[Callable[[], Any]] = [
        lambda: likewise.extract(Small(10), ROWS, batch_size=0),
        lambda: likewise.layerwise(Small(10), data=ROWS, batch_size=0),
    ]
    for act in acts:
        with pytest.raises(InputError) as error:
            act()
        assert str(error.value) == "batch_size is 0. Give at least 1."


@pytest.fixture(scope="module")
def texts_of_any_length() -> list[str]:
    """300 texts of 3 to 102 tokens, no two alike."""
    return [" ".join(["word"] * n + [f"end{i}"]) for i, n in enumerate(np.random.default_rng(0).integers(0, 100, 300))]


@pytest.fixture
def bert() -> Any:
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    return likewise.network("zoo:bert-tiny,width=32,vocabulary=2000").eval()


def test_texts_are_shown_by_their_length_and_rows_come_in_their_order(
    bert: Any, texts_of_any_length: list[str], tmp_path: Any
) -> None:
    texts, shapes = texts_of_any_length, []
    with torch.no_grad():
        logits = torch.cat([bert(**bert.tokenize([text])) for text in texts])  # one at a time: no padding
    labels = logits.argmax(dim=1).tolist()
    data = likewise.data.Data("texts", "text", texts, labels, ("a", "b"))
    bert.encoder.register_forward_pre_hook(
        lambda _net, _args, inputs: shapes.append(tuple(inputs["input_ids"].shape)), with_kwargs=True
    )
    views = [likewise.extract(bert, data, "logits", store=store, progress=False) for store in (None, tmp_path)]
    for view in views:
        torch.testing.assert_close(view.values, logits, rtol=1e-4, atol=1e-5)
        assert view.outputs.accuracy == 1.0
        assert view.probe == data.probe
    assert len(shapes) > 2
    assert max(n * tokens for n, tokens in shapes) <= 2**11
    assert sum(n * tokens for n, tokens in shapes) < 0.75 * 2 * 300 * 102  # two passes, padded to the longest
    shapes.clear()
    likewise.extract(bert, data, "logits", batch_size=100, progress=False)
    assert [n for n, _ in shapes if n > 2] == [100, 100, 100]  # a size that was asked for is kept


def test_layerwise_gives_the_same_for_texts_by_length(
    bert: Any, texts_of_any_length: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def scores() -> Tensor:
        options: dict[str, Any] = {"reduce": "mean", "layers": "encoder.encoder.layer.?", "progress": False}
        return torch.as_tensor(likewise.layerwise(bert, data=texts_of_any_length, memory="10MB", **options).values)

    by_length = scores()
    monkeypatch.setitem(padding._BUDGET, "cpu", 2**30)
    torch.testing.assert_close(by_length, scores(), rtol=1e-5, atol=1e-6)


def test_a_network_that_fails_on_some_texts_says_among_which(bert: Any, texts_of_any_length: list[str]) -> None:
    def fail(_net: nn.Module, _args: Any, inputs: Any) -> None:
        if inputs["input_ids"].shape[1] < 50:
            raise RuntimeError("too short")

    bert.encoder.register_forward_pre_hook(fail, with_kwargs=True)
    with pytest.raises(ForwardError, match=r"on batch 1 \(inputs \d+ to \d+, .*too short") as error:
        likewise.extract(bert, texts_of_any_length, "logits", progress=False)
    first, last = map(int, re.findall(r"inputs (\d+) to (\d+)", str(error.value))[0])
    assert 0 <= first < last <= 255


def test_texts_of_a_random_network_are_drawn_from_a_seed_by_length_too(
    bert: Any, texts_of_any_length: list[str]
) -> None:
    bert.classifier = nn.Sequential(nn.Linear(32, 8), _AlwaysDrops(), nn.Linear(8, 2))
    with pytest.warns(UserWarning, match="answers at random"):
        views = [likewise.extract(bert, texts_of_any_length, "logits", progress=False) for _ in range(2)]
    assert torch.equal(views[0].values, views[1].values)


class _AlwaysDrops(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return nn.functional.dropout(values, 0.5, training=True)
