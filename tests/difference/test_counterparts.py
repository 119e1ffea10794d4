"""Layers and weights are compared with their own, whatever stands around a network."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import Tensor, nn

import likewise
from likewise.difference.counterparts import counterparts
from tests.difference.copies import digits, fitted, with_noise


class Around(nn.Module):
    """A training class around a network, as Lightning's: its names begin with `model.`."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = net, nn.CrossEntropyLoss()

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images)


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "training class": Around,
    "two of them": lambda net: Around(Around(net)),
    "parallel inside": lambda net: Around(nn.DataParallel(net)),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_first_layer_and_the_weight_that_changed_are_named_through_wrappers(wrapper: str) -> None:
    before = fitted()
    after = WRAPPERS[wrapper](with_noise(before, "3", 0.3))
    for pair in ((before, after), (after, before)):
        change = likewise.diff(*pair, digits(), names=("a", "b"), transfer=False)
        assert change.same_layers
        assert change.first_moved is not None
        assert change.first_moved.layer.rpartition(".")[2] == "3"
        assert [name.split(".")[-2:] for name, _ in change.weights.changed] == [["3", "weight"]]
        assert (change.weights.shared, change.weights.other) == (6, 0)


def test_a_wrapped_copy_is_identical() -> None:
    net = fitted()
    assert likewise.diff(net, Around(net), digits(), names=("a", "b"), transfer=False).verdict == "identical"


def test_names_are_matched_by_what_most_of_them_begin_with() -> None:
    bare = ["wte", "h.0", "h.0.mlp", "ln_f"]
    with_head = [*(f"transformer.{name}" for name in bare), "transformer", "lm_head"]
    assert counterparts(with_head, bare) == {name: f"transformer.{name}" for name in bare}
    assert counterparts(bare, with_head) == {f"transformer.{name}": name for name in bare}
    assert counterparts(bare, bare) == {name: name for name in bare}
    assert counterparts(["a", "b"], ["c"]) == {}
    assert counterparts([], []) == {}
