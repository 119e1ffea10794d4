"""Inter-boundary distance: linear classifiers, whose distances are known, and plain loops."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise.data import Data
from likewise.errors import UndefinedError
from likewise.networks.inputs.normalisation import record_transform
from likewise.networks.inputs.transforms import Transform
from likewise.transfer.classifiers import classifier
from likewise.transfer.distances import DIRECTIONS, boundary_distances, nearest_others
from tests.conftest import refused
from tests.transfer.helpers import digits, trained, zoo

QUICK: dict[str, Any] = {"limit": 50.0, "progress": False}


class Linear(nn.Module):
    """Two classes with a boundary at w · x = t."""

    def __init__(self, weights: list[float], threshold: float) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)
        with torch.no_grad():
            self.fc.weight.copy_(torch.tensor([[-w for w in weights], weights]))
            self.fc.bias.copy_(torch.tensor([threshold, -threshold]))

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(images.flatten(1))


POINTS = torch.tensor([[0.9, 0.8, 0.1, 0.2], [0.7, 0.9, 0.3, 0.1], [0.1, 0.2, 0.7, 0.9], [0.2, 0.1, 0.8, 0.8]])
DATA = Data("four", "image", POINTS.reshape(4, 1, 2, 2), [1, 1, 0, 0], ("no", "yes"))
F, G = ([1.0, 1.0, 0.0, 0.0], 1.0), ([1.0, 2.0, -1.0, -0.5], 0.2)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def to_boundary(x: np.ndarray, d: np.ndarray, net: tuple[list[float], float]) -> float:
    """(t - w · x) / (w · d): where the line x + ε d meets the boundary, infinite if it leads away."""
    w, t = np.array(net[0]), net[1]
    far = (t - w @ x) / (w @ d)
    return float(far) if far > 0 else float("inf")


def expected(direction: str) -> float:
    """The score in closed form: all four points are classified correctly by both."""
    x, labels = POINTS.double().numpy(), np.array([1, 1, 0, 0])
    gaps = []
    for i in range(4):
        others = np.flatnonzero(labels != labels[i])
        towards = x[others[np.argmin(np.linalg.norm(x[others] - x[i], axis=1))]] - x[i]
        away = 1 if labels[i] == 0 else -1  # the loss rises across the boundary
        ways = {"legitimate": [unit(towards)], "adversarial": [away * unit(np.array(net[0])) for net in (F, G)]}
        gaps += [abs(to_boundary(x[i], d, F) - to_boundary(x[i], d, G)) for d in ways[direction]]
    return float(np.mean(gaps))


@pytest.mark.parametrize("direction", ["legitimate", "adversarial"])
def test_distances_of_linear_classifiers_are_those_of_the_closed_form(direction: str) -> None:
    score = likewise.compare(
        Linear(*F), Linear(*G), "boundary-distance", data=DATA, layers="logits", direction=direction
    )
    assert float(score) == pytest.approx(expected(direction), abs=1e-4)
    assert score.larger_is == "less alike"


def test_one_distance_by_hand() -> None:
    # from (0.9, 0.8) across x + y = 1 along -(1, 1)/√2: (0.9 + 0.8 - 1) / √2
    d = -torch.tensor([[1.0, 1.0, 0.0, 0.0]]) / 2**0.5
    far, found = boundary_distances(lambda x: Linear(*F)(x).argmax(1), POINTS[:1], d, 20)
    assert float(far) == pytest.approx(0.7 / 2**0.5, abs=1e-5)
    assert bool(found)


@pytest.mark.parametrize("limit", [0.004, 0.3, 20.0])
def test_distances_beyond_the_limit_are_censored_and_count_as_it(limit: float) -> None:
    points, directions = torch.zeros(3, 1), torch.tensor([[1.0], [0.1], [-1.0]])
    far, found = boundary_distances(lambda x: (x[:, 0] > 0.25).long(), points, directions, limit)
    true = [0.25, 2.5, float("inf")]
    assert found.tolist() == [value <= limit for value in true]
    assert far.tolist() == pytest.approx([min(value, limit) for value in true], abs=1e-4)


def test_the_nearest_image_of_another_label_is_found() -> None:
    nearest, far = nearest_others(torch.tensor([[0.0], [1.0], [5.0], [9.0]]), torch.tensor([0, 0, 1, 0]))
    assert nearest.tolist() == [2, 2, 1, 2]
    assert far.tolist() == [5, 4, 4, 4]


def loop_distance(net: nn.Module, image: Tensor, direction: Tensor, limit: float) -> float:
    """Small steps until the answer changes."""
    with torch.no_grad():
        steps = torch.arange(0, limit, 0.005)
        answers = net(image + steps.view(-1, 1, 1, 1) * direction).argmax(dim=1)
    changed = (answers != answers[0]).nonzero()
    return float(steps[changed[0, 0]]) if len(changed) else limit


def slope(net: nn.Module, image: Tensor, label: Tensor) -> Tensor:
    image = image.clone().requires_grad_(True)
    (found,) = torch.autograd.grad(functional.cross_entropy(net(image[None]), label[None]), image)
    return found / found.norm()


def test_the_measure_is_that_of_plain_loops() -> None:
    nets, data, limit = zoo(), digits(8), 10.0
    found = likewise.compare(nets, "boundary-distance", data=data, limit=limit, progress=False)
    gaps, both = [], ("a", "b")
    for image, label in zip(data.inputs[:], data.labels, strict=True):
        if all(int(nets[name](image[None]).argmax()) == int(label) for name in both):
            for source in both:
                d = slope(nets[source], image, label)
                one, other = (loop_distance(nets[name], image, d, limit) for name in both)
                gaps.append(abs(one - other))
    assert len(gaps) > 6
    assert found["a", "b"] == found["b", "a"] == pytest.approx(float(np.mean(gaps)), abs=5e-3)  # of steps of 0.005
    assert found["a", "a"] == 0


def test_random_directions_are_at_a_right_angle_to_the_gradient() -> None:
    data, rows = digits(10), torch.arange(10)
    with classifier("a", trained(), data) as net:
        steep, across = (DIRECTIONS[name](net, data, rows, 1).flatten(1) for name in ("adversarial", "random"))
        again, other = (DIRECTIONS["random"](net, data, rows, seed).flatten(1) for seed in (1, 2))
    torch.testing.assert_close(steep.norm(dim=1), torch.ones(10))
    torch.testing.assert_close(across.norm(dim=1), torch.ones(10))
    torch.testing.assert_close((steep * across).sum(dim=1), torch.zeros(10), rtol=0, atol=1e-6)
    assert torch.equal(across, again)
    assert not torch.equal(across, other)


@pytest.mark.parametrize("direction", ["adversarial", "random", "legitimate"])
def test_a_network_is_no_distance_from_its_twin_and_more_from_another(direction: str) -> None:
    nets = {"a": trained(), "twin": trained(), "other": trained(seed=3)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # along random directions some boundaries are far
        found = likewise.compare(nets, "boundary-distance", data=digits(20), direction=direction, **QUICK)
    assert found["a", "twin"] == 0
    assert found["a", "other"] > 0.01


def test_the_censored_share_is_warned_of_and_can_be_asked_for(tmp_path: Path) -> None:
    nets, data = zoo(), digits(30)
    several = ["boundary-distance[limit=1.0]", "boundary-distance[limit=1.0, of=censored]"]
    with pytest.warns(UserWarning, match="distances lie beyond 1 and count as that") as warned:
        both = likewise.compare(nets, several, data=data, progress=False, store=tmp_path / "store")
    shares = both["boundary-distance[limit=1.0, of=censored]"]
    assert 0 < shares["a", "b"] < 1
    assert any(
        str(each.message)
        == f"boundary-distance of 'a' and 'b': {shares['a', 'b']:.0%} of distances lie beyond 1 and count as that. "
        "Raise limit, or ask for the share of every pair: 'boundary-distance[of=censored]'."
        for each in warned
    )
    again = likewise.compare(nets, several, data=data, progress=False, store=tmp_path / "store")
    assert np.array_equal(again[several[1]].values, shares.values)
    wide = likewise.compare(nets, "boundary-distance[of=censored]", data=data, **QUICK)
    assert wide["a", "b"] == 0


class Bright(nn.Module):
    """Two classes by the mean of all pixels, at any size."""

    def forward(self, images: Tensor) -> Tensor:
        mean = images.flatten(1).mean(dim=1)
        return torch.stack([0.5 - mean, mean - 0.5], dim=1)


@pytest.mark.parametrize("direction", ["adversarial", "legitimate"])
def test_networks_of_other_sizes_are_led_along_the_same_change(direction: str) -> None:
    def doubled(images: Any) -> Tensor:
        small = torch.stack([torch.from_numpy(np.array(image)).float() / 255 for image in images])[:, None]
        return small.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)

    large, draw = Bright(), torch.Generator().manual_seed(0)
    record_transform(large, Transform(doubled, "doubled", size=(16, 16), channels=1))
    levels = torch.randint(20, 100, (6, 1, 8, 8), generator=draw)
    pixels = torch.cat([levels, 255 - levels]).byte()
    data = Data("levels", "image", pixels, [0] * 6 + [1] * 6, ("dark", "light"))
    with pytest.warns(UserWarning, match="enlarged to 16"):
        score = likewise.compare(
            Bright(), large, "boundary-distance", data=data, layers="logits", direction=direction, **QUICK
        )
    # one step changes the mean by as much at either size, so the boundary of both is equally far
    assert float(score) == pytest.approx(0, abs=1e-3)


def test_networks_that_are_right_on_no_input_together_have_no_distance() -> None:
    backwards = ([-w for w in F[0]], -F[1])
    assert refused(
        lambda: likewise.compare(Linear(*F), Linear(*backwards), "boundary-distance", data=DATA, layers="logits"),
        UndefinedError,
    ) == (
        "'Linear' and 'Linear' classify none of 4 inputs correctly together, so there is no boundary to compare. Show "
        "them more inputs, or leave one out."
    )


def test_boundaries_that_are_all_too_far_are_said_to_be() -> None:
    assert refused(
        lambda: likewise.compare(Linear(*F), Linear(*G), "boundary-distance", data=DATA, layers="logits", limit=0.001),
        UndefinedError,
    ) == (
        "no image has a boundary of both 'Linear' and 'Linear' within 0.001 along the adversarial direction. Raise "
        "limit."
    )


def test_data_of_one_label_leads_nowhere() -> None:
    one = Data("one", "image", POINTS[:2].reshape(2, 1, 2, 2), [1, 1], ("no", "yes"))
    assert refused(
        lambda: likewise.compare(
            Linear(*F), Linear(*G), "boundary-distance", data=one, layers="logits", direction="legitimate"
        ),
        UndefinedError,
    ) == ("all images have one label, so none lies towards another. Show the networks more classes.")


def test_an_unknown_direction_is_refused() -> None:
    assert refused(lambda: likewise.measures.get("boundary-distance", direction="up")) == (
        "boundary-distance: direction must be one of adversarial, legitimate, random, got 'up'."
    )
