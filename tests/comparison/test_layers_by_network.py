"""Layers and classifiers chosen network by network, and networks of text of every kind compared."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise import measures
from likewise.cli.compare import compare
from likewise.cli.layerwise import layerwise
from likewise.errors import InputError, UnknownNameError
from tests.cli.conftest import invoke

ROWS = torch.rand(20, 4, generator=torch.Generator().manual_seed(0))
KINDS = ("gpt2", "llama", "bert", "mamba")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny random networks of text and a file of sentences."""
    pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import WORDS, save

    place: Path = tmp_path_factory.mktemp("tiny")
    for kind in KINDS:
        save(kind, place / kind)
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(WORDS, size=draw.integers(1, 12))) for _ in range(24)]
    (place / "sentences.txt").write_text("\n".join(texts))
    return place


def nets() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {
        "wide": nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).eval(),
        "deep": nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3)).eval(),
    }


def test_layers_are_chosen_network_by_network() -> None:
    both = nets()
    found = likewise.compare(both, "cka", data=ROWS, layers={"wide": "0", "deep": "2"}, progress=False)
    expected = measures.cka(both["wide"][0](ROWS).detach(), both["deep"][:3](ROWS).detach())
    assert found["wide", "deep"] == pytest.approx(expected)
    # a network that is not named has its default: what its classifier is given
    found = likewise.compare(both, "cka", data=ROWS, layers={"wide": "0"}, progress=False)
    expected = measures.cka(both["wide"][0](ROWS).detach(), both["deep"][:4](ROWS).detach())
    assert found["wide", "deep"] == pytest.approx(expected)


def test_two_networks_go_by_the_names_a_list_of_them_has() -> None:
    wide, deep = nets().values()
    layers = {"Sequential": "0", "Sequential#2": "2"}
    score = likewise.compare(wide, deep, "cka", data=ROWS, layers=layers, progress=False)
    expected = measures.cka(wide[0](ROWS).detach(), deep[:3](ROWS).detach())
    assert float(score) == pytest.approx(expected)
    matrix = likewise.layerwise(
        wide, deep, ROWS, layers={"Sequential": "0", "Sequential#2": ["0", "2"]}, progress=False
    )
    assert (matrix.rows, matrix.columns) == (["0"], ["0", "2"])


@pytest.mark.parametrize(
    ("layers", "error"),
    [
        (
            {"other": "0"},
            "layers names a layer of 'other', and the networks are 'wide', 'deep'. "
            "Give layers={network: layer} by these names.",
        ),
        (
            "blocks",
            "compare looks at one layer of each network, and layers='blocks' may mean several. Name one, as in "
            "layers='penultimate' or layers={network: layer}, or use likewise.layerwise.",
        ),
        (
            {"deep": "[02]"},
            "compare looks at one layer of each network, and layers='[02]' may mean several. Name one, as in "
            "layers='penultimate' or layers={network: layer}, or use likewise.layerwise.",
        ),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(layers: Any, error: str) -> None:
    with pytest.raises(InputError) as caught:
        likewise.compare(nets(), "cka", data=ROWS, layers=layers, progress=False)
    assert str(caught.value) == error


@pytest.mark.usefixtures("vision")
def test_decoders_encoders_and_state_spaces_are_compared_on_one_file_of_texts(folder: Path) -> None:
    addresses = [f"hf:{folder / kind}" for kind in KINDS]
    with pytest.warns(UserWarning, match="no classifier was found in gpt2") as caught:
        found = likewise.compare(addresses, "cka", data=f"{folder / 'sentences.txt'}", progress=False)
    assert [str(entry.message) for entry in caught] == [
        "no classifier was found in gpt2 (last_hidden_state, last), llama (last_hidden_state, last), bert "
        "(pooler_output) and 1 more, so the embedding is taken. Pass layers='embedding' to say so."
    ]
    texts = (folder / "sentences.txt").read_text().splitlines()
    hand = [_by_hand(address, texts) for address in addresses]
    expected = np.array([[measures.cka(a, b) for b in hand] for a in hand])
    assert list(found.names) == list(KINDS)
    np.testing.assert_allclose(found.values, expected, atol=1e-5)


def _by_hand(address: str, texts: list[str]) -> np.ndarray:
    """Every text alone, without padding: pooled by BERT, the last token of the others."""
    net = likewise.network(address).eval()
    rows = []
    with torch.no_grad():
        for text in texts:
            output = net(**net.tokenize([text]))
            pooled = getattr(output, "pooler_output", None)
            rows.append(output.last_hidden_state[0, -1] if pooled is None else pooled[0])
    return torch.stack(rows).numpy()


@pytest.mark.usefixtures("vision")
def test_the_two_towers_of_clip_are_compared_on_captioned_images(folder: Path, tmp_path: Path) -> None:
    import transformers

    from likewise.data.captions import Captioned
    from tests.fuzz.tiny_transformers import SIDE, save

    save("clip", tmp_path / "clip")
    texts = (folder / "sentences.txt").read_text().splitlines()[:8]
    images = torch.rand(8, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    towers = {part: f"hf:{tmp_path / 'clip'},part={part}" for part in ("vision", "text")}
    data = Captioned("pairs", "image", images, texts=texts)
    found = likewise.compare(towers, "cka", data=data, layers="embedding", progress=False)
    whole = likewise.network(towers["text"]).eval()
    kind = transformers.CLIPModel.from_pretrained(tmp_path / "clip").eval()
    statistics = transformers.AutoImageProcessor.from_pretrained(tmp_path / "clip")
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (statistics.image_mean, statistics.image_std))
    with torch.no_grad():
        both = kind(**whole.tokenize(texts), pixel_values=(images - mean) / std)
    # CLIP itself brings both to length 1 before it compares them
    lengths = likewise.extract(towers["vision"], images, "embedding", progress=False).values.norm(dim=1, keepdim=True)
    words = likewise.extract(towers["text"], texts, "embedding", progress=False).values.norm(dim=1, keepdim=True)
    expected = measures.cka(both.image_embeds * lengths, both.text_embeds * words)
    assert found["vision", "text"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.usefixtures("vision")
def test_a_tokenizer_that_pads_on_the_left_changes_nothing(folder: Path, tmp_path: Path) -> None:
    import transformers

    shutil.copytree(folder / "gpt2", tmp_path / "left")
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "left", padding_side="left")
    words.save_pretrained(tmp_path / "left")
    texts = (folder / "sentences.txt").read_text().splitlines()
    found = likewise.extract(f"hf:{tmp_path / 'left'}", texts, "embedding", progress=False)
    np.testing.assert_allclose(found.values, _by_hand(f"hf:{folder / 'gpt2'}", texts), atol=1e-5)


@pytest.mark.usefixtures("vision")
def test_two_decoders_are_compared_layer_by_layer(folder: Path) -> None:
    one, other = f"hf:{folder / 'gpt2'}", f"hf:{folder / 'llama'}"
    found = likewise.layerwise(one, other, f"{folder / 'sentences.txt'}", reduce="last", measure="cka", progress=False)
    assert (found.rows, found.columns) == (["h.0", "h.1"], ["layers.0", "layers.1"])
    nets = [likewise.network(address).eval() for address in (one, other)]
    texts = (folder / "sentences.txt").read_text().splitlines()
    states = [[], []]
    with torch.no_grad():
        for text in texts:
            for net, kept in zip(nets, states, strict=True):
                hidden = net(**net.tokenize([text]), output_hidden_states=True).hidden_states
                kept.append(hidden[1][0, -1])  # what the first block gives
    expected = measures.cka(torch.stack(states[0]), torch.stack(states[1]))
    assert found.values[0, 0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.usefixtures("vision")
def test_layers_by_network_on_the_command_line(folder: Path) -> None:
    words = (f"hf:{folder / 'gpt2'}", f"hf:{folder / 'llama'}", "--data", f"{folder / 'sentences.txt'}", "-m", "cka")
    named = invoke(compare, *words, "--layers", "gpt2:ln_f", "--layers", "llama:norm", "--reduce", "last")
    with pytest.warns(UserWarning, match="no classifier was found in gpt2"):
        default = invoke(compare, *words)
    assert re.findall(r"\d\.\d{4}", named) == re.findall(r"\d\.\d{4}", default)  # a last norm gives the last state
    with pytest.raises(InputError) as caught:
        invoke(compare, *words, "--layers", "ln_f", "--layers", "norm")
    assert str(caught.value) == (
        "--layers was given 'ln_f' and 'norm' for 'gpt2'. Give each network one: --layers NETWORK:LAYER."
    )


def test_the_classifier_is_named_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(
        "from torch import nn\n"
        "def build():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10), nn.LayerNorm(10))\n"
    )
    address = f"{tmp_path / 'nets.py'}:build"
    words = (address, "zoo:mlp", "--data", "digits:test[:100]", "-m", "cka")
    with pytest.raises(InputError, match="has no classifier that could be found"):
        invoke(compare, *words, "--layers", "penultimate")
    for head in ("3", "build:3"):
        if head == "3":
            with pytest.raises(UnknownNameError, match="has no layer named '3'"):  # of the other network
                invoke(compare, *words, "--head", head)
        else:
            assert "cka" in invoke(compare, *words, "--head", head)
    table = invoke(
        layerwise,
        address,
        "zoo:mlp",
        "--data",
        "digits:test[:100]",
        "--layers",
        "build:penultimate",
        "--head",
        "build:3",
    )
    assert "penultimate" in table


def test_networks_go_by_the_names_tables_show_too() -> None:
    addresses = ["zoo:mlp,classes=10,seed=1", "zoo:lenet,classes=10,seed=2"]
    asked: dict[str, Any] = {"data": "digits:test[:40]", "progress": False}
    matrix = likewise.compare(addresses, "cka", layers={"mlp": "fc", "lenet": "hidden.1"}, reduce="flatten", **asked)
    assert "\nmlp  " in str(matrix)
    full = dict(zip(matrix.names, ("fc", "hidden.1"), strict=True))
    assert matrix.names[0] != "mlp"
    same = likewise.compare(addresses, "cka", layers=full, reduce="flatten", **asked)
    assert matrix.values.tolist() == same.values.tolist()
