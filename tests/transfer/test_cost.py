"""What a run of SAT would cost."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from likewise._base.optional import prepare_torchvision
from likewise.transfer import plan, preset
from tests.conftest import refused
from tests.transfer.helpers import Convolved, digits, trained


class Handed(nn.Module):
    """Hands a weight from module to module, as some transformers do with their class token."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.shape, self.fc = nn.Parameter(torch.ones(10)), nn.Identity(), nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(images.flatten(1)) + self.shape(self.token)


def test_a_plan_counts_passes_and_multiplications_of_each_network() -> None:
    found = plan({"a": trained(), "c": Convolved(), "h": Handed()}, digits(), iterations=7)
    assert found["network"].tolist() == ["a", "c", "h"]
    assert found["steps"].tolist() == [40 * 7] * 3
    assert found["passes"].tolist() == [40 * (1 + 3)] * 3  # clean images, and the examples of three
    # of the convolution, 6 × 6 places, 12 maps, 9 weights; of the layer behind it 108 × 10
    macs = [64 * 24 + 24 * 10, 36 * 12 * 9 + 108 * 10, 64 * 10]
    assert (found["gmacs"] * 1e9).round().tolist() == macs
    assert found["tmacs"].tolist() == pytest.approx([(2 * 280 + 160) * each / 1e12 for each in macs])
    assert found["gb"].tolist() == pytest.approx([40 * 3 * 64 * 2 / 1e9] * 3)


def test_slopes_around_each_step_are_counted() -> None:
    found = plan({"a": trained()}, digits(), "vmi-fgsm", iterations=5, neighbours=4)
    assert found["steps"].tolist() == [40 * 5 * 5]


def test_the_papers_networks_are_all_there_and_of_its_sizes() -> None:
    found = plan(preset="paper")
    assert found["network"].tolist() == preset("paper")
    assert len(set(preset("paper"))) == 69
    assert found["size"].between(224, 299).all()
    assert found["gmacs"].between(0.3, 110).all()
    assert found["parameters"].between(5, 150).all()


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("papers", None, "no preset named 'papers'. Did you mean 'paper'? There is 'paper'."),
        (None, None, "a plan needs networks and data, or a preset. Give preset='paper', or both of them."),
    ],
)
def test_a_plan_of_nothing_is_refused(name: str | None, given: None, sentence: str) -> None:
    assert refused(lambda: plan(given, preset=name)) == sentence


def test_networks_of_the_paper_have_its_weights_and_those_that_are_gone_are_named_before_any_work() -> None:
    prepare_torchvision()
    timm = pytest.importorskip("timm")
    with pytest.warns(UserWarning, match="gluon") as told:
        names = preset("paper", available=True)
    assert str(told[0].message) == (
        f"timm {timm.__version__} does not know 'timm:gluon_xception65' of the preset 'paper': 68 of 69 networks "
        "are left."
    )
    assert len(names) == 68
    assert all(timm.is_model_pretrained(name.removeprefix("timm:")) for name in names)
    # bare names mean other weights today: trained on more images, by another recipe, by torchvision
    assert {"timm:convnext_tiny.fb_in1k", "timm:seresnet50.ra2_in1k", "timm:regnetx_320.pycls_in1k"} <= set(names)
    assert {"timm:nest_tiny_jx.goog_in1k", "timm:resnet101c.gluon_in1k"} <= set(names)  # renamed
