"""Components read from one pass: networks of libraries, networks of one's own, and what does not show."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise import analysis
from tests.conftest import data_root, refused

NAMES = [
    "base_architecture",
    "hierarchical",
    "stem",
    "input_resolution",
    "normalization",
    "activation",
    "pooling_at_stem",
    "final_pooling",
    "self_attention_2d",
    "channel_attention",
    "channel_attention_location",
    "depthwise_conv",
    "group_conv",
]
KNOWN = {
    "timm:resnext26ts": "CNN Yes 3s2/3/3 256 BN SiLU Yes GAP No No - No Yes",
    "timm:seresnet18": "CNN Yes 7s2 224 BN ReLU Yes GAP No Yes(SE) End No No",
    "timm:test_efficientnet": "NAS(CNN) Yes 3s2 160 BN SiLU No GAP No Yes(SE) Middle Yes No",
    "timm:test_vit": "Transformer No 16s16 160 LN GeLU No CLStoken No No - No No",
    "timm:test_convnext": "CNN Yes 4s4 160 LN GeLU No GAP No No - Yes No",
    "timm:pit_ti_224": "Transformer Yes 16s8 224 LN GeLU No CLStoken No No - Yes No",
    "timm:nf_resnet26": "CNN Yes 7s2 224 Norm-free ReLU Yes GAP No No - No No",
    "timm:botnet26t_256": "CNN Yes 3s2/3/3 256 BN ReLU Yes GAP Yes(BoT) No - No No",
    "timm:mixer_s32_224": "MLP-Mixer No 32s32 224 LN GeLU No GAP No No - No No",
    "torchvision:mobilenet_v3_small": "NAS(CNN) Yes 3s2 224 BN ReLU+HardSwish No GAP No Yes(SE) Middle Yes No",
    "torchvision:swin_t": "Transformer Yes 4s4 224 LN GeLU No GAP No No - No No",
    "torchvision:vgg11": "CNN Yes 3s1 224 Norm-free ReLU Yes Flatten No No - No No",
    "torchvision:vit_b_32": "Transformer No 32s32 224 LN GeLU No CLStoken No No - No No",
}


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(("address", "expected"), KNOWN.items())
def test_networks_of_libraries_show_their_components(address: str, expected: str) -> None:
    found = analysis.components(address)
    assert list(found) == NAMES
    assert " ".join(str(value).replace(" ", "") for value in found.values()) == expected


PAPER = (  # a light one of each base architecture
    "botnet26t_256",
    "eca_resnet33ts",
    "efficientnet_b2",
    "twins_svt_small",
    "xcit_tiny_12_p8_224",
    "resmlp_24_224",
)


@pytest.mark.usefixtures("vision")
def test_networks_of_the_paper_show_the_components_of_its_table() -> None:
    table = pd.read_csv(data_root("..", "golden/sat_model_cards.csv"), index_col=0, keep_default_na=False, dtype=str)
    for name in PAPER:
        expected = table.loc[name, NAMES].replace("", "-").to_dict()
        assert analysis.components(f"timm:{name}") == expected, name


class Functional(nn.Module):
    """A network whose activation, pooling and attention stand in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Conv2d(1, 4, 5, 2), nn.Conv2d(4, 8, 3, groups=2), nn.Linear(8, 3)
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, groups=8), nn.GroupNorm(2, 8))

    def forward(self, images: Tensor) -> Tensor:
        maps = functional.max_pool2d(functional.leaky_relu(self.first(images)), 2)
        maps = self.block(functional.leaky_relu(self.second(maps)))
        return self.head(functional.adaptive_avg_pool2d(maps, 1).flatten(1))


def test_what_is_written_into_the_forward_pass_shows_too() -> None:
    found = analysis.components(Functional(), torch.rand(4, 1, 32, 28))
    assert found == dict(
        zip(
            NAMES,
            ("CNN", "Yes", "5s2", "32x28", "GN", "Leaky ReLU", "Yes", "GAP", "No", "No", "-", "Yes", "Yes"),
            strict=True,
        )
    )


class Gate(nn.Module):
    """Channels gated by a class that nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self.weigh = nn.Linear(4, 4)

    def forward(self, maps: Tensor) -> Tensor:
        return maps * self.weigh(maps.mean((2, 3))).sigmoid()[:, :, None, None]


def test_gates_of_channels_show_by_what_they_do() -> None:
    def gated(*block: nn.Module) -> dict[str, str | None]:
        layers = [nn.Conv2d(3, 4, 3), nn.Sequential(*block), nn.Flatten(), nn.LazyLinear(2)]
        net = nn.Sequential(*layers)
        net(torch.zeros(2, 3, 8, 8))
        return analysis.components(net, torch.rand(2, 3, 8, 8))

    middle = gated(nn.Conv2d(4, 4, 1), Gate(), nn.Conv2d(4, 4, 1))
    end = gated(nn.Conv2d(4, 4, 1), Gate())
    assert (middle["channel_attention"], middle["channel_attention_location"]) == ("Yes", "Middle")
    assert (end["channel_attention"], end["channel_attention_location"]) == ("Yes", "End")
    assert end["activation"] == "Sigmoid"


def test_a_network_without_images_says_what_it_can() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
    net = nn.Sequential(nn.Embedding(50, 8), layer)
    found = analysis.components(net, torch.randint(0, 50, (3, 6)))
    assert (found["base_architecture"], found["normalization"], found["activation"]) == ("Transformer", "LN", "GeLU")
    assert (found["stem"], found["input_resolution"], found["hierarchical"]) == (None, None, None)
    rows = analysis.components(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), torch.rand(3, 4))
    assert (rows["base_architecture"], rows["stem"], rows["activation"]) == ("MLP", "linear", "Tanh")
    assert rows["final_pooling"] is None


def test_a_network_is_left_as_it_was() -> None:
    net = Functional().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    analysis.components(net)
    assert net.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
    assert all(weight.requires_grad for weight in net.parameters())


def test_the_resolution_of_zeros_that_were_tried_is_not_taken_for_the_networks() -> None:
    assert analysis.components(Functional())["input_resolution"] is None
    assert analysis.components(Functional(), torch.rand(2, 1, 28, 28))["input_resolution"] == "28"


def test_a_table_has_one_row_per_network_as_compare_names_them() -> None:
    data = likewise.dataset("digits:test[:4]")
    found = analysis.component_table(["zoo:lenet", "zoo:mlp", "zoo:lenet"], data)
    assert (list(found.index), list(found.columns)) == (["lenet", "mlp", "lenet#2"], NAMES)
    assert found.loc["lenet", "base_architecture"] == "CNN"
    assert found.loc["mlp", "base_architecture"] == "MLP"
    named = analysis.component_table({"mine": Functional()}, torch.rand(2, 1, 28, 28))
    assert list(named.index) == ["mine"]


class Picky(nn.Module):
    """Takes pairs of numbers alone."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(2, 2)

    def forward(self, rows: Tensor) -> Tensor:
        return self.line(rows)


@pytest.mark.parametrize(
    ("network", "data", "sentence"),
    [
        (
            Picky(),
            None,
            "Picky takes none of the inputs that were tried, so its components cannot be read. Pass data= that it "
            "takes, or give a table of components.",
        ),
        (
            nn.ReLU(),
            torch.rand(2, 3),
            "ReLU shows no layer with weights in its pass. Give a table of components instead.",
        ),
        (
            Picky(),
            torch.rand(2, 3),
            "the components cannot be read: 'Picky' failed in layer 'line' (Linear) on batch 1 (inputs 0 to 1, (2, 3) "
            "float32): RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x2). Check that the network "
            "takes inputs of this shape and type.",
        ),
    ],
    ids=["no input fits", "no layer", "other data"],
)
def test_what_cannot_be_read_is_refused(network: nn.Module, data: Any, sentence: str) -> None:
    assert refused(lambda: analysis.components(network, data)) == sentence
