"""Numbers and switches as Go's ``strconv`` reads them."""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F_]+\.?[0-9a-fA-F_]*|\.[0-9a-fA-F_]+)[pP][+-]?[0-9]+", re.ASCII
)
_SPECIAL = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def go_float(text: str) -> float | None:
    """Return the number as ``ParseFloat`` reads it, None where it is none: ``1e-1``, ``0x1p-2``, ``.5``."""
    if _DECIMAL.fullmatch(text) or _SPECIAL.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        return float.fromhex(text.replace("_", ""))
    return None


def go_int(text: str, bits: int = 64) -> int | None:
    """Return the decimal integer as ``ParseInt`` reads it, None where it is none or has more bits."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << (bits - 1)) <= number < 1 << (bits - 1) else None


def go_bool(text: str) -> bool | None:
    """Return the switch as ``ParseBool`` reads it, None where it is none."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None
