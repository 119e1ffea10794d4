"""Views in one file: rounded to half, the same on every machine, and refused where damaged or too large."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from likewise._base.hashing import digest
from likewise.benchmark import CachedViews, run
from likewise.benchmark.board import cached_views
from likewise.errors import InputError
from tests.benchmark.board.made import cached, trials


def test_what_is_saved_comes_back_within_half_precision(tmp_path: Path) -> None:
    made = cached()
    back = CachedViews.load(made.save(tmp_path / "views"))
    assert back.digest == made.digest
    assert repr(back) == "CachedViews(2 runs, 8 groundings, 46 tensors)"
    originals = [trial for _, trial in [*trials(0), *trials(1, domain="graph")]]
    for original, one in zip(originals, back.trials, strict=True):
        assert (original.grounding, original.groups) == (one.trial.grounding, one.trial.groups)
        assert original.validity == one.trial.validity
        assert list(original.views) == list(one.trial.views)
        for name, view in original.views.items():
            again = one.trial.views[name]
            np.testing.assert_allclose(again.values, view.values, rtol=2**-11, atol=2.0)  # of values up to 4e6
            assert view.outputs is not None
            assert again.outputs is not None
            np.testing.assert_array_equal(again.outputs.labels, view.outputs.labels)
        assert [list(layer.rows) for layer in original.layers] == [list(layer.rows) for layer in one.trial.layers]


def test_a_view_of_several_groundings_is_kept_once() -> None:
    made = cached()
    keys = {trial["views"][0][1] for trial in made.record["trials"][:3]}
    assert keys == {"0"}


def test_other_views_have_another_digest() -> None:
    assert cached().digest == cached().digest
    assert cached().digest != cached(2).digest
    assert len(cached().digest) == len(digest(["x"])[:24])


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    path = cached().save(tmp_path / "views")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        CachedViews.load(path)
    assert str(caught.value) == (
        f"{path} holds no cached views (it does not match its checksum). Make them by `likewise benchmark views RUNS "
        f"-o {path}`."
    )


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(2)}, tmp_path / "x.safetensors")
    with pytest.raises(InputError) as caught:
        CachedViews.load(tmp_path / "x.safetensors")
    assert str(caught.value) == (
        f"{tmp_path}/x.safetensors holds no cached views (it does not match its checksum). Make them by `likewise "
        f"benchmark views RUNS -o {tmp_path}/x.safetensors`."
    )


def test_views_that_take_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_views, "MOST_BYTES", 2_000)
    with pytest.raises(InputError) as caught:
        cached()
    assert str(caught.value) == (
        "the views of these runs take 0 MB, more than 0. Give fewer runs, or keep fewer inputs, as in --inputs 500."
    )


def test_the_first_inputs_can_be_kept_alone() -> None:
    few, whole = CachedViews.of(trials(), inputs=20), CachedViews.of(trials())
    for one, other in zip(few.trials[0].trial.views.values(), whole.trials[0].trial.views.values(), strict=True):
        assert one.shape == (20, 6)
        assert one.outputs is not None
        assert other.outputs is not None
        np.testing.assert_allclose(one.values, other.values[:20], rtol=2**-10, atol=4.0)
        np.testing.assert_array_equal(one.outputs.labels, other.outputs.labels[:20])
    assert [layer.n for layer in few.trials[3].trial.layers[0].rows.values()] == [20] * 3
    with pytest.raises(InputError, match=r"^inputs is 1\. Give 2 or more\.$"):
        CachedViews.of(trials(), inputs=1)


def test_no_run_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        CachedViews.from_runs([])
    assert str(caught.value) == "no run was given. Give the folder of one or more: likewise benchmark run --out."


def test_the_views_of_a_run_are_those_of_its_store(tmp_path: Path) -> None:
    sizes = {"base": "small", "seeds": 3, "train": 60, "probe": 20, "training": {"epochs": 1}}
    made = run("vision", "digits", "mlp", out=tmp_path / "run", preset=sizes, groundings="outputs", measures="cka")
    cached_run = CachedViews.from_runs([made.out])
    (one,), (trial,) = cached_run.trials, made.trials()
    assert one.settings == {
        "domain": "vision",
        "data": "digits",
        "network": "mlp",
        "preset": "small, changed",
        "seed": 0,
    }
    for name, view in trial.views.items():
        np.testing.assert_allclose(one.trial.views[name].values, view.values, rtol=2**-10, atol=1e-3)
