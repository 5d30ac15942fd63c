"""A function of CEL: its overloads with their types, and the Python behind each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubetide.cel.types import Type


class Overload(NamedTuple):
    """One form of a function.

    Attributes:
        parameters: What it takes; of a method the first is what it is called on.
        result: What it gives.
        apply: The function itself; may raise EvaluationError.
        method: Whether it is called as ``target.name(...)``.
    """

    parameters: tuple[Type, ...]
    result: Type
    apply: Callable[..., Any]
    method: bool = False


Functions = dict[str, list[Overload]]


class Library:
    """Functions by name, to be added to."""

    def __init__(self) -> None:
        self.functions: Functions = {}

    def function(
        self, name: str, parameters: tuple[Type, ...], result: Type, apply: Callable[..., Any]
    ) -> None:
        """Add a form that is called as ``name(...)``, or an operator."""
        self.functions.setdefault(name, []).append(Overload(parameters, result, apply))

    def method(
        self, name: str, parameters: tuple[Type, ...], result: Type, apply: Callable[..., Any]
    ) -> None:
        """Add a form that is called as ``target.name(...)``; the target comes first."""
        self.functions.setdefault(name, []).append(Overload(parameters, result, apply, method=True))


def merged(*libraries: Library) -> Functions:
    """Return all functions of several libraries."""
    found: Functions = {}
    for library in libraries:
        for name, overloads in library.functions.items():
            found.setdefault(name, []).extend(overloads)
    return found
