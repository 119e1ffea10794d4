"""Checkpoints as one finds them: each is right at once, or a sentence names the remedy, which works when typed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise.errors import InputError, LikewiseError
from likewise.networks import Normalised, unwrapped
from likewise.networks.unknown_normalisation import TRIED

DATA = "digits:test"
NETS = '''
import torch
from torch import nn

class Tutorial(nn.Module):
    """As the tutorials have it: two convolutions, a pool, two linear layers."""
    def __init__(self, size=8):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 12, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1, self.fc2 = nn.Linear(12 * (size // 4) ** 2, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = torch.flatten(self.pool(torch.relu(self.conv2(x))), 1)
        return self.fc2(torch.relu(self.fc1(x)))

class Large(Tutorial):
    def __init__(self):
        super().__init__(size=32)

def mlp(width=32):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))

def normed():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    )

def halves(image):
    import numpy
    return torch.from_numpy(numpy.asarray(image).astype("float32") / 255 - 0.5)[None] / 0.5

def flipped(image):
    return halves(image).flip(2)

def broken(image):
    raise RuntimeError("no such filter")

def of_nothing():
    return torch.zeros(1, 8, 8)

def in_bytes(image):
    import numpy
    return torch.from_numpy(numpy.asarray(image).astype("float32"))[None] - 40.0
'''
Transform = Callable[[Tensor], Tensor]


def by(mean: float, std: float) -> Transform:
    return lambda images: (images - mean) / std


@cache
def digits(split: str, size: int = 8) -> tuple[Tensor, Tensor]:
    data = likewise.dataset(f"digits:{split},size={size}" if size != 8 else f"digits:{split}")
    return data.inputs[:], data.labels


def fit(net: nn.Module, transform: Transform, size: int = 8, steps: int = 120) -> tuple[nn.Module, float]:
    """The network trained on transformed digits, and how often it is right on others."""
    images, labels = digits("train", size)
    images = transform(images)
    optimiser = torch.optim.Adam(net.parameters(), 5e-3)
    order = torch.randint(0, len(images), (steps, 48), generator=torch.Generator().manual_seed(1))
    for rows in order:
        optimiser.zero_grad()
        functional.cross_entropy(net(images[rows]), labels[rows]).backward()
        optimiser.step()
    net.eval()
    images, labels = digits("test", size)
    with torch.no_grad():
        return net, float((net(transform(images)).argmax(dim=1) == labels).float().mean())


def accuracy(network: Any, data: str = DATA) -> tuple[float, list[str]]:
    """How often a network is right as it is shown, and what was said about that."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        view = likewise.extract(network, data, layers="logits", progress=False)
    return float(view.outputs.accuracy), [str(entry.message) for entry in told]


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("nets.py").write_text(NETS)
    torch.manual_seed(0)
    return lambda name: likewise.network(f"nets.py:{name}")


def wrapped(state: dict[str, Tensor]) -> dict[str, Any]:
    return {"state_dict": {f"module.{key}": value for key, value in state.items()}, "epoch": 9, "best": 0.9}


FOUND = [
    ("Tutorial", (0.5, 0.5), lambda state: state, "cifar_net.pth"),
    ("mlp", (0.5, 0.5), wrapped, "checkpoint.pth.tar"),
    ("normed", (0.5, 0.5), lambda state: {"model_state_dict": state}, "normed.pt"),
    ("Tutorial", (0.3053, 0.3762), lambda state: state, "by_data.pth"),  # mean and deviation of the data itself
    ("normed", (0.3053, 0.3762), lambda state: state, "normed_by_data.safetensors"),
    ("mlp,width=24", (0.5, 0.5), lambda state: state, "mlp.safetensors"),
    ("Tutorial", (0, 1 / 255), lambda state: state, "bytes.pt"),
]


@pytest.mark.parametrize(("name", "normalisation", "form", "file"), FOUND, ids=[entry[3] for entry in FOUND])
def test_a_normalised_checkpoint_names_its_remedy_which_works(
    nets: Any, name: str, normalisation: tuple[float, float], form: Any, file: str
) -> None:
    net, right = fit(nets(name), by(*normalisation))
    save_file(net.state_dict(), file) if file.endswith("safetensors") else torch.save(form(net.state_dict()), file)
    address = f"nets.py:{name}@{file}"
    low, (sentence,) = accuracy(address)
    found = re.search(r"Add '(,mean=[^']*)' to its address, or say --mean (\S+) --std (\S+)", sentence)
    assert found is not None, (low, right, sentence)
    assert sentence.startswith(
        f"nothing says how images are normalised for {address!r}. It is shown [0, 1] and is right on "
    )
    assert f"of {TRIED} of them" in sentence
    for typed in (f"{address}{found[1]}", f"nets.py:{name}{found[1]}@{file}"):
        assert accuracy(typed) == (pytest.approx(right, abs=0.03), [])
    assert right > low


def test_a_checkpoint_trained_on_plain_images_is_right_and_what_is_not_known_is_said(nets: Any) -> None:
    net, right = fit(nets("Tutorial"), by(0, 1))
    torch.save(net.state_dict(), "plain.pth")
    share, (sentence,) = accuracy("nets.py:Tutorial@plain.pth")
    assert share == pytest.approx(right)
    assert re.fullmatch(
        r"nothing says how images are normalised for 'nets.py:Tutorial@plain.pth': they are shown as \[0, 1\]. It is "
        r"right on \d+\.\d% of 200 of them, and by no usual normalisation more often than by chance. Where it was "
        r"trained otherwise, add ',mean=0.5,std=0.5' or ',transform=FILE.py:function' to its address, or say "
        r"--mean, --std or --transform \(in Python mean=, std=, transform=\); mean 0 and std 1 confirm \[0, 1\].",
        sentence,
    )
    assert accuracy("nets.py:Tutorial@plain.pth,mean=0,std=1") == (pytest.approx(right), [])


def test_a_checkpoint_of_an_unusual_convention_takes_a_transform_of_its_file(nets: Any) -> None:
    net, right = fit(nets("Tutorial"), lambda images: (images * 255).round() - 40)
    torch.save(net.state_dict(), "bytes.pth")
    low, (sentence,) = accuracy("nets.py:Tutorial@bytes.pth")
    assert ",transform=FILE.py:function' to its address" in sentence or "Add ',mean=" in sentence
    assert accuracy("nets.py:Tutorial,transform=nets.py:in_bytes@bytes.pth") == (pytest.approx(right, abs=0.01), [])
    assert accuracy("nets.py:Tutorial@bytes.pth,transform=nets.py:in_bytes")[0] > low


def test_a_checkpoint_for_another_size_names_both_remedies_one_after_the_other(nets: Any) -> None:
    net, right = fit(nets("Large"), by(0.5, 0.5), size=32, steps=60)
    torch.save(net.state_dict(), "large.pth")
    with pytest.raises(LikewiseError, match="add ',size=32' to the address of the data"):
        accuracy("nets.py:Large@large.pth")
    low, (sentence,) = accuracy("nets.py:Large@large.pth", f"{DATA},size=32")
    assert "mean=0.5,std=0.5" in sentence
    share, told = accuracy("nets.py:Large@large.pth,mean=0.5,std=0.5", f"{DATA},size=32")
    assert (share, told) == (pytest.approx(right, abs=0.02), [])
    assert share > low


def test_a_pickled_network_and_weights_of_another_are_refused_with_the_remedy(nets: Any) -> None:
    torch.save(nets("mlp"), "whole.pth")
    with pytest.raises(InputError, match=r"safetensors\.torch\.save_file"):
        accuracy("nets.py:mlp@whole.pth")
    save_file(nets("mlp").state_dict(), "whole.safetensors")  # as it says
    assert 0 <= accuracy("nets.py:mlp@whole.safetensors")[0] <= 1
    with pytest.raises(InputError, match="Name the architecture they were made for"):
        accuracy("nets.py:Tutorial@whole.safetensors")


@pytest.mark.parametrize("saved", ["wrapper", "data parallel", "safetensors", "inside"])
def test_weights_of_a_zoo_network_keep_their_normalisation(nets: Any, saved: str, tmp_path: Path) -> None:
    done = likewise.train("zoo:lenet", "digits:train", epochs=2, lr=0.05, out=tmp_path / "run", progress=False)
    right, told = accuracy(done.net)
    assert told == []
    assert accuracy(str(tmp_path / "run")) == (right, [])
    parts = {"wrapper": done.net, "data parallel": nn.DataParallel(done.net), "inside": unwrapped(done.net)}
    state = parts.get(saved, done.net).state_dict()
    file = "v.safetensors" if saved == "safetensors" else "v.pt"
    save_file(state, file) if saved == "safetensors" else torch.save(state, file)
    address = f"zoo:lenet@{file}"
    share, told = accuracy(address)
    if saved == "inside":  # the network without what normalises around it
        assert share < right
        address += re.search(r"Add '(,mean=[^']*)'", told[0])[1]
        share, told = accuracy(address)
        assert share == pytest.approx(right, abs=0.02)
    else:
        assert share == right
        change = likewise.diff(done.net, address, DATA, transfer=False, progress=False)
        assert (change.verdict, len(change.flips)) == ("identical", 0)
    assert told == []


def test_a_state_dict_without_normalisation_leaves_a_network_its_own() -> None:
    net = Normalised(nn.Conv2d(1, 1, 1), [0.25], [0.5])
    older = {name: value for name, value in net.state_dict().items() if name.startswith("net.")}
    other = Normalised(nn.Conv2d(1, 1, 1), [0.75], [0.5])
    other.load_state_dict(older)
    assert other.mean.item() == 0.75
    assert torch.equal(other.net.weight, net.net.weight)
    other.load_state_dict(net.state_dict())
    assert float(other.mean) == 0.25


def test_it_is_said_once_per_network_and_changes_no_number(nets: Any) -> None:
    net, _ = fit(nets("Tutorial"), by(0.5, 0.5), steps=60)
    images = digits("test")[0]
    expected, state = net(images), torch.random.get_rng_state()
    assert len(accuracy(net)[1]) == 1
    assert accuracy(net)[1] == []
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(net(images), expected)


def test_a_network_that_says_how_it_is_shown_is_left_alone(nets: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        likewise.extract(nets("mlp"), digits("test")[0], layers="1")  # tensors are shown as whoever made them wants
        likewise.extract(nets("mlp"), DATA, layers="1", mean=0, std=1)
        likewise.extract("zoo:mlp", DATA)


def test_options_for_all_networks_leave_those_of_an_address(nets: Any) -> None:
    net, right = fit(nets("Tutorial"), by(0.5, 0.5))
    torch.save(net.state_dict(), "half.pth")
    networks = {"a": "nets.py:Tutorial@half.pth", "b": "nets.py:Tutorial@half.pth,mean=0.5,std=0.5", "c": net}
    matrix = likewise.compare(networks, data=DATA, mean="1/2", std=(0.5,), progress=False)
    assert list(matrix.about["accuracies"].values()) == pytest.approx([right] * 3)
    matrix = likewise.compare(networks, data=DATA, mean=0, std=1, progress=False)
    low = matrix.about["accuracies"]["a"]
    assert list(matrix.about["accuracies"].values()) == pytest.approx([low, right, low])
    matrix = likewise.compare(networks, data=DATA, mean={"a": 0.5}, std={"a": 0.5}, progress=False)
    assert list(matrix.about["accuracies"].values()) == pytest.approx([right, right, low])
    matrix = likewise.compare(networks, data=DATA, transform="nets.py:in_bytes", progress=False)
    assert matrix.about["accuracies"]["b"] == pytest.approx(right)
    layers = likewise.layerwise(networks["a"], data=DATA, mean=0.5, std=0.5, progress=False)
    assert layers.about["accuracies"] == {"nets.py:Tutorial@half.pth": pytest.approx(right)}
    scores = likewise.transfer.answers(networks, DATA, mean=0.5, std=0.5, progress=False)
    assert scores.accuracies.tolist() == pytest.approx([right] * 3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("mean=0.5", "mean does not say how images are normalised. Give mean and std, or transform alone."),
        (
            "mean=0.5,std=0.5,transform=a.py:f",
            "mean and std and transform does not say how images are normalised. Give mean and std, or transform alone.",
        ),
        ("mean=0.5,std=0", "std is 0. Give a number above 0, or one per channel, as in std=0.5."),
        ("mean=high,std=1", "mean is 'high'. Give a number, or one per channel, as in mean=0.5."),
        ("transform=f", "transform is 'f'. Give a function of a PIL image that gives a tensor, or FILE.py:function."),
        (
            "transform=nets.py:in_byte",
            "nets.py has no function 'in_byte'. Did you mean 'in_bytes'? It should turn a PIL image into a tensor.",
        ),
    ],
)
def test_what_does_not_say_how_images_are_shown_is_refused(nets: Any, options: str, sentence: str) -> None:
    with pytest.raises(LikewiseError) as error:
        likewise.network(f"nets.py:mlp,{options}")
    assert str(error.value) == sentence


def test_a_folder_of_a_training_takes_another_normalisation(nets: Any, tmp_path: Path) -> None:
    likewise.train("zoo:mlp", "digits:train[:100]", epochs=1, out=tmp_path / "run", progress=False)
    known = likewise.network(str(tmp_path / "run"))
    for path in (tmp_path / "run", tmp_path / "run" / "weights.safetensors"):
        with pytest.warns(UserWarning, match="comes with a normalisation") as told:
            net = likewise.network(f"{path},mean=0.25,std=1/4")
        assert [str(entry.message) for entry in told] == [
            f"{str(path)!r} comes with a normalisation (mean=0.3012,std=0.3784), and is shown images by "
            "mean=0.25,std=0.25 in its place. Where that is meant for other networks, add ',mean=0.25,std=0.25' to "
            "their addresses alone."
        ]
        assert (net.mean.flatten().tolist(), net.std.flatten().tolist()) == ([0.25], [0.25])
        assert torch.equal(net(torch.full((1, 1, 8, 8), 0.25)), unwrapped(known)(torch.zeros(1, 1, 8, 8)))
    assert likewise.network(f"{tmp_path}/run,mean=0.3012,std=0.3784") is not None  # its own: nothing to say
    assert list(likewise.networks.names.named_networks([f"{tmp_path}/run/weights.safetensors,mean=0,std=1"])) == [
        "weights"
    ]


def test_weights_saved_with_a_transform_of_a_file_ask_for_it_to_be_typed(nets: Any) -> None:
    net = likewise.network("nets.py:mlp,transform=nets.py:in_bytes")
    likewise.networks.save(net, "kept.safetensors")
    with pytest.raises(InputError, match="which a file may not choose"):
        likewise.network("nets.py:mlp@kept.safetensors")
    again = likewise.network("nets.py:mlp,transform=nets.py:in_bytes@kept.safetensors")
    assert accuracy(again)[0] == accuracy(net)[0]


def test_a_transform_is_no_use_in_training(nets: Any) -> None:
    with pytest.raises(InputError, match="is trained on data as it is, so transform means nothing"):
        likewise.train("nets.py:mlp,transform=nets.py:in_bytes", "digits:train[:100]", epochs=1, progress=False)
    done = likewise.train("nets.py:mlp,mean=0.5,std=0.5", "digits:train[:100]", epochs=1, progress=False)
    assert isinstance(done.net, Normalised)
    assert accuracy(done.net)[1] == []


def test_a_transform_that_only_normalises_is_a_mean_and_deviation(nets: Any) -> None:
    data = likewise.dataset(DATA)
    net = likewise.network("nets.py:mlp,transform=nets.py:halves", data=data)
    assert isinstance(net, Normalised)
    assert (net.mean.item(), net.std.item()) == (pytest.approx(0.5, abs=1e-6), pytest.approx(0.5, abs=1e-6))
    assert accuracy(net)[1] == []
    assert not isinstance(likewise.network("nets.py:mlp,transform=nets.py:flipped", data=data), Normalised)
    fooled = likewise.transfer.success("nets.py:mlp,transform=nets.py:halves", data[:40], eps=0.1, progress=False)
    expected = likewise.transfer.success("nets.py:mlp,mean=0.5,std=0.5", data[:40], eps=0.1, progress=False)
    assert fooled.rate == expected.rate
    with pytest.raises(InputError) as error:
        likewise.transfer.success("nets.py:mlp,transform=nets.py:flipped", data[:40], progress=False)
    assert str(error.value) == (
        "'mlp' is shown what a transform makes of an image, not pixels between 0 and 1, so it cannot be attacked. Give "
        "mean and std in place of a transform that only normalises, else leave it out."
    )


def test_attacked_networks_take_a_transform_of_a_file_alone(nets: Any) -> None:
    by_file = likewise.transfer.answers("nets.py:mlp", DATA, transform="nets.py:halves", progress=False)
    typed = likewise.transfer.answers("nets.py:mlp", DATA, mean=0.5, std=0.5, progress=False)
    torch.testing.assert_close(torch.as_tensor(by_file.logits), torch.as_tensor(typed.logits), rtol=1e-4, atol=1e-5)
    for network, transform in ((nets("mlp"), "nets.py:halves"), ("nets.py:mlp", lambda image: image)):
        with pytest.raises(InputError) as error:
            likewise.transfer.answers(network, DATA, transform=transform, progress=False)
        assert str(error.value) == (
            "networks are attacked in pixels between 0 and 1, so a transform is taken of an address and as "
            "'FILE.py:function' alone. Give mean and std."
        )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("broken", "RuntimeError: no such filter"),
        ("of_nothing", "TypeError: of_nothing() takes 0 positional arguments but 1 was given"),
    ],
)
def test_a_transform_that_fails_is_told_in_a_sentence(nets: Any, name: str, reason: str) -> None:
    with pytest.raises(InputError) as error:
        accuracy(f"nets.py:mlp,transform=nets.py:{name}")
    assert str(error.value) == (
        f"the transform {name} fails on a L image of 8 × 8: {reason}. Repair it: it receives a PIL image and gives a "
        "tensor."
    )


def test_channels_may_stand_in_brackets_as_in_code(nets: Any) -> None:
    for typed in ("mean=(0.25,),std=[0.5]", "mean=(0.25),std=(1/2)"):
        net = likewise.network(f"nets.py:mlp,{typed}")
        assert (net.mean.item(), net.std.item()) == (0.25, 0.5)
    save_file(nets("mlp").state_dict(), "kept.safetensors")
    net = likewise.network("nets.py:mlp@kept.safetensors,mean=(0.1,0.2,0.3),std=(0.4,0.5,0.6)")
    assert net.std.flatten().tolist() == pytest.approx([0.4, 0.5, 0.6])
    with pytest.raises(InputError, match=r"^mean is 'nan'\. Give a number, or one per channel, as in mean=0\.5\.$"):
        likewise.network("nets.py:mlp@kept.safetensors,mean=nan,std=0.5")


def test_a_normalisation_for_all_networks_says_whose_it_replaces(nets: Any, tmp_path: Path) -> None:
    likewise.train("zoo:mlp", "digits:train[:100]", epochs=1, out=tmp_path / "run", progress=False)
    networks = {"mine": "nets.py:mlp", "trained": str(tmp_path / "run"), "new": "zoo:mlp"}
    sentences = []
    for shown in ({"mean": 0.5, "std": 0.5}, {"transform": "nets.py:halves"}):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            likewise.compare(networks, data=DATA, progress=False, **shown)
        sentences += [str(entry.message) for entry in told]
    start = "comes with a normalisation (mean=0.3012,std=0.3784), and is shown images by"
    assert [sentence.partition(start)[0] for sentence in sentences] == [f"{networks['trained']!r} ", "'trained' "]
    assert sentences[0].endswith("add ',mean=0.5,std=0.5' to their addresses alone.")
    assert sentences[1].endswith("add ',transform=nets.py:halves' to their addresses alone.")


def test_a_copy_by_address_is_shown_what_its_original_is(nets: Any) -> None:
    torch.save(nets("Tutorial").state_dict(), "a.pth")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        change = likewise.diff(
            "nets.py:Tutorial@a.pth,mean=0.5,std=0.5", "nets.py:Tutorial@a.pth", DATA, progress=False
        )
    (sentence,) = (str(entry.message) for entry in told)
    assert sentence.startswith("nothing says how images are normalised for 'a': it is shown what ")
    assert change.verdict == "identical"


def test_one_number_is_for_images_of_any_channels_whichever_layer_comes_first(nets: Any) -> None:
    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.stem = nn.Conv2d(8, 10, 1), nn.Conv2d(1, 8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.stem(x).mean((2, 3), keepdim=True)).flatten(1)

    net, images = Backwards().eval(), digits("test")[0]
    values = likewise.extract(net, images, "logits", mean=0.5, std=0.25, progress=False).values
    torch.testing.assert_close(values, net(2 * (2 * images - 1)))


def test_numbers_for_bytes_name_those_for_0_to_1(nets: Any) -> None:
    with pytest.raises(InputError) as error:
        likewise.network("nets.py:mlp,mean=127.5,std=63.75")
    assert str(error.value) == (
        "mean is 127.5 and std 63.75, and images have values from 0 to 1. Divide both by 255: mean=0.5,std=0.25."
    )
    with pytest.raises(InputError, match=r"Divide both by 255: mean=0,std=1\."):
        likewise.extract("nets.py:mlp", DATA, mean=0, std=255)
