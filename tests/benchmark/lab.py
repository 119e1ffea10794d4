"""A lab in small: a folder laid out as ImageNet100, a ViT in a folder, and the command that runs the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.benchmark import BenchmarkRun
from likewise.cli import main

SHORT = "paper,seeds=3,group=2,layered=2,epochs=1"


def write_imagenet100(root: Path) -> Path:
    """100 classes in the parts that are published: train.X1 to train.X4 and val.X, files of several sizes."""
    image, draw = pytest.importorskip("PIL.Image"), np.random.default_rng(0)
    for number in range(100):
        for part in (f"train.X{1 + number // 25}", "val.X"):
            folder = root / "imagenet100" / part / f"n{number:08d}"
            folder.mkdir(parents=True)
            pixels = draw.integers(0, 256, (36 + number % 5, 40, 3), dtype=np.uint8)
            image.fromarray(pixels).save(folder / f"{number}.JPEG")
    return root


def tiny_vit(folder: Path) -> str:
    """The address of a ViT in a folder, whose name says nothing of it."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 16, "image_size": 32, "patch_size": 16}
    config = transformers.ViTConfig(num_hidden_layers=3, num_attention_heads=2, num_labels=4, **sizes)
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}')
    return f"hf:{folder},pretrained=true"


def lab_run(data: str, network: str, out: Path, preset: str = SHORT, **options: Any) -> BenchmarkRun:
    """The command of a lab, with shortened epochs; options such as a device go to the command."""
    words = ["benchmark", "run", "--domain", "vision", "--data", data, "--network", network, "--out", str(out)]
    words += ["--preset", preset, "--measures", "cka[resi]", "--engine", "local"]
    words += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    return BenchmarkRun.load(out, data=data)
