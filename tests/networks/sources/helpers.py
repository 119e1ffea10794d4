"""A cache of the hub, as transformers keeps it on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.fuzz.tiny_transformers import build, tokenizer

NAME = "org/tiny"


def commit(number: int) -> str:
    return f"{number:040x}"


def publish(cache: Path, revision: str, number: int, network: Any = None) -> None:
    """Put one state of a repository into a cache: its files, and which commit the revision is at."""
    repository = cache / f"models--{NAME.replace('/', '--')}"
    folder = repository / "snapshots" / commit(number)
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / revision).write_text(commit(number))
    network = seeded_bert(number) if network is None else network
    network.save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def seeded_bert(seed: int) -> Any:
    network = build("bert")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for weight in network.parameters():
            weight.normal_(std=0.2)
    return network


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that is the only place networks come from: nothing is downloaded."""
    hub = pytest.importorskip("huggingface_hub")
    cache = tmp_path / "hub"
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    return cache
