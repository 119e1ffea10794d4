"""Lines of code for a job beside the neighbour that does most of it: `python -m perf.jobs`.

Every block of code here is run as it stands, on small networks of digits, where its libraries are installed (`pip
install rsatoolbox dcor pytorch-cka torch-cka ckatorch torchattacks foolbox`); others are noted as not run. A block that
fails says why. Lines are those of the block, imports among them. What each prints is another thing: see
`docs/other-tools.md`, whose table is tested to hold these numbers.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from perf.common import write_table

RATES = """    for other in (a, b, c):
        both = (one(images).argmax(1) == labels) & (other(images).argmax(1) == labels)
        print((other(adv).argmax(1) != labels)[both].float().mean())
"""
JOBS: dict[str, dict[str, str]] = {
    "two arrays": {
        "likewise": "import likewise\nprint(likewise.compare(x, y).explain())\n",
        "rsatoolbox": """from rsatoolbox.data import Dataset
from rsatoolbox.rdm import calc_rdm, compare
print(compare(*(calc_rdm(Dataset(v)) for v in (x, y)), method="cosine"))
""",
        "dcor": """import dcor
print(dcor.distance_correlation(x, y))
print(dcor.independence.distance_covariance_test(x, y, num_resamples=99).pvalue)
""",
        "pytorch-cka": """import torch
from cka import cka_from_features
print(cka_from_features(torch.tensor(x), torch.tensor(y)))
""",
    },
    "names to a matrix": {
        "likewise": """import likewise
networks = [f"timm:test_{kind},pretrained=false" for kind in ("resnet", "vit", "efficientnet")]
print(likewise.compare(networks, "cka", data="photos", progress=False))
""",
        "pytorch-cka": """import timm, torch
from cka import cka_from_features
from pathlib import Path
from PIL import Image
views = []
for kind in ("resnet", "vit", "efficientnet"):
    net = timm.create_model(f"test_{kind}", num_classes=0).eval()
    change = timm.data.create_transform(**timm.data.resolve_data_config({}, model=net))
    photos = [change(Image.open(path).convert("RGB")) for path in sorted(Path("photos").iterdir())]
    views.append(net(torch.stack(photos)).detach())
print([[float(cka_from_features(one, other)) for other in views] for one in views])
""",
    },
    "layers": {
        "likewise": 'import likewise\nprint(likewise.layerwise(a, b, data=images, measure="cka"))\n',
        "torch-cka": """from torch_cka import CKA
names = ["0", "2", "5"]
cka = CKA(a, b, model1_layers=names, model2_layers=names)
cka.compare(loader)
print(cka.export()["CKA"])
""",
        "pytorch-cka": """from cka import compute_cka
print(compute_cka(a, b, [loader], layers=["0", "2", "5"]))
""",
        "ckatorch": """from ckatorch import CKA
names = ["0", "2", "5"]
print(CKA(a, b, layers=names, second_layers=names)(loader, epochs=1))
""",
    },
    "what changed": {
        "likewise": """import likewise
print(likewise.diff(a, b, data=(images, labels)))
""",
    },
    "watch a training": {
        "likewise": """import likewise
watch = likewise.Inspector([str(digit) for digit in range(10)])
for _ in range(3):
    watch.update(a(images), labels)
    watch.report(a[5].weight)
print(watch.curves())
""",
    },
    "attack transfer": {
        "likewise": """import likewise
matrix = likewise.transfer.sat({"a": a, "b": b, "c": c}, data=(images, labels), eps=0.1)
print(matrix.rates)
""",
        "torchattacks": f"""import torchattacks
for one in (a, b, c):
    adv = torchattacks.PGD(one, eps=0.1, alpha=0.01, steps=10)(images, labels)
{RATES}""",
        "foolbox": f"""import foolbox
attack = foolbox.attacks.LinfPGD(steps=10)
for one in (a, b, c):
    adv = attack(foolbox.PyTorchModel(one, bounds=(0, 1)), images, labels, epsilons=0.1)[1]
{RATES}""",
    },
}


def setting() -> dict[str, Any]:
    """Two arrays, three networks that learned digits for a moment, images with labels, and a folder of photos."""
    from PIL import Image
    from sklearn.datasets import load_digits

    draw, digits = np.random.default_rng(0), load_digits()
    images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    x = draw.normal(size=(200, 16))
    a, b, c = (_trained(seed, images[:600], labels[:600]) for seed in range(3))
    images, labels = images[600:728], labels[600:728]
    Path("photos").mkdir()
    for number in range(8):
        Image.fromarray((255 * draw.random((40, 40, 3))).astype("uint8")).save(f"photos/{number}.png")
    loader = DataLoader(TensorDataset(images), batch_size=64)
    return {"x": x, "y": x[:, :8] + draw.normal(size=(200, 8)), "a": a, "b": b, "c": c} | {
        "images": images,
        "labels": labels,
        "loader": loader,
    }


def _trained(seed: int, images: torch.Tensor, labels: torch.Tensor) -> nn.Sequential:
    torch.manual_seed(seed)
    layers = (nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
    net = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(15):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
    return net.eval()


def run(code: str, space: dict[str, Any]) -> str:
    """Run a block, and give what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of untrained networks and small data
        exec(code, dict(space))
    return printed.getvalue()


def rows() -> Iterator[dict[str, Any]]:
    """One row per job and tool: how many lines, and whether it ran."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        space = setting()
        for job, blocks in JOBS.items():
            for tool, code in blocks.items():
                row = {"job": job, "tool": tool, "lines": len(code.splitlines()), "release": "", "failed": ""}
                try:
                    row["release"] = version(tool)
                    assert run(code, space)
                except PackageNotFoundError:
                    row["failed"] = "not installed"
                except Exception as error:
                    row["failed"] = str(error).splitlines()[0]
                yield row


if __name__ == "__main__":
    write_table("jobs", rows())
