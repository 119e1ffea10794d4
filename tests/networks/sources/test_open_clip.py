"""`hf:FOLDER` with an `open_clip_config.json`: the towers of open_clip."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import likewise
from likewise.errors import MissingDependencyError
from tests.networks.helpers import refused

pytestmark = pytest.mark.usefixtures("vision")
VISION = {"image_size": 32, "layers": 2, "width": 32, "head_width": 8, "patch_size": 8}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 4, "layers": 2}
CONFIG = {
    "model_cfg": {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TEXT},
    "preprocess_cfg": {"mean": [0.48, 0.45, 0.40], "std": [0.26, 0.26, 0.27]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "open_clip_config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.fixture
def library(vision: Any) -> Any:
    return pytest.importorskip("open_clip", reason="open_clip is not installed: pip install 'likewise[clip]'")


def test_both_towers_give_what_open_clip_gives(folder: Path, library: Any) -> None:
    torch.manual_seed(0)
    made = library.CLIP(16, library.CLIPVisionCfg(**VISION), library.CLIPTextCfg(**TEXT))
    save_file(
        {name: value.contiguous() for name, value in made.state_dict().items()}, folder / "open_clip_model.safetensors"
    )
    model, _, transform = library.create_model_and_transforms(f"local-dir:{folder}")
    texts, generator = ["a cat", "two dogs on a mat", "a photo of a bird"], np.random.default_rng(0)
    images = [Image.fromarray(generator.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(3)]
    with torch.no_grad():
        words = model.eval().encode_text(library.get_tokenizer(f"local-dir:{folder}")(texts))
        pixels = model.encode_image(torch.stack([transform(image) for image in images]))
    view = likewise.extract(f"hf:{folder}", texts, "embedding")
    torch.testing.assert_close(view.values, words, atol=1e-5, rtol=1e-5)
    view = likewise.extract(f"hf:{folder},part=vision", images, "embedding")
    torch.testing.assert_close(view.values, pixels, atol=1e-4, rtol=1e-4)
    assert list(likewise.extract(f"hf:{folder}", texts, "blocks", reduce="mean"))


def test_without_open_clip_its_folder_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    assert refused(lambda: likewise.network(f"hf:{folder},part=text"), MissingDependencyError) == (
        f"to load hf:{folder},part=text, open_clip is needed: pip install 'likewise[clip]'."
    )


def test_towers_without_data_ask_which(folder: Path) -> None:
    assert refused(lambda: likewise.network(f"hf:{folder}")) == (
        f"hf:{folder} has 2 towers, and nothing says which is to be looked at. Name one: "
        f"'hf:{folder},part=vision' or 'hf:{folder},part=text'."
    )
