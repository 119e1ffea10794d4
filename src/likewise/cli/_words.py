"""The words of a command line, checked and turned into measures, networks, arrays, labels and options."""

from __future__ import annotations

import os
import re
import sys
from contextvars import ContextVar
from importlib import import_module
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from likewise._base.progress import Style

COMMAND = "command.txt"
UNDER_WAY: ContextVar[tuple[str, ...]] = ContextVar("the words of the command that runs", default=())
LISTS = {"--measure": "--measure", "-m": "--measure", "--measures": "--measures", "--grounding": "--grounding"}


def check(words: list[str]) -> None:
    """Refuse an option with an empty value, and names that are no text."""
    from likewise._base.files import check_name
    from likewise.errors import InputError

    for word, following in zip_longest(words, words[1:]):
        check_name(word)
        if word.startswith("--") and (word.endswith("=") or following == ""):
            raise InputError(f"{word.rstrip('=')} is empty. Give it a value, or leave it out.")


def spread(words: list[str]) -> list[str]:
    """`--measure cka rsa` as `--measure cka --measure rsa`: names continue until a path or an option.

    >>> spread(["compare", "a.npy", "b.npy", "--measure", "cka", "rsa", "--out", "runs"])
    ['compare', 'a.npy', 'b.npy', '--measure', 'cka', '--measure', 'rsa', '--out', 'runs']
    """
    out: list[str] = []
    listing = ""  # the option whose names continue
    for i, word in enumerate(words):
        named = LISTS.get(words[i - 1], "") if i > 0 else ""
        name = "[" in word or not set(word) & set("./:")
        if listing and not named and not word.startswith("-") and name:
            out.append(listing)
        else:
            listing = named or (listing if word in LISTS else "")
        out.append(word)
    return out


def progress_style(words: list[str]) -> tuple[Style, list[str]]:
    """How progress is shown, and the words without `--progress`; by default lines in a log of what takes long.

    >>> progress_style(["compare", "a.npy", "--progress", "plain"])
    ('plain', ['compare', 'a.npy'])
    """
    from likewise.errors import OptionError

    style, rest, following = "log", [], iter(words)
    for word in following:
        if word == "--progress" or word.startswith("--progress="):
            style = word.partition("=")[2] or next(following, "")
            if style not in ("plain", "bar", "none"):
                raise OptionError(f"--progress is {style!r}. Choose plain (lines), bar or none.")
        else:
            rest.append(word)
    return cast("Style", style), rest


def split(word: str) -> list[str]:
    """Measures between commas that are not inside brackets.

    >>> split("cka,gulp[resi, ridge=0.1],rsa")
    ['cka', 'gulp[resi, ridge=0.1]', 'rsa']
    """
    return re.split(r",(?![^\[]*\])", word)


def measures_of(words: list[str] | None, default: str) -> list[Any]:
    """The measures that were named: names and sets, and functions of users as `package.module:f` or `FILE.py:f`."""
    names = [name for word in words or [default] for name in split(word)]
    return [_measure(name) for name in names]


def _measure(name: str) -> Any:
    if re.fullmatch(r".+\.py:\w+", name):
        from likewise.networks.sources.python_file import member

        path, _, function = name.rpartition(":")
        return member(path, function, "It should compare two arrays.")
    return _function(name) if re.fullmatch(r"[^\W\d][\w.]*:\w+", name) else name


def _function(name: str) -> Any:
    """A function by its module, which may be in this folder."""
    from likewise.errors import UnknownNameError, did_you_mean

    module, _, function = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        home = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and lacks another
        raise UnknownNameError(
            f"there is no module {module!r} to take {function!r} from. Run this in its folder, or install it."
        ) from error
    if not hasattr(home, function):
        raise UnknownNameError(f"{module!r} has no function {function!r}.{did_you_mean(function, dir(home))}")
    return getattr(home, function)


def views(files: list[str], data: str | None, memory: str | None) -> dict[str, Any]:
    """Arrays from files, or networks under short names."""
    from likewise.errors import InputError
    from likewise.measures.workspace import parse_memory
    from likewise.networks.address import is_network
    from likewise.networks.names import expanded, named_networks
    from likewise.views.array_files import read_arrays

    if data is not None:
        return named_networks(expanded(files))
    for file in files:
        if is_network(file):
            raise InputError(f"{file} is a network: say what to show it, as in --data 'cifar10:test[:1000]'.")
    return read_arrays(files, memory=None if memory is None else parse_memory(memory))


def claim_out(out: Path | None, *older: str) -> Path | None:
    """Make the folder of --out ours before anything is computed, and return its store; `older` is as in `claim`.

    The command is written there at once, so that a report of a run that was killed says how to resume it.
    """
    from likewise._base.folders import claim

    if out is None:
        return None
    claim(out, older=(COMMAND, *older))
    if UNDER_WAY.get() and not os.path.lexists(out / COMMAND):
        record(list(UNDER_WAY.get()))
    return out / "store"


def record(words: list[str]) -> None:
    """Write a command beside what it made, in the folder of --out, so that a report can say how to repeat it.

    The results are there by then, so whatever goes wrong is said, and no more.
    """
    import shlex

    from typer import echo

    from likewise._base.files import is_folder, write_whole
    from likewise._base.manifest import manifest_of
    from likewise.errors import LikewiseError

    folders = [following for word, following in pairwise(words) if word == "--out"]
    folders += [word.removeprefix("--out=") for word in words if word.startswith("--out=")]
    if not folders or not is_folder(folders[-1]) or manifest_of(file := Path(folders[-1]) / COMMAND) is None:
        return
    try:
        write_whole(file, f"{shlex.join(['likewise', *words])}\n".encode())
    except LikewiseError as error:
        echo(f"likewise: {error}", err=True)


def array_of(file: str) -> Any:
    """The one array of a file."""
    from likewise.errors import InputError
    from likewise.views.array_files import read_arrays

    arrays = read_arrays([file])
    if len(arrays) > 1:
        key = next(iter(arrays)).partition(":")[2]
        raise InputError(f"{file!r} holds {len(arrays)} arrays. Name one, as in '{file}:{key}'.")
    return next(iter(arrays.values()))


def labels_of(file: str) -> Any:
    """One label per input: the array of a file, or the lines of a text."""
    path = Path(file)
    if path.suffix.lower() not in (".txt", ".csv", ".tsv"):
        return array_of(file)
    from likewise._base.files import reading
    from likewise._base.folders import read_at
    from likewise.errors import InputError

    with reading(path, f"{file!r} holds no labels ({{reason}}). Give one per line in UTF-8, or an array."):
        lines = [line.strip().strip('"') for line in read_at(path).decode("utf-8-sig").rstrip().split("\n")]
    if not all(lines):
        raise InputError(f"line {lines.index('') + 1} of {file!r} is empty. Give one label per line.")
    if path.suffix.lower() != ".txt" and any(sign in line for line in lines for sign in ",;\t"):
        raise InputError(f"{file!r} has several columns. Give one label per line, without the name of the column.")
    return lines


def groups(within_classes: bool, labels: str | None, data: str | None) -> Any:
    """The classes inputs are shuffled within, if they are."""
    from likewise.cli._print import refuse_unused
    from likewise.errors import InputError

    if not within_classes:
        refuse_unused({"--labels": labels}, "without --within-classes")
        return None
    if labels is not None:
        return labels_of(labels)
    if data is None:
        raise InputError(
            "--within-classes needs the class of every input. Pass --labels FILE, an array of one per row."
        )
    return "labels"


def attack_options(attack: str, eps: str | None, iterations: int | None) -> tuple[str, dict[str, Any]]:
    """The name of an attack and its options, from `NAME,name=value,...` and from `--eps` and `--iterations`.

    >>> attack_options("mi-fgsm,decay=0.9", "4/255", 20)
    ('mi-fgsm', {'decay': 0.9, 'eps': 0.01568627450980392, 'iterations': 20})
    """
    from likewise._base.registry import parse_options
    from likewise.errors import InputError

    name, comma, rest = attack.partition(",")
    options = parse_options(rest, "attack") if comma else {}
    flags: dict[str, Any] = {} if eps is None else parse_options(f"eps={eps}", "eps")
    flags |= {} if iterations is None else {"iterations": iterations}
    for option in flags:
        if option in options:
            raise InputError(f"{option} is given twice, in --attack and as --{option}. Give it once.")
    return name, options | flags


def thresholds(words: list[str] | None, option: str) -> dict[str, float]:
    """Limits as a command line names them: `MEASURE=VALUE`.

    >>> thresholds(["cka-debiased=0.95", "jaccard[k=5]=0.5"], "--fail-under")
    {'cka-debiased': 0.95, 'jaccard[k=5]': 0.5}
    """
    from likewise.errors import InputError

    limits: dict[str, float] = {}
    for word in words or []:
        measure, _, value = word.rpartition("=")
        try:
            limits[measure] = float(value)
        except ValueError:
            measure = ""
        if not measure or limits[measure] != limits[measure]:
            raise InputError(f"{option} {word} names no limit. Give MEASURE=VALUE, as in {option} disagreement=0.02.")
    return limits
