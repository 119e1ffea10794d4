"""What is not installed is named with the extra that brings it; torchvision imports beside any build of torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from likewise._base.optional import require
from tests.helpers import sentence


def test_a_missing_extra_names_its_remedy() -> None:
    assert sentence(ImportError, require, "no_such_module", extra="vision", to="load timm:resnet18") == (
        "to load timm:resnet18, no_such_module is needed: pip install 'likewise[vision]'."
    )


FAILED_BEFORE = """
try:
    import torchvision
except RuntimeError:
    pass
"""
USE = """
from likewise._base.optional import prepare_torchvision
prepare_torchvision()
prepare_torchvision()
import torch, torchvision.transforms
net = torchvision.models.get_model("squeezenet1_1", weights=None).eval()
assert net(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
"""


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize("before", ["", FAILED_BEFORE], ids=["first import", "after a failed import"])
def test_torchvision_imports_in_a_fresh_process(before: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", before + USE], check=True)
