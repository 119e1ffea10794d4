"""Which cells of the paper were run, and which results count as runs with its settings."""

from __future__ import annotations

import pytest

from likewise.benchmark.results.coverage import coverage, with_papers_settings
from likewise.benchmark.results.paper import paper_results
from tests.benchmark.frames import results, row


def test_the_papers_own_results_cover_all_of_its_cells() -> None:
    rows = coverage(paper_results())
    assert len(rows) == 6 * (9 + 2 + 7)  # groundings by graph, language and vision settings
    assert set(rows["status"]) == {"paper"}
    assert set(rows["repetitions"]) == {1}


def test_a_cell_is_run_run_small_or_not_run() -> None:
    made = [
        *(row(seed=seed, valid=seed > 0) for seed in range(3)),
        row(domain="language", data="sst2", network="minilm", preset="small, changed"),
        row(domain="vision", data="cifar10", network="lenet", preset="small"),
    ]
    rows = coverage(results(made)).set_index(["data", "network", "grounding"])
    columns = ["status", "networks", "repetitions", "valid"]
    assert rows.loc[("Cora", "GCN", "labels"), columns].tolist() == ["paper", "gcn", 3, 2]
    assert rows.loc[("Cora", "GAT", "labels"), columns].tolist() == ["small", "gcn", 3, 2]  # another network
    assert rows.loc[("SST2", "BERT", "labels"), columns].tolist() == ["small", "minilm", 1, 1]
    assert rows.loc[("ImageNet100", "VGG11", "labels"), columns].tolist() == ["not run", "", 0, 0]
    assert rows.loc[("Cora", "GCN", "shortcut"), "status"] == "not run"


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"network": "zoo:gcn"}, True),
        ({"data": "flickr:/data/flickr", "network": "graphsage"}, True),
        ({"domain": "vision", "data": "imagenet100:/data", "network": "vgg11"}, True),
        (
            {
                "domain": "vision",
                "data": "imagenet100",
                "network": "hf:google/vit-base-patch32-224-in21k,pretrained=true",
            },
            True,
        ),
        ({"domain": "vision", "data": "imagenet100:/data", "network": "torchvision:vgg11"}, False),
        ({"domain": "vision", "data": "imagenet100:/data,size=32", "network": "vgg11"}, False),
        ({"network": "zoo:gcn,depth=2"}, False),
        ({"preset": "paper, changed"}, False),
        ({"data": "citeseer"}, False),
    ],
)
def test_what_counts_as_run_with_the_papers_settings(changes: dict[str, str], counts: bool) -> None:
    assert len(with_papers_settings(results([row(**changes)])).frame) == counts
