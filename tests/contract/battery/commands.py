"""Every command with missing, odd, negative, contradictory and useless arguments.

A command registers one example per way it is used. From the parameters that it declares, argument vectors are derived:
each left out, with values that mean nothing, with files in place of folders, with huge numbers, beside others that
contradict it. Whatever is typed, the exit code is 0, 1 or 2, errors are sentences, nothing outside of the working
folder is written, no file that was there is touched, and what means nothing is refused or said to have no effect.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import os
import random
import shlex
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

from typer.models import OptionInfo

from likewise import cli
from likewise._base.names import visible
from tests.contract.battery.command_files import write_files

BAD = ("foreign", "wordless", "ignored", "outside", "touched", "broken")


@dataclass(frozen=True)
class Example:
    """One use of a command, on the files of `command_files`.

    Attributes:
        line: What is typed after the command.
        any_text: Options and arguments that take any text, so that none is nonsense.
        same: Options that change nothing here by right, since another says the same.
        costly: Whether it takes more than a few seconds: it is run as it is by the full volume only, and of its vectors
            those that are refused before work begins.
    """

    line: str
    any_text: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    costly: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.line.split())


_TWO = "nets.py:build nets.py:other --data digits:test[:40] --mean 0 --std 1"
_CLASSES = "nets.py:of_colours --data imagefolder:images --mean 0 --std 1"
_CLASSES += " --sense cat=cat.n.01 --sense dog=dog.n.01 --sense trout=trout.n.02"
_TRAINED = "training/weights.safetensors training/epochs/0001.safetensors --data digits:test[:40]"
_BENCHMARK = "--domain vision --data digits --network mlp --grounding accuracy --measures cka"
EXAMPLES: dict[str, tuple[Example, ...]] = {
    "advise": (
        Example("--domain graph --question labels"),
        Example("--domain vision --question all --n 500 --d 64 --budget 10s --top 3"),
    ),
    "attack": (Example("nets.py:build --data digits:test[:40] --attack fgsm --eps 0.1 --mean 0 --std 1"),),
    "benchmark board": (Example("--out page.html", same=("ours",)), Example("sent.json --no-ours", same=("ours",))),
    "benchmark compare-with-paper": (Example("bench"),),
    "benchmark folder": (Example("own --measures cka --grounding family"),),
    "benchmark run": (
        Example(f"{_BENCHMARK} --plan", any_text=("out",)),
        Example(f"{_BENCHMARK} --out new", costly=True),
    ),
    "benchmark submit": (Example("cka --views cached.safetensors --out new.json", any_text=("submitter",)),),
    "benchmark sweep": (Example("trained --measure jaccard[k=2,3]", costly=True),),
    "benchmark table": (Example("bench"), Example("bench --ranks")),
    "benchmark views": (Example("trained --out new.safetensors", any_text=("out",)),),
    "classes": (Example(_CLASSES),),
    "compare": (
        Example("a.npy b.npy c.npy"),
        Example("a.npy b.npy --measure rsa --within-classes --labels labels.npy", same=("calibrate",)),
        Example(_TWO),
        Example("old.likewise nets.py:other --data digits:test[:40] --mean 0 --std 1"),
    ),
    "data": (Example("digits"), Example("")),
    "demo": (Example("new", costly=True),),
    "complete": (Example("bash"),),
    "diff": (
        Example(f"{_TWO} --transfer 0"),
        Example(f"{_TWO} --transfer 5"),
        Example("old.likewise nets.py:other --data digits:test[:40] --mean 0 --std 1"),
        Example("new.likewise nets.py:other --data digits:test[:40] --mean 0 --std 1"),
    ),
    "ensemble": (Example("run --size 2"),),
    "families": (
        Example("run"),
        Example("square.csv"),
        Example("matrix.safetensors --k 2 --components components.csv"),
    ),
    "inspect": (Example("training --data digits:test[:40] --out new"),),
    "layers": (Example("nets.py:build --data digits:test[:40]"),),
    "layerwise": (
        Example(_TWO),
        Example(f"{_TWO} --measure cka"),
        Example("old.likewise nets.py:other --data digits:test[:40] --mean 0 --std 1"),
    ),
    "measures": (Example(""), Example("cka"), Example("--family cca")),
    "networks": (Example(""), Example("zoo:mlp*")),
    "record": (
        Example("nets.py:build --data digits:test[:40] --mean 0 --std 1 --out new.likewise", any_text=("name", "out")),
    ),
    "report": (Example("run --out page.html", any_text=("title",)),),
    "samples": (Example("samples_a.jsonl samples_a.jsonl", same=("seed", "fail")),),
    "teacher": (Example("run --student one --outcomes outcomes.csv"), Example("square.csv --student one")),
    "train": (Example("nets.py:build digits:train[:40] --epochs 1 --out new"),),
    "transfer": (Example(f"{_TRAINED} --attack fgsm --eps 0.1"), Example("--preset paper --plan")),
    "upgrade": (
        Example("a.npy b.npy"),
        Example(
            "a.npy b.npy --queries b.npy c.npy --k 3 --threshold 0.5 --labels labels.npy --query-labels labels.npy"
        ),
    ),
    "wordnet": (Example("dog", any_text=("nouns",)), Example("dog.n.01 cat.n.01 fish.n.01")),
    "zeroshot": (Example("zoo:mlp --data digits:train[:60] --preset small --epochs 1", costly=True),),
}


# --- what is typed ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vector:
    """A command line, and what is to be true of it beside what is true of all.

    Attributes:
        command: The command.
        words: All words.
        about: The option or argument that was changed.
        nonsense: Whether its value means nothing, so that it has to be refused or said to have no effect.
        without: The line without it, whose outcome has to be another; empty where that is not asked.
    """

    command: str
    words: tuple[str, ...]
    about: str = ""
    nonsense: bool = False
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """An option of a command, or an argument, which has no flags."""

    name: str
    kind: type
    flags: tuple[str, ...]
    least: float | None

    @classmethod
    def read(cls, name: str, annotation: Any) -> Parameter:
        kind, info = get_args(annotation)
        kinds = [one for one in get_args(kind) or [kind] if one is not type(None)]
        kind = next((get_args(one)[0] for one in kinds if get_origin(one) is list), kinds[0])
        flags: tuple[str, ...] = ()
        if isinstance(info, OptionInfo):  # inside of Annotated, the first flag is where a default would be
            first = (info.default,) if isinstance(info.default, str) else ()
            flags = (*first, *(info.param_decls or ())) or (f"--{name.replace('_', '-')}",)
        return cls(name, kind, flags, info.min)


@cache
def declared() -> dict[str, list[Parameter]]:
    """The parameters of every command, as its signature declares them."""
    return {name: _parameters(point.load()) for name, point in points(cli.commands())}


def points(entries: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its words, those of groups included."""
    for name, point in entries.items():
        loaded = point.load()
        if isinstance(loaded, ModuleType):
            yield from points(cli._points(loaded.__name__, loaded.__path__), f"{name} ")
        else:
            yield f"{group}{name}", point


def _parameters(command: Any) -> list[Parameter]:
    signature = inspect.signature(command, eval_str=True)
    return [Parameter.read(name, one.annotation) for name, one in signature.parameters.items()]


def unregistered(examples: Mapping[str, Any] = EXAMPLES) -> list[str]:
    """Commands without an example."""
    return sorted(set(declared()) - set(examples))


OURS = ("trained/store/", "trained/likewise.manifest")  # of the files below, what a command may add to
FOLDERS = {"out", "store", "push", "figures"}  # that are written to; of these two, single files
FILES = {f"benchmark {name}": ("out",) for name in ("folder", "table", "sweep", "compare-with-paper")}
ENDLESS = {"epochs", "iterations", "seeds"}  # a huge number of which is granted
PICTURES = {"plot", "accuracies", "inputs"}


def odd_values(command: str, parameter: Parameter) -> list[str]:
    """Values that mean nothing for a parameter, by its type."""
    kind, name = parameter.kind, parameter.name
    if kind in (int, float):
        low = -1 if parameter.least is None else parameter.least - 1
        return [str(low), "x", "1.5" if kind is int else "nan"]
    if name in PICTURES or name in FILES.get(command, ()):
        return ["user.txt/inside.png", "picture.nosuch" if name in PICTURES else "taken"]
    if kind is Path and (name in FOLDERS or command == "demo"):
        return ["user.txt", "taken", "user.txt/inside"]
    if kind is Path:
        return ["missing.file", "user.txt", "taken", "\x1b[31m"]
    return ["nosuch", "\x1b[2Jnosuch", "user.txt"]


def vectors(command: str, example: Example) -> Iterator[Vector]:
    """What is derived from one example."""
    words, parameters = example.words, declared()[command]
    options = [one for one in parameters if one.flags]
    yield Vector(command, words)
    yield Vector(command, (*words, "--nosuch"), "--nosuch", nonsense=True)
    arguments = _arguments(words, options)
    new = command == "demo"  # whose argument is a folder to make
    for i in arguments:
        yield Vector(command, words[:i] + words[i + 1 :], words[i])
        for odd in ("nosuch", "missing/file.npy", "taken", "user.txt", "\x1b[31m", "../outside", "/dev/zero"):
            yield Vector(command, (*words[:i], odd, *words[i + 1 :]), words[i], nonsense=not new)
    if not arguments:
        yield Vector(command, (*words, "nosuch"), "nosuch", nonsense=True)
    flags = [one.flags[0] for one in options if one.name.startswith("as_")]
    yield from (Vector(command, (*words, a, b), b, nonsense=True) for a in flags for b in flags if a < b)
    for option in options:
        yield from _of_option(command, example, option)


def _of_option(command: str, example: Example, option: Parameter) -> Iterator[Vector]:
    flag, words = option.flags[0], example.words
    rest = _without(words, option)
    if option.kind is bool:
        if rest == words and option.name not in example.same:
            yield Vector(command, (*words, flag), flag, without=words)
        return
    if rest != words:
        yield Vector(command, rest, flag)
    yield Vector(command, (*rest, flag), flag, nonsense=True)
    yield Vector(command, (*rest, flag, ""), flag, nonsense=True)
    if option.name in example.any_text:
        return
    for value in odd_values(command, option):
        yield Vector(command, (*rest, f"{flag}={value}"), flag, nonsense=True)
    if option.kind in (int, float) and option.name not in ENDLESS:
        yield Vector(command, (*rest, f"{flag}={10**30}"), flag)


def _arguments(words: tuple[str, ...], options: list[Parameter]) -> list[int]:
    """Where words are that belong to no option."""
    taking = {name for one in options if one.kind is not bool for name in one.flags}
    return [i for i, word in enumerate(words) if not word.startswith("-") and (i == 0 or words[i - 1] not in taking)]


def _without(words: tuple[str, ...], option: Parameter) -> tuple[str, ...]:
    out, skip = [], 0
    for word in words:
        if word in option.flags:
            skip = 1 if option.kind is bool else 2
        skip, kept = max(0, skip - 1), skip == 0
        out += [word] if kept else []
    return tuple(out)


# --- what comes of it -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a command did: its exit code or the exception that got through, what it printed, what it left."""

    code: int | str
    out: str
    err: str
    files: Mapping[str, str]
    outside: tuple[str, ...]


class _Watch:
    """Notes files that are opened for writing, made, renamed or removed outside of a folder while it is set."""

    folder: str = ""
    events: list[str]

    def __init__(self) -> None:
        self.events = []
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder:
            return
        paths: tuple[Any, ...] = ()
        if event == "open":
            path, mode, flags = arguments
            writes = (mode and set(str(mode)) & set("wax+")) or (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            paths = (path,) if writes else ()
        elif event in ("os.rename", "os.link", "os.symlink"):
            paths = arguments[:2]
        elif event in ("os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"):
            paths = arguments[:1]
        for path in paths:
            if isinstance(path, (str, bytes, os.PathLike)):
                real = os.path.realpath(os.fsdecode(path))
                if not real.startswith((self.folder + os.sep, "/dev/")) and real != self.folder:
                    self.events.append(f"{event} {real}")


@cache
def _watch() -> _Watch:
    return _Watch()


def digests(folder: Path) -> dict[str, str]:
    """The content of every file of a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def outcome(words: tuple[str, ...], template: Path) -> Outcome:
    """Run a command in this process, in a copy of the files."""
    with tempfile.TemporaryDirectory(prefix="battery-") as name, contextlib.ExitStack() as stack:
        top = Path(name).resolve()
        work = top / "work"
        shutil.copytree(template, work)
        (top / "tmp").mkdir()
        stack.enter_context(contextlib.chdir(work))
        stack.enter_context(_scratch(top / "tmp"))
        out, err = io.StringIO(), io.StringIO()
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        import matplotlib.font_manager  # noqa: F401  writes a cache of its own when first loaded

        watch = _watch()
        watch.events.clear()
        watch.folder = str(top)
        try:
            cli.main(list(words))
            code: int | str = 0
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, (int, str)) else 0
        except BaseException:
            code = traceback.format_exc(limit=-3)
        finally:
            watch.folder = ""
        return Outcome(code, out.getvalue(), err.getvalue(), digests(work), tuple(watch.events))


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[None]:
    """Temporary files go into a folder, nothing is compiled, nothing is read from the keyboard."""
    before = tempfile.tempdir, sys.dont_write_bytecode, sys.stdin
    tempfile.tempdir, sys.dont_write_bytecode, sys.stdin = str(folder), True, io.StringIO()
    try:
        yield
    finally:
        tempfile.tempdir, sys.dont_write_bytecode, sys.stdin = before


def faults(vector: Vector, template: Path, before: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is wrong with the outcome of a vector: a kind, and what was seen."""
    words = (*vector.command.split(), *vector.words)
    done = outcome(words, template)
    said = done.out + done.err
    seen = []
    if done.code not in (0, 1, 2):
        return [("foreign", str(done.code))]
    if done.code and not done.err.strip():
        seen.append(("wordless", f"exit code {done.code}"))
    if any(visible(line) != line for line in said.split("\n")):
        seen.append(("wordless", "a terminal would obey what is printed"))
    if done.outside:
        seen.append(("outside", "; ".join(done.outside[:3])))
    theirs = {name: digest for name, digest in before.items() if not name.startswith(OURS)}
    if touched := [name for name, digest in theirs.items() if done.files.get(name) != digest]:
        seen.append(("touched", ", ".join(touched[:3])))
    if vector.nonsense and done.code == 0 and vector.about not in said:
        seen.append(("ignored", said[-100:]))
    if not vector.about and done.code:
        seen.append(("broken", done.err))
    if vector.without and done.code == 0:
        plain = outcome((*vector.command.split(), *vector.without), template)
        if (plain.out, plain.err, plain.files) == (done.out, done.err, done.files):
            seen.append(("ignored", f"{vector.about} changed nothing"))
    return seen


ALL = 10_000  # more than there are


def select(seed: int, volume: int) -> list[Vector]:
    """At most so many vectors, drawn; those of examples that take long are among `ALL` alone."""
    pool = [
        vector
        for command, examples in EXAMPLES.items()
        for example in examples
        for vector in vectors(command, example)
        if volume >= ALL or not example.costly
    ]
    random.Random(seed).shuffle(pool)
    return pool[:volume]


def run(seed: int, volume: int, *, say: Any = print) -> dict[str, int]:
    """Run the vectors of a volume, say what is wrong, and count."""
    counts: Counter[str] = Counter(dict.fromkeys(("vectors", *BAD), 0))
    with tempfile.TemporaryDirectory(prefix="battery-files-") as name:
        template = Path(name) / "files"
        template.mkdir()
        write_files(template)
        before = digests(template)
        for vector in select(seed, volume):
            counts["vectors"] += 1
            for kind, what in faults(vector, template, before):
                counts[kind] += 1
                say(f"{kind}: likewise {vector.command} {shlex.join(vector.words)} [{vector.about}]\n    {what}")
    return dict(counts)
