"""The ways compare may be called: lists, mappings, options and keys."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.errors import InputError, MissingDependencyError, OptionError, UnknownNameError

X, Y, Z = np.random.default_rng(0).normal(size=(3, 40, 6))


NEEDS = "compare needs two arrays or networks, or a list or mapping of them; it was given "


def sentence(kind, *given, **options):
    with pytest.raises(kind) as caught:
        likewise.compare(*given, **options)
    assert isinstance(caught.value, likewise.errors.LikewiseError)
    return str(caught.value)


def test_a_list_of_arrays_is_named_by_place() -> None:
    matrix = likewise.compare([X, Y, Z], "cka")
    assert matrix.names == ("0", "1", "2")
    assert matrix["0", "2"] == pytest.approx(measures.cka(X, Z))
    assert likewise.compare([X, Y, Z]).measure == "cka-debiased"
    assert list(likewise.compare((X, Y), ["cka", "rsa"])) == ["cka", "rsa"]


def test_a_list_of_named_views_keeps_their_names() -> None:
    views = [likewise.Activations(values, name=name) for values, name in ((X, "a"), (Y, "b"))]
    assert likewise.compare(views, "cka").names == ("a", "b")
    assert likewise.compare([*views, views[0]], "cka").names == ("0", "1", "2")


def test_nested_lists_are_still_two_arrays() -> None:
    assert likewise.compare(X.tolist(), Y.tolist(), "cka") == pytest.approx(measures.cka(X, Y))


def test_a_third_array_is_named_by_its_shape_not_printed() -> None:
    assert sentence(InputError, X, Y, Z) == (
        "an array of shape (40, 6) is not a measure. Pass a name, a measure or a function."
    )
    assert sentence(InputError, X, Y, X.tolist()).startswith("a list of 6 is not a measure.")
    assert sentence(InputError, X) == NEEDS + "an array of shape (40, 6) alone."
    assert sentence(InputError, X, "cka") == (NEEDS + "an array of shape (40, 6) alone and the measure 'cka'.")
    assert sentence(InputError, {"a": X}, Y, "cka") == (
        NEEDS + "a mapping and an array of shape (40, 6). Put all into the mapping."
    )


def test_no_error_prints_a_whole_array() -> None:
    given = {"memory": X, "engine": X, "calibrate": X}
    for name, value in given.items():
        with pytest.raises(likewise.errors.LikewiseError) as caught:
            likewise.compare({"a": X, "b": Y}, "cka", **{name: value})
        assert "an array of shape (40, 6)" in str(caught.value), name
        assert len(str(caught.value)) < 200
    for name in ("k", "seed"):
        with pytest.raises(likewise.errors.LikewiseError) as caught:
            measures.get("jaccard" if name == "k" else "ridge-predictivity", **{name: X})
        assert "an array of shape (40, 6)" in str(caught.value)
    for call in (
        lambda: likewise.calibrate(X, Y, "cka", permutations=X),
        lambda: likewise.bootstrap(X, Y, "cka", level=X),
    ):
        with pytest.raises(likewise.errors.LikewiseError) as caught:
            call()
        assert "an array of shape (40, 6)" in str(caught.value)


def test_an_unknown_measure_is_still_a_measure() -> None:
    assert sentence(UnknownNameError, [X, Y], "ckaa") == "no measure named 'ckaa'. Did you mean 'cka'?"
    assert sentence(UnknownNameError, {"a": X}, ["ckaa"]) == ("no measure named 'ckaa'. Did you mean 'cka'?")


def test_options_of_a_measure_are_named_or_written_in_its_key() -> None:
    named = likewise.compare(X, Y, "jaccard", k=5)
    assert named.measure == "jaccard[k=5]"
    assert named == likewise.compare(X, Y, "jaccard[k=5]") == measures.get("jaccard", k=5)(X, Y)
    assert likewise.compare({"a": X, "b": Y}, "jaccard", k=5).measure == "jaccard[k=5]"
    assert likewise.calibrate(X, Y, "jaccard[k=5]", permutations=9).value == named
    assert likewise.compare(X, Y, "Jaccard", k=5).measure == "jaccard[k=5]"


@pytest.mark.parametrize(
    "key",
    [
        "cka[resi]",
        "jaccard[k=5]",
        "jaccard[resi, k=5]",
        "gulp[ridge=0.5]",
        "cka",
        "svcca[resi]",
        "cka-rbf[bandwidth=1]",
    ],
)
def test_every_key_that_is_printed_is_accepted(key) -> None:
    assert measures.get(key).key == key
    result = likewise.compare({"a": X, "b": Y}, [key])
    assert list(result) == [key]
    assert result[key].measure == key
    assert result[key].bounds == measures.get(key).info.bounds


def test_every_measure_is_found_by_the_key_of_each_form() -> None:
    for measure in measures.registry.MEASURES:
        for form in (measure, *measure.variants.values()):
            assert measures.get(form.key).info is form.info


def test_a_comparison_finds_an_alias_with_options() -> None:
    result = likewise.compare({"a": X, "b": Y}, ["jaccard[k=3]", "jaccard[k=5]"])
    assert result["Jaccard[k=5]"] is result["jaccard[k=5]"]


def test_keys_that_cannot_be_read_say_so() -> None:
    for key, reason in {
        "jaccard[k=0]": "jaccard: k must be a whole number of at least 1, got 0.",
        "jaccard[q=5]": "jaccard has no option 'q'. Its options are k.",
        "jaccard[k=5, x]": "'jaccard[k=5, x]' cannot be read. Write options as name=value: 'jaccard[k=5]'.",
        "error-consistency[labels=ndarray 1f0c2e]": "'error-consistency[labels=ndarray 1f0c2e]' does not hold the "
        "values of labels. Bind them with likewise.measures.get.",
        "cka[rsei]": "cka has no variant 'rsei'; it has 'resi'.",
        "ckaa[resi]": "no measure named 'ckaa'. Did you mean 'cka'?",
    }.items():
        with pytest.raises(likewise.errors.LikewiseError) as caught:
            measures.get(key)
        assert str(caught.value) == reason


def test_options_are_for_one_measure_and_must_be_known() -> None:
    several = (
        "compare has no option 'k', and options of a measure are for one measure alone. Name them in its "
        "key, as in 'jaccard[k=5]', or bind them with likewise.measures.get."
    )
    assert sentence(OptionError, X, Y, ["jaccard", "mutual-knn"], k=5) == several
    assert sentence(OptionError, X, Y, "jaccard", kk=5) == (
        "jaccard has no option 'kk'. Did you mean 'k'? Its options are k."
    )
    assert sentence(OptionError, X, Y, measures="cka") == (
        "compare has no option 'measures'. It is called measure: measure='cka'."
    )


def test_options_for_networks_are_refused_with_arrays_but_for_the_device_they_are_compared_on() -> None:
    assert likewise.compare(X, Y, "cka", device="cpu") == likewise.compare(X, Y, "cka")
    assert sentence(OptionError, X, Y, "cka", data=X) == (
        "data says how networks are shown data, and compare was given arrays. Leave it out."
    )
    assert sentence(InputError, X, Y, "cka", device="gpu") == (
        "device 'gpu' cannot be used here. Leave it out, or name one that torch has, such as 'cpu'."
    )


def test_a_row_is_a_mapping_and_a_pair_is_two_names() -> None:
    matrix = likewise.compare({"a": X, "b": Y, "ab": Z}, "cka")
    assert matrix["a"] == {"a": 1.0, "b": matrix["a", "b"], "ab": matrix["a", "ab"]}
    assert matrix["ab"]["b"] == matrix["ab", "b"]
    assert list(matrix) == ["a", "b", "ab"]
    for key, reason in {
        "bc": "no network named 'bc'. Did you mean 'b'?",
        ("a", "z"): "no network named 'z'. Choose from 'a', 'b', 'ab'.",
        ("a", "b", "c"): "('a', 'b', 'c') is no pair. Write matrix['a', 'b'], or matrix['a'].",
        0: "0 is no pair. Write matrix['a', 'b'], or matrix['a'].",
    }.items():
        with pytest.raises(UnknownNameError) as caught:
            matrix[key]
        assert str(caught.value) == reason


def test_all_measures_are_those_whose_libraries_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=(40, 5)), chance.normal(size=(40, 3))
    for library in ("ripser", "ot"):
        monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    sentence = "left out of 'all': .*rtd, since .* is needed: pip install"
    with pytest.warns(UserWarning, match=sentence):
        many = likewise.compare({"a": x, "b": y}, "all", progress=False)
    with pytest.warns(UserWarning, match=sentence):
        two = likewise.compare(x, y, "all", progress=False)
    assert "cka" in many
    assert "cka" in two
    assert not {"rtd", "soft-matching"} & {*many, *two}
    with pytest.raises(MissingDependencyError, match="to compute rtd, ripser is needed"):
        likewise.compare({"a": x, "b": y}, ["cka", "rtd"], progress=False)
