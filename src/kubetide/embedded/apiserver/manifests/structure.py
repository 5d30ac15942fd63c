"""Whether a JSON object has the shape of its type: the right JSON type in every known field.

Reading is fast and says little about where it failed; only a failed read is walked again here, to
name every misfit by its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubetide.objects.base import Json
    from kubetide.objects.kinds import Kind

# Whole numbers have 32 bits but for these.
_LONG = frozenset(
    {
        "activeDeadlineSeconds",
        "deletionGracePeriodSeconds",
        "expirationSeconds",
        "fsGroup",
        "generation",
        "gracePeriodSeconds",
        "observedGeneration",
        "remainingItemCount",
        "runAsGroup",
        "runAsUser",
        "startingDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "timeoutSeconds",
        "tolerationSeconds",
    }
)


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value of a JSON type that its field cannot hold."""

    path: str
    value: Any
    expected: str
    got: str


def misfits(kind: Kind[Any], obj: Json) -> list[Misfit]:
    """Return every misfit, none when the object reads as its type."""
    try:
        msgspec.convert(obj, kind.model)
    except msgspec.ValidationError as exc:
        found = list(_walk(obj, type_of(kind), ""))
        # The walk follows the same types; should it find less than the reader, the reader's words stand.
        return found or [Misfit("", None, "an object that reads as its type", str(exc))]
    return []


@lru_cache(maxsize=64)
def type_of(kind: Kind[Any]) -> inspect.Type:
    """Return the described type of a kind's objects."""
    return inspect.type_info(kind.model)


def child_path(path: str, member: str) -> str:
    """Return ``path.member``, or ``path[member]`` where the member's own dots would mislead."""
    if "." in member or "/" in member:
        return f"{path}[{member}]"
    return f"{path}.{member}" if path else member


def number_bits(name: str) -> int:
    """Return how many bits a field of that name has for its whole number, with the sign: 32 or 64."""
    return 64 if name in _LONG else 32


def beyond_range(name: str, value: Any, kind: inspect.Type) -> str:
    """Return what to say of a whole number that the field of that name and type cannot hold; else nothing."""
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    holds_whole = any(isinstance(option, inspect.IntType) for option in options)
    if not holds_whole or not isinstance(value, int) or isinstance(value, bool):
        return ""
    end = 1 << (number_bits(name) - 1)
    if -end <= value < end:
        return ""
    return f"Invalid value: {value}: must be between {-end} and {end - 1}, inclusive"


def _walk(value: Any, kind: inspect.Type, path: str) -> Iterator[Misfit]:
    if isinstance(kind, inspect.UnionType):
        if not any(_fits(value, option) for option in kind.types):
            yield Misfit(path, value, _name(kind), json_type(value))
            return
        kind = next(option for option in kind.types if _fits(value, option))
    if not _fits(value, kind):
        yield Misfit(path, value, _name(kind), json_type(value))
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.encode_name in value:
                yield from _walk(value[field.encode_name], field.type, child_path(path, field.encode_name))
    elif isinstance(kind, inspect.DictType):
        for key, member in value.items():
            yield from _walk(member, kind.value_type, child_path(path, key))
    elif isinstance(kind, inspect.VarTupleType):
        for index, item in enumerate(value):
            yield from _walk(item, kind.item_type, f"{path}[{index}]")


def _fits(value: Any, kind: inspect.Type) -> bool:
    """Return whether the value is of the kind's JSON type, whatever its members are."""
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(kind, inspect.UnionType):
        return any(_fits(value, option) for option in kind.types)
    if isinstance(kind, inspect.NoneType):
        return value is None
    if isinstance(kind, inspect.BoolType):
        return isinstance(value, bool)
    if isinstance(kind, inspect.IntType):
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(kind, inspect.FloatType):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(kind, inspect.StrType):
        return isinstance(value, str)
    if isinstance(kind, inspect.VarTupleType):
        return isinstance(value, list | tuple)
    return isinstance(value, dict)


_NAMES: tuple[tuple[type[inspect.Type], str], ...] = (
    (inspect.BoolType, "true or false"),
    (inspect.IntType, "a whole number"),
    (inspect.FloatType, "a number"),
    (inspect.StrType, "a text"),
    (inspect.VarTupleType, "a list"),
    (inspect.DictType, "a map"),
    (inspect.StructType, "a map"),
)


def _name(kind: inspect.Type) -> str:
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    names = [name for described, name in _NAMES if any(isinstance(option, described) for option in options)]
    if "a number" in names and "a whole number" in names:
        names.remove("a whole number")
    return " or ".join(names)


def json_type(value: Any) -> str:
    """Name the JSON type of a value as a person would."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"' if len(value) <= 40 else f'the text "{value[:37]}..."'
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list | tuple) else "a map"
