"""Values of flags, parsed as Go's flag package, pflag and klog parse them.

Source: Go 1.26 (flag, strconv), pflag v1.0.10 (StringSlice), klog v2.140.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubetide.units.numbers import NumberError, parse_bool, parse_float, parse_integer
from kubetide.units.quantity import whole
from kubetide.units.time import parse_duration

LISTS: Final = frozenset({"list", "comma list"})
"""Types of flags that may be given many times; each use appends."""

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_MOST_LEVEL: Final = (1 << 31) - 1
_OCTAL: Final = re.compile(r"([+-]?)0_?([0-7](?:_?[0-7])*)")
_OTHER: Final = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|[1-9](?:_?[0-9])*|0)"
)
_SEVERITIES: Final = frozenset({"INFO", "WARNING", "ERROR", "FATAL"})


def parse_go_int(text: str) -> int:
    """Return a 64-bit integer in the notation of its prefix: 0x, 0b, 0o or 0. Raises NumberError."""
    octal = _OCTAL.fullmatch(text)
    if octal is not None:
        number = int(octal[1] + octal[2].replace("_", ""), 8)
    elif _OTHER.fullmatch(text):
        number = int(text, 0)
    else:
        raise NumberError(f'parsing "{text}": invalid syntax')
    if not _LEAST <= number <= _MOST:
        raise NumberError(f'parsing "{text}": value out of range')
    return number


def _level(text: str) -> int:
    number = parse_integer(text)
    if not text.isdigit() or number > _MOST_LEVEL:
        raise NumberError(f'parsing "{text}": a level is from 0 to {_MOST_LEVEL}')
    return number


def _unsigned(text: str) -> int:
    number = parse_go_int(text)
    if number < 0:
        raise NumberError(f'parsing "{text}": invalid syntax')
    return number


def _severity(text: str) -> str:
    if text.upper() not in _SEVERITIES:
        parse_integer(text)
    return text


def _patterns(text: str) -> str:
    for part in filter(None, text.split(",")):
        pattern, equals, level = part.partition("=")
        if not pattern or not equals:
            raise NumberError(f"{part!r} is not pattern=N")
        _level(level)
    return text


def _place(text: str) -> str:
    if text:
        _, colon, line = text.partition(":")
        if not colon or parse_integer(line) <= 0:
            raise NumberError(f"{text!r} is not file:N")
    return text


def _gates(text: str) -> str:
    for part in filter(None, text.split(",")):
        name, equals, value = part.strip().partition("=")
        if not name or not equals:
            raise NumberError(f"{part!r} is not Name=true or Name=false")
        parse_bool(value.strip())
    return text


def _comma_list(text: str) -> tuple[str, ...]:
    """Return the fields of one line of CSV."""
    if "\n" in text:
        raise NumberError("one line is expected")
    return tuple(next(csv.reader([text], strict=True))) if text else ()


_READERS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "bool": (parse_bool, "true or false"),
    "int": (parse_go_int, "a whole number"),
    "uint": (_unsigned, "a whole number, 0 or more"),
    "float64": (parse_float, "a number"),
    "duration": (parse_duration, "a duration such as 10s or 1h30m"),
    "string": (str, "a text"),
    "list": (lambda text: (text,), "a text"),
    "comma list": (_comma_list, "texts with commas between them"),
    "size": (whole, "a size such as 512Mi"),
    "level": (_level, "a whole number, 0 or more"),
    "severity": (_severity, "INFO, WARNING, ERROR or FATAL"),
    "patterns": (_patterns, "pattern=N, with commas between several"),
    "place": (_place, "file:N"),
    "gates": (_gates, "Name=true or Name=false, with commas between several"),
}


def read(kind: str, text: str) -> Any:
    """Return a flag's value; a tuple for a list. Raises ValueError that names the valid values."""
    reader, takes = _READERS[kind]
    try:
        return reader(text)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"cannot be read ({error}); it takes {takes}") from error


def default(kind: str, text: str) -> Any:
    """Return the value of a flag that is not given."""
    return () if kind in LISTS and not text else read(kind, text)
