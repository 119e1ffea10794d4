"""What comes as activations, logits or labels: read as numbers, or refused with one sentence."""

import decimal
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from torch import nn

import likewise
from likewise import measures
from likewise.errors import InputError
from likewise.views import Activations, Outputs
from tests.helpers import sentence as refusal

N = 12
ROWS = np.random.default_rng(0).normal(size=(N, 3))
TENSOR = torch.tensor(ROWS)
LIST = "Pass an array, a tensor, a data frame or a list of rows."


class Broken:
    def __array__(self, *args, **options):
        raise RuntimeError("no such file")


def quietly(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta layouts and the like
        return make()


def unaligned():
    room = np.zeros(ROWS.nbytes + 1, dtype="u1")
    array = room[1:].view("f8").reshape(ROWS.shape)
    array[:] = ROWS
    return array


REFUSED = {
    "sparse": (lambda: TENSOR.to_sparse(), "{} is a tensor of layout sparse_coo. Pass its to_dense()."),
    "sparse rows": (lambda: TENSOR.to_sparse_csr(), "{} is a tensor of layout sparse_csr. Pass its to_dense()."),
    "meta": (
        lambda: torch.empty(N, 3, device="meta"),
        "{} is on the device 'meta', where tensors have no values. Compute it on another.",
    ),
    "quantised": (
        lambda: torch.quantize_per_tensor(TENSOR.float(), 0.1, 0, torch.qint8),
        "{} is a quantised tensor. Pass its dequantize().",
    ),
    "nested": (
        lambda: torch.nested.nested_tensor([TENSOR[:2], TENSOR[2:]]),
        "{} is a nested tensor. Pad its rows, or reduce them to one length.",
    ),
    "complex": (lambda: ROWS + 1j, "{} holds complex entries. Pass its real part or its modulus."),
    "objects": (
        lambda: ROWS.astype(object),
        "{} holds object entries, not numbers. Pass an array of one numeric type.",
    ),
    "decimals": (
        lambda: [[decimal.Decimal(1)] * 2] * N,
        "{} holds object entries, not numbers. Pass an array of one numeric type.",
    ),
    "words": (lambda: [["a", "b"]] * N, "{} holds str32 entries, not numbers. Pass an array of one numeric type."),
    "a word": (lambda: "rows", "{} is of type str, not an array. " + LIST),
    "ragged": (
        lambda: [[1, 2], [3]] * 6,
        "{} has rows of different lengths. Pass one row per input, all of one length.",
    ),
    "ragged tensors": (
        lambda: [torch.zeros(2), torch.zeros(3)],
        "{} lists tensors of different shapes or types. Pass one tensor.",
    ),
    "tensors and numbers": (lambda: [torch.zeros(2), 1.0], "{} mixes tensors with other things. Pass one tensor."),
    "nothing": (lambda: None, "{} is of type NoneType, not an array. " + LIST),
    "generator": (lambda: (row for row in ROWS), "{} is of type generator, not an array. " + LIST),
    "set": (lambda: {1, 2}, "{} is of type set, not an array. " + LIST),
    "dict": (lambda: {"a": ROWS}, "{} is of type dict, not an array. " + LIST),
    "function": (lambda: quietly, "{} is of type function, not an array. " + LIST),
    "network": (lambda: nn.Linear(2, 3), "{} is of type Linear, not an array. " + LIST),
    "anything": (lambda: object(), "{} is of type object, not an array. " + LIST),
    "broken": (
        lambda: Broken(),
        "{} cannot be read as an array (no such file). Pass an array, a tensor or a data frame.",
    ),
    "masked": (
        lambda: np.ma.masked_less(ROWS, 0),
        "{} is a masked array, and what is masked has no value. Fill it, or leave those rows or columns out.",
    ),
    "scipy": (lambda: scipy.sparse.csr_array(ROWS), "{} is a sparse csr_array. Pass its toarray()."),
    "words in a frame": (
        lambda: pd.DataFrame({"a": range(N), "b": ["x"] * N, "c": ["y"] * N}),
        "{} has no numbers in column 'b' and 1 more. Pass the columns that hold numbers.",
    ),
}


@pytest.mark.parametrize("kind", list(REFUSED))
def test_what_is_no_array_of_numbers_is_refused_in_every_place(kind) -> None:
    make, sentence = REFUSED[kind]
    places = {
        "'x'": [lambda v: measures.cka(v, ROWS), lambda v: measures.get("jaccard", variant="resi", k=2)(v, ROWS)],
        "'y'": [lambda v: measures.procrustes(ROWS, v), lambda v: measures.jsd(ROWS, v)],
        "the input": [lambda v: Activations(v)],
        "the matrix of logits": [lambda v: Outputs(v)],
        "'confounder'": [lambda v: measures.get("cka-deconfounded", confounder=v)(ROWS, ROWS**2)],
    }
    for place, calls in places.items():
        for call in calls:
            value = quietly(make)
            assert refusal(InputError, call, value) == sentence.format(place)


@pytest.mark.parametrize("measure", ["cka", "jsd", "disagreement", "error-consistency", "class-alignment"])
@pytest.mark.parametrize("kind", ["ragged", "ragged tensors", "words", "masked", "scipy", "broken", "anything"])
def test_compare_refuses_what_is_no_array_of_numbers_whatever_the_measure_looks_at(kind, measure) -> None:
    make, sentence = REFUSED[kind]
    for place, pair in (("'x'", lambda v: (v, ROWS)), ("'y'", lambda v: (ROWS, v))):
        assert refusal(InputError, likewise.compare, *pair(quietly(make)), measure) == sentence.format(place)


@pytest.mark.parametrize("kind", [kind for kind in REFUSED if kind != "nothing"])
def test_labels_that_are_no_whole_numbers_are_refused(kind) -> None:
    make, sentence = REFUSED[kind]
    assert refusal(InputError, Outputs, ROWS, quietly(make)) == (sentence.format("the list of labels"))


READ = {
    "requires grad": lambda: TENSOR.clone().requires_grad_(),
    "a parameter": lambda: nn.Parameter(TENSOR),
    "tensors in a list": lambda: list(TENSOR),
    "tensors that require grad in a tuple": lambda: tuple(TENSOR.clone().requires_grad_()),
    "negated lazily": lambda: torch._neg_view(-TENSOR),
    "lists": lambda: ROWS.tolist(),
    "big endian": lambda: ROWS.astype(">f8"),
    "extended": lambda: ROWS.astype(np.longdouble),
    "unaligned": unaligned,
    "backwards twice": lambda: ROWS[::-1].copy()[::-1],
    "memory": lambda: memoryview(ROWS),
    "frame": lambda: pd.DataFrame(ROWS),
    "nullable frame": lambda: pd.DataFrame(ROWS).convert_dtypes(),
}


@pytest.mark.parametrize("kind", list(READ))
def test_everything_that_holds_numbers_is_read_alike(kind) -> None:
    other = ROWS @ np.random.default_rng(1).normal(size=(3, 4)) + 1
    assert measures.cka(READ[kind](), other) == pytest.approx(measures.cka(ROWS, other), rel=1e-12)


def test_a_frame_of_several_types_is_read_in_double_precision() -> None:
    frame = pd.DataFrame({"a": range(N), "b": ROWS[:, 0], "c": [True, False] * (N // 2)})
    assert measures.cka(frame, ROWS) == pytest.approx(measures.cka(frame.astype(float), ROWS))


def test_a_missing_entry_of_a_frame_is_named_by_its_place() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None] * (N // 2), dtype="Int64"), "b": range(N)})
    assert refusal(InputError, measures.cka, frame, ROWS) == (
        "'x' has NaN or infinite entries in 6 of 12 rows and 1 of 2 columns, the first at row 1, column "
        "0. Drop or repair them."
    )


META = (
    "torch's default device is 'meta', where tensors have no values. Compare networks outside of torch.device('meta')."
)


def test_nothing_is_compared_or_extracted_where_tensors_have_no_values() -> None:
    view = Activations(ROWS)
    net = nn.Linear(3, 2)
    calls = [
        lambda: likewise.compare(ROWS, ROWS),
        lambda: likewise.compare(view, view, "jaccard"),
        lambda: likewise.compare({"a": view, "b": view}, "cka", progress=False),
        lambda: measures.cka(ROWS, ROWS),
        lambda: likewise.extract(net, TENSOR.float()),
    ]
    for call in calls:
        with torch.device("meta"), pytest.raises(InputError) as refusal:
            call()
        assert str(refusal.value) == META


def test_masked_arrays_are_refused_and_long_doubles_taken() -> None:
    with pytest.raises(InputError, match="Fill it, or leave those rows or columns out"):
        Activations(np.ma.masked_array(np.ones((4, 3))))
    assert Activations(np.ones((4, 3), np.longdouble)).values.dtype == torch.float64
