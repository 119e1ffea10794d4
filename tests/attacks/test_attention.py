"""Patch-Fool: attention as the libraries give it, one patch changed and nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise import attacks
from likewise._base.optional import prepare_torchvision
from likewise.attacks.attention import Attention
from likewise.errors import InputError
from likewise.networks.address import network
from likewise.networks.forward import logits
from likewise.networks.inputs.normalisation import Normalised

TINY = {"embed_dim": 24, "depth": 5, "num_heads": 2, "img_size": 32, "patch_size": 8, "num_classes": 5}


def images(n: int = 3) -> Tensor:
    return torch.rand(n, 3, 32, 32, generator=torch.Generator().manual_seed(5))


def of_timm(name: str, **options: Any) -> nn.Module:
    prepare_torchvision()
    timm = pytest.importorskip("timm")
    return timm.create_model(name, **{**TINY, **options})


def of_transformers(kind: str = "sdpa") -> Any:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8, num_labels=5, attn_implementation=kind)
    return transformers.ViTForImageClassification(config)


NETWORKS = {
    "zoo": lambda: network("zoo:vit-tiny,depth=5,width=24,heads=2,classes=5"),
    "timm, one class token": lambda: of_timm("vit_tiny_patch16_224"),
    "timm, two tokens first": lambda: of_timm("deit_tiny_distilled_patch16_224"),
    "timm, none": lambda: of_timm("vit_tiny_patch16_224", class_token=False, global_pool="avg"),
    "transformers": of_transformers,
    "transformers, written out": lambda: of_transformers("eager"),
    "normalised": lambda: Normalised(of_timm("vit_tiny_patch16_224"), [0.5] * 3, [0.2] * 3),
}


@cache
def made(name: str) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = NETWORKS[name]()
    with torch.no_grad():
        for weight in net.parameters():
            weight *= 1.5  # so that attention is not the same everywhere
    return net.eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_one_patch_is_changed_and_misleads(name: str) -> None:
    net, shown = made(name), images()
    with torch.no_grad():
        before = logits(net, shown).log_softmax(dim=1)
    found = attacks.patch_fool(net, shown, iterations=15)
    side = 4 if name == "zoo" else 8
    changed = (found.images != shown).any(dim=1).unfold(1, side, side).unfold(2, side, side).flatten(3)
    assert changed.any(dim=3).flatten(1).sum(dim=1).tolist() == [1, 1, 1]
    assert 0 <= float(found.images.min()) <= float(found.images.max()) <= 1
    with torch.no_grad():
        after = logits(net, found.images).log_softmax(dim=1)
    rows = torch.arange(3)
    assert bool((after[rows, found.labels] < before[rows, found.labels]).all())


@pytest.mark.parametrize("name", ["transformers", "transformers, written out"])
def test_attention_is_what_transformers_says(name: str) -> None:
    net = made(name)
    written_out = of_transformers("eager").eval()
    written_out.load_state_dict(net.state_dict())
    with torch.no_grad(), Attention(3) as seen:
        net(images())
    expected = written_out(images(), output_attentions=True).attentions
    assert len(seen.maps) == len(expected) == 5
    for ours, theirs in zip(seen.maps, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_attention_is_what_timm_computes_when_it_is_not_fused() -> None:
    net, maps = made("timm, one class token"), []
    with torch.no_grad():
        for fused in (True, False):
            for block in net.blocks:
                block.attn.fused_attn = fused
            with Attention(3) as seen:
                net(images())
            maps.append(torch.stack(seen.maps))
    assert maps[0].shape == (5, 3, 2, 17, 17)
    torch.testing.assert_close(maps[0], maps[1])


def test_the_patch_is_that_of_most_attention() -> None:
    net, shown = made("timm, two tokens first"), images()
    with torch.no_grad(), Attention(3) as seen:
        net(shown)
    for layer, index in ((2, 2), (4, 4), (9, 4)):  # of a shallower network, the last layer
        best = seen.maps[index].mean(dim=(1, 2))[:, 2:].argmax(dim=1)
        moved = attacks.patch_fool(net, shown, layer=layer, iterations=0).images
        places = (moved != shown).any(dim=1)[:, ::8, ::8].flatten(1).float().argmax(dim=1)
        assert places.tolist() == best.tolist()


def test_more_patches_are_those_next_in_attention() -> None:
    net, shown = made("transformers"), images()
    changed = [(attacks.patch_fool(net, shown, patches=n, iterations=0).images != shown).any(dim=1) for n in (1, 3)]
    assert changed[1][:, ::8, ::8].flatten(1).sum(dim=1).tolist() == [3, 3, 3]
    assert bool((changed[1] | ~changed[0]).all())


def test_attention_to_the_patch_grows_with_its_weight() -> None:
    net, shown = made("timm, one class token"), images()
    attended = []
    for weight in (0.0, 100.0):
        moved = attacks.patch_fool(net, shown, iterations=30, weight=weight).images
        token = (moved != shown).any(dim=1)[:, ::8, ::8].flatten(1).float().argmax(dim=1) + 1
        with torch.no_grad(), Attention(3) as seen:
            net(moved)
        attended.append(float(seen.maps[1].mean(dim=(1, 2))[torch.arange(3), token].mean()))
    assert attended[1] > attended[0]


def windowed() -> nn.Module:
    prepare_torchvision()
    timm = pytest.importorskip("timm")
    sizes = {"embed_dim": 24, "depths": (1, 1, 1, 1), "num_heads": (2, 2, 2, 2)}
    return timm.create_model("swin_tiny_patch4_window7_224", img_size=56, num_classes=5, **sizes)


@pytest.mark.parametrize(("make", "size"), [(lambda: network("zoo:resnet20"), 32), (windowed, 56)])
def test_networks_without_attention_over_all_patches_are_refused(make: Any, size: int) -> None:
    net = make()
    with pytest.raises(InputError) as error:
        attacks.patch_fool(Normalised(net, [0.5] * 3, [0.2] * 3), torch.rand(2, 3, size, size))
    assert str(error.value) == (
        "patch-fool needs a vision transformer, with one attention over all patches per layer, and "
        f"{type(net).__name__} shows none. Choose another attack, such as pgd."
    )


def test_more_patches_than_there_are_are_refused() -> None:
    with pytest.raises(InputError) as error:
        attacks.patch_fool(made("transformers"), images(), patches=17)
    assert str(error.value) == "patches is 17, and the image has 16. Give fewer."
    with pytest.raises(InputError) as none:
        attacks.patch_fool(made("transformers"), images(), patches=0)
    assert str(none.value) == (
        "patches is 0, layer 4, iterations 250 and rate 0.22. Give at least one patch, a rate above 0, and nothing "
        "below 0."
    )
