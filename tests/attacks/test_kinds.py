"""Every attack: within its bounds, seeded, stronger than noise, and equal to other people's where those are exact."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch
from scipy.fft import dctn, idctn
from torch import Tensor, nn

from likewise import attacks
from likewise._base.optional import prepare_torchvision
from likewise.attacks.auto.apgd import checkpoints
from likewise.attacks.gradient import _low_pass
from likewise.errors import InputError
from tests.attacks.helpers import digits, small

EPS = 0.2
OWN = [name for name in attacks.names() if "exact" in attacks.get(name).options or name == "square"]
FEW: dict[str, dict[str, Any]] = {
    "pgd": {"relative_step": 0.1, "iterations": 20},
    "vmi-fgsm": {"neighbours": 4},
    "apgd-ce": {"iterations": 20},
    "apgd-t": {"iterations": 10, "targets": 3},
    "low-frequency-pgd": {"step": 0.04, "share": 0.5},
    "fab-t": {"iterations": 20, "targets": 3},
    "square": {"queries": 200},
    "autoattack": {"iterations": 10, "targets": 3, "queries": 100},
}


def batch(n: int = 60) -> tuple[Tensor, Tensor]:
    """Images the network is right about."""
    images, labels = digits()
    with torch.no_grad():
        right = small().eval()(images).argmax(dim=1) == labels
    return images[right][:n], labels[right][:n]


def success(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return float((net.eval()(images).argmax(dim=1) != labels).float().mean())


@pytest.mark.parametrize("name", OWN)
def test_images_stay_near_and_fool_more_often_than_noise(name: str) -> None:
    net, (images, labels) = small(), batch()
    moved, led_from, _ = attacks.get(name)(net, images, labels, eps=EPS, **FEW.get(name, {}))
    assert torch.equal(led_from, labels)
    assert float((moved - images).abs().max()) <= EPS + 1e-6
    assert 0 <= float(moved.min()) <= float(moved.max()) <= 1
    noise = (images + EPS * torch.randn(images.shape, generator=torch.Generator().manual_seed(0)).sign()).clamp(0, 1)
    assert success(net, moved, labels) > success(net, noise, labels) + 0.1


@pytest.mark.parametrize("name", OWN)
def test_the_same_call_gives_the_same_images(name: str) -> None:
    images, labels = batch(20)
    first, again = (attacks.get(name)(small(), images, labels, eps=EPS, **FEW.get(name, {})) for _ in range(2))
    assert torch.equal(first.images, again.images)


@pytest.mark.parametrize("name", ["pgd", "apgd-ce", "apgd-t"])
def test_the_euclidean_norm_bounds_the_length_of_the_change(name: str) -> None:
    net, (images, labels) = small(), batch()
    moved = attacks.get(name)(net, images, labels, eps=0.5, norm="L2", **FEW[name]).images
    assert float((moved - images).flatten(1).norm(dim=1).max()) <= 0.5 + 1e-5
    assert success(net, moved, labels) > 0.1


@pytest.mark.parametrize("name", ["pgd", "fgsm", "mi-fgsm", "vmi-fgsm", "low-frequency-pgd"])
def test_a_targeted_attack_leads_to_the_labels(name: str) -> None:
    net, (images, labels) = small(), batch()
    wanted = (labels + 1) % 10
    moved = attacks.get(name)(net, images, wanted, eps=0.3, targeted=True, **FEW.get(name, {})).images
    assert 1 - success(net, moved, wanted) > 1 - success(net, images, wanted) + 0.2


@pytest.mark.parametrize("name", OWN)
def test_a_network_too_sure_for_a_gradient_is_attacked_all_the_same(name: str) -> None:
    net, (images, labels) = small(), batch()
    with torch.no_grad():
        net.fc.weight *= 1e5  # every probability is exactly 0 or 1
        net.fc.bias *= 1e5
    moved, _, stalled = attacks.get(name)(net, images, labels, eps=EPS, **FEW.get(name, {}))
    assert success(net, moved, labels) > 0.2
    if name not in ("apgd-t", "fab-t", "square"):  # which follow logits, that no scale makes flat, or no slope
        assert int((stalled > 0).sum()) > len(images) / 2


def test_low_frequencies_are_those_of_the_cosine_transform() -> None:
    slope = torch.rand(2, 3, 16, 24, dtype=torch.float64)
    low = [_low_pass(length, 1 / 4, slope) for length in (16, 24)]
    waves = dctn(slope.numpy(), axes=(2, 3), norm="ortho")
    waves[:, :, 4:], waves[:, :, :, 6:] = 0, 0
    np.testing.assert_allclose((low[0] @ slope @ low[1]).numpy(), idctn(waves, axes=(2, 3), norm="ortho"), atol=1e-12)


def test_apgd_looks_back_as_published() -> None:
    # 0.22, then gaps of 0.19, 0.16, 0.13, 0.10, 0.07 and 0.06
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]


def torchattacks() -> Any:
    return pytest.importorskip("torchattacks", reason="torchattacks is not installed")


def test_pgd_and_momentum_equal_torchattacks() -> None:
    peer, net, (images, labels) = torchattacks(), small().eval(), batch()
    ours = attacks.pgd(net, images, labels, eps=EPS, step=0.01, iterations=20, random_start=False, exact=True).images
    theirs = peer.PGD(net, eps=EPS, alpha=0.01, steps=20, random_start=False)(images, labels)
    assert float((ours - theirs).abs().max()) <= 1e-5
    ours = attacks.mi_fgsm(net, images, labels, eps=EPS, step=0.02, exact=True).images
    theirs = peer.MIFGSM(net, eps=EPS, alpha=0.02, steps=10)(images, labels)
    assert float((ours - theirs).abs().max()) <= 1e-5


@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        ("vmi-fgsm", "VMIFGSM", {"N": 20, "alpha": EPS / 10}),
        ("apgd-ce", "APGD", {"steps": 50}),
        ("apgd-t", "APGDT", {"steps": 50}),
    ],
)
def test_attacks_that_draw_succeed_as_often_as_torchattacks(ours: str, theirs: str, options: dict[str, float]) -> None:
    peer, net, (images, labels) = torchattacks(), small().eval(), batch()
    own = {} if ours == "vmi-fgsm" else {"iterations": 50}
    made = attacks.get(ours)(net, images, labels, eps=EPS, **own).images
    other = getattr(peer, theirs)(net, eps=EPS, **options)(images, labels)
    assert abs(success(net, made, labels) - success(net, other, labels)) <= 0.05


@pytest.mark.parametrize(("ours", "theirs"), [("mi-fgsm", "MIFGSM"), ("vmi-fgsm", "VMIFGSM")])
def test_momentum_attacks_succeed_as_often_as_in_torchattack(ours: str, theirs: str) -> None:
    prepare_torchvision()  # it imports torchvision
    pytest.importorskip("torchattack", reason="torchattack is not installed")
    peer = importlib.import_module("torchattack")
    net, (images, labels) = small().eval(), batch()
    made = attacks.get(ours)(net, images, labels, eps=EPS).images
    other = getattr(peer, theirs)(net, eps=EPS, steps=10, device="cpu")(images, labels)
    assert abs(success(net, made, labels) - success(net, other, labels)) <= 0.05


class Broken(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)[:, :10]
        return flat + (flat - flat).sqrt()  # the slope of a root at 0 is infinite


THREE_CLASSES = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))


@pytest.mark.parametrize(
    ("name", "net", "options", "sentence"),
    [
        ("pgd", None, {"norm": "L7"}, "pgd: norm is 'L7'. Give 'Linf' or 'L2'."),
        (
            "pgd",
            None,
            {"step": 0.1, "relative_step": 0.1},
            "the step is given twice. Leave out step or relative_step.",
        ),
        (
            "pgd",
            Broken(),
            {},
            "the gradient of Broken is not finite for 4 of 4 images. Attack another network, or leave those images "
            "out.",
        ),
        ("pgd", None, {"targeted": True}, "a targeted attack needs the labels to lead to. Pass labels."),
        ("apgd-t", THREE_CLASSES, {}, "apgd-t needs four classes, and the network has 3. Choose apgd-ce."),
    ],
)
def test_what_cannot_be_attacked_is_refused(
    name: str, net: nn.Module | None, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError) as error:
        attacks.get(name)(net or small(), batch(4)[0], **options)
    assert str(error.value) == sentence


class Shift(nn.Module):
    """Adds a number to every image while it is trained, and half of it at rest."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.tensor(by))

    def forward(self, images: Tensor) -> Tensor:
        return images + (self.by if self.training else self.by / 2)


def test_what_the_generator_makes_is_brought_near_the_images() -> None:
    images, labels = digits()
    near = attacks.generator(small(), images, labels, generator=Shift(0.2), eps=0.5)
    torch.testing.assert_close(near.images, (images + 0.1).clamp(0, 1))
    far = attacks.generator(small(), images, labels, generator=Shift(-9.0), eps=0.05)
    torch.testing.assert_close(far.images, (images - 0.05).clamp(0, 1))
    assert torch.equal(far.labels, labels)


def test_the_generator_is_left_as_it_was() -> None:
    model = Shift(0.1)
    attacks.generator(small(), digits()[0], generator=model)
    assert model.training
    assert model.by.requires_grad
    assert model.by.grad is None


def test_without_a_generator_there_is_nothing_to_run() -> None:
    for generator in (None, "generator.pt"):
        with pytest.raises(InputError) as error:
            attacks.generator(small(), digits()[0], generator=generator)
        assert str(error.value) == "the attack 'generator' needs a network that changes images. Pass generator=NETWORK."


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (nn.Flatten(), "Flatten makes (300, 64) of"),
        (nn.Sequential(nn.Identity(), Shift(float("nan"))), "Sequential makes (300, 1, 8, 8) of"),
    ],
)
def test_a_generator_that_makes_no_such_images_is_refused(kind: nn.Module, words: str) -> None:
    with pytest.raises(InputError) as error:
        attacks.generator(small(), digits()[0], generator=kind)
    assert str(error.value) == (
        f"{words} images (300, 1, 8, 8). Give a generator whose images have the shape of those it is shown, and finite "
        "values."
    )
