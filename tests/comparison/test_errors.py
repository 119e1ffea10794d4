"""Every mistake gets one clear sentence: what is wrong, what was given, what to do."""

import numpy as np
import pytest
import torch

import likewise
from likewise import errors, measures
from likewise.views import Activations, Outputs, reduced
from likewise.views.array_files import read_arrays

X = np.random.default_rng(0).normal(size=(30, 5))


def sentence(kind, function, *given, **options):
    with pytest.raises(kind) as caught:
        function(*given, **options)
    assert isinstance(caught.value, errors.LikewiseError)
    return str(caught.value)


def test_different_numbers_of_rows():
    assert sentence(ValueError, likewise.compare, X, X[:20]) == (
        "cannot compare 'x' with 'y': they have 30 and 20 rows. Show both networks the same inputs."
    )
    assert sentence(ValueError, likewise.compare, {"a": X, "b": X[:20]}, "cka") == (
        "cannot compare 'a' with 'b': they have 30 and 20 rows. Show both networks the same inputs."
    )


def test_views_of_different_probes():
    a, b = Activations(X, name="a", probe="cifar-1"), Activations(X, name="b", probe="cifar-2")
    assert sentence(ValueError, likewise.compare, a, b) == (
        "cannot compare 'a' with 'b': they were shown different inputs (30 of 'cifar-1', 30 of "
        "'cifar-2'). Extract both on one probe."
    )


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((30,), "Pass (inputs, neurons): one row per input, even if there is one neuron."),
        (
            (30, 4, 5),
            "Choose a reduction of the tokens: reduce='mean', 'cls', 'last' or 'flatten'.",
        ),
        ((30, 4, 5, 5), "Choose a reduction of the maps: reduce='mean', 'flatten' or 'spatial'."),
        ((30, 2, 2, 2, 2), "Pass (inputs, neurons)."),
    ],
)
def test_other_shapes_need_a_reduction(shape, advice):
    listed = ", ".join(map(str, shape))
    assert sentence(ValueError, measures.cka, np.ones(shape), X) == (
        f"'x' has shape ({listed}), not (inputs, neurons). {advice}"
    )


def test_a_reduction_makes_them_comparable():
    tokens = np.random.default_rng(1).normal(size=(30, 4, 5))
    assert measures.cka(tokens, X, reduce="mean") == measures.cka(tokens.mean(axis=1), X)
    assert likewise.compare({"a": tokens, "b": X}, "cka", reduce="cls")["a", "b"] == pytest.approx(
        measures.cka(tokens[:, 0], X)
    )


def test_unknown_and_unfit_reductions():
    assert sentence(ValueError, measures.cka, np.ones((30, 4, 5)), X, reduce="meen") == (
        "no reduction named 'meen'. Did you mean 'mean'? There are mean, cls, last, flatten, spatial, "
        "pool7, pool7-spatial."
    )
    assert sentence(ValueError, reduced, torch.ones(3, 4, 5, 5), "cls", "'conv1'") == (
        "'conv1' holds maps, which have no 'cls' token. Choose reduce='mean', 'flatten' or 'spatial'."
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_say_where(bad):
    y = X.copy()
    y[7, 2] = y[9, 2] = y[9, 4] = bad
    assert sentence(ValueError, measures.cka, X, y) == (
        "'y' has NaN or infinite entries in 2 of 30 rows and 2 of 5 columns, the first at row 7, "
        "column 2. Drop or repair them."
    )


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_means_of_many_rows_keep_their_digits(layout, kind):
    rows = np.full((20_003, 3), 0.1, dtype=kind)  # neither binary nor a whole number of eights
    rows[:, 1] = np.arange(20_003)  # mean 20,002 / 2
    mean = Activations(layout(rows)).mean
    assert mean.tolist() == pytest.approx([float(kind(0.1)), 10_001, float(kind(0.1))], rel=1e-14)


def test_finite_numbers_whose_sum_overflows_are_no_infinity():
    huge = Activations(np.full((30, 2), 1.7e308))
    assert torch.isfinite(huge.mean).all()
    assert measures.cka(X, X * 1e60) == pytest.approx(1)


def test_fewer_rows_than_the_measure_needs():
    assert sentence(ValueError, measures.jaccard, X[:8], X[:8]) == (
        "jaccard needs at least 11 rows, got 8. Show the networks more inputs or lower k."
    )
    assert sentence(ValueError, measures.cka_debiased, X[:3], X[:3]) == (
        "cka-debiased needs at least 4 rows, got 3. Show the networks more inputs."
    )
    assert sentence(ValueError, measures.cka, X[:1], X[:1]) == (
        "'x' has one row. A comparison needs at least two inputs."
    )


def test_a_constant_representation_is_refused_with_its_name():
    flat = Activations(np.full((30, 4), 0.1), name="layer4")
    assert sentence(ArithmeticError, measures.cka, X, flat) == (
        "'layer4' is constant: all 30 rows are the same, so there is nothing to compare. Look at another layer."
    )


def test_object_text_and_complex_arrays():
    mixed = np.array([[1, "a"], [2, "b"]], dtype=object)
    assert sentence(ValueError, measures.cka, mixed, mixed) == (
        "'x' holds object entries, not numbers. Pass an array of one numeric type."
    )
    assert sentence(ValueError, measures.cka, torch.ones(5, 2, dtype=torch.complex64), X) == (
        "'x' holds complex entries. Pass its real part or its modulus."
    )


@pytest.mark.parametrize("shape", [(0, 5), (30, 0)])
def test_empty_arrays(shape):
    assert sentence(ValueError, measures.cka, np.ones(shape), X) == (
        f"'x' is empty: its shape is ({shape[0]}, {shape[1]}). Pass at least two rows and one column."
    )
    assert sentence(ValueError, likewise.compare, {}, "cka") == (
        "there is no view to compare. Pass a mapping of names to arrays."
    )


def test_an_unknown_measure_is_guessed():
    assert sentence(KeyError, likewise.compare, X, X, measure="ckaa") == (
        "no measure named 'ckaa'. Did you mean 'cka'?"
    )
    with pytest.raises(AttributeError) as caught:
        measures.procrustis  # noqa: B018
    assert str(caught.value) == "no measure named 'procrustis'. Did you mean 'procrustes'?"
    assert sentence(ValueError, measures.names, "rsmm") == (
        "no family named 'rsmm'. There are rsm, cca, alignment, neighbors, topology, statistics, functional."
    )


def test_unknown_options_and_variants():
    assert sentence(TypeError, measures.get, "jaccard", kk=3) == (
        "jaccard has no option 'kk'. Did you mean 'k'? Its options are k."
    )
    assert sentence(TypeError, measures.get, "cka", k=3) == "cka has no option 'k'. It has none."
    assert sentence(TypeError, measures.get, "jaccard", variant="other") == (
        "jaccard has no variant 'other'; it has 'resi'."
    )


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("jaccard", {"k": 0}, "jaccard: k must be a whole number of at least 1, got 0."),
        ("jaccard", {"k": 2.5}, "jaccard: k must be a whole number of at least 1, got 2.5."),
        ("shape", {"alpha": 1.5}, "shape: alpha must be a number from 0.0 to 1.0, got 1.5."),
        ("cka-rbf", {"bandwidth": "x"}, "cka-rbf: bandwidth must be a number from 0.001 to 1000.0, got 'x'."),
        ("imd", {"mode": "fast"}, "imd: mode must be one of auto, exact, stochastic, got 'fast'."),
    ],
)
def test_options_out_of_range(name, options, expected):
    assert sentence(ValueError, measures.get, name, **options) == expected


def test_a_missing_option_is_asked_for():
    assert sentence(TypeError, measures.cka_deconfounded, X, X) == (
        "cka-deconfounded needs the option 'confounder'. Its options are confounder."
    )


def test_labels_are_checked():
    logits = X[:, :3]
    assert sentence(ValueError, measures.get("same-mistake"), logits, logits) == (
        "the true labels of 'x' and 'y' are not known. Pass labels=..., or views with Outputs(logits, labels)."
    )
    assert sentence(ValueError, Outputs, logits, np.full(30, 3)) == (
        "labels must be 30 whole numbers from 0 to 2, got numbers from 3 to 3. Give one class index per input."
    )
    assert sentence(ValueError, Outputs, logits, np.zeros(29, dtype=int)) == (
        "labels must be 30 whole numbers from 0 to 2, got int64 of shape (29,). Give one class index per input."
    )
    assert sentence(ValueError, measures.disagreement, logits, X[:, :4]) == (
        "'x' and 'y' answer with 3 and 4 classes. Only networks with the same classes can be compared by their outputs."
    )


def test_outputs_that_are_not_there():
    a = Activations(X, name="a")
    assert sentence(ArithmeticError, measures.disagreement, a, a) == (
        "'a' carries no outputs. Make it with Activations(..., outputs=Outputs(...))."
    )


def test_matrices_of_the_wrong_shape():
    assert sentence(ValueError, likewise.SimilarityMatrix, ["a", "b"], np.ones((3, 3))) == (
        "2 names need a 2 x 2 matrix, got (3, 3)."
    )
    assert sentence(ValueError, likewise.SimilarityMatrix, ["a", "a"], np.ones((2, 2))) == (
        "the name 'a' is given twice. Names must differ."
    )
    matrix = likewise.SimilarityMatrix(["resnet", "vit"], np.eye(2))
    assert sentence(KeyError, matrix.__getitem__, ("resnet", "vitt")) == (
        "no network named 'vitt'. Did you mean 'vit'?"
    )


def test_memory_engines_and_counts():
    assert sentence(ValueError, likewise.compare, {"a": X}, "cka", memory="lots") == (
        "memory='lots' is not a size. Write it like '4GB' or '500MB'."
    )
    assert sentence(ValueError, likewise.compare, {"a": X}, "cka", engine="spark") == (
        "no engine named 'spark'. There are dask, processes and ray."
    )
    assert sentence(ValueError, likewise.calibrate, X, X, "cka", permutations=0) == (
        "permutations must be a whole number of at least 1, got 0."
    )
    assert sentence(ValueError, likewise.compare, X) == (
        "compare needs two arrays or networks, or a list or mapping of them; it was given an array "
        "of shape (30, 5) alone."
    )


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "acts.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert sentence(ValueError, read_arrays, [str(path)]) == (
        f"'{path}' holds pickled objects, which can run code when read. Save plain arrays with "
        "numpy.save or safetensors."
    )


class Trap:
    fired = False

    def __reduce__(self):
        return (setattr, (Trap, "fired", True))


@pytest.mark.parametrize("content", [Trap(), {"model": Trap()}, {"epoch": 3}])
def test_a_torch_file_that_is_not_plain_tensors_is_refused(tmp_path, content):
    path = tmp_path / "model.pt"
    torch.save(content, path)
    assert sentence(ValueError, read_arrays, [str(path)]) == (
        f"'{path}' holds pickled objects, which can run code when read. Save plain arrays with "
        "numpy.save or safetensors."
    )
    assert not Trap.fired


def test_a_torch_file_of_plain_tensors_is_read(tmp_path):
    torch.save({"a": torch.from_numpy(X), "b": torch.from_numpy(2 * X)}, tmp_path / "acts.pt")
    assert set(read_arrays([str(tmp_path / "acts.pt")])) == {"acts:a", "acts:b"}


def test_files_that_are_not_there_or_not_ours(tmp_path):
    assert sentence(ValueError, read_arrays, ["nowhere.npy"]) == ("no file 'nowhere.npy'. Check the path.")
    (tmp_path / "acts.csv").write_text("1,2")
    assert sentence(ValueError, read_arrays, [str(tmp_path / "acts.csv")]) == (
        f"'{tmp_path / 'acts.csv'}' is not a file of activations (.npy, .npz, .safetensors). Save the "
        "array with numpy.save."
    )
    np.savez(tmp_path / "acts.npz", early=X, late=X)
    assert sentence(ValueError, read_arrays, [f"{tmp_path / 'acts.npz'}:lat"]) == (
        f"no array 'lat' in '{tmp_path / 'acts.npz'}'. Did you mean 'late'?"
    )


def test_a_name_that_is_taken():
    assert sentence(ValueError, measures.register, lambda x, y: 0.0, name="OrthProc") == (
        "the measure name 'orthproc' is taken by 'procrustes'. Choose another name."
    )


def test_a_function_that_is_no_measure():
    def three(x, y, z):
        return 0.0

    assert sentence(ValueError, likewise.compare, {"a": X, "b": X}, three) == (
        "three takes 3 arguments. A measure takes a Pair, or two arrays."
    )
    assert sentence(ValueError, likewise.compare, {"a": X, "b": X}, [3]) == (
        "3 is not a measure. Pass a name, a measure or a function."
    )


def test_a_missing_extra_names_its_remedy():
    from likewise._base.optional import require

    assert sentence(ImportError, require, "no_such_module", extra="vision", to="load timm:resnet18") == (
        "to load timm:resnet18, no_such_module is needed: pip install 'likewise[vision]'."
    )
