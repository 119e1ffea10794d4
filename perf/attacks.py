"""PGD of 50 steps beside other libraries: same network, same images, same run, CPU seconds of one thread.

The network is a ResNet-8 of 0.23 million parameters on 128 images of 32 × 32, eps 8/255, steps of a tenth of that.
`bare` is 50 times the forward pass and the gradient of the images, the weights frozen: what no loop on the network
itself can undercut. `ours` attacks the copy of `likewise.attacks.inference`, `ours, exact` the network itself. All
take turns, several times, and the best time of each counts. Each peer is given what its documentation asks for. Those
not installed are skipped and noted: `pip install --no-deps torchattacks foolbox eagerpy GitPython gitdb smmap
adv-lib visdom websocket-client jsonpatch jsonpointer adversarial-robustness-toolbox six`.

    python -m perf.attacks
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise import attacks
from likewise._base.optional import prepare_torchvision
from likewise.networks.zoo.residual import BasicBlock
from perf.common import write

prepare_torchvision()  # adv-lib imports torchvision

EPS, SHARE, STEPS, IMAGES, ROUNDS = 8 / 255, 0.1, 50, 128, 3
Run = Callable[[nn.Module, Tensor, Tensor], Tensor]


class ResNet8(nn.Module):
    """Three residual blocks of 24, 48 and 120 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU())
        shapes = ((24, 24, 1), (24, 48, 2), (48, 120, 2))
        self.blocks = nn.Sequential(*(BasicBlock(*shape, "B") for shape in shapes))
        self.fc = nn.Linear(120, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.blocks(self.stem(images)).mean(dim=(2, 3)))


def setting() -> tuple[nn.Module, Tensor, Tensor]:
    """The network, trained for a moment to tell ten patterns in noise apart, with images and labels."""
    torch.manual_seed(0)
    patterns = functional.interpolate(torch.rand(10, 3, 4, 4), (32, 32), mode="bilinear")
    net, labels = ResNet8(), torch.arange(IMAGES) % 10
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)

    def draw() -> Tensor:
        return (patterns[labels] + 0.3 * torch.randn(IMAGES, 3, 32, 32)).clamp(0, 1)

    for _ in range(30):
        optimiser.zero_grad()
        functional.cross_entropy(net(draw()), labels).backward()
        optimiser.step()
    return net.eval(), draw(), labels


def bare(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    net.requires_grad_(False)
    for _ in range(STEPS):
        inputs = images.detach().requires_grad_(True)
        torch.autograd.grad(functional.cross_entropy(net(inputs), labels), inputs)
    net.requires_grad_(True)
    return images


def ours(net: nn.Module, images: Tensor, labels: Tensor, exact: bool = False) -> Tensor:
    return attacks.pgd(net, images, labels, eps=EPS, relative_step=SHARE, iterations=STEPS, exact=exact).images


def torchattacks(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    from torchattacks import PGD

    return PGD(net, eps=EPS, alpha=SHARE * EPS, steps=STEPS)(images, labels)


def foolbox(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    from foolbox import PyTorchModel
    from foolbox.attacks import LinfPGD

    attack = LinfPGD(rel_stepsize=SHARE, steps=STEPS)
    return attack(PyTorchModel(net, bounds=(0, 1)), images, labels, epsilons=EPS)[1]


def adv_lib(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    from adv_lib.attacks.projected_gradient_descent import pgd_linf

    return pgd_linf(net, images, labels, EPS, steps=STEPS, relative_step_size=SHARE)


def toolbox(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    from art.attacks.evasion import ProjectedGradientDescentPyTorch
    from art.estimators.classification import PyTorchClassifier

    network = PyTorchClassifier(net, nn.CrossEntropyLoss(), (3, 32, 32), 10, clip_values=(0, 1))
    options = {"eps": EPS, "eps_step": SHARE * EPS, "max_iter": STEPS, "num_random_init": 1, "batch_size": IMAGES}
    attack = ProjectedGradientDescentPyTorch(network, **options, verbose=False)
    return torch.from_numpy(attack.generate(images.numpy(), labels.numpy()))


RUNS: dict[str, tuple[str | None, Run]] = {
    "bare": (None, bare),
    "ours": (None, ours),
    "ours, exact": (None, lambda *arguments: ours(*arguments, exact=True)),
    "torchattacks": ("torchattacks", torchattacks),
    "adv-lib": ("adv-lib", adv_lib),
    "foolbox": ("foolbox", foolbox),
    "ART": ("adversarial-robustness-toolbox", toolbox),
}


def rows() -> Iterator[dict[str, Any]]:
    net, images, labels = setting()
    seconds: dict[str, list[float]] = {name: [] for name, (package, _) in RUNS.items() if _is_installed(package)}
    fooled = {}
    for _ in range(ROUNDS):
        for name, times in seconds.items():
            start = time.process_time()
            moved = RUNS[name][1](net, images, labels)
            times.append(time.process_time() - start)
            with torch.no_grad():
                fooled[name] = float((net.eval()(moved).argmax(dim=1) != labels).float().mean())
    best = {name: min(times) for name, times in seconds.items()}
    parameters = sum(weight.numel() for weight in net.parameters())
    for name, (package, _) in RUNS.items():
        what = {"attack": "pgd", "steps": STEPS, "images": IMAGES, "parameters": parameters, "by": name}
        if name not in best:
            yield what | {"note": f"{package} is not installed"}
            continue
        shares = {f"to_{other}": best[name] / best[other] for other in ("bare", "torchattacks") if other in best}
        release = {"version": version(package)} if package else {}
        yield what | release | {"cpu_seconds": best[name], "rounds": ROUNDS, **shares, "fooled": fooled[name]}


def _is_installed(package: str | None) -> bool:
    try:
        return package is None or bool(version(package))
    except PackageNotFoundError:
        return False


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what peers have to say
        write("attacks", rows())


if __name__ == "__main__":
    main()
