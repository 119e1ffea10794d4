"""Every test of anatomy starts from one seed; `net` is each network whose classifier is oddly declared."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.views.helpers import NETS


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=NETS)
def net(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(1)
    return NETS[request.param]().eval()
