"""What every test may need: where the real data lies, and the sentence of an error."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Small networks are faster on one core each, the more so where tests run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Some virtual machines announce AMX and do not have it; there products in bfloat16 would kill the process
# (oneDNN issue 5689).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# A busy machine draws slowly, which says nothing of the code.
settings.register_profile("any machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parents[1]


def refused(act: Callable[[], Any], kind: type[Exception] | tuple[type[Exception], ...] = ValueError) -> str:
    """The sentence of the error that a call raises."""
    with pytest.raises(kind) as error:
        act()
    return str(error.value)


def data_root(*parts: str) -> Path:
    """The folder of real data, or a part of it; the test is skipped where it is absent."""
    root = Path(os.environ.get("LIKEWISE_DATA") or ROOT.parent / "shared" / "data")
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts) or 'the data folder'} is not in {root}: set LIKEWISE_DATA")
    return path


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data, set as LIKEWISE_DATA, so that addresses find it."""
    root = data_root()
    monkeypatch.setenv("LIKEWISE_DATA", str(root))
    return root


@pytest.fixture
def vision() -> None:
    """Skip where torchvision or timm is not installed; made importable where they are."""
    from likewise._base.optional import prepare_torchvision

    prepare_torchvision()
    pytest.importorskip("torchvision")
    pytest.importorskip("timm")
