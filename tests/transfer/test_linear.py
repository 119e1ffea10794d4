"""SAT without attacks: two networks by plain loops, sketches against it, and what cannot be sketched."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import likewise
from likewise.errors import StoreError, UndefinedError
from likewise.networks.inputs.normalisation import record_transform
from likewise.networks.inputs.transforms import Transform
from likewise.transfer import Sketches, sketch
from likewise.transfer.linear import decode, encode
from tests.conftest import refused
from tests.transfer.helpers import WORDS, Bag, Constant, Convolved, Small, digits, trained, zoo

EPS = 0.15


def plainly(a: nn.Module, b: nn.Module, eps: float) -> float:
    """The definition, image by image and network by network."""
    data = digits()
    a, b = (deepcopy(net).double() for net in (a, b))
    hits, count = 0, 0
    for image, label in zip(data.inputs[:], data.labels.tolist(), strict=True):
        facts = []
        for net in (a, b):
            shown = image[None].double().requires_grad_(True)
            logits = net(shown)[0]
            margin = logits[label] - torch.cat([logits[:label], logits[label + 1 :]]).max()
            (slope,) = torch.autograd.grad(margin, shown)
            facts.append((float(margin.detach()), slope, -slope.sign()))
        (margin_a, slope_a, step_a), (margin_b, slope_b, step_b) = facts
        if margin_a > 0 and margin_b > 0:
            count += 1
            hits += margin_b + eps * float((slope_b * step_a).sum()) < 0
            hits += margin_a + eps * float((slope_a * step_b).sum()) < 0
    return math.log(100 * (hits + 0.5) / (2 * count + 1))


@pytest.mark.parametrize("eps", [0.03, EPS, 0.4])
def test_two_networks_are_scored_as_by_a_plain_loop(eps: float) -> None:
    nets = zoo()
    for one, other in (("a", "b"), ("a", "c")):
        score = likewise.compare(nets[one], nets[other], "sat-linear", data=digits(), eps=eps)
        assert float(score) == pytest.approx(plainly(nets[one], nets[other], eps), abs=1e-9)


def test_a_linear_network_is_fooled_as_predicted() -> None:
    """Where networks are linear, a step of the predicted size fools exactly where it says so."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net[1].reset_parameters()
    images = torch.rand((50, 1, 8, 8), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        labels = net(images).argmax(dim=1)
    data = likewise.data.Data("made", "image", images, labels, ("no", "yes"))
    step = (net[1].weight[1] - net[1].weight[0]).detach().sign().view(1, 8, 8)
    moved = images + 0.05 * torch.where(labels[:, None, None, None] == 0, step, -step)
    with torch.no_grad():
        fooled = float((net(moved).argmax(dim=1) != labels).sum())
    score = likewise.compare(net, nn.Sequential(net), "sat-linear", data=data, eps=0.05, mean=0.0, std=1.0)
    assert math.exp(float(score)) == pytest.approx(100 * (2 * fooled + 0.5) / (2 * 50 + 1))


def test_networks_that_know_no_image_both_have_no_score() -> None:
    data = digits()
    two = {"zero": Constant(0), "one": Constant(1)}
    assert refused(
        lambda: likewise.compare(*two.values(), "sat-linear", data=data, layers="embedding"), UndefinedError
    ).endswith("no input is classified correctly by both, so nothing can be fooled. Show them inputs they know.")


def test_eps_has_to_be_above_0() -> None:
    nets = zoo()
    sentence = "eps is 0, and nothing changes within that. Give a number above 0, like 8/255."
    assert refused(lambda: likewise.compare(nets["a"], nets["b"], "sat-linear", data=digits(), eps=0)) == sentence
    made = sketch({"a": nets["a"]}, digits(), progress=False)
    assert refused(lambda: made.matrix(eps=0)) == sentence


def zoo_of_digits() -> dict[str, nn.Module]:
    small = {f"s{seed}": trained(Small, seed, 40) for seed in range(3)}
    return small | {f"c{seed}": trained(Convolved, seed, 120) for seed in range(3)}


def test_a_sketch_with_room_for_every_pixel_ranks_pairs_as_the_measure_does() -> None:
    nets, data = zoo_of_digits(), digits()
    whole = sketch(nets, data, size=40 * 32, progress=False)  # 64 pixels, two to a byte
    assert whole.bytes == 40 * (32 + 2)
    exact = likewise.compare(nets, "sat-linear", data=data, eps=EPS, progress=False)
    found = whole.matrix(EPS).reordered(exact.names)
    upper = np.triu_indices(len(exact), 1)
    assert likewise.analysis.agreement(found, exact, how="spearman").correlation > 0.8
    assert np.abs(found.values[upper] - exact.values[upper]).mean() < 0.3


def test_scores_of_sketches_are_those_of_a_plain_loop() -> None:
    made = sketch(zoo(), digits(), size=400, seed=3, progress=False)
    matrix = made.matrix(EPS)
    falls = [decode(codes) for codes in made.codes]
    for i, j in ((0, 1), (0, 2), (2, 2)):
        hits = count = 0
        for image in range(40):
            reach = [float(made.reach[k, image]) for k in (i, j)]
            if math.isnan(reach[0]) or math.isnan(reach[1]):
                continue
            count += 1
            for source, other, limit in ((i, j, reach[1]), (j, i, reach[0])):
                signs, slope = np.sign(falls[source][image]), falls[other][image]
                hits += float((signs * slope).sum() / np.abs(slope).sum()) * EPS > limit
        assert matrix.values[i, j] == pytest.approx(math.log(100 * (hits + 0.5) / (2 * count + 1)))


def test_a_slope_is_kept_as_the_nearest_power_of_two() -> None:
    falls = np.array([[0.7, -0.4, 8.0, 0.0, -0.01]])
    # in units of the mean 1: 2^-1 (of 0.7, log2 -0.51), -2^-1 (-1.32), the largest 2^1, 0, and too little
    assert decode(encode(falls, np.array([1.0]))).tolist() == [[0.5, -0.5, 2.0, 0.0, -0.0, 0.0]]


def test_sketches_are_saved_and_joined(tmp_path: Path) -> None:
    nets, data = zoo(), digits()
    whole = sketch(nets, data, size=400, progress=False)
    first, rest = (
        sketch({name: nets[name] for name in names}, data, size=400, progress=False) for names in ("ab", "c")
    )
    rest.save(tmp_path / "c.safetensors")
    joined = first.join(Sketches.load(tmp_path / "c.safetensors"))
    assert joined.names == whole.names
    assert np.array_equal(joined.matrix(EPS).values, whole.matrix(EPS).values)
    assert repr(joined) == "Sketches(3 networks, 40 images, 480 bytes each)"


def test_sketches_of_other_images_are_not_joined() -> None:
    nets = zoo()
    one = sketch({"a": nets["a"]}, digits(), size=400, progress=False)
    other = sketch({"b": nets["b"]}, digits(), size=400, seed=1, progress=False)
    assert refused(lambda: one.join(other)) == (
        "the sketches differ in their seed, 0 and 1, so nothing in them can be compared. Make both from the same data, "
        "with the same size and seed."
    )


def test_a_file_of_something_else_holds_no_sketches(tmp_path: Path) -> None:
    path = likewise.compare(zoo(), "cka", data=digits(), progress=False).save(tmp_path / "cka.safetensors")
    assert refused(lambda: Sketches.load(path), StoreError) == (
        f"{path} holds no sketches, or it is damaged. Give a file that Sketches.save wrote."
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sketch(zoo(), digits(), size=39, progress=False),
            "size is 39, less than a byte for each of 40 images. Give more, or fewer images.",
        ),
        (
            lambda: sketch(zoo(), digits(), size="8k", progress=False),
            "size must be a whole number of at least 1, got '8k'.",
        ),
        (
            lambda: sketch({}, digits(), progress=False),
            "no network is given, so there is nothing to sketch. Give at least one.",
        ),
        (
            lambda: sketch({"a": Bag()}, WORDS, progress=False),
            "'words' holds text inputs, and attacks change images. Give images.",
        ),
    ],
    ids=["size", "no-size", "nothing", "words"],
)
def test_what_cannot_be_sketched_is_said(call: Any, message: str) -> None:
    assert refused(call) == message


def sized(size: int) -> nn.Module:
    """A network of any size whose images are enlarged before it."""
    net = trained(Convolved, seed=1, steps=120)
    record_transform(
        net, Transform(partial(functional.interpolate, size=size), f"to {size}", size=(size, size), channels=1)
    )
    return net


@pytest.mark.filterwarnings("ignore:images of 8 × 8 are enlarged")
def test_networks_of_other_sizes_are_compared_and_not_sketched_together() -> None:
    nets = {"small": sized(8), "large": sized(16)}
    score = likewise.compare(nets["small"], nets["large"], "sat-linear", data=digits(), eps=EPS)
    assert math.log(0.5 / 0.81) < float(score) <= math.log(100)
    assert refused(lambda: sketch(nets, digits(), progress=False)) == (
        "'large' is shown images of shape (1, 16, 16) and the others of (1, 8, 8). Sketch networks of one shape "
        "together; compare others by the measure sat-linear."
    )
