"""FAB-T: the step to a plane against linear programming and bisection, and the attack against a line search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor, nn

from likewise import attacks
from likewise.attacks.auto.fab import to_plane
from tests.attacks.test_kinds import batch, small, success


def planes(count: int = 12, width: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(2)
    points = torch.rand((count, width), generator=draw, dtype=torch.float64)
    slope = torch.randn((count, width), generator=draw, dtype=torch.float64)
    slope[0, 2] = 0
    return points, slope, torch.randn(count, generator=draw, dtype=torch.float64)


def test_the_step_to_a_plane_is_the_least_that_linear_programming_finds() -> None:
    points, slope, values = planes()
    changes = to_plane(points, slope, values, "Linf")
    for point, weights, value, change in zip(points, slope, values, changes, strict=True):
        # the variables are the change and its largest size t: least t with weights · change = -value
        width, size = len(point), np.ones((len(point), 1))
        found = linprog(
            [*[0.0] * width, 1.0],
            A_ub=np.vstack([np.hstack([np.eye(width), -size]), np.hstack([-np.eye(width), -size])]),
            b_ub=np.zeros(2 * width),
            A_eq=[[*weights.tolist(), 0.0]],
            b_eq=[-float(value)],
            bounds=[*[(-at, 1 - at) for at in point.tolist()], (0, None)],
        )
        if found.status == 0:
            assert float(weights @ change) == pytest.approx(-float(value), abs=1e-9)
            assert float(change.abs().max()) == pytest.approx(found.fun, abs=1e-9)
        else:  # no change within [0, 1] gets there: each entry goes as far as it can
            ends = torch.where((weights > 0) == (value < 0), 1.0, 0.0) - point
            torch.testing.assert_close(change, torch.where(weights == 0, 0.0, ends))


def test_the_step_in_the_euclidean_norm_is_the_projection_found_by_bisection() -> None:
    points, slope, values = planes()
    changes = to_plane(points, slope, values, "L2")
    for point, weights, value, change in zip(points, slope, values, changes, strict=True):
        low, high = 0.0, 1e6
        for _ in range(200):
            middle = (low + high) / 2
            moved = (point - value.sign() * middle * weights).clamp(0, 1) - point
            low, high = (middle, high) if float(weights @ moved) * float(-value.sign()) < abs(value) else (low, middle)
        torch.testing.assert_close(change, (point - value.sign() * low * weights).clamp(0, 1) - point)


class Linear(nn.Module):
    """Two logits whose difference is linear in the image."""

    def __init__(self, weights: Tensor, shift: float) -> None:
        super().__init__()
        self.weights, self.shift = nn.Parameter(weights), shift

    def forward(self, images: Tensor) -> Tensor:
        value = images.flatten(1) @ self.weights + self.shift
        return torch.stack([value, -value], dim=1)


def test_the_nearest_point_of_a_linear_network_is_found_in_two_steps() -> None:
    # the lead of class 1 is -2 (x · w + 0.5); at x = 0.5 everywhere it is -2 · 1.5, and 3 of 4 weights are 1, one -1:
    # moving by a lowers x · w + 0.5 by 4 a, so the boundary is 1.5 / 4 = 0.375 away
    net, image = Linear(torch.tensor([1.0, 1.0, 1.0, -1.0]), 0.5), torch.full((1, 1, 2, 2), 0.5)
    moved = attacks.get("fab-t")(net, image, torch.tensor([0]), eps=0.4, iterations=2).images
    assert float((moved - image).abs().max()) == pytest.approx(0.375 * 1.05, abs=1e-6)
    near = attacks.get("fab-t")(net, image, torch.tensor([0]), eps=0.37, iterations=5).images
    assert success(net, near, torch.tensor([0])) == 0


@pytest.mark.parametrize(("norm", "eps"), [("Linf", 0.1), ("L2", 0.5)])
def test_it_fools_as_often_as_that_of_others(norm: str, eps: float) -> None:
    pytest.importorskip("pyautoattack", reason="pyautoattack is not installed")
    import pyautoattack

    net, (images, labels) = small().eval(), batch()
    suite = pyautoattack.AutoAttack(net, norm=norm, eps=eps, seed=0, device="cpu")
    suite.fab.n_iter, suite.fab.seed = 30, 0
    with torch.random.fork_rng():
        other = suite.fab.perturb(images, labels)
    own = attacks.get("fab-t")(net, images, labels, norm=norm, eps=eps, iterations=30).images
    assert success(net, own, labels) >= success(net, other, labels) - 1 / 60
