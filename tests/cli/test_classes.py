"""`likewise classes`: what networks find alike, held against WordNet, from the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise._base.optional import prepare_torchvision
from likewise.classes import ClassSimilarity, alignment, from_wordnet
from likewise.cli.classes import classes
from likewise.errors import InputError
from tests.cli.conftest import invoke

CLASSES = ("airplane", "cat", "dog", "horse", "ship")  # in the order of their folders
SYNSETS = ("airplane.n.01", "cat.n.01", "dog.n.01", "horse.n.01", "ship.n.01")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pictures of noise per class, of mixed sizes."""
    images = pytest.importorskip("PIL.Image")
    folder, draw = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for name in CLASSES:
        (folder / name).mkdir()
        for number in range(2):
            sides = draw.integers(40, 80, 2)
            pixels = draw.integers(0, 256, (*sides, 3), dtype=np.uint8)
            images.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CLIP, SigLIP and DINOv2, tiny and with random weights, and a detector."""
    prepare_torchvision()
    pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import save

    folder = tmp_path_factory.mktemp("networks")
    for kind in ("clip", "siglip", "dinov2", "yolos"):
        save(kind, folder / kind)
    return folder


def by_hand(folder: Path, photos: Path, kind: str) -> float:
    """SAI(TNCSM, SCSM) of what a network gives to whoever uses it, by the library's own processor and plain loops."""
    import transformers
    from PIL import Image

    model = transformers.AutoModel.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    see = model if kind == "dinov2" else model.get_image_features
    means = []
    for name in CLASSES:
        rows = []
        for file in sorted((photos / name).iterdir()):
            pixels = processor(images=Image.open(file).convert("RGB"), return_tensors="pt")["pixel_values"]
            with torch.no_grad():
                rows.append(see(pixel_values=pixels).pooler_output[0].double().numpy())
        means.append(sum(rows) / len(rows))
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    own = [means[i] @ means[j] / np.linalg.norm(means[i]) / np.linalg.norm(means[j]) for i, j in pairs]
    wordnet = from_wordnet(SYNSETS).values
    other = [wordnet[i, j] for i, j in pairs]
    own, other = ([(v - min(values)) / (max(values) - min(values)) for v in values] for values in (own, other))
    product = sum(a * b for a, b in zip(own, other, strict=True))
    return product / math.sqrt(sum(a * a for a in own) * sum(b * b for b in other))


@pytest.mark.filterwarnings("ignore:no classifier was found")
@pytest.mark.filterwarnings("ignore:.*the vision tower is looked at")
def test_networks_without_a_classifier_are_held_against_wordnet(networks: Path, photos: Path) -> None:
    kinds = ("clip", "siglip", "dinov2")
    addresses = [f"hf:{networks / kind}" for kind in kinds]
    rows: list[dict[str, Any]] = json.loads(invoke(classes, *addresses, "--data", f"imagefolder:{photos}", "--json"))
    assert [row["network"] for row in rows] == list(kinds)
    for kind, row in zip(kinds, rows, strict=True):
        assert row["SAI"] == pytest.approx(by_hand(networks / kind, photos, kind), abs=1e-4)
        assert (row["matrix"], row["layer"], row["classes"]) == ("TNCSM-test", "pooler_output", 5)
        assert 0.4 < row["random"] < 0.9
        assert 0 < row["p"] <= 1
        assert row["calibrated"] == pytest.approx((row["SAI"] - row["random"]) / (1 - row["random"]))


@pytest.mark.filterwarnings("ignore:no classifier was found")
@pytest.mark.usefixtures("vision")
def test_the_table_says_what_was_looked_at_and_what_chance_gives(photos: Path, tmp_path: Path) -> None:
    nets = ("timm:test_vit,pretrained=false", "timm:test_resnet,pretrained=false,num_classes=0")
    data = ("--data", f"imagefolder:{photos}", "--out", str(tmp_path / "out"))
    text = invoke(classes, *nets, *data)
    saved = [ClassSimilarity.load(file) for file in sorted((tmp_path / "out" / "matrices").iterdir())]
    assert [each.short for each in saved] == ["SCSM", "TNCSM-test", "TNCSM-test"]
    resnet, vit = (alignment(own, saved[0]) for own in saved[1:])
    lines = text.splitlines()
    right = json.loads(invoke(classes, nets[0], *data, "--json"))[0]["accuracy"]
    assert right == likewise.extract(nets[0], f"imagefolder:{photos}", layers="logits").outputs.accuracy
    assert lines[0].split() == ["layer", "classes", "SAI", "random", "calibrated", "p"]
    for line, found, layer in ((lines[1], vit, "penultimate"), (lines[2], resnet, found_layer(saved[1]))):
        numbers = [f"{v:.3f}" for v in (found, found.chance.random, found.calibrated, found.p)]
        assert line.split()[1:] == [*layer.split(), "5", *numbers]
    assert lines[4:] == [
        "cosine of TNCSM-test with SCSM. random: what random weights give; calibrated: 0 at random,",
        "1 at full agreement; p: by permuting the classes",
        f"accuracy: test_vit {100 * right:.1f} %",  # the other has no classifier
        "meanings: airplane = airplane.n.01, cat = cat.n.01, dog = dog.n.01, horse = horse.n.01, ship = ship.n.01",
        "",
        f"written to {tmp_path / 'out'}: matrices.png, matrices/",
    ]
    assert (tmp_path / "out" / "matrices.png").stat().st_size > 1000


def found_layer(matrix: ClassSimilarity) -> str:
    return str(matrix.about["layer"])


def test_without_data_the_class_layer_counts(networks: Path) -> None:
    from likewise.classes import from_weights

    config = json.loads((networks / "yolos" / "config.json").read_text())
    config["id2label"] = {"0": "cat", "1": "dog", "2": "mouse"}
    (networks / "yolos" / "config.json").write_text(json.dumps(config))
    [row] = json.loads(invoke(classes, f"hf:{networks / 'yolos'}", "--sense", "mouse=mouse.n.01", "--json"))
    own = from_weights(f"hf:{networks / 'yolos'}")
    assert own.classes == ("cat", "dog", "mouse")  # and no fourth, no object
    assert row["SAI"] == alignment(own, from_wordnet(["cat.n.01", "dog.n.01", "mouse.n.01"], names=own.classes))
    assert (row["matrix"], row["layer"]) == ("NCSM", "class_labels_classifier.layers.2")


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            (),
            "the classes of NCSM have no names but their numbers. Name them where it is made, as in from_weights(net, "
            "classes=...), or give data whose classes have names.",
        ),
        (("--sense", "fish"), "--sense 'fish' does not say what a name means. Write NAME=SYNSET, as fish=fish.n.01."),
        (
            ("--data", "PHOTOS", "--layers", "blocks"),
            "from_features looks at one layer of each network, and layers='blocks' may mean several. Name one, as in "
            "layers='penultimate' or layers={network: layer}, or use likewise.layerwise.",
        ),
        (
            ("--data", "FLAT"),
            "'imagefolder:FLAT:test' has no labels, and they are needed to know which inputs are of one class. Give "
            "one per input: images in one folder per class, a table with label=COLUMN, or likewise.data.Data(name, "
            "domain, inputs, labels, classes).",
        ),
    ],
)
def test_what_cannot_be_held_against_wordnet_is_one_sentence(
    photos: Path, words: tuple[str, ...], sentence: str
) -> None:
    places = {"PHOTOS": f"imagefolder:{photos}", "FLAT": f"imagefolder:{photos / 'cat'}"}
    with pytest.raises(InputError) as error:
        invoke(classes, "timm:test_resnet,pretrained=false,num_classes=3", *(places.get(w, w) for w in words))
    assert str(error.value) == sentence.replace("FLAT", str(photos / "cat"))
