"""What it costs to show published image networks a folder of photographs, beside a loop written by hand.

`transforms`: five networks of different size, crop and interpolation on one folder of JPEGs of mixed sizes. The loop
decodes every image once, applies each library's own transform (normalisation included) and keeps what the classifier
is given; `likewise.extract` does the same with checks, labels, answers and hashes. `feature extraction`: the blocks of
a ResNet-18 on tensors, beside torchvision's `create_feature_extractor`, the rows of both compared.

Both take turns within one run, on one thread, in CPU seconds; `ratio` is ours to theirs, of the best of each.

    python -m perf.image_networks
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import likewise
from likewise._base.optional import prepare_torchvision
from likewise.networks import unwrapped
from perf.common import write

prepare_torchvision()

NETWORKS = {  # with the name of the classifier
    "timm:resnet18": "fc",
    "timm:mobilenetv3_small_100": "classifier",
    "timm:tinynet_e": "classifier",
    "timm:test_vit": "head",
    "torchvision:shufflenet_v2_x0_5": "fc",
}
IMAGES, BATCH, REPEATS = 128, 64, 2
SIZES = ((500, 375), (375, 500), (640, 480), (333, 500), (1024, 683), (240, 180))


def write_photographs(folder: Path) -> None:
    """JPEGs of the sizes that photographs come in; smooth with noise, so that decoding is what it is for such."""
    from PIL import Image

    (folder / "some").mkdir()
    for number in range(IMAGES):
        rng, (wide, high) = np.random.default_rng(number), SIZES[number % len(SIZES)]
        coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((wide, high), 3)
        pixels = np.asarray(coarse) + rng.normal(0, 8, (high, wide, 3))
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(folder / "some" / f"{number:04}.jpg", quality=90)


def by_hand(folder: Path, nets: dict[str, nn.Module], transforms: dict[str, Callable[[Any], Tensor]]) -> list[Tensor]:
    """Decode once, then every network by its own transform, keeping what its classifier is given."""
    from PIL import Image

    images = [Image.open(path).convert("RGB") for path in sorted((folder / "some").iterdir())]
    features = []
    for name, net in nets.items():
        rows: list[Tensor] = []
        inside = unwrapped(net)
        head = inside.get_submodule(NETWORKS[name])
        hook = head.register_forward_pre_hook(lambda _, arguments, kept=rows: kept.append(arguments[0]))
        with torch.no_grad():
            for start in range(0, len(images), BATCH):
                inside(torch.stack([transforms[name](image) for image in images[start : start + BATCH]]))
        hook.remove()
        features.append(torch.cat(rows))
    return features


def by_likewise(folder: Path, nets: dict[str, nn.Module]) -> list[Tensor]:
    """The same by `likewise.extract`."""
    data = likewise.dataset(f"imagefolder:{folder}")
    return [likewise.extract(net, data, batch_size=BATCH, progress=False).values for net in nets.values()]


def own_transform(name: str, net: nn.Module) -> Callable[[Any], Tensor]:
    """What the library itself gives for evaluation."""
    source, _, model = name.partition(":")
    if source == "torchvision":
        import torchvision

        return torchvision.models.get_model_weights(model).DEFAULT.transforms()
    import timm

    config = timm.data.resolve_model_data_config(unwrapped(net))
    return timm.data.create_transform(**config, is_training=False)


def take_turns(ours: Callable[[], Any], theirs: Callable[[], Any]) -> dict[str, Any]:
    """CPU seconds of both, the best of some turns each, and how far their results are apart."""
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    results: dict[str, Any] = {}
    for _ in range(REPEATS):
        for name, work in (("theirs", theirs), ("ours", ours)):
            start = time.process_time()
            results[name] = work()
            seconds[name].append(time.process_time() - start)
    apart = max(float((a - b).abs().max()) for a, b in zip(results["ours"], results["theirs"], strict=True))
    best = {name: min(taken) for name, taken in seconds.items()}
    return {
        "ours_s": best["ours"],
        "theirs_s": best["theirs"],
        "ratio": best["ours"] / best["theirs"],
        "largest_difference": apart,
    }


def rows() -> Iterator[dict[str, Any]]:
    """Both jobs."""
    nets = {name: likewise.network(f"{name},pretrained=false") for name in NETWORKS}
    transforms = {name: own_transform(name, net) for name, net in nets.items()}
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        write_photographs(folder)
        turns = take_turns(lambda: by_likewise(folder, nets), lambda: by_hand(folder, nets, transforms))
    yield {"job": "transforms", "networks": len(nets), "inputs": IMAGES, **turns}
    yield {"job": "feature extraction", "networks": 1, "inputs": IMAGES, **feature_extraction()}


def feature_extraction() -> dict[str, Any]:
    """The four stages of a ResNet-18, averaged over positions, of the same tensors."""
    from torchvision.models import resnet18
    from torchvision.models.feature_extraction import create_feature_extractor

    torch.manual_seed(0)
    net, layers = resnet18().eval(), [f"layer{i}" for i in range(1, 5)]
    images = torch.rand(IMAGES, 3, 128, 128)
    extractor = create_feature_extractor(net, layers)

    def theirs() -> list[Tensor]:
        with torch.no_grad():
            parts = [extractor(images[start : start + BATCH]) for start in range(0, IMAGES, BATCH)]
        return [torch.cat([batch[layer].mean(dim=(2, 3)) for batch in parts]) for layer in layers]

    def ours() -> list[Tensor]:
        views = likewise.extract(net, images, layers, reduce="mean", batch_size=BATCH, progress=False)
        return [views[layer].values for layer in layers]

    return take_turns(ours, theirs)


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("image_networks", rows())
