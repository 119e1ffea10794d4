"""The registry that every list of names is, loaded no further than a look-up needs; and options as they are typed."""

import sys
import threading

import pytest

from likewise._base.registry import Registry, module_of, parse_options
from likewise.errors import InputError, UnknownNameError
from tests.helpers import sentence

DECLARES = """
from {home} import COLOURS
COLOURS.add({name!r}, {value!r}, ({alias!r},), module=__name__)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `paintbox` with a registry and three modules that declare a colour each."""
    folder = tmp_path / "paintbox"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from likewise._base.registry import Registry\n"
        "COLOURS = Registry('colour', group='paintbox.colours',"
        " modules=('paintbox.warm', 'paintbox.cold', 'paintbox.more.*'))\n"
    )
    (folder / "more").mkdir()
    (folder / "more" / "__init__.py").write_text("")
    for path, name, value, alias in (
        ("warm", "crimson-red", 1, "Red"),
        ("cold", "blue", 2, "B"),
        ("more/green", "green", 3, "G"),
        ("more/amber", "amber", 4, "A"),
    ):
        source = DECLARES.format(home="paintbox", name=name, value=value, alias=alias)
        (folder / f"{path}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("paintbox", "plugin")]:
        del sys.modules[name]


def loaded():
    return sorted(name.removeprefix("paintbox.") for name in sys.modules if name.startswith("paintbox."))


def plug_in(folder, source):
    """Install a plug-in `plugin` as a distribution with an entry point."""
    (folder / "plugin.py").write_text(source)
    (folder / "plugin-1.dist-info").mkdir()
    (folder / "plugin-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    (folder / "plugin-1.dist-info" / "entry_points.txt").write_text("[paintbox.colours]\nplugin = plugin\n")


def test_modules_are_imported_until_the_name_is_there(package) -> None:
    from paintbox import COLOURS

    assert loaded() == []
    assert COLOURS.get("CRIMSON_RED") == COLOURS.get("red") == 1
    assert loaded() == ["warm"]
    assert "b" in COLOURS
    assert loaded() == ["cold", "warm"]
    assert COLOURS.get("green") == 3
    assert loaded() == ["cold", "more", "more.amber", "more.green", "warm"]


def test_names_come_in_the_order_of_the_modules_whichever_was_imported_first(package) -> None:
    import paintbox.cold
    import paintbox.more.green

    assert paintbox.COLOURS.names() == ["crimson-red", "blue", "amber", "green"]
    assert list(paintbox.COLOURS) == [1, 2, 4, 3]
    assert paintbox.COLOURS.names("*e*") == ["crimson-red", "blue", "amber", "green"]
    assert paintbox.COLOURS.names("b*") == ["blue"]


def test_a_name_of_ours_is_taken_before_anyone_looks_it_up(package) -> None:
    from paintbox import COLOURS

    assert sentence(InputError, COLOURS.add, "Blue", 5, module="__main__") == (
        "the colour name 'blue' is taken by 'blue'. Choose another name."
    )


def test_what_others_add_comes_last_and_can_be_removed(package) -> None:
    from paintbox import COLOURS

    COLOURS.add("aqua", 6, ("water",), module="__main__")
    assert COLOURS.names()[-1] == "aqua"
    assert COLOURS.get("WATER") == 6
    COLOURS.remove("aqua")
    assert "water" not in COLOURS
    COLOURS.add("water", 7, module="__main__")
    assert COLOURS.get("water") == 7


def test_an_unknown_name_is_answered_with_the_nearest(package) -> None:
    from paintbox import COLOURS

    assert sentence(UnknownNameError, COLOURS.get, "grene") == "no colour named 'grene'. Did you mean 'green'?"


def test_a_plug_in_declares_entries_and_may_look_names_up(package) -> None:
    plug_in(
        package,
        "from paintbox import COLOURS\nCOLOURS.add('teal', COLOURS.get('b') + COLOURS.get('g'), module=__name__)\n",
    )
    from paintbox import COLOURS

    assert COLOURS.get("blue") == 2
    assert "plugin" not in sys.modules
    assert COLOURS.get("teal") == 5
    assert COLOURS.names()[-1] == "teal"


def test_a_module_that_fails_fails_again(package) -> None:
    (package / "paintbox" / "cold.py").write_text("import no_such_library\n")
    from paintbox import COLOURS

    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_library"):
            COLOURS.get("blue")
    assert COLOURS.get("red") == 1


def test_threads_that_look_up_at_once_all_find_the_name(package) -> None:
    (package / "paintbox" / "warm.py").write_text(
        "import time\ntime.sleep(0.2)\n" + DECLARES.format(home="paintbox", name="red", value=1, alias="r")
    )
    from paintbox import COLOURS

    found, start = [], threading.Barrier(4)

    def look_up(name):
        start.wait()
        found.append(COLOURS.get(name))

    threads = [threading.Thread(target=look_up, args=(name,)) for name in ("red", "red", "green", "amber")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 1, 3, 4]


def test_the_module_of_a_partial_is_that_of_what_it_calls() -> None:
    from functools import partial

    assert module_of(partial(partial(plug_in, 1), 2)) == __name__
    assert module_of(Registry) == "likewise._base.registry"


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
    assert sentence(InputError, parse_options, text, "adversarial") == (
        f"adversarial is {text!r}, in which {word!r} is no option. Write name=value,name=value."
    )


def test_an_option_is_given_once() -> None:
    assert sentence(InputError, parse_options, "eps=1,eps=2", "adversarial") == (
        "adversarial is 'eps=1,eps=2', which gives eps twice. Give it once."
    )
