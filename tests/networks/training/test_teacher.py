"""Hard distillation: half of the loss is to the labels, half to what the teacher answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise.errors import ForwardError, InputError
from likewise.networks import Normalised, save, train, unwrapped
from likewise.networks.inputs.normalisation import record_transform
from likewise.networks.inputs.transforms import from_callable
from likewise.networks.training.augment import crop, mix
from likewise.networks.training.teacher import resize_for
from tests.networks.helpers import DATA, PETS, Blind, named, pets, refused, said, same, settings, small


@pytest.mark.parametrize("how", [{}, {"augment": "crop"}, {"label_smoothing": 0.2}, {"mixup": 0.4}])
def test_one_epoch_is_that_of_a_loop_written_by_hand(how: dict[str, Any]) -> None:
    data, teacher = likewise.dataset("digits:train[:96]"), small(9)
    trained = train(small(0), data, epochs=1, seed=5, lr=0.1, batch_size=32, teacher=teacher, **how).net

    net = small(0)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    torch.manual_seed(5 * 1_000_003)
    shuffle = int(torch.randint(2**31, ()))
    for i, (images, labels) in enumerate(data.batches(32, shuffle=shuffle)):
        draw = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        targets = labels
        if "augment" in how:
            images = crop(images, draw)
        if "mixup" in how:
            images, targets = mix(images, labels, 10, draw, mixup=0.4, cutmix=0.0)
        answer = teacher(images).argmax(dim=1)
        optimiser.param_groups[0]["lr"] = 0.05 * (
            1 + torch.cos(torch.tensor(torch.pi * i / 3, dtype=torch.double)).item()
        )
        optimiser.zero_grad()
        logits = net(images)
        to_labels = functional.cross_entropy(logits, targets, label_smoothing=how.get("label_smoothing", 0.0))
        (0.5 * to_labels + 0.5 * functional.cross_entropy(logits, answer)).backward()
        optimiser.step()
    for name, value in trained.state_dict().items():
        torch.testing.assert_close(value, net.state_dict()[name], rtol=1e-5, atol=1e-6)


class Seen(nn.Module):
    """A teacher with a mode and statistics, which notes what it is shown and always answers with class 3."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.seen = nn.BatchNorm2d(1), []

    def forward(self, images: Tensor) -> Tensor:
        self.seen.append((images, self.training))
        return functional.one_hot(self.norm(images).flatten(1)[:, 0].long() * 0 + 3, 10).float()


def test_the_teacher_rests_and_is_left_as_it_was() -> None:
    teacher = Seen().train()
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    train(small(0), DATA, **settings(teacher=teacher))
    assert not any(training for _, training in teacher.seen)
    assert teacher.training
    assert all(weight.requires_grad and weight.grad is None for weight in teacher.parameters())
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())


def test_with_an_attack_the_teacher_sees_the_inputs_before_it() -> None:
    teacher, data = Seen(), likewise.dataset("digits:train[:32]")
    train(small(0), data, epochs=1, teacher=teacher, adversarial={"eps": 0.2, "iterations": 1})
    images, _ = teacher.seen[-1]
    assert sorted(images.flatten(1).tolist()) == sorted(data.inputs[:].flatten(1).tolist())


def test_a_student_learns_what_the_teacher_knows_where_labels_are_noise() -> None:
    data = likewise.dataset("digits:train[:400]")
    teacher = train("zoo:mlp", data, **settings(epochs=8)).net
    draw = torch.Generator().manual_seed(0)
    noise = likewise.data.Data("noise", "image", data.inputs, torch.randint(10, (400,), generator=draw), data.classes)
    held_out = likewise.dataset("digits:test[:200]")
    alone = train("zoo:lenet", noise, **settings(epochs=8), validation=held_out).history[-1]["validation_accuracy"]
    taught = train("zoo:lenet", noise, **settings(epochs=8), validation=held_out, teacher=teacher).history[-1]
    assert taught["validation_accuracy"] > alone + 0.3


def test_images_are_brought_to_the_size_of_the_teacher() -> None:
    small_images = likewise.dataset("digits:train[:40]")
    teacher = likewise.network("zoo:mlp", channels=1, size=12, classes=10)
    seen: list[Tensor] = []
    teacher.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    train(small(0), small_images, epochs=1, teacher=teacher)
    assert {tuple(images.shape[1:]) for images in seen} == {(1, 12, 12)}
    first = small_images.inputs[:2]
    wanted = functional.interpolate(first, (12, 12), mode="bilinear", antialias=True)
    torch.testing.assert_close(seen[0], wanted, rtol=0, atol=1e-6)


def test_a_teacher_with_a_transform_is_shown_its_size_and_channels(vision: None) -> None:
    teacher = likewise.network("timm:test_vit,pretrained=false,num_classes=10")
    seen: list[Tensor] = []
    teacher.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    train(small(0), "digits:train[:4]", epochs=1, teacher=teacher)
    assert {tuple(images.shape[1:]) for images in seen} == {(3, 160, 160)}
    assert all(0 <= float(images.min()) <= float(images.max()) <= 1 for images in seen)  # it normalises itself


def test_the_classes_of_a_teacher_are_found_by_name() -> None:
    # the teacher answers "fish" always: its output 1, of four
    teacher = named(4, ("cat", "fish", "newt", "dog"), favourite=1)
    student = train(Blind(3), pets(), epochs=20, lr=0.5, teacher=teacher, batch_size=9).net
    data = pets()
    answers = functional.softmax(student(data.inputs), dim=1).mean(dim=0).detach()
    assert PETS[int(answers.argmax())] == "fish"
    assert float(answers[2]) > 0.5


def test_outputs_of_a_teacher_that_are_no_class_of_the_data_are_left_out() -> None:
    # "newt" is its favourite, but among the data's classes "cat" comes first, all being equal
    teacher = named(4, ("newt", *PETS), favourite=0)
    with torch.no_grad():
        teacher.fc.bias[1] = 0.5
    student = train(Blind(3), pets(), epochs=20, lr=0.5, teacher=teacher, batch_size=9).net
    assert int(student(pets().inputs).mean(dim=0).argmax()) == 0


@pytest.mark.parametrize(
    ("teacher", "sentence"),
    [
        (
            lambda: named(3, ("cat", "dog", "newt")),
            "the labels of 'pets' do not fit the teacher Blind: of its 3 classes, 'fish' are not surely among the "
            "network's 3 ('cat', 'dog', 'newt'). Name them as the network does, or by WordNet id.",
        ),
        (
            lambda: Blind(5),
            "the labels of 'pets' do not fit the teacher Blind: it has 3 classes ('cat', 'dog', 'fish'), and the "
            "network answers with 5 numbers that have no names. Use a network of these classes.",
        ),
        (
            lambda: likewise.network(Blind(3), tokenizer=len),
            "the teacher Blind takes text, and 'pets' holds images. Choose a teacher that takes images.",
        ),
        (
            lambda: nn.Conv2d(3, 3, 1),
            "the teacher Conv2d answers with numbers of shape (2, 3, 2, 2), not (inputs, classes). Give a classifier.",
        ),
        (
            lambda: nn.Sequential(Blind(3), nn.Threshold(2, float("nan"))),
            "the teacher Sequential answers with numbers that are not finite. Give another network.",
        ),
        (lambda: 3, "the teacher is 3. Give an address or a module."),
    ],
)
def test_a_teacher_of_other_classes_or_inputs_is_refused(teacher: Any, sentence: str) -> None:
    assert refused(lambda: train(Blind(3, favourite=1), pets(), epochs=1, teacher=teacher())) == sentence


def test_a_teacher_that_cannot_take_the_inputs_says_so() -> None:
    assert refused(
        lambda: train(small(0), DATA, epochs=1, teacher=nn.Sequential(nn.Flatten(), nn.Linear(3, 10))), ForwardError
    ) == (
        "Sequential failed on inputs of shape (2, 1, 8, 8): RuntimeError: mat1 and mat2 shapes cannot be multiplied "
        "(2x64 and 3x10). Check that the network takes inputs of this shape and type."
    )


ITSELF = "the student is its own teacher: {}. Give another network as the teacher."


def test_a_student_that_is_its_own_teacher_is_refused(tmp_path: Path) -> None:
    net = small(0)
    for teacher in (net, nn.DataParallel(net), Normalised(net, [0.5], [0.5])):
        assert refused(lambda teacher=teacher: train(net, DATA, epochs=1, teacher=teacher)) == ITSELF.format(
            "both share their weights"
        )
    assert refused(lambda: train(net, DATA, epochs=1, teacher=small(0))) == ITSELF.format("both have the same weights")
    file = tmp_path / "mlp.safetensors"
    save(likewise.network("zoo:mlp", channels=1, size=8, classes=10, seed=3), file)
    assert refused(lambda: train(str(file), DATA, epochs=1, teacher=str(file))) == ITSELF.format(
        "both have the same weights"
    )


@pytest.mark.parametrize("which", ["", "weights.safetensors", "epochs/0001.safetensors"])
def test_a_training_is_not_its_own_teacher(tmp_path: Path, which: str) -> None:
    out = tmp_path / "run"
    train("zoo:mlp", DATA, **settings(out=out, keep_epochs=True, seed=1))
    place = out / which
    weights = place / "weights.safetensors" if which == "" else place
    assert refused(lambda: train("zoo:mlp", DATA, out=out, teacher=str(place))) == ITSELF.format(
        f"{weights} is written by this training"
    )


def test_a_teacher_of_random_weights_is_said() -> None:
    _, warned = said(lambda: train(small(0), DATA, epochs=1, teacher="zoo:mlp"))
    assert warned == ["the teacher zoo:mlp has random weights. Name trained ones, as in 'zoo:mlp@weights.safetensors'."]


def test_a_teacher_whose_normalisation_is_not_known_names_its_remedy(tmp_path: Path) -> None:
    taught = train("zoo:mlp", "digits:train[:400]", epochs=8, lr=0.05, progress=False).net
    torch.save(unwrapped(taught).state_dict(), tmp_path / "own.pth")
    address = f"zoo:mlp@{tmp_path / 'own.pth'}"
    _, warned = said(lambda: train(small(0), DATA, epochs=1, teacher=address))
    (sentence,) = warned
    assert sentence.startswith(f"nothing says how images are normalised for the teacher {address}")
    remedy = re.search(r"add '(,mean=[^']*)'|Add '(,mean=[^']*)'", sentence)
    assert remedy is not None
    _, warned = said(lambda: train(small(0), DATA, epochs=1, teacher=address + (remedy[1] or remedy[2])))
    assert warned == []


def test_a_training_is_resumed_with_the_same_teacher_only(tmp_path: Path) -> None:
    file = tmp_path / "teacher.safetensors"
    save(likewise.network("zoo:mlp", channels=1, size=8, classes=10, seed=3), file)
    once = settings(out=tmp_path / "run", teacher=str(file))
    first = train("zoo:lenet", DATA, **once)
    moved = file.rename(tmp_path / "elsewhere.safetensors")
    for teacher in (moved, likewise.network(str(moved))):
        again = train("zoo:lenet", DATA, **once | {"teacher": teacher})
        assert again.history == first.history
        assert same(again.net, first.net)
    for other in (None, small(0)):
        with pytest.raises(InputError) as error:
            train("zoo:lenet", DATA, **once | {"teacher": other})
        assert str(error.value).startswith(f"{tmp_path / 'run'} holds a training with other settings (teacher '")
        assert str(error.value).endswith(" here). Give the same settings to resume it, or another folder.")


def test_a_step_of_ones_own_takes_no_teacher() -> None:
    def step(net: nn.Module, batch: Any) -> Any:
        raise AssertionError

    assert refused(lambda: train("zoo:mlp", DATA, epochs=1, teacher=small(0), step=step)) == (
        "a step of your own takes no teacher and no adversarial. Leave them out, or the step."
    )


@pytest.mark.usefixtures("vision")
def test_a_batch_for_one_network_is_fitted_to_another_whole() -> None:
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    published = likewise.network("timm:test_vit,pretrained=false")
    shown = resize_for(published, images)
    larger = nn.functional.interpolate(images, (160, 160), mode="bilinear", antialias=True)
    torch.testing.assert_close(shown, larger.clamp(0, 1).expand(-1, 3, -1, -1), rtol=0, atol=1e-6)
    for any_size in (nn.Flatten(), likewise.network("zoo:resnet20", channels=1)):
        assert resize_for(any_size, images) is images
    assert resize_for(published, ["a text"]) == ["a text"]


def test_a_batch_is_fitted_by_a_persons_transform_where_that_is_the_networks_own() -> None:
    def halved(image: Any) -> Tensor:
        return torch.from_numpy(np.array(image, dtype=np.float32))[None, :, :, 0] / 510

    net = nn.Flatten()
    record_transform(net, from_callable(halved))
    images = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 1, 4, 4)
    torch.testing.assert_close(resize_for(net, images), images / 2)
