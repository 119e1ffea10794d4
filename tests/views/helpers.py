"""Small networks whose classifier is not where it is usually declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from likewise.data import Data
from likewise.errors import InputError
from likewise.views.extract import extract

ROWS = torch.rand(8, 4, generator=torch.Generator().manual_seed(0))


class Backwards(nn.Module):
    """Declares its classifier before what comes before it."""

    def __init__(self, classifier: nn.Module | None = None) -> None:
        super().__init__()
        self.fc = classifier or nn.Linear(6, 3)
        self.body = nn.Linear(4, 6)

    def features(self, rows: Tensor) -> Tensor:
        return torch.relu(self.body(rows.flatten(1)))

    def forward(self, rows: Tensor) -> Any:
        return self.fc(self.features(rows))


class Softmaxed(Backwards):
    def forward(self, rows: Tensor) -> Any:
        return self.fc(self.features(rows)).softmax(dim=1)


class TwoHeads(Backwards):
    """Two layers could answer; the one that is declared last does not."""

    def __init__(self) -> None:
        super().__init__()
        self.aux = nn.Linear(6, 3)

    def forward(self, rows: Tensor) -> Any:
        features = self.features(rows)
        return self.fc(features), self.aux(features + 1)


class OneByOne(Backwards):
    """A classifier of 1 x 1 windows, then the mean."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(6, 3, 1))

    def forward(self, rows: Tensor) -> Any:
        return self.fc(self.features(rows)[:, :, None, None]).flatten(1)


class Reused(Backwards):
    """Its classifier answers twice; what it returns is the second answer."""

    def forward(self, rows: Tensor) -> Any:
        first = self.fc(torch.tanh(self.body(rows.flatten(1))))
        return self.fc(self.features(rows)) + 0 * first.detach().sum()


class ReusedExactly(Backwards):
    def forward(self, rows: Tensor) -> Any:
        self.fc(torch.tanh(self.body(rows.flatten(1))))
        return self.fc(self.features(rows))


NETS: dict[str, Callable[[], nn.Module]] = {
    "declared first": Backwards,
    "a softmax after it": Softmaxed,
    "two heads": TwoHeads,
    "1 x 1 windows": OneByOne,
    "weight norm": lambda: Backwards(parametrizations.weight_norm(nn.Linear(6, 3))),
    "called twice, then changed": Reused,
    "called twice": ReusedExactly,
}


WRAPPERS: dict[str, Callable[[nn.Module], Any]] = {
    "bare": lambda net: net,
    "DataParallel": nn.DataParallel,
    "compiled": lambda net: torch.compile(net, backend="eager"),
}


def rows_of(net: Any) -> Tensor:
    weight: Tensor = net.fc.weight.detach()
    return weight.flatten(1)


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as error:
        act()
    return str(error.value)


def images() -> Data:
    draw = torch.Generator().manual_seed(2)
    return Data("few", "image", torch.rand(12, 1, 2, 2, generator=draw), torch.arange(12) % 3, tuple("abc"))


class Imaged(Backwards):
    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows.flatten(1))


def shown(*args: object, **options: object) -> object:
    return extract(*args, progress=False, **options)


def _tiny() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)).eval()
