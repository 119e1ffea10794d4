"""Networks that answer at random are named, and run from a seed or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

import likewise
from likewise.views.extract import extract
from tests.fuzz.tiny_transformers import save
from tests.views.helpers import refused

DROPOUT = (
    " It is run from a fixed seed, so that results are those of one draw. Have it draw nothing in evaluation mode; "
    "dropout, for one, takes training=self.training."
)


class Dropping(nn.Module):
    """Dropout that does not know of evaluation mode, as it is often written."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = nn.Linear(6, 40), nn.Linear(40, 3)

    def forward(self, rows: Tensor) -> Tensor:
        return self.two(dropout(self.one(rows).relu()))


def test_a_network_that_draws_is_named_and_gives_the_same_draw_every_time(tmp_path: Path) -> None:
    net, rows = Dropping(), torch.rand(50, 6)
    before = torch.get_rng_state()
    with pytest.warns(UserWarning, match="answers at random") as said:
        first = extract(net, rows, "two", batch_size=20)
    assert torch.equal(torch.get_rng_state(), before)
    message = str(said[0].message)
    assert message.startswith(
        "'Dropping' answers at random: the same inputs, shown again, give numbers that differ by "
    )
    assert message.endswith(f" times their size.{DROPOUT}")
    with pytest.warns(UserWarning, match="answers at random"):
        stored = extract(net, rows, "two", batch_size=20, store=tmp_path)
    assert torch.equal(first.values, stored.values)


def test_the_draws_of_batches_differ() -> None:
    row = torch.rand(1, 6).expand(20, 6)
    with pytest.warns(UserWarning, match="answers at random"):
        values = extract(Dropping(), row, "two", batch_size=10).values
    assert len(values.unique(dim=0)) == 20


def test_what_is_drawn_after_the_layers_asked_for_is_no_matter() -> None:
    net, rows = Dropping(), torch.rand(50, 6)
    net.head_layer = None  # without a classifier there are no answers
    net.forward = lambda rows: {"last_hidden_state": dropout(net.one(rows))}  # type: ignore[method-assign]
    assert torch.equal(extract(net, rows, "one").values, net.one(rows).detach())


def test_a_network_that_draws_from_elsewhere_or_keeps_a_state_is_refused() -> None:
    class Counting(nn.Linear):
        calls = 0

        def forward(self, rows: Tensor) -> Tensor:
            self.calls += 1
            return super().forward(rows) * self.calls

    message = refused(lambda: extract(Counting(6, 3), torch.rand(50, 6), "logits"))
    assert message.startswith("'Counting' does not repeat its answers: the same inputs, shown again, give numbers that")
    assert message.endswith(
        " times their size, also from one seed of torch. Have its forward pass keep no state and draw nothing."
    )


@pytest.mark.usefixtures("vision")
def test_a_masked_autoencoder_is_named_with_the_address_that_masks_nothing(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    save("vit-mae", tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"mask_ratio": 0.75}))
    images = torch.rand(12, 3, 32, 32)
    with pytest.warns(UserWarning, match="answers at random") as said:
        first = extract(f"hf:{tmp_path}", images, "embedding")
    remedy = str(said[0].message).partition("Have it mask nothing: '")[2].removesuffix("'.")
    assert remedy == f"hf:{tmp_path},mask_ratio=0.0"
    with pytest.warns(UserWarning, match="answers at random"):
        assert torch.equal(extract(f"hf:{tmp_path}", images, "embedding").values, first.values)
    whole = [extract(remedy, images, "embedding").values for _ in range(2)]
    torch.testing.assert_close(*whole, atol=1e-5, rtol=1e-5)
    with pytest.warns(UserWarning, match="Its patches come in a random order: choose reduce='mean' or 'cls'"):
        extract(remedy, images, "blocks", reduce="flatten")
    likewise.layerwise(remedy, data=images, reduce="cls")  # without a word
