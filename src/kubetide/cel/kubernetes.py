"""The types that Kubernetes adds to CEL: quantities and semantic versions.

Source: apiserver v1.36, pkg/cel/library. Not here: URLs, IP addresses, CIDRs, named formats, the
authorizer; an expression that uses them does not compile.
"""

from __future__ import annotations

import re

from kubetide.cel.declarations import Library
from kubetide.cel.types import BOOL, DOUBLE, INT, STRING, Type
from kubetide.cel.values import MAX_INT64, EvaluationError, Version
from kubetide.units.quantity import Quantity, QuantityError

LIBRARY = Library()
_function, _method = LIBRARY.function, LIBRARY.method

QUANTITY = Type("kubernetes.Quantity")
SEMVER = Type("kubernetes.Semver")

_BAD_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_PART = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_MAX_UINT64 = (1 << 64) - 1


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError:
        raise EvaluationError(_BAD_QUANTITY) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _compare(one: Quantity, other: Quantity) -> int:
    return (one - other).sign()


def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return value.value()


def _is_integer(value: Quantity) -> bool:
    nano = value.exact_nano()
    return nano % 1_000_000_000 == 0 and abs(nano // 1_000_000_000) <= MAX_INT64


def _as_float(value: Quantity) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value.sign() > 0 else float("-inf")


def _quantities() -> None:
    _function("quantity", (STRING,), QUANTITY, _quantity)
    _function("isQuantity", (STRING,), BOOL, _is_quantity)
    _function("sign", (QUANTITY,), INT, Quantity.sign)
    _method("isInteger", (QUANTITY,), BOOL, _is_integer)
    _method("asInteger", (QUANTITY,), INT, _as_integer)
    _method("asApproximateFloat", (QUANTITY,), DOUBLE, _as_float)
    _method("compareTo", (QUANTITY, QUANTITY), INT, _compare)
    _method("isGreaterThan", (QUANTITY, QUANTITY), BOOL, lambda one, other: _compare(one, other) > 0)
    _method("isLessThan", (QUANTITY, QUANTITY), BOOL, lambda one, other: _compare(one, other) < 0)
    _method("add", (QUANTITY, QUANTITY), QUANTITY, lambda one, other: one + other)
    _method("add", (QUANTITY, INT), QUANTITY, lambda one, number: one + Quantity(number))
    _method("sub", (QUANTITY, QUANTITY), QUANTITY, lambda one, other: one - other)
    _method("sub", (QUANTITY, INT), QUANTITY, lambda one, number: one - Quantity(number))


def parse_semver(text: str) -> Version:
    """Read a semantic version. Raises EvaluationError in blang/semver's words."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, plus, tail = parts[2].partition("+")
    build = tuple(tail.split(".")) if plus else ()
    patch, dash, tail = rest.partition("-")
    pre = tuple(tail.split(".")) if dash else ()
    core = (major, minor, _number(patch, "patch"))
    for part in pre:
        _check_pre(part)
    for part in build:
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _PART.fullmatch(part):
            raise EvaluationError(f'Invalid character(s) found in build meta data "{part}"')
    return Version(core, pre, build)


def _number(text: str, word: str) -> int:
    name = word.capitalize()
    if not text.isdecimal() or not text.isascii():
        if not text:
            raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
        raise EvaluationError(f'Invalid character(s) found in {word} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f'{name} number must not contain leading zeroes "{text}"')
    if len(text) > 20 or int(text) > _MAX_UINT64:
        raise EvaluationError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _check_pre(part: str) -> None:
    if not part:
        raise EvaluationError("Prerelease is empty")
    if part.isascii() and part.isdecimal():
        if len(part) > 1 and part[0] == "0":
            raise EvaluationError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
    elif not _PART.fullmatch(part):
        raise EvaluationError(f'Invalid character(s) found in prerelease "{part}"')


def _semver(text: str, normalize: bool = False) -> Version:  # CEL's own argument
    return parse_semver(_normal(text) if normalize else text)


def _normal(text: str) -> str:
    """Take off a leading v and zeros, and fill up what is missing."""
    text = text.removeprefix("v")
    parts = text.split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[at] = stripped if stripped and stripped[0].isdecimal() else "0" + stripped
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _is_semver(text: str, normalize: bool = False) -> bool:  # CEL's own argument
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


def _order(one: Version, other: Version) -> int:
    return (one.order() > other.order()) - (one.order() < other.order())


def _versions() -> None:
    for more in ((), (BOOL,)):
        _function("semver", (STRING, *more), SEMVER, _semver)
        _function("isSemver", (STRING, *more), BOOL, _is_semver)
    for at, name in enumerate(("major", "minor", "patch")):
        _method(name, (SEMVER,), INT, lambda version, at=at: version.core[at])
    _method("compareTo", (SEMVER, SEMVER), INT, _order)
    _method("isGreaterThan", (SEMVER, SEMVER), BOOL, lambda one, other: _order(one, other) > 0)
    _method("isLessThan", (SEMVER, SEMVER), BOOL, lambda one, other: _order(one, other) < 0)


_quantities()
_versions()
