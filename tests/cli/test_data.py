"""`likewise data`: what data there is."""

from __future__ import annotations

import json

from likewise.cli.data import data
from tests.cli.conftest import invoke, run


def test_data_is_listed_with_its_splits() -> None:
    found = json.loads(invoke(data, "cifar*", "--json"))
    assert found == [
        {"name": "cifar10", "domain": "image", "splits": ["test", "train"]},
        {"name": "cifar100", "domain": "image", "splits": ["test", "train"]},
    ]
    assert "imagefolder:PATH" in invoke(data)


def test_the_command_says_where_no_data_matches() -> None:
    assert run("data", "nope").stderr == "likewise: no data matches 'nope'. Leave the pattern out to see all.\n"
