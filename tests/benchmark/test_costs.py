"""What a training costs: operations counted by hand, several networks in one plan, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from likewise.benchmark import plan
from likewise.benchmark.costs import TrainingCost, estimate
from likewise.benchmark.planning import Plan, run_folder
from likewise.errors import InputError
from tests.helpers import sentence as refusal

PRESET: dict[str, Any] = {"seeds": 3, "group": 2, "layered": 2, "train": 50, "probe": 40, "training": {"epochs": 4}}


def cost(network: str, domain: str = "vision", data: str = "digits") -> TrainingCost:
    return estimate(Plan.make(domain, data, network, ["accuracy"], "cka", PRESET, 0).tasks(Path("unused"))[0])


def test_operations_of_a_training_are_those_counted_by_hand() -> None:
    of_mlp = cost("mlp")
    weights = 64 * 256 + 256 * 256 + 256 * 10  # digits have 64 pixels
    forward = 2 * weights
    backward = 2 * forward - 2 * 64 * 256  # by weights and by inputs, but for the pixels
    assert of_mlp.operations == (forward + backward) * 50 * 4  # images, epochs
    assert of_mlp.size == 4 * (weights + 256 + 256 + 10) + 8  # float32, and the normalisation of one channel
    assert of_mlp.seconds > 0
    assert TrainingCost(1.0, 3.6e16, 1).gpu_hours(10) == pytest.approx(1.0)


def test_operations_over_a_graph_are_those_of_its_epochs() -> None:
    pytest.importorskip("torch_geometric")
    few, many = (
        estimate(
            Plan.make("graph", "digits-graph", "gcn", ["accuracy"], "cka", {"training": {"epochs": epochs}}, 0).tasks(
                Path("unused")
            )[0]
        )
        for epochs in (2, 20)
    )
    assert many.operations == 10 * few.operations > 0


def test_one_plan_holds_several_networks_and_what_is_done_of_each(tmp_path: Path) -> None:
    frame = plan("vision", "digits", ["mlp", "zoo:lenet"], preset=PRESET, groundings="accuracy", out=tmp_path)
    assert frame[["network", "group", "networks", "done"]].values.tolist() == [
        ["mlp", "standard", 3, 0],
        ["zoo:lenet", "standard", 3, 0],
    ]
    assert frame.attrs == {"pairs": 3 + 3, "measures": 23, "gpu_tflops": 10.0}
    slower = plan("vision", "digits", "mlp", preset=PRESET, groundings="accuracy", gpu_tflops=5)
    assert slower["gpu_hours"][0] == pytest.approx(2 * frame["gpu_hours"][0], rel=0.01)
    assert list(tmp_path.iterdir()) == []
    assert run_folder(tmp_path, "zoo:lenet", 2) == tmp_path / "zoo-lenet"
    assert run_folder(tmp_path, "zoo:lenet", 1) == tmp_path


def test_a_plan_of_nothing_or_of_no_gpu_is_refused() -> None:
    assert refusal(InputError, plan, "vision", "digits", []) == ("a plan needs a network. Name one or more, as in gcn.")
    assert refusal(InputError, plan, "vision", "digits", "mlp", gpu_tflops=0) == (
        "gpu_tflops is 0. Give what a GPU sustains, above 0, such as 10."
    )
