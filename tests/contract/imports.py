"""Which modules of the package a file imports, in every form that Python knows.

`import`, `from`, dots, aliases of the package and of `importlib`, `import_module` and `__import__` with a text or an
f-string, and names taken from the package or from a room, which are followed to the module they are defined in. The
module paths of a registry are no imports: it loads them when a name is looked up, so that a later room may add to an
earlier one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import likewise
from likewise._base.lazy import homes

SOURCE = Path(likewise.__file__).parent
IMPORTERS = ("importlib.import_module", "importlib.__import__", "__import__", "builtins.__import__")


class Imports(ast.NodeVisitor):
    """Collects the modules that a file imports."""

    def __init__(self, module: str, is_package: bool, *, typing: bool) -> None:
        self.package = module if is_package else module.rpartition(".")[0]
        self.typing = typing
        self.modules: set[str] = set()
        self.unreadable: list[str] = []  # calls that import what is known only as they run
        self.aliases: dict[str, str] = {}  # names in the file -> what they stand for

    def visit_If(self, node: ast.If) -> None:
        if self.typing or "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)
        else:
            for statement in node.orelse:
                self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.aliases[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            if alias.name.startswith("likewise."):
                self.modules.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parents = self.package.split(".")
            base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
        for alias in node.names:
            self.aliases[alias.asname or alias.name] = f"{base}.{alias.name}"
            if base.partition(".")[0] == "likewise":
                self.modules.add(home(base, alias.name))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._path(node)
        if path.startswith("likewise."):
            self._add_path(path)
        else:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if self._path(node.func) in IMPORTERS:
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            module, *packages = [_text(argument) for argument in arguments] or [""]
            if module.startswith("."):
                module = f"{packages[0] if packages else self.package}{module}"
            if not module:
                self.unreadable.append(ast.unparse(node))
            elif module.partition(".")[0] == "likewise" and module != "likewise":
                self.modules.add(module)
        self.generic_visit(node)

    def _path(self, node: ast.AST) -> str:
        """The dotted name of an expression with aliases replaced, or nothing."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute) and (path := self._path(node.value)):
            return f"{path}.{node.attr}"
        return ""

    def _add_path(self, path: str) -> None:
        """`likewise.views.extract(...)`: the deepest module of it, names followed to their home."""
        base, rest = "likewise", path.split(".")[1:]
        for name in rest:
            module = home(base, name)
            if module != f"{base}.{name}":
                break
            base = module
        else:
            module = base
        if module != "likewise":
            self.modules.add(module)


def _text(node: ast.AST) -> str:
    """A text, or the beginning of an f-string up to its first value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.rpartition(".")[0]
        case ast.BinOp(left=left, op=ast.Add()):
            return _text(left).rpartition(".")[0]
    return ""


def home(base: str, name: str) -> str:
    """The module that a name of a module is in: itself if it is one, else where its package imports it from.

    `likewise.__version__` is in no room.
    """
    if is_module(f"{base}.{name}"):
        return f"{base}.{name}"
    if base == "likewise":
        return "" if name == "__version__" else homes("likewise").get(name, f"likewise.{name}")
    return base


def is_module(module: str) -> bool:
    """Whether there is a file or folder of that name."""
    return path_of(module).is_file()


def module_name(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(module: str) -> Path:
    """The file of a module."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def read(path: Path, module: str, *, typing: bool = True) -> Imports:
    """What a file imports; with `typing=False` without what only type checkers read."""
    imports = Imports(module, path.name == "__init__.py", typing=typing)
    imports.visit(ast.parse(path.read_text("utf-8")))
    imports.modules.discard("")
    return imports


@cache
def graph(*, typing: bool) -> dict[str, set[str]]:
    """Every module of the package with those it imports."""
    return {module_name(path): read(path, module_name(path), typing=typing).modules for path in SOURCE.rglob("*.py")}


def cycles(edges: dict[str, set[str]]) -> Iterator[list[str]]:
    """Groups of modules that import each other in a circle (strongly connected components, Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> Iterator[list[str]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                yield from visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1 or node in edges.get(node, ()):
                yield sorted(group)

    for node in sorted(edges):
        if node not in index:
            yield from visit(node)
