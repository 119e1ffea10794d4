"""The forward pass: logits in every kind of output, and a network put back as it was."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import InputError
from likewise.networks import Normalised, logits
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.forward import call, eval_mode, in_precision, input_kind
from tests.networks.helpers import refused

ANSWERS = torch.arange(6.0).reshape(2, 3)
STATES = torch.zeros(2, 4, 3)
Pair = namedtuple("Pair", ["aux", "logits"])


class Gives(nn.Module):
    """Answers with one object, whatever it is shown."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def forward(self, _inputs: Any) -> Any:
        return self.output


@pytest.mark.parametrize(
    "output",
    [
        ANSWERS,
        (ANSWERS, STATES),
        Pair(aux=STATES, logits=ANSWERS),
        {"last_hidden_state": STATES, "logits": ANSWERS},
        SimpleNamespace(loss=None, logits=ANSWERS),
        type("Own", (), {"logits": ANSWERS})(),
    ],
    ids=["tensor", "tuple", "named tuple", "mapping", "namespace", "object"],
)
def test_logits_are_found_in_every_kind_of_output(output: Any) -> None:
    assert logits(Gives(output), torch.zeros(2, 1)) is ANSWERS
    assert first_tensor(output) is ANSWERS


@pytest.mark.parametrize("output", [{"features": ANSWERS}, (STATES,), {}, None])
def test_an_output_without_logits_is_refused(output: Any) -> None:
    kind = type(output).__name__
    assert (
        refused(lambda: logits(Gives(output), torch.zeros(2, 1)))
        == f"Gives gives {kind} without logits (inputs, classes). Use a network that classifies."
    )


def test_a_layer_without_logits_means_its_states_else_its_first_tensor() -> None:
    assert first_tensor({"mask": ANSWERS, "last_hidden_state": STATES}) is STATES
    assert first_tensor([None, (STATES,), ANSWERS]) is STATES
    assert first_tensor("text") is None


def test_a_network_at_rest_is_put_back_as_it_was_even_after_an_error() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Linear(2, 2)).train()
    net[1].eval()
    net[2].requires_grad_(False)

    def fail() -> None:
        with eval_mode(nn.DataParallel(net), input_gradients=True) as resting:
            assert resting is net
            assert not any(part.training for part in net.modules())
            assert not any(weight.requires_grad for weight in net.parameters())
            assert torch.is_grad_enabled()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [part.training for part in net.modules()] == [True, True, False, True]
    assert [weight.requires_grad for weight in net.parameters()] == [True, True, False, False]


def test_a_network_at_rest_gives_no_gradients_unless_inputs_need_them() -> None:
    net, x = nn.Linear(2, 1), torch.ones(1, 2, requires_grad=True)
    with eval_mode(net):
        assert not net(x).requires_grad
    with torch.inference_mode(), eval_mode(net, input_gradients=True):
        (slope,) = torch.autograd.grad(net(x).sum(), x)
    assert torch.equal(slope, net.weight.detach())


def test_normalisation_stays_on_a_network_at_rest() -> None:
    net = Normalised(nn.Conv2d(1, 1, 1), [0.5], [0.5])
    with eval_mode(net) as resting:
        assert resting is net


@pytest.mark.usefixtures("vision")
def test_a_network_says_what_kind_of_inputs_it_takes() -> None:
    torchvision, timm = pytest.importorskip("torchvision"), pytest.importorskip("timm")
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    convolutions = {"conv_dim": (4,), "conv_stride": (5,), "conv_kernel": (10,), "num_conv_pos_embeddings": 2}
    bert = transformers.BertModel(transformers.BertConfig(vocab_size=9, **sizes))
    vit = transformers.ViTModel(transformers.ViTConfig(image_size=8, patch_size=4, **sizes))
    wav2vec = transformers.Wav2Vec2Model(
        transformers.Wav2Vec2Config(**sizes, **convolutions, num_conv_pos_embedding_groups=2)
    )

    class Mine(torchvision.models.SqueezeNet):
        pass

    assert input_kind(bert) == "text"
    assert input_kind(nn.DataParallel(vit)) == "image"
    assert input_kind(wav2vec) == "audio"
    assert input_kind(timm.create_model("test_resnet")) == input_kind(Mine()) == "image"
    assert input_kind(Normalised(nn.Flatten(), [0.5], [0.5])) == "image"
    assert input_kind(nn.Flatten()) is None
    assert input_kind(Gives(None)) is None


@pytest.mark.usefixtures("vision")
def test_inputs_of_another_kind_are_refused_with_both_kinds() -> None:
    pytest.importorskip("transformers")
    from tests.fuzz.tiny_transformers import build

    bert, hubert, sounds = build("bert"), build("hubert"), [torch.zeros(9), torch.zeros(7)]
    images = "Use a network of images, such as zoo:resnet20."
    hearing = "Use a network of sounds, such as hf:facebook/wav2vec2-base."
    for net, inputs, sentence in (
        (bert, torch.rand(2, 3, 8, 8), f"BertModel takes text, and was shown images. {images}"),
        (hubert, torch.rand(2, 3, 8, 8), f"HubertModel takes sounds, and was shown images. {images}"),
        (bert, sounds, f"BertModel takes text, and was shown sounds. {hearing}"),
        (
            hubert,
            sounds,
            "HubertModel has no feature extractor, and was shown arrays of different length. Give it rows of one "
            "length, or load it from a folder with its preprocessor_config.json: hf:PATH.",
        ),
    ):
        with pytest.raises(InputError) as error:
            call(net, inputs)
        assert str(error.value) == sentence


def test_a_list_of_rows_of_one_length_is_one_array() -> None:
    rows = torch.rand(3, 4)
    assert torch.equal(call(nn.Identity(), list(rows)), rows)


def test_half_precision_is_torchs_autocast() -> None:
    net, rows = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)), torch.randn(4, 8)
    with in_precision(net, "bfloat16"):
        found = net(rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = net(rows)
    assert torch.equal(found, expected)
    assert not torch.equal(found, net(rows))


def test_weights_of_half_precision_are_raised_meanwhile() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).to(torch.bfloat16).eval()
    kept = {name: value.data_ptr() for name, value in net.state_dict().items()}
    rows = torch.randn(4, 8)
    with in_precision(net, "float32"):
        found = net(rows)
    assert {name: value.data_ptr() for name, value in net.state_dict().items()} == kept
    assert {value.dtype for value in net.parameters()} == {torch.bfloat16}
    assert torch.equal(found, net.float()(rows))


def test_another_half_precision_than_that_of_the_weights_works() -> None:
    net = nn.Sequential(nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2)).to(torch.bfloat16).eval()
    with in_precision(net, "float16"):
        assert net(torch.randn(4, 2, 3)).isfinite().all()


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [("float61", " Did you mean 'float16'?"), ("int8", ""), (torch.float16, " Did you mean 'float16'?")],
)
def test_an_unknown_precision_is_refused(dtype: object, hint: str) -> None:
    with pytest.raises(InputError) as error, in_precision(nn.Linear(2, 2), dtype):  # type: ignore[arg-type]
        pass
    assert str(error.value) == f"no dtype named {dtype!r}.{hint} There are float32, float16, bfloat16."


def test_a_tokenizer_may_give_a_tensor() -> None:
    net = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(4, 3))
    texts = ["a", "bb", "ccc"]
    likewise.network(net, tokenizer=lambda texts: torch.tensor([[len(text)] for text in texts]))
    view = likewise.extract(net, texts)
    assert torch.equal(view.values, net[:2](torch.tensor([[1], [2], [3]])).detach())


def test_a_tokenizer_that_gives_no_tensor_is_refused() -> None:
    net = likewise.network(nn.Linear(2, 2), tokenizer=lambda texts: [[1]])
    assert refused(lambda: likewise.extract(net, ["a", "b"])) == (
        "the tokenizer of Linear gives [[1]]. Have it give a tensor with one row per text, or tensors by the names "
        "that the network takes."
    )
