"""Whole runs in each domain, from nothing to results, with all groundings, on data that needs no download."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import likewise
from likewise.benchmark import DOMAINS, GROUNDINGS, BenchmarkRun, Results, run, sweep, table
from likewise.benchmark.results.frame import COLUMNS
from likewise.errors import InputError, UnknownNameError
from tests.data.test_images import folder_of_images

MEASURES = ["cka", "cka[resi]", "procrustes", "linear-regression", "jaccard"]
SMALL: dict[str, Any] = {"seeds": 4, "group": 2, "layered": 2, "probe": 60}


def settled(done: BenchmarkRun, undefined: tuple[str, ...] = ()) -> None:
    """What holds for a run of any domain; some groundings may be undefined, where all networks answer alike."""
    rows = done.results
    assert list(rows.columns) == list(COLUMNS)
    assert set(rows["grounding"]) == set(GROUNDINGS.names())
    for _, one in rows.groupby("grounding"):
        assert set(zip(one["measure"], one["measure_variant"], strict=True)) == {
            ("cka", "published"),
            ("cka", "resi"),
            ("procrustes", "published"),
            ("linear-regression", "published"),
            ("jaccard", "published"),
        }
        assert set(one["variant"]) == {"published", "resi"}
    known = rows["value"].notna()
    assert set(rows["grounding"][~known]) <= set(undefined)
    assert rows["value"][known].between(-1, 1).all()
    assert (rows["coverage"] > 0).all()
    assert (rows["seconds"] >= 0).all()
    assert {name: one.valid for name, one in done.validity.items()} == rows.groupby("grounding")[
        "valid"
    ].first().to_dict()
    keys = ["grounding", "metric", "variant", "measure", "measure_variant", "ties"]
    assert not rows.duplicated(keys).any()
    again = BenchmarkRun.load(done.out)
    pd.testing.assert_frame_equal(again.results, rows)
    pd.testing.assert_frame_equal(again.networks, done.networks)


def groups_of(done: BenchmarkRun, grounding: str) -> dict[str, int]:
    serves = done.networks["groundings"].str.split().apply(lambda names: grounding in names)
    return done.networks[serves].groupby("group", sort=False).size().to_dict()


def test_digits_run_in_the_domain_vision(tmp_path: Path) -> None:
    preset = SMALL | {"probe": 100, "train": 200, "training": {"epochs": 2}}  # more inputs than neurons
    done = run("vision", "digits", "lenet", measures=MEASURES, preset=preset, out=tmp_path, progress=False)
    settled(done)
    assert groups_of(done, "accuracy") == {"standard": 4}
    assert groups_of(done, "labels") == {"standard": 2, "labels 0.5": 2, "labels 1": 2}
    assert groups_of(done, "shortcut") == {"shortcut 0": 2, "shortcut 0.75": 2, "shortcut 1": 2}
    assert groups_of(done, "augmentation") == {f"augmentation {v}": 2 for v in (1000, 2000, 4000)}
    assert len(done.networks) == 4 + 4 + 6 + 6
    layers = done.results.query("grounding == 'layers'")
    assert set(layers["networks"]) == {2}
    assert set(done.results["n"]) == {100}


def test_shortcuts_of_greyscale_images_are_in_colour() -> None:
    domain = DOMAINS.get("vision")
    experiment = domain.experiment("digits", "mlp", "small")
    (spec, *_) = [one for one in domain.specs("shortcut", experiment) if one.share == 1]
    data, plain = domain.train_data(spec), domain.load("digits", "train")
    assert data.inputs.shape[1:] == (3, 8, 8)
    assert domain.probe(spec, experiment).inputs.shape[1:] == (3, 8, 8)
    changed = (data.inputs[:] != plain.inputs[: len(data)]).any(dim=1)
    assert 0 < float(changed.float().mean()) < 0.2  # the rest of an image is as grey as it was
    assert domain.checks(spec, experiment)["shortcut"].inputs.shape[1] == 3


def test_noise_is_tried_on_more_images_than_a_probe_has_and_at_full_strength() -> None:
    domain = DOMAINS.get("vision")
    experiment = domain.experiment("digits", "mlp", {"probe": 10})
    (spec, *_) = domain.specs("augmentation", experiment)
    noisy, plain = domain.checks(spec, experiment)["augmented"], domain.load("digits", "test")
    assert len(noisy) == len(plain) > 10
    added = (noisy.inputs[:] - plain.inputs[:])[plain.inputs[:] == 0]  # noise below black is cut off
    assert 255 * float(added.square().mean().sqrt()) == pytest.approx((4000 / 2) ** 0.5, rel=0.05)


def test_digits_run_as_a_graph(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    preset = SMALL | {"options": {"width": 8}, "training": {"epochs": 5}}
    done = run("graph", "digits-graph", "gcn", measures=MEASURES, preset=preset, out=tmp_path, progress=False)
    settled(done)
    assert groups_of(done, "labels") == {"standard": 2, "labels 0.25": 2, "labels 1": 2}
    assert groups_of(done, "augmentation") == {"standard": 2, "augmentation 0.2": 2, "augmentation 0.8": 2}
    assert groups_of(done, "layers") == {"six layers": 2}
    assert done.networks["shortcut"].notna().sum() == 6
    trials = {trial.grounding: trial for trial in done.trials()}
    assert [len(stack.rows) for stack in trials["layers"].layers] == [5, 5]
    assert next(iter(trials["labels"].views.values())).d == 8
    assert trials["family"].groups == ("standard",) * 2 + ("labels",) * 4 + ("augmentation",) * 4
    _varies_options(done)


def _varies_options(done: BenchmarkRun) -> None:
    """Other options cost no training, and results are tables."""
    networks = {path: path.stat().st_mtime_ns for path in (done.out / "networks").rglob("weights.safetensors")}
    varied = sweep(done.out, "jaccard[k=3,10]", progress=False)
    assert {path: path.stat().st_mtime_ns for path in (done.out / "networks").rglob("weights.safetensors")} == networks
    assert set(varied.frame["measure"]) == {"jaccard[k=3]", "jaccard[k=10]"}
    keys = ["grounding", "metric", "variant", "ties"]
    ten = varied.frame[varied.frame["measure"] == "jaccard[k=10]"].set_index(keys)["value"]  # the default
    given = done.results[done.results["measure"] == "jaccard"].set_index(keys)["value"]
    pd.testing.assert_series_equal(ten, given, check_index_type=False)
    shown = table(Results.load(done.out), grounding="labels", measure_variant="published").text()
    assert {"CKA", "Jaccard", "OrthProc", "LinReg", "chance"} <= set(shown.index)


def test_sentences_run_in_the_domain_language(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    preset = SMALL | {"train": 96, "options": {"width": 16, "vocabulary": 512}, "training": {"epochs": 1}}
    done = run("language", "sentences", "bert-tiny", measures=MEASURES, preset=preset, out=tmp_path, progress=False)
    # after a moment of training all may have one accuracy; of three hidden states two are no embeddings: one pair
    settled(done, undefined=("accuracy", "layers"))
    assert groups_of(done, "labels") == {"standard": 2, "labels 0.75": 2, "labels 1": 2}
    assert list(groups_of(done, "shortcut").values()) == [2, 2, 2]
    assert groups_of(done, "augmentation") == {"standard": 2, "augmentation 1": 2}
    layers = done.results.query("grounding == 'layers' and measure == 'cka'")
    assert (layers["coverage"] < 1).all()  # the class token of the embeddings is the same for every text


def test_every_domain_names_networks_and_data_of_its_kind() -> None:
    assert DOMAINS.names() == ["graph", "language", "vision"]
    for domain in DOMAINS:
        for name in domain.networks:
            experiment = domain.experiment(domain.data[-1], name, "small")
            assert domain.specs("accuracy", experiment)


def test_the_seed_shifts_the_seeds_of_all_networks() -> None:
    domain = DOMAINS.get("graph")
    seeds = [
        {spec.seed for spec in domain.specs("family", domain.experiment("cora", "gcn", "small", n))} for n in (0, 1)
    ]
    assert not seeds[0] & seeds[1]


def test_in_paper_cora_has_the_settings_of_the_reference() -> None:
    domain = DOMAINS.get("graph")
    experiment = domain.experiment("cora", "gcn", "paper")
    spec = domain.specs("accuracy", experiment)[-1]
    assert len(domain.specs("accuracy", experiment)) == 10
    assert (spec.options["norm"], spec.options["width"], spec.options["depth"]) == ("BatchNorm", 64, 3)
    assert spec.training["epochs"] == 200
    assert [spec.options["depth"] for spec in domain.specs("layers", experiment)] == [6] * 5
    networks = {spec.key for name in GROUNDINGS.names() for spec in domain.specs(name, experiment)}
    assert len(networks) == 10 + 10 + 15 + 10 + 5


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("network", "optimiser", "epochs"),
    [
        ("vit-b-32", "adamw", 300),
        ("vit-l-32", "adamw", 300),
        ("hf:google/vit-base-patch32-224-in21k,pretrained=true", "adamw", 300),
        ("zoo:vit-tiny", "adamw", 300),  # by what it is built of
        ("torchvision:swin_t", "adamw", 300),
        ("vgg19", "sgd", 200),
        ("zoo:lenet", "sgd", 200),
        ("torchvision:resnet18", "sgd", 200),
    ],
)
def test_in_paper_images_have_the_settings_of_the_kind_of_network(network: str, optimiser: str, epochs: int) -> None:
    domain = DOMAINS.get("vision")
    training = domain.specs("accuracy", domain.experiment("digits", network, "paper"))[0].training
    assert (training["optimiser"], training["epochs"]) == (optimiser, epochs)
    assert (training["schedule"], training["label_smoothing"]) == ("cosine", 0.1)
    assert training["augment"] == ["resized-crop", "flip"]


@pytest.mark.usefixtures("vision")
def test_a_transformer_in_a_folder_is_trained_as_one_whatever_it_is_called(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "image_size": 32, "patch_size": 16}
    config = transformers.ViTConfig(num_hidden_layers=1, num_attention_heads=2, num_labels=4, **sizes)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "resnet")
    domain = DOMAINS.get("vision")
    experiment = domain.experiment("digits", f"hf:{tmp_path}/resnet,pretrained=true", "paper")
    assert domain.specs("accuracy", experiment)[0].training["batch_size"] == 512


def test_the_first_images_of_a_folder_of_classes_are_of_all_classes(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("val", 2)):
        folder_of_images(tmp_path / split, {"cat": count, "dog": count + 2, "eel": 1}, (8, 8))
    domain = DOMAINS.get("vision")
    data = f"imagefolder:{tmp_path}"
    train = domain.load(data, "train")
    assert train.labels.tolist() == [0, 1, 2, 0, 1, 0, 1, 1, 1]
    files = [str(path.relative_to(tmp_path)) for path in train.inputs.paths]
    assert files[:5] == ["train/cat/0.png", "train/dog/0.png", "train/eel/0.png", "train/cat/1.png", "train/dog/1.png"]
    assert len(set(files)) == 9
    experiment = domain.experiment(data, "mlp", {"train": 6, "probe": 3})
    (spec, *_) = domain.specs("labels", experiment)
    assert domain.train_data(spec).labels.tolist() == [0, 1, 2, 0, 1, 0]
    assert domain.probe(spec, experiment).labels.tolist() == [0, 1, 2]
    shuffled = domain.load("digits", "train").labels
    assert torch.equal(shuffled, likewise.dataset("digits:train").labels)  # what is shuffled stays as it is


def test_settings_of_the_paper_are_those_of_the_data_wherever_its_files_are() -> None:
    graph, language = DOMAINS.get("graph"), DOMAINS.get("language")
    for data in ("flickr", "flickr:/data/flickr"):
        spec = graph.specs("accuracy", graph.experiment(data, "zoo:sage,dropout=0.1", "paper"))[0]
        assert (spec.options["width"], spec.training["lr"], spec.training["epochs"]) == (256, 0.01, 200)
    experiment = language.experiment("mnli:/data/MNLI", "bert", "paper")
    assert language.levels("shortcut", experiment) == (0.354, 0.8385, 1.0)
    assert language.levels("augmentation", experiment) == (0.0, 0.25, 1.0)
    assert language.specs("accuracy", experiment)[0].training["epochs"] == 5


def test_multibert_has_one_address_per_seed() -> None:
    domain = DOMAINS.get("language")
    experiment = domain.experiment("sst2", "bert", "paper", 2)
    assert domain.specs("accuracy", experiment)[3].address == "hf:google/multiberts-seed_23,pretrained=true"
    assert domain.levels("shortcut", experiment) == (0.558, 0.8895, 1.0)
    assert domain.levels("augmentation", domain.experiment("mnli", "bert", "paper")) == (0.0, 0.25, 1.0)


def test_a_domain_without_that_data_says_what_it_has() -> None:
    with pytest.raises(InputError) as error:
        run("graph", "digits", "gcn", out="unused")
    assert str(error.value) == (
        "the domain 'graph' has no data 'digits', which holds image inputs. It has cora, citeseer, flickr, ogbn-arxiv, "
        "digits-graph, and takes any address of graph inputs."
    )
    with pytest.raises(InputError) as error:
        run("graph", "cora", "gnc", out="unused")
    assert str(error.value) == (
        "the domain 'graph' has no network 'gnc'. Did you mean 'gcn'? It has gcn, sage, graphsage, gat, and takes any "
        "address like zoo:NAME."
    )
    with pytest.raises(UnknownNameError) as unknown:
        run("graphics", "cora", "gcn", out="unused")
    assert str(unknown.value) == "no domain named 'graphics'. Did you mean 'graphs'?"


@pytest.mark.parametrize(
    ("preset", "sentence"),
    [
        ("papre", "no preset named 'papre'. Did you mean 'paper'? Give paper or small."),
        (
            {"seed": 3},
            "a preset has no field 'seed'. Did you mean 'seeds'? It has seeds, group, layered, train, probe, options, "
            "training.",
        ),
        ({"group": 0}, "group of the preset is 0. Give a whole number of at least 1."),
    ],
)
def test_a_preset_nobody_knows_is_refused(preset: Any, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        run("vision", "digits", "lenet", preset=preset, out="unused")
    assert str(error.value) == sentence


def test_a_group_of_one_network_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        run("vision", "digits", "lenet", preset={"group": 1}, groundings="labels", out=tmp_path / "new", progress=False)
    assert str(error.value) == (
        "the group 'standard' has one network, so none to be like. Give it two or more, or leave it out."
    )
    assert not (tmp_path / "new").exists()


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError) as error:
        run("vision", "digits", "lenet", seed=-1, out="unused")
    assert str(error.value) == "the seed is -1. Give a whole number from 0."
    assert math.isclose(
        DOMAINS.get("vision").uninformative(DOMAINS.get("vision").experiment("digits", "mlp", "small")), 0
    )
