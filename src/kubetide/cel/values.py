"""CEL's values in Python: most are Python's own; numbers without sign, maps with a default and optionals are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubetide.cel.types import Type
from kubetide.units.quantity import Quantity

MAX_INT64 = (1 << 63) - 1


class EvaluationError(Exception):
    """An expression that has no value for its input; the message is cel-go's."""


class Uint(int):
    """A number of CEL's type uint."""


class Nanos(int):
    """A duration in nanoseconds."""


class Moment(int):
    """A timestamp in nanoseconds since 1970."""


class Optional:
    """A value that may be missing."""

    __slots__ = ("has", "value")

    def __init__(self, value: Any = None, *, has: bool) -> None:
        self.has = has
        self.value = value


NOTHING = Optional(has=False)


class OpenMap(dict[str, Any]):
    """A map that gives an empty map for a key that it does not have; ``in`` and macros see its own keys."""


EMPTY: dict[str, Any] = {}


class Version:
    """A semantic version; what follows + plays no part in comparisons, but in equality it does not either."""

    __slots__ = ("build", "core", "pre")

    def __init__(self, core: tuple[int, int, int], pre: tuple[str, ...], build: tuple[str, ...]) -> None:
        self.core = core
        self.pre = pre
        self.build = build

    def order(self) -> tuple[tuple[int, int, int], int, tuple[tuple[int, int, str], ...]]:
        """Return what versions are sorted by. Source: semver 2.0.0, section 11."""
        parts = tuple((0, int(one), "") if one.isdecimal() else (1, 0, one) for one in self.pre)
        return self.core, 0 if self.pre else 1, parts


_KINDS: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    list: "list",
    dict: "map",
    OpenMap: "map",
    Nanos: "duration",
    Moment: "timestamp",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    Version: "kubernetes.Semver",
    Type: "type",
}
_OPAQUE = frozenset({"kubernetes.Quantity", "kubernetes.Semver"})
_NUMBERS = frozenset({"int", "uint", "double"})
_PRINTED = {
    "null": "null_type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}


def kind_of(value: Any) -> str:
    """Return the name of the value's type."""
    return _KINDS[type(value)]


def printed_kind(value: Any) -> str:
    """Return the name of the value's type as CEL itself prints it."""
    kind = kind_of(value)
    return _PRINTED.get(kind, kind)


def equals(one: Any, other: Any) -> bool:
    """The operator ==. Raises EvaluationError where a quantity or version is compared with something else."""
    kind = kind_of(one)
    if kind in _OPAQUE and other is not None and kind_of(other) != kind:
        raise EvaluationError("no such overload")
    return equal(one, other)


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal: numbers by value, values of different types never."""
    kind, other_kind = kind_of(one), kind_of(other)
    if kind != other_kind:
        return kind in _NUMBERS and other_kind in _NUMBERS and bool(one == other)
    if kind == "list":
        return len(one) == len(other) and all(map(equal, one, other))
    if kind == "map":
        return len(one) == len(other) and all(key in other and equal(one[key], other[key]) for key in one)
    if kind == "kubernetes.Semver":
        return bool(one.order() == other.order())
    if kind == "optional_type":
        return one.has == other.has and (not one.has or equal(one.value, other.value))
    return bool(one == other)


def fits(value: Any, expected: Type) -> bool:
    """Return whether a value may be an argument of that type; parameters and dyn take anything."""
    name = expected.name
    if name in {"dyn", "any"} or name[0].isupper():
        return True
    if kind_of(value) != name:
        return False
    if expected.arguments and name == "list" and value:
        return fits(value[0], expected.arguments[0])
    return True


def lookup(container: Mapping[Any, Any], key: Any) -> Any:
    """Return the entry of a map. Raises EvaluationError when there is none."""
    if type(key) is float and key.is_integer():
        key = int(key)
    try:
        found = container.get(key, container)
    except TypeError:
        raise EvaluationError("unsupported key type") from None
    if found is container:
        if type(container) is OpenMap:
            return EMPTY
        raise EvaluationError(f"no such key: {show(key)}")
    return found


def show(value: Any) -> str:
    """Print a key as Go does."""
    return {True: "true", False: "false"}[value] if type(value) is bool else str(value)
