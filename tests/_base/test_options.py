"""Options as they are typed: names and values, fractions among them."""

from __future__ import annotations

import pytest

from likewise._base.options import parse_options
from likewise.errors import InputError


def test_options_are_numbers_fractions_truth_values_and_words() -> None:
    assert parse_options("attack=pgd, eps=8/255,iterations=5,random_start=false,step=none", "x") == {
        "attack": "pgd",
        "eps": 8 / 255,
        "iterations": 5,
        "random_start": False,
        "step": None,
    }


@pytest.mark.parametrize("text", ["eps=1/0", "eps=1/2/3", "eps=-/2", "eps=runs/3"])
def test_what_is_no_fraction_stays_a_word(text: str) -> None:
    assert parse_options(text, "x") == {"eps": text.removeprefix("eps=")}


@pytest.mark.parametrize(("text", "word"), [("pgd", "pgd"), ("eps=1,", ""), ("=1", "=1"), ("eps=", "eps="), ("", "")])
def test_what_is_no_option_is_said(text: str, word: str) -> None:
    with pytest.raises(InputError) as error:
        parse_options(text, "adversarial")
    assert str(error.value) == (
        f"adversarial is {text!r}, in which {word!r} is no option. Write name=value,name=value."
    )


def test_an_option_is_given_once() -> None:
    with pytest.raises(InputError) as error:
        parse_options("eps=1,eps=2", "adversarial")
    assert str(error.value) == "adversarial is 'eps=1,eps=2', which gives eps twice. Give it once."
