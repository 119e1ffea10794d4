"""The preset `paper` end to end, from files laid out as ImageNet100, Flickr, OGBN-Arxiv and MNLI are published.

Files are few and epochs short, so nothing is learned; networks, groups, settings and probes are the paper's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.benchmark import GROUNDINGS, BenchmarkRun, run
from tests.benchmark.lab import SHORT, lab_run, tiny_vit, write_imagenet100
from tests.fuzz.file_kinds import KINDS


@pytest.fixture(scope="module")
def imagenet100(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_imagenet100(tmp_path_factory.mktemp("data"))


@pytest.mark.usefixtures("vision")
@pytest.mark.filterwarnings("ignore:the weights of .* lack 'classifier")  # which is to be trained
@pytest.mark.parametrize("kind", ["cnn", "vit"])
def test_the_command_of_a_lab_runs_from_a_folder_of_imagenet100(
    kind: str, imagenet100: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = "zoo:lenet" if kind == "cnn" else tiny_vit(tmp_path / "resnet")
    monkeypatch.setenv("LIKEWISE_DATA", str(imagenet100))
    done = lab_run("imagenet100,size=32", network, tmp_path / "run")
    assert done.networks.groupby("group", sort=False).size().to_dict() == {
        **{"standard": 3, "labels 0.5": 2, "labels 1": 2},
        **{f"shortcut {share}": 2 for share in ("0", "0.75", "1")},
        **{f"augmentation {variance}": 2 for variance in (1000, 2000, 4000)},
    }
    assert set(done.results["grounding"]) == set(GROUNDINGS.names())
    assert set(done.results["n"]) == {100}  # the whole of val.X
    settings = done.plan().networks["labels"][0].training
    expected = ("sgd", 128, 0.1, 4e-5) if kind == "cnn" else ("adamw", 512, 3e-3, 0.1)
    assert tuple(settings[name] for name in ("optimiser", "batch_size", "lr", "weight_decay")) == expected
    assert done.settings["preset"] == "paper, changed"


@pytest.mark.parametrize("name", ["flickr", "ogbn-arxiv"])
def test_graphs_run_from_the_files_that_are_published(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    (tmp_path / name).mkdir()
    next(kind for kind in KINDS if kind.name == name).write(tmp_path / name)
    done = run(
        "graph",
        f"{name}:{tmp_path / name}",
        "sage",
        preset=SHORT,
        measures="cka[resi]",
        out=tmp_path / "run",
        progress=False,
    )
    assert set(done.results["grounding"]) == set(GROUNDINGS.names())
    spec = BenchmarkRun.load(done.out, data=f"{name}:{tmp_path / name}").plan().networks["labels"][0]
    assert (spec.options["width"], spec.options["depth"], spec.training["lr"]) == (256, 3, 0.01)  # not those of Cora
    assert done.networks["group"].tolist()[-2:] == ["six layers"] * 2


def test_pairs_of_sentences_run_from_the_files_of_glue(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    words = ["the", "dog", "cat", "sees", "runs", "sleeps", "often", "never", "loud", "big", "small", "happy"]
    draw = np.random.default_rng(0)
    labels = ("entailment", "neutral", "contradiction", "-")
    for file, count in (("train", 60), ("dev_matched", 40)):
        rows = ["index\tgenre\tsentence1\tsentence2\tgold_label"]
        for number in range(count):
            one, two = (" ".join(draw.choice(words, 6)) for _ in range(2))
            rows.append(f"{number}\tfiction\t{one} .\t{two} .\t{labels[number % 4]}")
        (tmp_path / f"{file}.tsv").write_text("\n".join(rows) + "\n")
    preset = {"base": "paper", "seeds": 3, "group": 2, "layered": 2, "options": {"width": 16, "vocabulary": 256}}
    preset |= {"training": {"epochs": 1, "warmup": 0.1}}
    done = run(
        "language",
        f"mnli:{tmp_path}",
        "bert-tiny",
        preset=preset,
        measures="cka[resi]",
        out=tmp_path / "run",
        progress=False,
    )
    assert done.networks.groupby("group", sort=False).size().to_dict() == {
        **{"standard": 3, "labels 0.75": 2, "labels 1": 2},
        **{f"shortcut {share}": 2 for share in ("0.354", "0.8385", "1")},
        **{"augmentation 0.25": 2, "augmentation 1": 2},
    }
    assert set(done.results["n"]) == {30}  # pairs that have a label
