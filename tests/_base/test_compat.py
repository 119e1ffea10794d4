"""torchvision imports beside a CPU build of torch, whoever asks for it first."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("vision")


def test_torchvision_imports_in_a_fresh_process() -> None:
    text = """
from likewise._base.compat import prepare_torchvision
prepare_torchvision()
prepare_torchvision()
import torch, torchvision
net = torchvision.models.squeezenet1_1(weights=None).eval()
assert net(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", text], check=True)


def test_an_import_that_failed_before_does_no_harm() -> None:
    text = """
try:
    import torchvision
except RuntimeError:
    pass
from likewise._base.compat import prepare_torchvision
prepare_torchvision()
import torchvision.transforms
assert torchvision.models.get_model("resnet18", weights=None).fc.out_features == 1000
"""
    subprocess.run([sys.executable, "-c", text], check=True)
