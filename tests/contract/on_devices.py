"""Off the CPU: every measure gives there what it gives here, whatever precision the device has.

`test_devices.py` runs this file in a process of its own: a device stays registered, and torch then prefers it.
"""

import copy
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.measures.registry import MEASURES
from likewise.views import Activations, Outputs
from likewise.views.layers import layers
from tests.benchmark.lab import SHORT, lab_run, tiny_vit, write_imagenet100
from tests.device import TRANSFERS, registered

N = 60
CONFOUNDER = np.random.default_rng(1).normal(size=(N, 3))
FORMS = [
    form.bind(confounder=CONFOUNDER) if form.missing_options else form
    for m in MEASURES
    if m.info.on != "networks"
    for form in (m, *m.variants.values())
]


@pytest.fixture
def accelerator() -> Iterator[str]:
    """The name of a device that is not the CPU, and has double precision as CUDA has."""
    yield from registered(double=True)


@pytest.fixture
def accelerator_without_double() -> Iterator[str]:
    """The same of one without double precision, as Apple's GPUs are."""
    yield from registered(double=False)


def views(device="cpu", second="cpu"):
    rng = np.random.default_rng(0)
    hidden, labels = rng.normal(size=(N, 6)), rng.integers(0, 4, N)
    made = []
    for width, place in ((8, device), (9, second)):
        values = hidden @ rng.normal(size=(6, width)) + 0.5 * rng.normal(size=(N, width))
        logits = 2 * np.eye(4)[labels] + rng.normal(size=(N, 4))
        outputs = Outputs(torch.from_numpy(logits).float().to(place), labels)
        made.append(Activations(torch.from_numpy(values).float().to(place), name=f"d{width}", outputs=outputs))
    return made


def score(measure, pair):
    try:
        return float(likewise.compare(*pair, measure))
    except likewise.errors.UndefinedError as error:
        return str(error)


def network(seed):
    torch.manual_seed(seed)
    parts = nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    return nn.Sequential(*parts).eval()


IMAGES = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def same(value, expected):
    return value == expected if isinstance(expected, str) else value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("measure", FORMS, ids=lambda m: m.key)
def test_a_score_is_the_same_on_every_device(measure, accelerator) -> None:
    expected = score(measure, views())
    assert same(score(measure, views(accelerator, accelerator)), expected)
    assert same(score(measure, views(accelerator, "cpu")), expected)


def test_a_device_without_double_precision_leaves_measures_to_the_cpu(accelerator_without_double) -> None:
    pair = views(accelerator_without_double, accelerator_without_double)
    assert {view.values.device.type for view in pair} == {view.outputs.logits.device.type for view in pair} == {"cpu"}
    for measure in ("cka", "aligned-cosine", "imd", "mutual-knn", "jsd"):
        assert same(score(measure, pair), score(measure, views()))
    counts = torch.arange(20).reshape(10, 2).to(accelerator_without_double)  # whole numbers become double
    assert likewise.compare(counts, counts.cpu(), "cka") == 1


def test_many_views_on_several_devices_are_compared(accelerator) -> None:
    x, y = views()
    expected = likewise.compare({"a": x, "b": y, "c": x}, ["cka", "rsa", "jaccard"], progress=False)
    moved = {"a": x.to(accelerator), "b": y, "c": x.to(accelerator)}
    for key, matrix in likewise.compare(moved, ["cka", "rsa", "jaccard"], progress=False).items():
        np.testing.assert_allclose(matrix.values, expected[key].values, rtol=1e-12)


@pytest.mark.parametrize("key", ["cka-debiased", "procrustes", "mutual-knn"])
def test_nulls_and_intervals_follow_the_views(key, accelerator) -> None:
    here, there = views(), views(accelerator, accelerator)
    p = [likewise.calibrate(*pair, key, permutations=19).p for pair in (here, there)]
    assert p[0] == p[1]
    low = [likewise.bootstrap(*pair, key).low for pair in (here, there)]
    assert low[1] == pytest.approx(low[0], rel=1e-9)


@pytest.mark.parametrize("double", [True, False])
def test_networks_on_two_devices_are_compared_layer_by_layer(double, request) -> None:
    device = request.getfixturevalue("accelerator" if double else "accelerator_without_double")
    a, b = network(0), network(1)
    expected = likewise.layerwise(a, b, IMAGES, layers="all", progress=False).values
    for here, there in ((a, b), (copy.deepcopy(a).to(device), b), (a, copy.deepcopy(b).to(device))):
        values = likewise.layerwise(here, there, IMAGES, layers="all", progress=False).values
        np.testing.assert_allclose(values, expected, rtol=1e-5)


@pytest.mark.parametrize("double", [True, False])
def test_the_difference_of_networks_on_two_devices_is_that_on_one(double, request) -> None:
    device = request.getfixturevalue("accelerator" if double else "accelerator_without_double")
    a, b = network(0), copy.deepcopy(network(0))
    with torch.no_grad():
        b[2].weight += 0.1
    expected = likewise.diff(a, b, IMAGES, progress=False)
    moved = likewise.diff(copy.deepcopy(a).to(device), b, IMAGES, progress=False)
    assert moved.verdict == expected.verdict
    assert moved.weights.changed == expected.weights.changed
    assert [layer.name for layer in layers(copy.deepcopy(a).to(device), IMAGES)] == [
        layer.name for layer in layers(a, IMAGES)
    ]


# Networks by address go to the accelerator, modules stay where they are


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, str]:
    """Addresses of two networks that know some digits."""
    next(registered(double=True))  # before the first gradient: torch counts devices then
    addresses = {}
    for name, kind in (("a", "zoo:lenet"), ("b", "zoo:mlp")):
        folder = tmp_path_factory.mktemp(name)
        options = {"epochs": 4, "lr": 2e-3, "optimiser": "adam", "device": "cpu", "progress": False}
        likewise.networks.train(kind, "digits:train[:400]", out=folder, **options)
        addresses[name] = f"{kind}@{folder / 'weights.safetensors'}"
    return addresses


TRAIN, TEST = likewise.dataset("digits:train[:60]"), likewise.dataset("digits:test[:40]")
WITHOUT_BAR = {"progress": False}


def test_an_address_goes_to_the_accelerator_and_a_module_stays(accelerator) -> None:
    devices = []
    net = likewise.network("zoo:lenet", data=TEST)
    net.register_forward_pre_hook(lambda _, inputs: devices.append(inputs[0].device.type))
    likewise.extract(net, TEST, **WITHOUT_BAR)
    assert set(devices) == {"cpu"}
    TRANSFERS.clear()
    view = likewise.extract("zoo:lenet", TEST, **WITHOUT_BAR)
    weights = sum(weight.numel() for weight in net.parameters())
    assert sum(count for way, count in TRANSFERS if way == "to") >= weights
    np.testing.assert_allclose(view.values, likewise.extract("zoo:lenet", TEST, device="cpu", **WITHOUT_BAR).values)


@pytest.mark.parametrize("double", [True, False])
def test_every_verb_gives_on_the_accelerator_what_it_gives_on_the_cpu(double, trained, request) -> None:
    device = request.getfixturevalue("accelerator" if double else "accelerator_without_double")
    for place in (device, None):
        there, here = ({**WITHOUT_BAR, "device": where} for where in (place, "cpu"))
        for verb in (
            lambda **on: likewise.compare(trained, ["cka", "jsd", "mutual-knn"], data=TEST, **on)["cka"].values,
            lambda **on: likewise.layerwise(*trained.values(), TEST, **on).values,
            lambda **on: likewise.transfer.sat(trained, TEST[:12], eps=0.1, iterations=3, **on).values,
            lambda **on: [
                likewise.diff("zoo:lenet", "zoo:lenet", TEST[:20], transfer=False, **on).verdict == "identical"
            ],
        ):
            np.testing.assert_allclose(verb(**there), verb(**here), rtol=1e-4, atol=1e-5)


def test_measures_of_arrays_run_on_the_device_that_is_named(accelerator) -> None:
    x, y = (view.values.numpy() for view in views())
    TRANSFERS.clear()
    score_there = likewise.compare(x, y, "procrustes", device=accelerator)
    assert [count for way, count in TRANSFERS if way == "to"] == [x.size, y.size]
    assert score_there == pytest.approx(float(likewise.compare(x, y, "procrustes")), rel=1e-9)
    with pytest.raises(likewise.errors.InputError, match="device 'nosuch' cannot be used here"):
        likewise.compare(x, y, device="nosuch")


ON_THE_CPU = {  # decompositions, ranks and assignments of scipy, numpy and ripser; may only shrink
    "cka-rbf",
    "rsa",
    "rsa[resi]",
    "rsm-difference[resi]",
    "riemann",
    "cknna[platonic]",
    "imd",
    "imd[resi]",
    "rtd",
    "class-alignment",
}


def test_all_other_measures_take_only_a_few_numbers_off_the_device(accelerator) -> None:
    leaving = set()
    for measure in FORMS:
        pair = views(accelerator, accelerator)
        TRANSFERS.clear()
        score(measure, pair)
        sent_back = [count for way, count in TRANSFERS if way == "from"]
        if max(sent_back) > 2 * N or sum(sent_back) > 10 * N:
            leaving.add(measure.key.split("[confounder")[0])
    assert leaving == ON_THE_CPU


def transfers(function) -> int:
    TRANSFERS.clear()
    function()
    return len(TRANSFERS)


def growth(few, many) -> int:
    """How many more transfers the longer of two runs makes."""
    return transfers(many) - transfers(few)


def test_a_step_of_an_attack_asks_the_device_for_one_number(accelerator, trained) -> None:
    def attack(iterations):
        likewise.transfer.sat(trained, TEST[:12], eps=0.1, iterations=iterations, **WITHOUT_BAR)

    assert (
        growth(lambda: attack(2), lambda: attack(12)) == 2 * 10
    )  # per network and step, whether all gradients are fine


def test_a_batch_of_training_is_moved_once_and_nothing_comes_back(accelerator) -> None:
    def learn(n):
        likewise.networks.train("zoo:mlp", TRAIN[:n], epochs=1, batch_size=10, lr=0.01, progress=False)

    assert growth(lambda: learn(20), lambda: learn(60)) == 4 * 2  # four more batches of images and labels


def test_a_batch_of_an_extraction_is_moved_once_and_its_rows_come_back_once(accelerator) -> None:
    def look(n):
        likewise.extract("zoo:mlp", TEST[:n], batch_size=10, **WITHOUT_BAR)

    assert (
        growth(lambda: look(20), lambda: look(40)) == 2 * 4
    )  # images there; rows, answers and whether these are finite back


# Long jobs


def test_a_training_on_the_accelerator_resumes_and_is_inspected_there(accelerator, tmp_path) -> None:
    options = {"epochs": 3, "lr": 0.01, "batch_size": 20, "progress": False, "validation": TEST}
    whole = likewise.networks.train("zoo:mlp", TRAIN, out=tmp_path / "a", keep_epochs=True, **options)
    on_cpu = likewise.networks.train("zoo:mlp", TRAIN, device="cpu", **options)
    assert [epoch["loss"] for epoch in whole.history] == pytest.approx([epoch["loss"] for epoch in on_cpu.history])

    def stop(net, record):
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        likewise.networks.train("zoo:mlp", TRAIN, out=tmp_path / "b", callbacks=[stop], **options)
    resumed = likewise.networks.train("zoo:mlp", TRAIN, out=tmp_path / "b", **options)
    assert {weight.device.type for weight in resumed.net.parameters()} == {accelerator}
    for here, there in zip(whole.net.parameters(), resumed.net.parameters(), strict=True):
        assert torch.equal(here.cpu(), there.cpu())
    there, here = (
        likewise.classes.inspect(tmp_path / "a", TEST, device=place, progress=False).curves() for place in (None, "cpu")
    )
    np.testing.assert_allclose(there.select_dtypes("number"), here.select_dtypes("number"), rtol=1e-3, atol=1e-5)


def test_zeroshot_runs_on_the_accelerator(accelerator, tmp_path) -> None:
    options = {"preset": "small", "epochs": 1, "progress": False}
    there, here = (
        likewise.zeroshot.run("zoo:mlp", "digits:train[:120]", test="digits:test[:60]", device=place, **options)
        for place in (None, "cpu")
    )
    assert there.dbi().values == pytest.approx(here.dbi().values, rel=1e-3)


def test_the_benchmark_trains_and_compares_on_the_accelerator(accelerator, tmp_path) -> None:
    preset = {"seeds": 3, "probe": 30, "train": 60, "training": {"epochs": 1}}
    options = {"groundings": ["accuracy"], "measures": ["cka"], "preset": preset, "progress": False}
    TRANSFERS.clear()
    there = likewise.benchmark.run("vision", "digits", "mlp", out=tmp_path / "there", **options).results
    assert TRANSFERS
    here = likewise.benchmark.run("vision", "digits", "mlp", out=tmp_path / "here", device="cpu", **options).results
    np.testing.assert_allclose(there["value"], here["value"], rtol=1e-6)


@pytest.mark.usefixtures("vision")
@pytest.mark.filterwarnings("ignore:the weights of .* lack 'classifier")  # which is to be trained
@pytest.mark.parametrize("kind", ["cnn", "vit"])
def test_the_paper_runs_on_the_accelerator_from_a_folder_of_imagenet100(accelerator, kind, tmp_path) -> None:
    data = f"imagenet100:{write_imagenet100(tmp_path)}/imagenet100,size=32"
    network = "zoo:lenet" if kind == "cnn" else tiny_vit(tmp_path / "net")
    few = f"{SHORT},train=16,probe=20"
    TRANSFERS.clear()
    there = lab_run(data, network, tmp_path / "there", few, device=accelerator)
    assert sum(count for way, count in TRANSFERS if way == "to") > 19 * 36 * 3 * 32**2  # every network saw its images
    here = lab_run(data, network, tmp_path / "here", few, device="cpu")
    assert len(there.networks) == 19
    np.testing.assert_allclose(there.results["value"], here.results["value"], rtol=1e-3, atol=1e-3)


# A device that let mistakes pass would show nothing: each kind is made once


class Mistaken(nn.Module):
    """A network with one mistake of code that was never run on a GPU."""

    def __init__(self, mistake) -> None:
        super().__init__()
        self.layer, self.mistake = nn.Linear(64, 10), mistake

    def forward(self, images):
        return self.mistake(self.layer(images.flatten(1)))


def test_a_constant_of_the_cpu_is_caught(accelerator) -> None:
    net = Mistaken(lambda rows: rows * torch.ones(10)).to(accelerator)
    with pytest.raises(likewise.errors.ForwardError, match="same device"):
        likewise.extract(net, TEST, **WITHOUT_BAR)


def test_double_precision_is_caught(accelerator_without_double) -> None:
    net = Mistaken(lambda rows: rows.double()).to(accelerator_without_double)
    with pytest.raises(likewise.errors.ForwardError, match="float64"):
        likewise.extract(net, TEST, **WITHOUT_BAR)


def test_a_hidden_transfer_in_every_batch_is_caught(accelerator) -> None:
    def look(mistake, n):
        likewise.extract(Mistaken(mistake).to(accelerator), TEST[:n], batch_size=10, **WITHOUT_BAR)

    hidden = [
        growth(lambda f=f: look(f, 20), lambda f=f: look(f, 40)) for f in (lambda r: r, lambda r: r * r.max().item())
    ]
    assert hidden[1] - hidden[0] == 2
