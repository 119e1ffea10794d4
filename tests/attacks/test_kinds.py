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
from likewise._base.compat import prepare_torchvision
from likewise.attacks.auto import checkpoints
from likewise.attacks.gradient import _low_pass
from likewise.errors import InputError
from tests.attacks.helpers import digits, small

EPS = 0.2
OWN = [name for name in attacks.names() if "exact" in attacks.get(name).options and name != "autoattack"]
FEW: dict[str, dict[str, Any]] = {
    "pgd": {"relative_step": 0.1, "iterations": 20},
    "vmi-fgsm": {"neighbours": 4},
    "apgd-ce": {"iterations": 20},
    "apgd-t": {"iterations": 10, "targets": 3},
    "low-frequency-pgd": {"step": 0.04, "share": 0.5},
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
    if name != "apgd-t":  # its loss is a ratio of logits, which no scale makes flat
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


@pytest.mark.parametrize("eps", [0, -0.1, float("nan")])
def test_eps_has_to_be_above_0(eps: float) -> None:
    with pytest.raises(InputError) as error:
        attacks.pgd(small(), *batch(4), eps=eps)
    assert str(error.value) == (f"eps is {eps}, and nothing changes within that. Give a number above 0, like 8/255.")


def test_a_norm_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError) as error:
        attacks.pgd(small(), *batch(4), norm="L7")
    assert str(error.value) == "pgd: norm is 'L7'. Give 'Linf' or 'L2'."


def test_two_steps_are_one_too_many() -> None:
    with pytest.raises(InputError) as error:
        attacks.pgd(small(), *batch(4), step=0.1, relative_step=0.1)
    assert str(error.value) == "the step is given twice. Leave out step or relative_step."


def test_a_gradient_that_is_not_finite_is_said() -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            flat = images.flatten(1)[:, :10]
            return flat + (flat - flat).sqrt()  # the slope of a root at 0 is infinite

    with pytest.raises(InputError) as error:
        attacks.pgd(Broken(), *batch(4))
    assert str(error.value) == (
        "the gradient of Broken is not finite for 4 of 4 images. Attack another network, or leave those images out."
    )


def test_labels_the_network_has_no_class_for_are_refused() -> None:
    images, labels = batch(4)
    with pytest.raises(InputError) as error:
        attacks.pgd(small(), images, torch.full_like(labels, 12))
    assert str(error.value) == (
        "the labels run from 12 to 12, and the network has 10 classes. Give labels from 0, as the network counts its "
        "classes."
    )


def test_a_target_needs_labels() -> None:
    with pytest.raises(InputError) as error:
        attacks.pgd(small(), batch(4)[0], targeted=True)
    assert str(error.value) == "a targeted attack needs the labels to lead to. Pass labels."


@pytest.mark.parametrize("name", ["apgd-t"])
def test_the_ratio_of_logits_needs_four_classes(name: str) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(InputError) as error:
        attacks.get(name)(net, batch(4)[0])
    assert str(error.value) == "apgd-t needs four classes, and the network has 3. Choose apgd-ce."


def test_autoattack_fools_no_fewer_than_apgd() -> None:
    pytest.importorskip("pyautoattack", reason="pyautoattack is not installed")
    net, (images, labels) = small(), batch(20)
    before = torch.random.get_rng_state()
    moved = attacks.autoattack(net, images, labels, eps=EPS).images
    assert torch.equal(torch.random.get_rng_state(), before)
    assert float((moved - images).abs().max()) <= EPS + 1e-6
    alone = attacks.apgd_ce(net, images, labels, eps=EPS).images
    assert success(net, moved, labels) >= success(net, alone, labels)
