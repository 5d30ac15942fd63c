"""CEL's operators and standard functions. Source: the CEL language definition; messages are cel-go's."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from kubetide.cel.declarations import Library
from kubetide.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from kubetide.cel.values import (
    MAX_INT64,
    NOTHING,
    EvaluationError,
    Moment,
    Nanos,
    Optional,
    Uint,
    equal,
    equals,
    kind_of,
    lookup,
    printed_kind,
)
from kubetide.units.regex import Pattern, PatternError, compile_pattern
from kubetide.units.time import (
    Instant,
    TimeFormatError,
    format_rfc3339,
    parse_duration,
    parse_rfc3339,
)

LIBRARY = Library()
_function, _method = LIBRARY.function, LIBRARY.method
_NUMBERS = (INT, UINT, DOUBLE)
_NUMBER_KINDS = ("int", "uint", "double")


def _whole(value: int) -> int:
    if not -MAX_INT64 - 1 <= value <= MAX_INT64:
        raise EvaluationError("integer overflow")
    return value


def _natural(value: int) -> Uint:
    if not 0 <= value < 1 << 64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _truncated(one: int, other: int) -> int:
    if not other:
        raise EvaluationError("division by zero")
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _remainder(one: int, other: int) -> int:
    if not other:
        raise EvaluationError("modulus by zero")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _ratio(one: float, other: float) -> float:
    if other:
        return one / other
    return one * float("inf") if one == one and one else float("nan")  # noqa: PLR0124  # NaN is no equal of itself


def _arithmetic() -> None:
    for sign, apply in (("+", operator.add), ("-", operator.sub), ("*", operator.mul)):
        name = f"_{sign}_"
        _function(name, (INT, INT), INT, _checked(apply, _whole))
        _function(name, (UINT, UINT), UINT, _checked(apply, _natural))
        _function(name, (DOUBLE, DOUBLE), DOUBLE, apply)
    _function("_/_", (INT, INT), INT, _checked(_truncated, _whole))
    _function("_/_", (UINT, UINT), UINT, _checked(_truncated, _natural))
    _function("_/_", (DOUBLE, DOUBLE), DOUBLE, _ratio)
    _function("_%_", (INT, INT), INT, _checked(_remainder, _whole))
    _function("_%_", (UINT, UINT), UINT, _checked(_remainder, _natural))
    _function("-_", (INT,), INT, lambda value: _whole(-value))
    _function("-_", (DOUBLE,), DOUBLE, operator.neg)
    _function("_+_", (STRING, STRING), STRING, operator.add)
    _function("_+_", (BYTES, BYTES), BYTES, operator.add)
    _function("_+_", (list_of(A), list_of(A)), list_of(A), operator.add)
    _function("_+_", (DURATION, DURATION), DURATION, lambda one, other: Nanos(_whole(int(one) + other)))
    _function("_-_", (DURATION, DURATION), DURATION, lambda one, other: Nanos(_whole(int(one) - other)))
    _function("_+_", (TIMESTAMP, DURATION), TIMESTAMP, lambda one, other: Moment(int(one) + other))
    _function("_+_", (DURATION, TIMESTAMP), TIMESTAMP, lambda one, other: Moment(int(one) + other))
    _function("_-_", (TIMESTAMP, DURATION), TIMESTAMP, lambda one, other: Moment(int(one) - other))
    _function("_-_", (TIMESTAMP, TIMESTAMP), DURATION, lambda one, other: Nanos(_whole(int(one) - other)))


def _checked(apply: Callable[[int, int], int], check: Callable[[int], int]) -> Callable[[int, int], int]:
    return lambda one, other: check(apply(int(one), int(other)))


def _comparisons() -> None:
    _function("_==_", (A, A), BOOL, equals)
    _function("_!=_", (A, A), BOOL, lambda one, other: not equal(one, other))
    pairs = [(one, other) for one in _NUMBERS for other in _NUMBERS]
    pairs += [(one, one) for one in (STRING, BYTES, BOOL, TIMESTAMP, DURATION)]
    for sign, apply in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
        for one, other in pairs:
            _function(f"_{sign}_", (one, other), BOOL, apply)
    _function("!_", (BOOL,), BOOL, operator.not_)
    _function("_?_:_", (BOOL, A, A), A, lambda condition, yes, no: yes if condition else no)
    _function("@in", (A, list_of(A)), BOOL, lambda one, found: any(equal(one, other) for other in found))
    _function("@in", (A, map_of(A, B)), BOOL, _has_key)


def _has_key(key: Any, container: dict[Any, Any]) -> bool:
    try:
        return key in container
    except TypeError:
        return False


def element(elements: list[Any], index: Any) -> Any:
    """Return an element of a list. Raises EvaluationError when there is none."""
    if kind_of(index) not in _NUMBER_KINDS:
        raise EvaluationError(f"unsupported index type '{printed_kind(index)}' in list")
    if type(index) is float and not index.is_integer():
        raise EvaluationError("unsupported index value")
    at = int(index)
    if not 0 <= at < len(elements):
        raise EvaluationError(f"index out of bounds: {at}")
    return elements[at]


def _maybe(container: Any, key: Any) -> Optional:
    """Return an element or entry, or nothing where there is none."""
    if kind_of(container) == "optional_type":
        return _maybe(container.value, key) if container.has else NOTHING
    try:
        found = lookup(container, key) if isinstance(container, dict) else element(container, key)
    except EvaluationError:
        return NOTHING
    return Optional(found, has=True)


def _access() -> None:
    _function("_[_]", (list_of(A), INT), A, element)
    _function("_[_]", (map_of(A, B), A), B, lookup)
    _function("_[_]", (optional_of(list_of(A)), INT), optional_of(A), _maybe)
    _function("_[_]", (optional_of(map_of(A, B)), A), optional_of(B), _maybe)
    for container, key, value in ((list_of(A), INT, A), (map_of(A, B), A, B)):
        _function("_[?_]", (container, key), optional_of(value), _maybe)
        _function("_[?_]", (optional_of(container), key), optional_of(value), _maybe)
    for sized in (STRING, BYTES, list_of(A), map_of(A, B)):
        _function("size", (sized,), INT, len)
        _method("size", (sized,), INT, len)


def _no_value(_: Any = None) -> Any:
    raise EvaluationError("optional.none() dereference")


def _optionals() -> None:
    _function("optional.of", (A,), optional_of(A), lambda value: Optional(value, has=True))
    _function("optional.none", (), optional_of(A), lambda: NOTHING)
    _function("optional.ofNonZeroValue", (A,), optional_of(A), _unless_zero)
    _method("hasValue", (optional_of(A),), BOOL, lambda one: one.has)
    _method("value", (optional_of(A),), A, lambda one: one.value if one.has else _no_value())
    _method(
        "or", (optional_of(A), optional_of(A)), optional_of(A), lambda one, other: one if one.has else other
    )
    _method("orValue", (optional_of(A), A), A, lambda one, other: one.value if one.has else other)


def _unless_zero(value: Any) -> Optional:
    return Optional(value, has=True) if value else NOTHING


def to_pattern(text: str) -> Pattern:
    """Compile a regular expression. Raises EvaluationError."""
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise EvaluationError(str(error)) from error


def search(text: str, pattern: str) -> bool:
    """Return whether the pattern is found anywhere in the text."""
    return to_pattern(pattern).find(text) is not None


def _texts() -> None:
    _method("startsWith", (STRING, STRING), BOOL, str.startswith)
    _method("endsWith", (STRING, STRING), BOOL, str.endswith)
    _method("contains", (STRING, STRING), BOOL, operator.contains)
    _method("matches", (STRING, STRING), BOOL, search)
    _function("matches", (STRING, STRING), BOOL, search)


def _conversion(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def _to_int(value: Any) -> int:
    if isinstance(value, float):
        if not -9.223372036854775e18 < value < 9.223372036854775e18:
            raise EvaluationError("integer overflow")
        return int(value)
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]{1,64}", value, re.ASCII) or abs(int(value)) > MAX_INT64 + (
            value[0] == "-"
        ):
            raise _conversion("string", "int")
        return int(value)
    return int(value) // 1_000_000_000 if isinstance(value, Moment) else _whole(int(value))


def _to_uint(value: Any) -> Uint:
    if isinstance(value, float):
        if not 0 <= value < 1.8446744073709552e19:
            raise EvaluationError("unsigned integer overflow")
        return Uint(int(value))
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]{1,64}", value, re.ASCII) or int(value) >= 1 << 64:
            raise _conversion("string", "uint")
        return Uint(int(value))
    return _natural(int(value))


def _to_double(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise _conversion("string", "double") from None


def _to_bool(value: str) -> bool:
    if value in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if value in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise _conversion("string", "bool")


def _to_string(value: Any) -> str:
    match kind_of(value):
        case "bool":
            return "true" if value else "false"
        case "double":
            return _shortest(value)
        case "bytes":
            try:
                return str(value, "utf-8")
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case "duration":
            return f"{Decimal(int(value)) / 10**9:f}s"
        case "timestamp":
            return format_rfc3339(Instant(int(value)))
    return str(value)


def _shortest(value: float) -> str:
    """Print the fewest digits that mean the same double, with an exponent from a million on, as Go does."""
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124  # NaN is no equal of itself
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    point = len(digits) + int(exponent) - 1
    if value and not -4 <= point < 6:
        tail = "".join(map(str, digits[1:]))
        return f"{'-' * sign}{digits[0]}{'.' * bool(tail)}{tail}e{'-' if point < 0 else '+'}{abs(point):02d}"
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def to_duration(value: str) -> Nanos:
    try:
        return Nanos(parse_duration(value))
    except TimeFormatError:
        raise _conversion("string", "google.protobuf.Duration") from None


def to_timestamp(value: str) -> Moment:
    try:
        return Moment(parse_rfc3339(value))
    except TimeFormatError:
        raise _conversion("string", "google.protobuf.Timestamp") from None


def _conversions() -> None:
    for given in (INT, UINT, DOUBLE, STRING):
        _function("uint", (given,), UINT, _to_uint)
        _function("double", (given,), DOUBLE, _to_double)
    for given in (INT, UINT, DOUBLE, STRING, TIMESTAMP):
        _function("int", (given,), INT, _to_int)
    for given in (INT, UINT, DOUBLE, BOOL, STRING, BYTES, DURATION, TIMESTAMP):
        _function("string", (given,), STRING, _to_string)
    _function("bool", (BOOL,), BOOL, bool)
    _function("bool", (STRING,), BOOL, _to_bool)
    _function("bytes", (BYTES,), BYTES, bytes)
    _function("bytes", (STRING,), BYTES, str.encode)
    _function("duration", (DURATION,), DURATION, Nanos)
    _function("duration", (STRING,), DURATION, to_duration)
    _function("timestamp", (TIMESTAMP,), TIMESTAMP, Moment)
    _function("timestamp", (STRING,), TIMESTAMP, to_timestamp)
    _function("dyn", (A,), DYN, lambda value: value)
    _function("type", (A,), type_of(A), lambda value: Type(printed_kind(value)))


_arithmetic()
_comparisons()
_access()
_optionals()
_texts()
_conversions()
