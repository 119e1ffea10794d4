"""Attacks that see nothing but answers: what they find, how they count, and that they leave no trace."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from likewise import attacks
from likewise.attacks.black_box import smallest_threshold
from likewise.errors import InputError

SEARCHES = ["cma-es", "differential-evolution"]
pytest.importorskip("cma")


class Counts(nn.Module):
    """Answers 1 where a weighted sum of an image passes a bar, else 0; and counts what it was shown."""

    def __init__(self, weights: Tensor, bar: float) -> None:
        super().__init__()
        self.weights, self.bar, self.shown = nn.Parameter(weights), bar, []

    def forward(self, images: Tensor) -> Tensor:
        self.shown.append(len(images))
        total = (images * self.weights).flatten(1).sum(dim=1) - self.bar
        return torch.stack([-total, total], dim=1)


def grey(*shape: int) -> Tensor:
    return torch.full(shape, 100 / 255)


@pytest.mark.parametrize("search", SEARCHES)
def test_the_one_pixel_that_counts_is_found(search: str) -> None:
    rows, columns = torch.arange(6.0).view(6, 1), torch.arange(6.0)
    weights = torch.exp(-((rows - 2) ** 2 + (columns - 4) ** 2))[None]  # answers tell where to go
    net = Counts(weights, bar=float((weights * grey(1, 6, 6)).sum()) + 120 / 255)  # 120 levels more at (2, 4)
    found = attacks.get("pixel")(net, grey(2, 1, 6, 6), population=60, generations=40, search=search)
    assert found.labels.tolist() == [0, 0]
    assert net(found.images).argmax(dim=1).tolist() == [1, 1]
    assert (found.images != grey(2, 1, 6, 6)).nonzero().tolist() == [[0, 0, 2, 4], [1, 0, 2, 4]]
    assert torch.equal(found.images[0], found.images[1])  # the same image, the same draws


@pytest.mark.parametrize("search", SEARCHES)
def test_grey_levels_move_where_the_answer_asks_and_no_further(search: str) -> None:
    weights = torch.cat([torch.ones(1, 2, 4), -torch.ones(1, 2, 4)], dim=1)
    clean = grey(1, 1, 4, 4)
    levels = 4 * 16 / 255  # half of what a change of 8 levels reaches, 8 * 16 / 255
    net = Counts(weights, bar=levels)
    found = attacks.get("threshold")(net, clean, threshold=8, population=40, generations=60, search=search)
    assert net(found.images).argmax(dim=1).tolist() == [1]
    assert float((255 * (found.images - clean)).abs().max()) <= 8 + 1e-4
    assert torch.equal((255 * found.images).round(), (255 * found.images).round().clamp(92, 108))


class Soft(nn.Module):
    """Answers with numbers of its own: the label's is least at one corner, its share of a softmax at another."""

    def __init__(self, answers: str) -> None:
        super().__init__()
        self.answers, self.scale = answers, nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        one, two = images[:, 0, 0, 0], images[:, 0, 0, 1]
        label = 0.6 - 0.2 * one + 0.1 * two
        others = 0.5 * two
        return self.scale * torch.stack([label + 2, others], dim=1)  # never fooled


@pytest.mark.parametrize(("answers", "corner"), [("lengths", [1, 0]), ("probabilities", [1, 0]), ("logits", [1, 1])])
def test_the_answer_of_the_label_is_made_small_as_the_network_means_it(answers: str, corner: list[int]) -> None:
    # the label's own number falls with the first value and rises with the second; its softmax falls with both
    found = attacks.get("threshold")(
        Soft(answers), grey(1, 1, 1, 2), threshold=10, population=12, generations=60, seed=1
    )
    moved = (255 * (found.images - grey(1, 1, 1, 2))).round().flatten()
    assert (moved > 0).int().tolist() == corner
    assert moved.abs().min() >= 8


def test_a_threshold_that_cannot_reach_does_not_fool() -> None:
    net = Counts(torch.ones(1, 3, 3), bar=float(grey(1, 3, 3).sum()) + 9 * 3.5 / 255)
    missed = attacks.get("threshold")(net, grey(1, 1, 3, 3), threshold=3, population=20, generations=5)
    assert net(missed.images).argmax(dim=1).tolist() == [0]
    assert sum(net.shown[1:]) >= 5 * 20  # the search went on to its end


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_ends_with_the_generation_that_fools(search: str) -> None:
    net = Counts(torch.ones(1, 3, 3), bar=float(grey(1, 3, 3).sum()) + 0.01)
    attacks.get("threshold")(net, grey(1, 1, 3, 3), threshold=10, population=20, generations=50, search=search)
    assert sum(net.shown) < 100  # 50 generations would be a thousand


def test_an_image_that_is_wrong_already_is_left_alone() -> None:
    net = Counts(torch.ones(1, 3, 3), bar=0.0)  # answers 1
    found = attacks.get("pixel")(net, grey(2, 1, 3, 3), torch.tensor([0, 0]), population=8, generations=1)
    assert torch.equal(found.images, grey(2, 1, 3, 3))
    assert net.shown[-1] == 2  # nothing was searched


def test_what_is_not_changed_keeps_values_between_levels() -> None:
    clean = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    net = Counts(torch.ones(3, 8, 8), bar=1e6)
    found = attacks.get("pixel")(net, clean, pixels=2, population=8, generations=2)
    changed = (found.images != clean).any(dim=1)
    assert 1 <= int(changed.sum()) <= 2
    levels = 255 * found.images.permute(0, 2, 3, 1)[changed]
    torch.testing.assert_close(levels, levels.round(), atol=1e-3, rtol=0)


def test_an_image_does_not_depend_on_those_beside_it_nor_touch_the_draws_of_others() -> None:
    images = (255 * torch.rand(3, 1, 5, 5, generator=torch.Generator().manual_seed(1))).round() / 255
    net = Counts(torch.linspace(-1, 1, 25).view(1, 5, 5), bar=0.3)
    before = np.random.get_state()[1].tolist()
    run = {"population": 10, "generations": 3, "seed": 5}
    together = attacks.get("threshold")(net, images, **run)
    alone = attacks.get("threshold")(net, images[1:2], **run)
    assert torch.equal(together.images[1:2], alone.images)
    assert np.random.get_state()[1].tolist() == before
    other = attacks.get("threshold")(net, images, **(run | {"seed": 6}))
    assert not torch.equal(other.images, together.images)


def test_images_are_searched_together_and_the_next_takes_the_place_of_one_that_is_fooled() -> None:
    # 100 candidates per image, so two images at a time; the first is fooled at once, the others never
    images = torch.cat([grey(1, 1, 3, 3), torch.zeros(3, 1, 3, 3)])
    net = Counts(torch.ones(1, 3, 3), bar=float(grey(1, 3, 3).sum()) + 0.01)
    found = attacks.get("threshold")(net, images, threshold=10, population=100, generations=4)
    assert net(found.images).argmax(dim=1).tolist() == [1, 0, 0, 0]
    # first and second, three times second and third, third and fourth, three times fourth
    assert [shown for shown in net.shown if shown >= 100] == [200, 200, 200, 200, 200, 100, 100, 100]


def test_a_generation_that_is_too_large_is_shown_in_parts() -> None:
    net = Counts(torch.linspace(-1, 1, 9).view(1, 3, 3), bar=1e6)
    attacks.get("threshold")(net, grey(1, 1, 3, 3), population=450, generations=1)
    assert net.shown[-3:] == [200, 200, 50]


def test_the_smallest_threshold_is_found_by_bisection() -> None:
    # 9 values, each 3 levels up, pass the bar; numbers are truncated, so that needs a search up to 4 levels. The second
    # image is wrong already, and the third is too dark.
    bar = float(grey(1, 3, 3).sum()) + 9 * 2.5 / 255
    net = Counts(torch.ones(1, 3, 3), bar)
    images = torch.cat([grey(1, 1, 3, 3), torch.ones(1, 1, 3, 3), torch.zeros(1, 1, 3, 3)])
    found = smallest_threshold(
        net, images, torch.tensor([0, 0, 0]), most=15, population=20, generations=40, attack="threshold"
    )
    assert found.tolist() == [4, 0, float("inf")]
    with pytest.raises(InputError) as error:
        smallest_threshold(net, images, attack="pgd")
    assert str(error.value) == "'pgd' has no thresholds. Choose 'pixel' or 'threshold'."


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("pixel", {"pixels": 0}, "pixels is 0. Change at least 1."),
        ("pixel", {"pixels": 10}, "pixels is 10, and an image has 9. Change fewer."),
        ("threshold", {"threshold": 0}, "threshold is 0. Give a number of grey levels above 0 and up to 255."),
        ("threshold", {"threshold": 300}, "threshold is 300. Give a number of grey levels above 0 and up to 255."),
        ("threshold", {"generations": 0}, "generations is 0. Give at least 1."),
        ("pixel", {"population": 3}, "population is 3. Give at least 4."),
        (
            "pixel",
            {"search": "annealing"},
            "pixel: search is 'annealing'. Give 'cma-es' or 'differential-evolution'.",
        ),
    ],
)
def test_sizes_that_make_no_search_are_refused(name: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        attacks.get(name)(Counts(torch.ones(1, 3, 3), 1e6), grey(1, 1, 3, 3), **options)
    assert str(error.value) == sentence


def test_answers_that_are_not_finite_are_said() -> None:
    class Breaks(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            total = images.flatten(1).sum(dim=1)
            odd = torch.where(total == total[0], 0.0, float("nan")) if len(images) > 1 else torch.zeros_like(total)
            return torch.stack([total + odd, -total], dim=1)

    with pytest.raises(InputError) as error:
        attacks.get("threshold")(Breaks(), grey(1, 1, 3, 3), population=8, generations=1)
    assert str(error.value) == "the answers of Breaks to changed images are not finite. Attack another network."
