"""Square: its squares by plain loops, and the search against its own definition."""

from __future__ import annotations

import math

import pytest
import torch

from likewise import attacks
from likewise.attacks.auto.square import _flip_square, _move_square, _side, _window, bump
from likewise.attacks.steps import Ball
from likewise.errors import InputError
from tests.attacks.test_kinds import batch, small, success


def test_squares_shrink_as_published() -> None:
    # of 10,000 queries: half the area after 10, 50, 200, 500, 1000, 2000, 4000, 6000 and 8000
    for query, halvings in ((0, 0), (10, 0), (11, 1), (51, 2), (201, 3), (501, 4), (1001, 5), (2001, 6), (9999, 9)):
        assert _side(0.8, query, 1024, 32, "Linf") == max(1, round(math.sqrt(0.8 * 1024 / 2**halvings)))
    assert [_side(0.8, query, 1024, 32, "L2") % 2 for query in (0, 60, 500, 9000)] == [1, 1, 1, 1]


def test_a_bump_is_summed_ring_by_ring() -> None:
    def half(height: int, width: int) -> torch.Tensor:
        total = torch.zeros(height, width, dtype=torch.float64)
        for ring in range(max(height, width) // 2 + 1):
            for row in range(height):
                for column in range(width):
                    if abs(row - height // 2) <= ring and abs(column - width // 2) <= ring:
                        total[row, column] += 1 / (ring + 1) ** 2
        return total / total.norm()

    whole = torch.cat([half(3, 7), -half(4, 7)])
    torch.testing.assert_close(bump(7), whole / whole.norm())
    assert bump(1).tolist() == [[-1.0]]


def test_a_window_is_where_its_corner_was_drawn() -> None:
    inside = _window(torch.zeros(2, 1, 4, 5), torch.tensor([[0.0, 0.0], [0.99, 0.99]]), 2)
    assert inside[0, 0].int().tolist() == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0] * 5, [0] * 5]
    assert inside[1, 0].int().tolist() == [[0] * 5, [0] * 5, [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]]


def test_a_proposal_changes_one_square_by_eps_and_leaves_the_rest() -> None:
    draw = torch.Generator().manual_seed(0)
    clean, points = (torch.full((3, 2, 6, 6), value) for value in (0.5, 0.45))
    moved = _flip_square(points, clean, torch.rand((3, 8), generator=draw), 3, Ball(0.1))
    for image in moved:
        for channel in image:
            assert sorted({round(value, 3) for value in channel.flatten().tolist()}) in ([0.4, 0.45], [0.45, 0.6])
            assert int((channel != 0.45).sum()) == 9


def test_a_move_in_the_euclidean_norm_keeps_the_length() -> None:
    draw = torch.Generator().manual_seed(0)
    clean = torch.full((4, 2, 9, 9), 0.5)
    change = torch.randn(clean.shape, generator=draw)
    points = clean + 0.3 * change / change.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    moved = _move_square(points, clean, torch.rand((4, 8), generator=draw), 3, Ball(0.3, "L2"))
    assert (moved - clean).flatten(1).norm(dim=1).tolist() == pytest.approx([0.3] * 4, abs=1e-5)
    assert not torch.equal(moved, points)


@pytest.mark.parametrize(("norm", "eps"), [("Linf", 0.1), ("L2", 0.5)])
def test_more_queries_fool_more_often_and_stay_within_eps(norm: str, eps: float) -> None:
    net, (images, labels) = small().eval(), batch()
    rates = []
    for queries in (1, 300):
        moved = attacks.get("square")(net, images, labels, norm=norm, eps=eps, queries=queries).images
        change = (moved - images).flatten(1)
        assert float(change.abs().max() if norm == "Linf" else change.norm(dim=1).max()) <= eps + 1e-5
        rates.append(success(net, moved, labels))
    assert rates[0] < rates[1]


def test_an_image_is_changed_alike_whichever_others_follow_it() -> None:
    net, (images, labels) = small().eval(), batch(12)
    alone = attacks.get("square")(net, images, labels, eps=0.05, queries=40).images
    easy = labels.clone()
    easy[3] = (labels[3] + 1) % 10  # fooled before the first query
    beside = attacks.get("square")(net, images, easy, eps=0.05, queries=40).images
    rows = [row for row in range(12) if row != 3]
    torch.testing.assert_close(alone[rows], beside[rows])


@pytest.mark.parametrize("norm", ["Linf", "L2"])
def test_it_fools_as_often_as_that_of_others(norm: str) -> None:
    pytest.importorskip("pyautoattack", reason="pyautoattack is not installed")
    import pyautoattack

    eps = 0.1 if norm == "Linf" else 0.5
    net, (images, labels) = small().eval(), batch()
    suite = pyautoattack.AutoAttack(net, norm=norm, eps=eps, seed=0, device="cpu")
    suite.square.n_queries = 300
    with torch.random.fork_rng():
        other = suite.square.perturb(images, labels)
    own = attacks.get("square")(net, images, labels, norm=norm, eps=eps, queries=300).images
    assert success(net, own, labels) >= success(net, other, labels) - 1 / 60


@pytest.mark.parametrize(("share", "queries"), [(0.0, 10), (1.5, 10), (0.5, 0)])
def test_shares_and_queries_that_change_nothing_are_refused(share: float, queries: int) -> None:
    with pytest.raises(InputError) as error:
        attacks.get("square")(small(), batch(4)[0], share=share, queries=queries)
    assert str(error.value) == (
        f"share is {share} and queries {queries}. Give a share above 0 and up to 1, and at least one query."
    )


@pytest.mark.parametrize("name", ["square", "autoattack"])
def test_what_has_no_height_and_width_is_refused(name: str) -> None:
    images, labels = batch(4)
    with pytest.raises(InputError) as error:
        attacks.get(name)(small(), images.flatten(1), labels)
    assert str(error.value) == f"{name} was shown (4, 64). Give images (n, channels, height, width)."
