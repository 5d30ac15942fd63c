"""The text, list and set functions that Kubernetes adds to CEL.

Source: apiserver v1.36 CEL environment: cel-go's strings (version 2), sets and lists (version 3),
and its own ``find``, ``isSorted``, ``sum``, ``min``, ``max``, ``indexOf``. Not here: ``format``.
"""

from __future__ import annotations

from typing import Any

from kubetide.cel.declarations import Library
from kubetide.cel.standard import to_pattern
from kubetide.cel.types import (
    BOOL,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
)
from kubetide.cel.values import NOTHING, EvaluationError, Optional, Uint, equal, kind_of

LIBRARY = Library()
_function, _method = LIBRARY.function, LIBRARY.method
_SPACE = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_MAX_LIST = 1_000_000
_COMPARABLE = frozenset({"int", "uint", "double", "string", "bool", "bytes", "duration", "timestamp"})


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        if not part and start == len(text):
            return start
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for at in (start, len(text) if end is None else end):
        if not 0 <= at <= len(text):
            raise EvaluationError(f"index out of range: {at}")
    return text[start:end]


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if most < 0 or len(parts) <= most else [*parts[: most - 1], "".join(parts[most - 1 :])]
    return text.split(separator, -1 if most < 0 else most - 1)


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, max(most, -1))


def _quote(text: str) -> str:
    table = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    return '"' + "".join(table.get(c, "\\" + c if c in '\\"' else c) for c in text) + '"'


def _find(text: str, pattern: str) -> str:
    found = to_pattern(pattern).find(text)
    return text[found[0] : found[1]] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    return [text[begin:end] for begin, end in to_pattern(pattern).find_all(text, most)]


def _texts() -> None:
    _method("charAt", (STRING, INT), STRING, _char_at)
    for more in ((), (INT,)):
        _method("indexOf", (STRING, STRING, *more), INT, _index_of)
        _method("lastIndexOf", (STRING, STRING, *more), INT, _last_index_of)
        _method("substring", (STRING, INT, *more), STRING, _substring)
        _method("split", (STRING, STRING, *more), list_of(STRING), _split)
        _method("replace", (STRING, STRING, STRING, *more), STRING, _replace)
        _method("findAll", (STRING, STRING, *more), list_of(STRING), _find_all)
    _method("find", (STRING, STRING), STRING, _find)
    _method("lowerAscii", (STRING,), STRING, lambda text: text.translate(_LOWER))
    _method("upperAscii", (STRING,), STRING, lambda text: text.translate(_UPPER))
    _method("trim", (STRING,), STRING, lambda text: text.strip(_SPACE))
    _method("join", (list_of(STRING),), STRING, "".join)
    _method("join", (list_of(STRING), STRING), STRING, lambda parts, separator: separator.join(parts))
    _function("strings.quote", (STRING,), STRING, _quote)


def _position(elements: list[Any], value: Any, *, last: bool = False) -> int:
    found = [at for at, one in enumerate(elements) if equal(one, value)]
    return found[-1 if last else 0] if found else -1


def _extreme(elements: list[Any], word: str) -> Any:
    if not elements:
        raise EvaluationError(f"{word} called on empty list")
    return min(elements) if word == "min" else max(elements)


def _sum(elements: list[Any], zero: Any) -> Any:
    total = zero
    for one in elements:
        total += one
    return type(zero)(total)


def _range(count: int) -> list[int]:
    if count > _MAX_LIST:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _slice(elements: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(elements):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


def _flatten(elements: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for one in elements:
        nested = isinstance(one, list)
        flat.extend(_flatten(one, depth - 1) if nested and depth > 1 else one if nested and depth else [one])
    return flat


def _sorted(elements: list[Any]) -> list[Any]:
    kinds = {kind_of(one) for one in elements}
    if len(kinds) > 1:
        raise EvaluationError("list elements must have the same type")
    if kinds - _COMPARABLE:
        raise EvaluationError("list elements must be comparable")
    return sorted(elements)


def _distinct(elements: list[Any]) -> list[Any]:
    found: list[Any] = []
    for one in elements:
        if not _within(one, found):
            found.append(one)
    return found


def _within(one: Any, elements: list[Any]) -> bool:
    return any(equal(one, other) for other in elements)


def _contains(elements: list[Any], required: list[Any]) -> bool:
    return all(_within(one, elements) for one in required)


def _lists() -> None:
    for element in (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, Type("bytes")):
        elements = list_of(element)
        _method("isSorted", (elements,), BOOL, lambda found: found == sorted(found))
        _method("min", (elements,), element, lambda found: _extreme(found, "min"))
        _method("max", (elements,), element, lambda found: _extreme(found, "max"))
    for element, zero in ((INT, 0), (UINT, Uint(0)), (DOUBLE, 0.0)):
        _method("sum", (list_of(element),), element, lambda found, zero=zero: _sum(found, zero))
    _method("indexOf", (list_of(A), A), INT, _position)
    _method("lastIndexOf", (list_of(A), A), INT, lambda found, one: _position(found, one, last=True))
    _method("slice", (list_of(A), INT, INT), list_of(A), _slice)
    _method("reverse", (list_of(A),), list_of(A), lambda found: found[::-1])
    _method("flatten", (list_of(list_of(A)),), list_of(A), _flatten)
    _method("flatten", (list_of(DYN), INT), list_of(DYN), _flatten)
    _method("sort", (list_of(A),), list_of(A), _sorted)
    _method("distinct", (list_of(A),), list_of(A), _distinct)
    _method("first", (list_of(A),), Type("optional_type", (A,)), lambda found: _end_of(found, 0))
    _method("last", (list_of(A),), Type("optional_type", (A,)), lambda found: _end_of(found, -1))
    _function("lists.range", (INT,), list_of(INT), _range)


def _end_of(elements: list[Any], at: int) -> Any:
    return Optional(elements[at], has=True) if elements else NOTHING


def _sets() -> None:
    both = (list_of(A), list_of(A))
    _function("sets.contains", both, BOOL, _contains)
    _function("sets.intersects", both, BOOL, lambda one, other: any(_within(x, one) for x in other))
    _function(
        "sets.equivalent", both, BOOL, lambda one, other: _contains(one, other) and _contains(other, one)
    )


_texts()
_lists()
_sets()
