"""What people have at hand: columns of pandas, arrays of texts, generators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.data import Data, as_data, objects
from likewise.errors import InputError

TEXTS = ["a plain text", "another", "and a third one"]
FORMS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "array": np.array(TEXTS),
    "objects": np.array(TEXTS, dtype=object),
    "series": pd.Series(TEXTS, index=[5, 6, 7], name="review"),
    "unnamed series": pd.Series(TEXTS),
    "frame": pd.DataFrame({"review": TEXTS, "stars": [1, 2, 3]}),
    "column": pd.DataFrame({0: TEXTS})[0],
}


@pytest.mark.parametrize("form", FORMS)
def test_texts_are_one_probe_whatever_holds_them(form: str) -> None:
    data = as_data(FORMS[form])
    assert (data.inputs, data.domain, data.labels) == (TEXTS, "text", None)
    assert data.probe == Data("any", "text", TEXTS).probe


def test_a_generator_of_texts_is_read_as_texts() -> None:
    assert as_data(text for text in TEXTS).inputs == TEXTS
    assert as_data(iter([("a", "b"), ("c", "d")])).inputs == [("a", "b"), ("c", "d")]


def test_numbers_and_batches_stay_what_they_are() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert torch.equal(as_data(frame), torch.tensor([[1.0, 3.0], [2.0, 4.0]], dtype=torch.float64))
    for same in (torch.rand(3, 4), np.zeros((3, 4)), [torch.rand(2, 4)], [], [["a", "b"], ["c"]]):
        assert as_data(same) is same


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["a", float("nan")], "entry 1 of the texts is nan, not a text. Leave such entries out."),
        (["a", ("b", "c")], "entry 1 of the texts is ('b', 'c'), not a text. Leave such entries out."),
        (
            pd.Series(["a", None], name="review"),
            "column 'review' of data frame holds {} in row 1, not text. Leave such rows out.",
        ),
    ],
)
def test_an_entry_that_is_no_text_is_named(given: Any, sentence: str) -> None:
    missing = repr(given.iloc[1]) if isinstance(given, pd.Series) else ""
    with pytest.raises(InputError) as error:
        as_data(given)
    assert str(error.value) == sentence.format(missing)


def test_an_object_that_is_no_data_is_refused() -> None:
    with pytest.raises(InputError) as error:
        likewise.dataset(3)
    assert str(error.value) == (
        "dataset needs an address, a path, a data frame or a dataset of Hugging Face, and was given 3. Pass it to "
        "compare or extract as it is, or make likewise.data.Data of it."
    )


def batches(rows: Tensor) -> Iterator[Tensor]:
    yield from rows.split(4)


def nets() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {name: nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)) for name in "ab"}


def test_a_generator_is_read_once_for_all_networks() -> None:
    rows, pair = torch.rand(12, 3), nets()
    found = likewise.compare(pair, "cka", data=batches(rows))
    expected = likewise.compare(pair, "cka", data=rows)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    layers = likewise.layerwise(*pair.values(), batches(rows), measure="cka", layers="all")
    np.testing.assert_allclose(
        layers.values, likewise.layerwise(*pair.values(), rows, measure="cka", layers="all").values, atol=1e-6
    )


def test_a_generator_larger_than_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "free_memory", lambda: 200)
    with pytest.raises(InputError) as error:
        likewise.compare(nets(), "cka", data=({"input": rows} for rows in batches(torch.rand(12, 3))))
    assert str(error.value) == (
        "the data is a generator, which can be read once only, and it gives more than memory can keep for the next "
        "network. Pass what can be read again: an address, a dataset or a DataLoader."
    )
    one = likewise.extract(nets()["a"], batches(torch.rand(12, 3)), "0")
    assert one.shape == (12, 5)


def test_a_generator_that_is_used_up_says_so() -> None:
    used = batches(torch.rand(12, 3))
    likewise.extract(nets()["a"], used, "0")
    with pytest.raises(InputError) as error:
        likewise.extract(nets()["a"], used, "0")
    assert str(error.value) == (
        "the data gave no inputs: a generator can be read once only. Pass a list of its batches."
    )
