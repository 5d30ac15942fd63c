"""Label selectors: their text form, their object form, and what they match.

Source: apimachinery v1.36, pkg/labels and pkg/apis/meta/v1; texts and messages are part of the
contract, as operators see them in conditions and events.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import msgspec

from kubetide.units.selector_text import SelectorTextError, parse_int64, parse_terms, term_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["EVERYTHING", "NOTHING", "Requirement", "Selector", "SelectorError"]

_SYMBOLS = {"gt": ">", "lt": "<", "in": " in ", "notin": " notin "}
# Selectors that are longer, or name more values, are read each time: thousands of them must not be cached.
_LONG = 4096
_MANY = 256
_OBJECT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class SelectorError(ValueError):
    """A selector that cannot be read; ``detail`` is the message without the selector's text."""

    def __init__(self, message: str, detail: str | None = None) -> None:
        super().__init__(message)
        self.detail = message if detail is None else detail


class SelectorTerm(Protocol):
    """One ``matchExpressions`` entry of any API type."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str] | None: ...


class SelectorObject(Protocol):
    """A ``LabelSelector`` of any API type."""

    @property
    def match_labels(self) -> Mapping[str, str] | None: ...
    @property
    def match_expressions(self) -> Sequence[SelectorTerm] | None: ...


class Requirement(msgspec.Struct, frozen=True):
    """One condition on labels; operators are ``=``, ``==``, ``!=``, ``in``, ``notin``, ``exists``, ``!``, ``gt``, ``lt``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet the condition; an absent key meets ``!=``, ``notin`` and ``!``."""
        value = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        have, want = parse_int64(value), parse_int64(self.values[0])
        if have is None or want is None:
            return False
        return have > want if self.operator == "gt" else have < want

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in {"in", "notin"}:
            values = f"({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator)}{values}"


class Selector(msgspec.Struct, frozen=True):
    """A conjunction of requirements, sorted by key; ``selectable`` is False for the one that matches nothing."""

    requirements: tuple[Requirement, ...] = ()
    selectable: bool = True

    @staticmethod
    def everything() -> Selector:
        return EVERYTHING

    @staticmethod
    def nothing() -> Selector:
        return NOTHING

    @staticmethod
    def parse(text: str) -> Selector:
        """Read the text form; the empty text matches everything.

        Raises: SelectorError with upstream's message; ``detail`` leaves out the quoted text.
        """
        return _parse(text) if len(text) <= _LONG else _parse.__wrapped__(text)

    @staticmethod
    def from_object(selector: SelectorObject | None) -> Selector:
        """Read the object form: None matches nothing, an empty one everything.

        Raises: SelectorError with upstream's message.
        """
        if selector is None:
            return NOTHING
        labels = tuple(sorted((selector.match_labels or {}).items()))
        expressions = tuple(
            (term.key, term.operator, tuple(term.values or ())) for term in selector.match_expressions or ()
        )
        if len(labels) + sum(len(values) for _, _, values in expressions) > _MANY:
            return _from_parts.__wrapped__(labels, expressions)
        return _from_parts(labels, expressions)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether labels meet every requirement; None counts as no labels."""
        if not self.selectable:
            return False
        labels = labels or {}
        return all(requirement.matches(labels) for requirement in self.requirements)

    def is_empty(self) -> bool:
        """Return whether everything is matched."""
        return self.selectable and not self.requirements

    def exact_values(self) -> dict[str, str]:
        """Return the labels that any match must have, for indexes."""
        return {
            requirement.key: requirement.values[0]
            for requirement in self.requirements
            if requirement.operator in {"=", "==", "in"} and len(requirement.values) == 1
        }

    def allowed_values(self, most: int) -> dict[str, tuple[str, ...]]:
        """Return the labels that any match must have, each with the values that it may have, where these are few."""
        return {
            requirement.key: tuple(dict.fromkeys(requirement.values))
            for requirement in self.requirements
            if requirement.operator in {"=", "==", "in"} and len(requirement.values) <= most
        }

    def as_scale_selector(self) -> Selector:
        """Return the selector as it comes back through the scale client.

        The client turns a scale's selector text into the object form and prints it again: ``==``
        becomes ``=``, and of two equalities on one key the last one stays.

        Raises: SelectorError for ``!=``, ``gt`` and ``lt``, which the object form cannot say.
        """
        labels: dict[str, str] = {}
        expressions: list[Requirement] = []
        for requirement in self.requirements:
            if requirement.operator in {"=", "=="}:
                labels[requirement.key] = requirement.values[0]
            elif requirement.operator in {"!=", "gt", "lt"}:
                raise SelectorError(f'"{requirement.operator}" is not a valid label selector operator')
            else:
                expressions.append(requirement)
        equalities = [Requirement(key, "=", (value,)) for key, value in labels.items()]
        return _sorted([*equalities, *expressions])

    def __str__(self) -> str:
        """Print the text form, sorted by key, values sorted; nothing prints like everything: empty."""
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()
NOTHING = Selector(selectable=False)


@lru_cache(maxsize=1 << 12)
def _parse(text: str) -> Selector:
    try:
        requirements = [Requirement(*term) for term in parse_terms(text)]
    except SelectorTextError as exc:
        detail = str(exc)
        raise SelectorError(f"couldn't parse the selector string {_quote(text)}: {detail}", detail) from None
    return _sorted(requirements)


@lru_cache(maxsize=1 << 12)
def _from_parts(
    labels: tuple[tuple[str, str], ...], expressions: tuple[tuple[str, str, tuple[str, ...]], ...]
) -> Selector:
    requirements = [Requirement(key, "=", (value,)) for key, value in labels]
    for key, operator, values in expressions:
        if operator not in _OBJECT_OPERATORS:
            raise SelectorError(f"{_quote(operator)} is not a valid label selector operator")
        requirements.append(Requirement(key, _OBJECT_OPERATORS[operator], values))
    for requirement in requirements:
        problem = term_problem(requirement.key, requirement.operator, requirement.values)
        if problem:
            raise SelectorError(problem)
    return _sorted(requirements)


def _sorted(requirements: list[Requirement]) -> Selector:
    if not requirements:
        return EVERYTHING
    return Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
