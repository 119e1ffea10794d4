"""Settings of published trainings by name."""

from __future__ import annotations

from pathlib import Path

import likewise
from likewise.cli.train import train
from likewise.errors import UnknownNameError
from likewise.networks import preset
from likewise.networks.training.augment import AUGMENTS
from tests.classes.helpers import refusals
from tests.cli.conftest import invoke


def test_the_recipe_has_what_the_paper_tells() -> None:
    settings = preset("dsi")
    assert (settings.epochs, settings.schedule, settings.warmup > 0, settings.cutmix) == (400, "plateau", True, 0)
    assert len(settings.augment) == len(set(settings.augment) & set(AUGMENTS)) == 7
    vit = preset("dsi-vit")
    assert (vit.augment, vit.epochs, vit.schedule, vit.cutmix) == (settings.augment, 400, "plateau", 1.0)


def test_the_command_trains_by_a_preset_of_which_options_change_some(tmp_path: Path) -> None:
    words = ["zoo:mlp", "digits:train[:20]", "--preset", "dsi", "--epochs", "1", "--warmup", "1", "--lr", "0.01"]
    invoke(train, *words, "--out", str(tmp_path / "run"))
    given = likewise.train(
        "zoo:mlp", "digits:train[:20]", preset("dsi"), validation="digits:test", epochs=1, warmup=1, lr=0.01
    )
    trained = likewise.network(str(tmp_path / "run"))
    assert all(trained.state_dict()[name].equal(value) for name, value in given.net.state_dict().items())


test_an_error_is_a_sentence = refusals(
    (lambda: preset("dsy"), "no preset named 'dsy'. Did you mean 'dsi'?", UnknownNameError)
)
