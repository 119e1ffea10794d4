"""How docstrings become the API page: measures and attacks as they are called, and examples as code.

An extension of griffe, which mkdocstrings reads the source by; mkdocs.yml names this file. A measure is written as a
function of a pair and called on two arrays: signature and docstring are taken from the object that users call.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import griffe


class Api(griffe.Extension):
    """Rewrites docstrings and signatures before they are rendered."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Called for every function when a package is loaded."""
        if func.decorators and func.parent is not None and func.parent.is_module:
            called = getattr(import_module(func.parent.path), func.name, None)
            if isinstance(getattr(called, "__signature__", None), inspect.Signature):
                types = {parameter.name: parameter.annotation for parameter in func.parameters}
                called_with = called.__signature__.parameters.values()
                func.parameters = griffe.Parameters(*(_parameter(one, types.get(one.name)) for one in called_with))
                func.docstring = griffe.Docstring(_examples(str(called.__doc__)), parent=func)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for everything: the section is called Examples in the dialect that griffe reads."""
        if obj.docstring is not None:
            obj.docstring.value = _examples(obj.docstring.value)


def _examples(docstring: str) -> str:
    return re.sub(r"^Example:$", "Examples:", docstring, flags=re.M)


def _parameter(parameter: inspect.Parameter, annotation: Any) -> griffe.Parameter:
    default = None if parameter.default is parameter.empty else repr(parameter.default)
    kind = griffe.ParameterKind[parameter.kind.name.lower()]
    return griffe.Parameter(parameter.name, kind=kind, default=default, annotation=annotation)
