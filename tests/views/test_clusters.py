"""Views of tokens and positions remember which input every row is of."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.comparison.units import units_of
from likewise.errors import InputError
from likewise.measures.representation import Representation
from likewise.measures.resampling import Subset
from likewise.views import Activations
from likewise.views.cache import put_view, read_view
from likewise.work.store import Artifacts


class Maps(nn.Module):
    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.maps, self.head = nn.Conv2d(1, 3, 3), nn.Linear(3, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.maps(images).mean(dim=(2, 3)))


def images(n=12):
    return torch.rand(n, 1, 6, 6, generator=torch.Generator().manual_seed(0))


EACH = np.repeat(np.arange(12), 16)


def test_positions_of_an_extracted_layer_remember_their_image(tmp_path) -> None:
    for options in ({}, {"store": tmp_path}, {"store": tmp_path}, {"batch_size": 5}):
        view = likewise.extract(Maps(), images(), "maps", reduce="spatial", progress=False, **options)
        assert view.n == 192
        assert np.array_equal(view.clusters, EACH)
    assert likewise.extract(Maps(), images(), "maps", reduce="mean", progress=False).clusters is None
    assert likewise.extract(Maps(), images(), "head", reduce="spatial", progress=False).clusters is None


def test_maps_and_tokens_given_as_arrays_remember_theirs() -> None:
    maps = np.random.default_rng(0).normal(size=(12, 3, 4, 4))
    assert np.array_equal(Activations(maps, reduce="spatial").clusters, EACH)
    assert np.array_equal(Activations(maps.reshape(12, 16, 3), reduce="spatial").clusters, EACH)
    assert Activations(maps, reduce="flatten").clusters is None


def test_clusters_survive_names_subsets_and_files(tmp_path) -> None:
    view = Activations(np.random.default_rng(0).normal(size=(192, 3)), name="a", clusters=torch.from_numpy(EACH))
    assert np.array_equal(view.named("b").clusters, EACH)
    index = torch.arange(10, 150)
    assert np.array_equal(Subset(Representation(view), index).view.clusters, EACH[10:150])
    files = put_view(Artifacts(tmp_path), view)
    assert np.array_equal(read_view(files).clusters, EACH)
    assert read_view(files).digest == view.digest != Activations(view.values).digest


def test_a_file_without_clusters_is_read_without(tmp_path) -> None:
    view = Activations(np.random.default_rng(0).normal(size=(192, 3)))
    assert read_view(put_view(Artifacts(tmp_path), view)).clusters is None


def test_clusters_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError) as error:
        Activations(np.zeros((4, 2)), name="a", clusters=[0, 1, 1])
    assert str(error.value) == (
        "clusters of 'a' must be 4 whole numbers from 0, got int64 of shape (3,). Give one class index per input."
    )


def test_nulls_and_intervals_use_them_unasked() -> None:
    data = images(40)
    x, y = (likewise.extract(Maps(seed), data, "maps", reduce="spatial", progress=False) for seed in range(2))
    clusters = np.repeat(np.arange(40), 16)
    unasked, asked = (
        likewise.calibrate(x, y, permutations=9),
        likewise.calibrate(x.values, y.values, permutations=9, clusters=clusters),
    )
    assert unasked == asked
    assert likewise.bootstrap(x, y) == likewise.bootstrap(x.values, y.values, clusters=clusters)
    rows = likewise.calibrate(x, y, permutations=9, clusters=np.arange(640))
    assert rows.null_mean != unasked.null_mean
    networks = likewise.calibrate(
        Maps(0), Maps(1), data=data, layers="maps", reduce="spatial", permutations=9, progress=False
    )
    assert networks.null_mean == pytest.approx(unasked.null_mean)


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_tokens_remember_their_text_and_padding_is_none_of_them() -> None:
    net = likewise.network("zoo:bert-tiny")
    texts = ["short", "a text of some more words", "and one between"]
    padded, alone = (
        likewise.extract(net, texts, "encoder.encoder.layer.0", reduce="spatial", batch_size=size, progress=False)
        for size in (3, 1)
    )
    assert np.array_equal(padded.clusters, alone.clusters)
    assert np.array_equal(np.unique(padded.clusters), [0, 1, 2])
    assert len(padded.clusters) == padded.n
    assert len(set(np.bincount(padded.clusters))) == 3


def test_the_inputs_that_networks_differ_on_are_images_not_positions() -> None:
    maps = np.random.default_rng(0).normal(size=(12, 3, 4, 4))
    changed = maps.copy()
    changed[7] *= -1
    for measure in ("cka", "pnka"):
        result = likewise.influence(
            {"x": Activations(maps, reduce="spatial"), "y": Activations(changed, reduce="spatial")}, measure, most=3
        )
        assert result.worst("x", "y", measure)[0][0] == 7
        assert len(result.labels) == 12


def test_views_whose_rows_belong_to_inputs_in_different_ways_have_no_null() -> None:
    a, b = (
        Activations(np.eye(6), name=name, clusters=labels)
        for name, labels in (("a", [0, 0, 0, 1, 1, 1]), ("b", [0, 0, 1, 1, 2, 2]))
    )
    with pytest.raises(InputError) as error:
        units_of([a, b])
    assert str(error.value) == (
        "rows of 'a' and 'b' belong to inputs in different ways. Extract both with one reduction from maps of one "
        "size, or pass clusters=<one label per row>."
    )


def test_a_score_of_clusters_that_cannot_change_places_has_no_verdict() -> None:
    x, y = (
        Activations(v, clusters=np.repeat(range(4), [2, 3, 4, 5]))
        for v in np.random.default_rng(0).normal(size=(2, 14, 3))
    )
    assert likewise.compare(x, y, "cka").explain().endswith("tells it from noise.")
