"""Checks the structure of a scenario: unknown and missing fields, values of the wrong type.

msgspec stops at the first problem; a person wants to see them all.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from kubetide.simulate.scenarios.spec import Part, Scenario

_WITH_UNIT = frozenset(
    [
        "actualMemory",
        "at",
        "baseCpu",
        "baseMemory",
        "bootTime",
        "duration",
        "end",
        "fall",
        "hold",
        "imagePull",
        "latency",
        "leakPerHour",
        "maxQueue",
        "memory",
        "memoryPerRequest",
        "ready",
        "readyTime",
        "reservedCpu",
        "reservedMemory",
        "rise",
        "shutdownTime",
        "sloLatency",
        "start",
        "step",
        "stop",
        "warmUp",
    ]
)
"""Fields of text that hold a duration or a quantity."""


class Problem(NamedTuple):
    """``field`` is the path to the deepest part that the file has, ``shown`` the path to print."""

    field: str
    shown: str
    text: str


def structure_problems(value: Any) -> list[Problem]:
    """Return the structural problems of a decoded YAML value, in the order of the fields."""
    return list(_problems(value, Scenario, ""))


def _problems(value: Any, hint: Any, path: str) -> Iterator[Problem]:
    hint = _without_none(hint)
    if isinstance(hint, type) and issubclass(hint, Part):
        yield from _of_part(value, hint, path)
    elif typing.get_origin(hint) is dict:
        yield from _of_mapping(value, typing.get_args(hint)[1], path)
    elif typing.get_args(hint)[1:] == (...,):
        yield from _of_list(value, typing.get_args(hint)[0], path)
    else:
        try:
            msgspec.convert(value, hint, strict=True)
        except msgspec.ValidationError:
            yield Problem(path, path, f"{_said(value)}; it takes {_word(hint)}{_fix(value, hint, path)}")


def _of_part(value: Any, part: type[Part], path: str) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(part)}
    if not isinstance(value, dict):
        yield Problem(path, path, f"{_said(value)}; it takes a mapping of {', '.join(fields)}")
        return
    hints = _hints(part)
    for name, member in value.items():
        field = f"{path}.{name}" if path else name
        if name in fields:
            yield from _problems(member, hints[fields[name].name], field)
        else:
            yield Problem(field, path, f"unknown field `{name}`; {_hint(name, list(fields))}")
    for name, declared in fields.items():
        if declared.required and name not in value:
            yield Problem(path, path, f"`{name}` is missing; add it")


def _of_mapping(value: Any, hint: Any, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(path, path, f"{_said(value)}; it takes a mapping")
        return
    for name, member in value.items():
        yield from _problems(member, hint, f"{path}[{name}]")


def _of_list(value: Any, hint: Any, path: str) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield Problem(path, path, f"{_said(value)}; it takes a list: begin each entry with `- `")
        return
    for index, member in enumerate(value):
        yield from _problems(member, hint, f"{path}[{index}]")


@cache
def _hints(part: type[Part]) -> dict[str, Any]:
    return typing.get_type_hints(part)


def _without_none(hint: Any) -> Any:
    if not isinstance(hint, types.UnionType):
        return hint
    left = [one for one in typing.get_args(hint) if one is not type(None)]
    return left[0] if len(left) == 1 else hint


def _hint(name: str, known: list[str]) -> str:
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower().replace("_", "").replace("-", ""), lower, n=1)
    return f"did you mean `{lower[near[0]]}`?" if near else f"there are {', '.join(known)}"


_WORDS: dict[Any, str] = {
    bool: "true or false",
    str: "text",
    int: "a whole number",
    float: "a number",
    dict: "a mapping",
    list: "a list",
}


def _said(value: Any) -> str:
    word = _WORDS.get(type(value), "nothing")
    return f"is {word}" if isinstance(value, dict | list) else f"{value!r} is {word}"


def _word(hint: Any) -> str:
    if isinstance(hint, types.UnionType):
        return " or ".join(_WORDS[one] for one in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return f"a list of {len(typing.get_args(hint))}"
    return _WORDS[hint]


def _fix(value: Any, hint: Any, path: str) -> str:
    if hint is str and isinstance(value, int | float):
        if path != "start" and path.rpartition(".")[2] in _WITH_UNIT:
            return ": a duration or quantity with its unit (30s, 2Gi)"
        return ": put it in quotes"
    if hint in {int, float} and isinstance(value, str):
        return " without unit or quotes"
    return ""
