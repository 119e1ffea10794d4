"""Layers of networks beside other libraries: same networks, same images, same run, CPU seconds of one thread.

`layerwise`: every block of a ResNet-18 against every block of a ResNet-34, 512 images in batches of 128; the peers
are torch-cka, ckatorch and pytorch-cka, each given the names of the blocks. Ours shows the images in an order drawn
from a seed, so that batches, and by them values, differ a little. `extract`: all blocks of both networks, flattened;
the peers are torchvision's feature extraction and nnsight. `bare` is the forward pass of both networks alone. Peers
that are not installed are skipped and noted (`pip install torch-cka ckatorch pytorch-cka nnsight`); thingsvision pins
numpy below 2 and torchvision to 0.15, and cannot be installed beside them.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import likewise
from likewise._base.optional import prepare_torchvision
from likewise.networks.anatomy.blocks import blocks
from likewise.networks.anatomy.layers import named_layers
from perf.common import cost, write

prepare_torchvision()

N, BATCH, SIDE = 512, 128, 64


def networks() -> list[nn.Module]:
    """The two networks, untrained, from a fixed seed."""
    import torchvision

    torch.manual_seed(0)
    return [torchvision.models.get_model(name).eval() for name in ("resnet18", "resnet34")]


def images() -> Tensor:
    """Coarse patches of colour: of plain noise, some peers give NaN."""
    coarse = torch.rand(N, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    return nn.functional.interpolate(coarse, (SIDE, SIDE))


def batches() -> DataLoader[Any]:
    return DataLoader(TensorDataset(images()), batch_size=BATCH)


def bare(a: nn.Module, b: nn.Module) -> None:
    with torch.inference_mode():
        for (batch,) in batches():
            a(batch)
            b(batch)


def ours(a: nn.Module, b: nn.Module) -> Tensor:
    matrix = likewise.layerwise(a, b, images(), batch_size=BATCH, progress=False)
    return torch.as_tensor(matrix.values)


def torch_cka(a: nn.Module, b: nn.Module) -> Tensor:
    from torch_cka import CKA

    cka = CKA(a, b, "a", "b", *(blocks(named_layers(net)) for net in (a, b)))
    with torch.no_grad():
        cka.compare(batches())
    return torch.as_tensor(cka.hsic_matrix)


def ckatorch(a: nn.Module, b: nn.Module) -> Tensor:
    from ckatorch import CKA

    cka = CKA(a, b, *(blocks(named_layers(net)) for net in (a, b)))
    return cka(batches(), epochs=1)


def pytorch_cka(a: nn.Module, b: nn.Module) -> Tensor:
    from cka import compute_cka

    first, second = (blocks(named_layers(net)) for net in (a, b))
    return compute_cka(a, b, batches(), layers=first, model2_layers=second, progress=False)[0]


def extract(a: nn.Module, b: nn.Module) -> list[np.ndarray]:
    views = [
        likewise.extract(net, images(), "blocks", reduce="flatten", batch_size=BATCH, progress=False) for net in (a, b)
    ]
    return [np.asarray(view) for by_layer in views for view in by_layer.values()]


def feature_extractor(a: nn.Module, b: nn.Module) -> list[np.ndarray]:
    from torchvision.models.feature_extraction import create_feature_extractor

    rows = []
    for net in (a, b):
        names = blocks(named_layers(net))
        asked = create_feature_extractor(net, names)
        with torch.inference_mode():
            parts = [asked(batch) for (batch,) in batches()]
        rows += [torch.cat([batch[name].flatten(1) for batch in parts]).numpy() for name in names]
    return rows


def nnsight(a: nn.Module, b: nn.Module) -> list[np.ndarray]:
    from nnsight import NNsight, save

    rows = []
    for net in (a, b):
        names, traced, kept = blocks(named_layers(net)), NNsight(net), []
        for (batch,) in batches():
            with torch.inference_mode():  # noqa: SIM117 (it compiles the block of its own `with` alone)
                with traced.trace(batch):
                    saved = save([traced.get(name).output for name in names])
            kept.append([value.flatten(1) for value in saved])
        rows += [torch.cat(values).numpy() for values in zip(*kept, strict=True)]
    return rows


JOBS: dict[str, dict[str, Callable[[nn.Module, nn.Module], Any]]] = {
    "layerwise": {"likewise": ours, "torch-cka": torch_cka, "ckatorch": ckatorch, "pytorch-cka": pytorch_cka},
    "extract": {"likewise": extract, "torchvision": feature_extractor, "nnsight": nnsight},
}


def rows() -> Iterator[dict[str, Any]]:
    """One row per job and peer, beside the bare pass of the same run."""
    nets = networks()
    for job, peers in JOBS.items():
        floor = cost(lambda: bare(*nets), repeats=3).seconds
        ours_taken: Any = None
        for peer, run in peers.items():
            try:
                release = version(peer)
            except PackageNotFoundError:
                print(f"{peer} is not installed")
                continue
            with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
                warnings.simplefilter("ignore")
                try:
                    taken = cost(lambda run=run: run(*nets), repeats=3)  # type: ignore[misc]
                except RuntimeError as error:  # a peer that cannot do this job is part of the finding
                    yield {"job": job, "peer": peer, "release": release, "failed": str(error)}
                    continue
            ours_taken = taken if ours_taken is None else ours_taken
            yield {
                "job": job,
                "peer": peer,
                "release": release,
                "cpu_seconds": round(taken.seconds, 3),
                "to_bare": round(taken.seconds / floor, 3),
                "to_ours": round(taken.seconds / ours_taken.seconds, 3),
                "failed": "",
                "largest_difference": float(f"{_difference(taken.value, ours_taken.value):.2g}"),
            }


def _difference(theirs: Any, ours: Any) -> float:
    if isinstance(ours, list):
        return max(float(np.abs(a - b).max()) for a, b in zip(theirs, ours, strict=True))
    return float((torch.as_tensor(theirs).double() - ours.double()).abs().max())


if __name__ == "__main__":
    write("layer_peers", rows())
