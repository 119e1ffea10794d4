"""AutoAttack: no weaker than its parts, nor than the package of others, and plain about what it cannot do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from likewise import attacks
from likewise.errors import InputError
from tests.attacks.test_kinds import batch, small, success

BUDGET: dict[str, Any] = {"iterations": 20, "queries": 100, "targets": 3}


@pytest.mark.parametrize(("norm", "eps"), [("Linf", 0.1), ("L2", 0.5)])
def test_it_fools_whatever_any_of_its_attacks_fools(norm: str, eps: float) -> None:
    net, (images, labels) = small().eval(), batch()
    moved = attacks.autoattack(net, images, labels, eps=eps, norm=norm, **BUDGET).images
    change = (moved - images).flatten(1)
    assert float(change.abs().max() if norm == "Linf" else change.norm(dim=1).max()) <= eps + 1e-5
    with torch.no_grad():
        whole = net(moved).argmax(dim=1) != labels
        for name in ("apgd-ce", "apgd-t", "fab-t", "square"):
            one = attacks.get(name)
            options = {key: value for key, value in BUDGET.items() if key in one.options}
            alone = net(one(net, images, labels, eps=eps, norm=norm, **options).images).argmax(dim=1) != labels
            assert int((alone & ~whole).sum()) <= 1  # starts and squares are drawn anew


def test_images_that_are_wrong_already_are_left_as_they_are() -> None:
    net, (images, labels) = small().eval(), batch(6)
    labels[2] = (labels[2] + 1) % 10
    moved = attacks.autoattack(net, images, labels, eps=0.1, **BUDGET).images
    assert torch.equal(moved[2], images[2])
    assert not torch.equal(moved, images)


def test_it_is_no_weaker_than_that_of_others() -> None:
    pytest.importorskip("pyautoattack", reason="pyautoattack is not installed")
    import pyautoattack

    net, (images, labels) = small().eval(), batch()
    suite = pyautoattack.AutoAttack(net, norm="Linf", eps=0.1, seed=0, device="cpu")
    suite.apgd.n_iter = suite.apgd_targeted.n_iter = suite.fab.n_iter = 20
    suite.square.n_queries = 100
    suite.apgd_targeted.n_target_classes = suite.fab.n_target_classes = 3
    with torch.random.fork_rng():
        other, _ = suite.run_standard_evaluation(images, labels, batch_size=len(images))
    own = attacks.autoattack(net, images, labels, eps=0.1, **BUDGET).images
    assert success(net, own, labels) >= success(net, other, labels)


@pytest.mark.parametrize("name", ["apgd-t", "fab-t", "autoattack"])
def test_no_targets_are_refused(name: str) -> None:
    with pytest.raises(InputError) as error:
        attacks.get(name)(small(), batch(4)[0], targets=0)
    assert str(error.value) == "targets is 0. Give at least 1."


@pytest.mark.parametrize("name", ["apgd-ce", "apgd-t", "fab-t", "autoattack"])
def test_too_few_steps_are_refused(name: str) -> None:
    with pytest.raises(InputError) as error:
        attacks.get(name)(small(), batch(4)[0], iterations=0)
    assert str(error.value) == "iterations is 0. Give at least 1."


def test_three_classes_are_too_few() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(InputError) as error:
        attacks.autoattack(net, batch(4)[0])
    assert str(error.value) == "AutoAttack needs four classes, and the network has 3. Choose apgd-ce."
