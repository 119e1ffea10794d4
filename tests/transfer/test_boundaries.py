"""Decision-boundary agreement: planes, grids and scores, in the reference's numbers and by plain loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise import measures
from likewise.data import Data
from likewise.errors import InputError, UndefinedError
from likewise.networks.class_names import record_classes
from likewise.networks.inputs.normalisation import record_transform
from likewise.networks.inputs.transforms import Transform
from likewise.transfer.boundaries import Plane, agreement, draw_triplets
from likewise.wordnet import ClassNames
from tests.conftest import refused
from tests.transfer.helpers import digits, trained, zoo

QUICK: dict[str, Any] = {"triplets": 3, "resolution": 6, "progress": False}
# three images of four values; the numbers below were computed apart
IMAGES = torch.tensor([[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 4.0, 0.0], [1.0, 2.0, 0.0, 0.0]])
POINTS = torch.tensor(
    [
        [-0.364, -0.2, -0.352, 0.0],
        [0.02, 1.0, -0.64, 0.0],
        [0.404, 2.2, -0.928, 0.0],
        [1.436, -0.2, 2.048, 0.0],
        [1.82, 1.0, 1.76, 0.0],
        [2.204, 2.2, 1.472, 0.0],
        [3.236, -0.2, 4.448, 0.0],
        [3.62, 1.0, 4.16, 0.0],
        [4.004, 2.2, 3.872, 0.0],
    ],
    dtype=torch.float64,
)


def assert_near(found: Tensor, expected: Any) -> None:
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_a_plane_has_the_directions_and_coordinates_of_the_reference() -> None:
    plane = Plane.through(IMAGES)
    assert_near(plane.directions[0], [0.6, 0.0, 0.8, 0.0])
    assert_near(plane.directions[1], [0.29711254108328294, 0.9284766908852592, -0.2228344058124622, 0.0])
    assert_near(plane.coordinates, [[0, 0], [5.0, 0], [0.6, 2.154065922853802]])


def test_a_grid_reaches_a_tenth_beyond_the_images_as_in_the_reference() -> None:
    axes = Plane.through(IMAGES).axes(3)
    assert_near(axes[0], [-0.5, 2.5, 5.5])
    assert_near(axes[1], [-0.2154065922853802, 1.0770329614269007, 2.369472515139182])
    assert_near(Plane.through(IMAGES).weights(3) @ IMAGES.double(), POINTS)


def test_the_score_is_that_of_the_reference() -> None:
    one, other = torch.tensor([[0, 1, 1, 2], [2, 2, 0, 1]]), torch.tensor([[0, 1, 2, 2], [2, 0, 0, 0]])
    assert agreement(one, other) == 0.625


def test_images_on_one_line_still_have_points_between_them() -> None:
    same = Plane.through(torch.stack([IMAGES[1], IMAGES[1], IMAGES[2]])).weights(4)
    line = Plane.through(torch.stack([IMAGES[0], IMAGES[1], 2 * IMAGES[1]])).weights(4)
    for weights in (same, line):
        assert bool(weights.isfinite().all())
        assert_near(weights.sum(dim=1), torch.ones(16))


def test_triplets_are_of_three_labels_and_the_same_for_one_seed() -> None:
    labels = torch.tensor([0] * 50 + [1, 2])
    drawn = draw_triplets(labels, 20, seed=3)
    assert all(len(set(labels[rows].tolist())) == 3 for rows in drawn)
    assert torch.equal(drawn, draw_triplets(labels, 20, seed=3))
    assert not torch.equal(drawn, draw_triplets(labels, 20, seed=4))


def by_loops(one: nn.Module, other: nn.Module, data: Data, triplets: int, resolution: int, seed: int) -> float:
    """The score as the paper says it: Gram-Schmidt, a box, and point after point."""
    images, same = data.inputs[:].double().flatten(1).numpy(), []
    for i, j, k in draw_triplets(data.labels, triplets, seed).tolist():
        a = images[j] - images[i]
        b = images[k] - images[i]
        a_unit = a / np.linalg.norm(a)
        b_unit = b - (b @ a_unit) * a_unit
        b_unit /= np.linalg.norm(b_unit)
        corners = np.array([[0, 0], [np.linalg.norm(a), 0], [b @ a_unit, b @ b_unit]])
        low, high = corners.min(axis=0), corners.max(axis=0)
        reach = 0.1 * (high - low)
        for u in np.linspace(low[0] - reach[0], high[0] + reach[0], resolution):
            for v in np.linspace(low[1] - reach[1], high[1] + reach[1], resolution):
                point = torch.from_numpy(images[i] + u * a_unit + v * b_unit).float().reshape(1, 1, 8, 8)
                with torch.no_grad():
                    same.append(int(one(point).argmax()) == int(other(point).argmax()))
    return float(np.mean(same))


def test_the_measure_is_that_of_plain_loops() -> None:
    nets, data = zoo(), digits()
    found = likewise.compare(nets, "boundary-agreement", data=data, seed=2, **QUICK)
    for i, j in (("a", "b"), ("a", "c"), ("b", "c")):
        assert found[i, j] == pytest.approx(by_loops(nets[i], nets[j], data, 3, 6, 2), abs=1e-12)
        two = likewise.compare(nets[i], nets[j], "boundary-agreement", data=data, seed=2, **QUICK)
        assert found[i, j] == found[j, i] == float(two)


class Counted(nn.Module):
    """A network that counts the inputs it is shown."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.shown = net, 0

    def forward(self, images: Tensor) -> Tensor:
        self.shown += len(images)
        return self.net(images)


def test_each_network_classifies_the_points_once_however_many_pairs_there_are() -> None:
    nets = {name: Counted(net) for name, net in zoo().items()}
    data = digits(20)
    likewise.compare(nets, "boundary-agreement", data=data, layers="net.fc", reduce="flatten", mean=0, std=1, **QUICK)
    points, extraction = 3 * 6 * 6, len(data)
    for net in nets.values():
        # single inputs to learn its answers' shape, and two inputs and a single one twice to see whether it draws
        assert points <= net.shown <= points + extraction + 2 + 2 * 2 + 2


class Enlarged(nn.Module):
    """A network that is shown images at twice their size, and halves them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images[:, :, ::2, ::2])


def test_networks_that_are_shown_other_sizes_see_the_same_points() -> None:
    def doubled(images: Any) -> Tensor:
        small = torch.stack([torch.from_numpy(np.array(image)).float() / 255 for image in images])[:, None]
        return small.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)

    plain, large = trained(), Enlarged(trained())
    record_transform(large, Transform(doubled, "doubled", size=(16, 16), channels=1))
    data = digits(20)
    pictures = Data("digits", "image", (data.inputs[:] * 255).round().byte(), data.labels, data.classes)
    with pytest.warns(UserWarning, match="enlarged to 16"):
        score = likewise.compare(plain, large, "boundary-agreement", data=pictures, layers="logits", **QUICK)
    assert score > 0.95  # mixtures are rounded otherwise, and nothing else differs


def test_networks_that_count_their_classes_otherwise_are_compared_class_by_class() -> None:
    net, turned = trained(), trained()
    with torch.no_grad():
        turned.fc.weight.copy_(net.fc.weight.flip(0))
        turned.fc.bias.copy_(net.fc.bias.flip(0))
    data = digits()
    record_classes(net, ClassNames(data.classes))
    record_classes(turned, ClassNames(data.classes[::-1]))
    assert likewise.compare(net, turned, "boundary-agreement", data=data, **QUICK) == 1


def test_one_module_under_two_names_is_left_as_it_was(tmp_path: Path) -> None:
    net = trained().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    names = dict.fromkeys("abcd", net)
    for _ in range(2):  # computed, then from the store
        found = likewise.compare(names, "boundary-agreement", data=digits(), store=tmp_path / "store", **QUICK)
        assert np.array_equal(found.values, np.ones((4, 4)))
    assert net.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_measures_of_networks_are_asked_for_by_name() -> None:
    assert "boundary-agreement" in measures.names("functional")
    data, nets = digits(), {name: trained(seed=seed) for name, seed in (("a", 0), ("b", 3))}
    assert "boundary-agreement" not in likewise.compare(nets, "functional", data=data, progress=False)
    both = likewise.compare(nets, ["boundary-agreement[triplets=2]", "disagreement"], data=data, progress=False)
    assert list(both) == ["boundary-agreement[triplets=2]", "disagreement"]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            torch.rand(9, 1, 8, 8),
            "the data is an array of shape (9, 1, 8, 8), which has no labels, and they are needed to draw planes "
            "through three of them. Give an address, (images, labels), or likewise.data.Data(name, domain, inputs, "
            "labels, classes).",
        ),
        (
            Data("two", "image", torch.rand(9, 1, 8, 8), [0, 1] * 4 + [0], tuple("0123456789")),
            "a plane goes through images of three labels, and the data has 2. Show the networks images of more "
            "classes.",
        ),
    ],
    ids=["no labels", "two labels"],
)
def test_data_without_three_labels_is_refused(data: Any, sentence: str) -> None:
    assert (
        refused(
            lambda: likewise.compare(trained(), trained(seed=3), "boundary-agreement", data=data, **QUICK),
            (InputError, UndefinedError),
        )
        == sentence
    )


def test_networks_of_other_classes_are_told_apart() -> None:
    data, wide = digits(), nn.Sequential(nn.Flatten(), nn.Linear(64, 12))
    record_classes(wide, ClassNames((*data.classes, "ten", "eleven")))
    assert refused(
        lambda: likewise.compare(trained(), wide, "boundary-agreement", data=data, layers="logits", **QUICK),
        UndefinedError,
    ) == ("'Small' answers with 10 classes and 'Sequential' with 12. Give networks of the same classes.")


def test_options_out_of_range_are_refused() -> None:
    assert (
        refused(lambda: measures.get("boundary-agreement", resolution=1))
        == "boundary-agreement: resolution must be a whole number of at least 2, got 1."
    )
