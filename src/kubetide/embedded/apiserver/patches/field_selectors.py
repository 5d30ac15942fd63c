"""Field selectors: ``metadata.name=web,status.phase!=Running`` over plain JSON.

Source: apimachinery v1.36, pkg/fields. Which fields a kind can be selected by is the server's rule.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_TERM = re.compile(r"([^=!]*?)(!=|==|=)(.*)", re.DOTALL)


class FieldSelectorError(ValueError):
    """A field selector that cannot be read."""


class FieldTerm(msgspec.Struct, frozen=True):
    path: str
    equal: bool
    value: str

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.path}{'=' if self.equal else '!='}{escaped}"


class FieldSelector(msgspec.Struct, frozen=True):
    """A conjunction of comparisons of field paths with texts."""

    terms: tuple[FieldTerm, ...] = ()

    @staticmethod
    def parse(text: str) -> FieldSelector:
        """Read the text form; the empty text matches everything.

        Raises: FieldSelectorError that quotes the text.
        """
        return _parse(text)

    def matches(self, getter: Callable[[str], str | None]) -> bool:
        """Return whether the fields that ``getter`` gives by path meet every term; None counts as empty."""
        return all(((getter(term.path) or "") == term.value) is term.equal for term in self.terms)

    def is_empty(self) -> bool:
        return not self.terms

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


@lru_cache(maxsize=1 << 10)
def _parse(text: str) -> FieldSelector:
    terms = []
    for part in _split(text):
        if not part:
            continue
        match = _TERM.fullmatch(part)
        if match is None:
            raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        path, operator, value = match.groups()
        terms.append(FieldTerm(path, operator != "!=", _unescaped(value)))
    terms.sort(key=lambda term: (term.path, not term.equal, term.value))
    return FieldSelector(tuple(terms))


def _split(text: str) -> list[str]:
    """Split at the commas that no backslash escapes."""
    parts, current, escaped = [], "", False
    for char in text:
        if char == "," and not escaped:
            parts.append(current)
            current = ""
            continue
        escaped = char == "\\" and not escaped
        current += char
    parts.append(current)
    return parts


def _unescaped(value: str) -> str:
    plain, position = "", 0
    while position < len(value):
        char = value[position]
        if char == "\\":
            position += 1
            following = value[position : position + 1]
            if following not in {"\\", ",", "="} or not following:
                raise FieldSelectorError(f"invalid field selector: invalid escape sequence: \\{following}")
            char = following
        elif char in ",=":
            raise FieldSelectorError(f"invalid field selector: unescaped character in value: {char}")
        plain += char
        position += 1
    return plain
