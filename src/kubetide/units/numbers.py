"""Numbers and truth values in the text of flags and tags, read as upstream's language reads them.

Source: Go 1.26, package strconv: Atoi, ParseFloat, ParseBool.
"""

from __future__ import annotations

import re
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:(?:_?[0-9a-fA-F])+(?:\.(?:[0-9a-fA-F](?:_?[0-9a-fA-F])*)?)?|\.[0-9a-fA-F](?:_?[0-9a-fA-F])*)"
    r"[pP][+-]?[0-9](?:_?[0-9])*"
)
_SPECIAL: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class NumberError(ValueError):
    """Text that is not a number, or not a truth value, of the expected form."""


def parse_integer(text: str) -> int:
    """Return a decimal integer of 64 bits; a sign and leading zeros are accepted. Raises NumberError."""
    if not _INTEGER.fullmatch(text):
        raise _refused(text, "invalid syntax")
    if not _LEAST <= int(text) <= _MOST:
        raise _refused(text, "value out of range")
    return int(text)


def parse_float(text: str) -> float:
    """Return a float: decimal, hexadecimal with a binary exponent, infinite or NaN. Raises NumberError."""
    if _SPECIAL.fullmatch(text):
        return float(text)
    try:
        if _DECIMAL.fullmatch(text):
            number = float(text)
        elif _HEXADECIMAL.fullmatch(text):
            number = float.fromhex(text.replace("_", ""))
        else:
            raise _refused(text, "invalid syntax")
    except OverflowError as error:
        raise _refused(text, "value out of range") from error
    if number in {float("inf"), float("-inf")}:
        raise _refused(text, "value out of range")
    return number


def parse_bool(text: str) -> bool:
    """Return a truth value: 1, t, T, TRUE, true, True, or 0, f, F, FALSE, false, False. Raises NumberError."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _refused(text, "invalid syntax")


def _refused(text: str, why: str) -> NumberError:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return NumberError(f'parsing "{quoted}": {why}')
