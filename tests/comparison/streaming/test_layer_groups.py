"""Layers of one batch within a limit of memory: other groups, the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.comparison.streaming.layer_groups import Limits, layer_groups
from likewise.errors import InputError
from likewise.views.recorder import BatchRows
from tests.helpers import sentence

IMAGES = torch.rand(48, 3, 24, 24, generator=torch.Generator().manual_seed(0))
ALL = slice(None)


def _net(width: int, seed: int) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        maps = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 8, 3), nn.ReLU(), nn.Flatten()]
        return nn.Sequential(*maps, nn.LazyLinear(4)).eval()


def _shown(width: int = 64, seed: int = 0) -> tuple[nn.Sequential, list[int]]:
    """A network, and how many inputs it is shown at a time."""
    net, sizes = _net(width, seed), list[int]()
    net(IMAGES[:2])
    net.register_forward_pre_hook(lambda _net, inputs: sizes.append(len(inputs[0])))
    return net, sizes


def _first(**widths: int) -> BatchRows:
    return BatchRows({name: torch.zeros(10, width) for name, width in widths.items()}, total=10)


def test_layers_that_fit_are_kept_together() -> None:
    assert layer_groups([_first(a=100, b=100)], [100], Limits(10**9, gram_copies=1)) == [{"a": ALL, "b": ALL}]


def test_rows_and_a_copy_of_the_largest_layer_and_two_chunks_fit_in_memory() -> None:
    """100 inputs of 100 single numbers are 40 kB; of 320 kB a quarter is for two chunks, which leaves 240."""
    first = _first(**dict.fromkeys("abcdefgh", 100))
    groups = layer_groups([first], [100], Limits(320_000))
    assert [list(group) for group in groups] == [list("abcde"), list("fgh")]


def test_layers_of_two_networks_with_one_name_come_together() -> None:
    groups = layer_groups([_first(a=100, b=100), _first(b=100, c=100)], [100, 100], Limits(150_000))
    assert [list(group) for group in groups] == [["a"], ["b"], ["c"]]


def test_a_layer_too_large_by_itself_comes_in_parts_that_cover_it_once() -> None:
    groups = layer_groups([_first(a=10, wide=1003, b=10)], [100], Limits(500_000, gram_copies=1))
    columns = [group["wide"] for group in groups if "wide" in group]
    assert len(columns) > 1
    assert [i for part in columns for i in range(1003)[part]] == list(range(1003))
    assert layer_groups([_first(wide=1003)], [100], Limits(100_000)) == [{"wide": ALL}]


def test_gram_matrices_that_do_not_fit_are_refused_with_a_batch_that_does() -> None:
    net, _ = _shown(8)
    images = IMAGES.repeat(25, 1, 1, 1) + torch.rand(1200, 1, 1, 1)
    refusal = sentence(InputError, likewise.layerwise, net, data=images, layers="all", batch_size=1200, memory="100MB")
    assert refusal == (
        "the Gram matrices of 6 layers for batches of 1200 inputs take 69 MB, more than half of memory=100MB. "
        "Choose batch_size=1020, fewer layers, or more memory."
    )


@pytest.mark.parametrize("two", [False, True])
def test_less_memory_takes_more_passes_and_gives_the_same_numbers(two: bool) -> None:
    (net, sizes), other = _shown(), _net(48, 1)
    other(IMAGES[:2])

    def layerwise(memory: str | None) -> Any:
        sizes.clear()
        pair = (net, other) if two else (net, None)
        return likewise.layerwise(*pair, IMAGES, layers="all", memory=memory, progress=False).values

    expected, once = layerwise(None), sum(sizes)
    grouped, several = layerwise("40MB" if two else "25MB"), sum(sizes)
    assert several >= once + len(IMAGES)
    np.testing.assert_allclose(grouped, expected, rtol=0, atol=1e-12)
    in_parts = layerwise("10MB")  # the largest layer takes 7 MB, so it comes in parts, summed in single precision
    assert sum(sizes) > several
    np.testing.assert_allclose(in_parts, expected, rtol=0, atol=1e-6)


def test_a_difference_within_little_memory_is_the_same() -> None:
    (net, sizes), other = _shown(), _net(64, 1)
    other(IMAGES[:2])
    results = []
    for memory in ("1GB", "10MB"):
        sizes.clear()
        change = likewise.diff({"a": net, "b": other}, data=IMAGES[:16], memory=memory, transfer=False, progress=False)
        results.append((change.to_dict()["layers"], sum(sizes)))
    assert results[0][0] == results[1][0]
    assert results[1][1] > results[0][1]


def test_rows_are_counted_over_groups() -> None:
    """Layers of unequal maps are refused although no group holds both of them."""
    net = nn.Sequential(nn.Conv2d(3, 4096, 3), nn.MaxPool2d(2)).eval()
    options: dict[str, Any] = {"layers": "all", "reduce": "spatial", "batch_size": 8, "memory": "10MB"}
    refusal = sentence(InputError, likewise.layerwise, net, data=IMAGES[:8, :, :10, :10], **options)
    assert refusal.startswith("'0' of 'Sequential' gives 512 rows and '1' of 'Sequential' gives 128, so their rows")


def test_a_network_that_answers_at_random_answers_alike_in_every_pass() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.fc = nn.Linear(64, 30_000), nn.Linear(30_000, 3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.fc(self.wide(x + torch.randn_like(x)))
            return out

    torch.manual_seed(0)
    net, x = Noisy(), torch.randn(64, 64)
    values = []
    for memory in ("1GB", "10MB"):
        with pytest.warns(UserWarning, match="answers at random"):
            values.append(likewise.layerwise(net, data=x, layers="all", memory=memory, progress=False).values)
    np.testing.assert_allclose(values[0], values[1], rtol=0, atol=1e-6)
