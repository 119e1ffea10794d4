"""`likewise transfer`: networks and images in, a run that other commands read out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import likewise
from likewise._base.optional import prepare_torchvision
from likewise.cli.transfer import transfer
from likewise.errors import InputError
from likewise.transfer import load, sat
from tests.cli.conftest import invoke
from tests.helpers import sentence

DATA = ("--data", "digits:test[:30]")
QUICK = ("--eps", "40/255", "--iterations", "3")


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("trained")
    for seed in (0, 1):
        how = {"epochs": 4, "lr": 0.1, "seed": seed, "validation": None, "progress": False}
        likewise.train("zoo:mlp", "digits:train[:500]", out=folder / f"n{seed}", **how)
    return [str(folder / f"n{seed}") for seed in (0, 1)]


@pytest.mark.filterwarnings("ignore:clean accuracies differ")
def test_a_run_leaves_a_folder_with_the_numbers_of_the_public_call(nets: list[str], tmp_path: Path) -> None:
    printed = invoke(transfer, *nets, *DATA, *QUICK, "--out", str(tmp_path / "run"))
    assert printed.startswith("sat  (larger is more alike; ln 100 = 4.605: whatever fools one fools the other)\n")
    assert "30 inputs, clean accuracies from " in printed
    files = "sat.safetensors, sat.csv, sat.png, answers.safetensors, store/"
    assert printed.endswith(f"\nwritten to {tmp_path / 'run'}: {files}\n")
    expected = sat(nets, "digits:test[:30]", eps=40 / 255, iterations=3, progress=False)
    found = load(tmp_path / "run")
    assert found.names == expected.names
    assert (found.predictions == expected.predictions).all()
    assert (tmp_path / "run" / "sat.png").stat().st_size > 1000
    rows = json.loads(invoke(transfer, *nets, *DATA, *QUICK, "--out", str(tmp_path / "run"), "--json"))
    assert [row["value"] for row in rows] == pytest.approx(expected.values.flatten().tolist())
    assert len(list((tmp_path / "run" / "store" / "adversarial").iterdir())) == 2 + 1  # and clean images


def test_smoothed_scores_are_those_of_the_public_call(nets: list[str]) -> None:
    rows = json.loads(invoke(transfer, *nets, *DATA, *QUICK, "--smoothed", "--json"))
    expected = sat(nets, "digits:test[:30]", eps=40 / 255, iterations=3, smoothed=True, progress=False)
    assert [row["value"] for row in rows] == pytest.approx(expected.values.flatten().tolist())


def test_options_of_an_attack_stand_behind_its_name(nets: list[str]) -> None:
    rows = json.loads(
        invoke(transfer, *nets, *DATA, "--attack", "mi-fgsm,eps=40/255,iterations=3,decay=0.5", "--plan", "--json")
    )
    assert [row["steps"] for row in rows] == [90, 90]
    words = (*nets, *DATA, "--attack", "pgd,eps=0.1", "--eps", "0.2")
    assert sentence(InputError, invoke, transfer, *words) == (
        "eps is given twice, in --attack and as --eps. Give it once."
    )


def test_the_plan_of_the_paper_lists_its_networks_and_what_they_would_cost() -> None:
    prepare_torchvision()
    pytest.importorskip("timm")
    with pytest.warns(UserWarning, match=r"does not know 'timm:gluon_xception65' of the preset 'paper': 68 of 69"):
        printed = invoke(transfer, "--preset", "paper", "--plan")
    lines = printed.splitlines()
    assert len(lines) == 1 + 68 + 2
    assert lines[1].split()[0] == "timm:nfnet_l0.ra2_in1k"
    # 68 networks, 5,000 images: 50 steps each, clean images and 68 sets of examples
    assert "68 networks: 17,000,000 steps of attacks, 23,460,000 forward passes, " in lines[-1]
    assert lines[-1].endswith(" GB of examples. Nothing was run.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "likewise transfer takes networks, or --preset paper. Give one of them."),
        (("zoo:mlp", "--preset", "paper"), "likewise transfer takes networks, or --preset paper. Give one of them."),
        (("--preset", "papers", "--plan"), "no preset named 'papers'. Did you mean 'paper'? There is 'paper'."),
        (
            ("zoo:mlp", "zoo:mlp"),
            "networks are attacked on labelled images. Say which, as in --data 'cifar10:test[:500]'.",
        ),
        (
            ("zoo:mlp", "zoo:mlp", *DATA, "--eps", "0"),
            "eps is 0, and nothing changes within that. Give a number above 0, like 8/255.",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(words: tuple[str, ...], message: str) -> None:
    assert sentence(InputError, invoke, transfer, *words) == message
