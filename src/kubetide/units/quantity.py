"""Resource quantities: exact decimal numbers with a suffix, such as ``250m``, ``1.5Gi``, ``12e6``.

A quantity is ``mantissa * 10**exponent``, both ints, and remembers in which of three forms it is
printed. Nothing is a float and nothing is lost, with the three exceptions that upstream makes on
parsing: what is finer than a nano is rounded away from zero to a nano, a number with a binary
suffix is capped at 2**63-1, and only upstream's ``MilliValue`` and ``Value`` (``milli_value``,
``int64_value``) overflow.

Source: apimachinery v1.36, pkg/api/resource.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

_MAX_INT64 = (1 << 63) - 1
# Far beyond any resource; a larger exponent would only cost memory.
_MAX_EXPONENT = 1000
_MAX_TEXT = 1000

_PATTERN = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?(.*)", re.ASCII | re.DOTALL)
_SUFFIX_SHAPE = re.compile(r"[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_TEXT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SHAPE_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class QuantityError(ValueError):
    """A text that is no quantity; the message quotes it."""


class Format(Enum):
    """In which form a quantity is printed."""

    DECIMAL_SI = "DecimalSI"  # 12M
    BINARY_SI = "BinarySI"  # 12Mi
    DECIMAL_EXPONENT = "DecimalExponent"  # 12e6


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact number and the form it is printed in; compared by its value alone."""

    mantissa: int
    exponent: int = 0
    format: Format = Format.DECIMAL_SI
    wide: bool = False
    """Whether upstream holds it as a big decimal, not as an int64 and a scale; only what overflows asks."""

    @staticmethod
    def parse(value: str | float) -> Quantity:
        """Read a quantity, or a plain JSON number.

        Raises: QuantityError that quotes the value.
        """
        if isinstance(value, str):
            return _parse(value)
        # Not isfinite(), which raises for a whole number that no double holds.
        if isinstance(value, bool) or not abs(value) < math.inf:
            raise QuantityError(f"{value!r} is not a quantity")
        return _parse(repr(value))

    def value(self) -> int:
        """Return the whole number, rounded away from zero."""
        return _shifted_away(self.mantissa, self.exponent)

    def exact_milli(self) -> int:
        """Return thousandths, rounded away from zero, however large."""
        return _shifted_away(self.mantissa, self.exponent + 3)

    def exact_nano(self) -> int:
        """Return billionths; exact for every parsed quantity."""
        return _shifted_away(self.mantissa, self.exponent + 9)

    def milli_value(self) -> int:
        """Return thousandths as upstream's ``MilliValue``, with what its int64 does to large numbers (``_in_int64``)."""
        return self._in_int64(3)

    def int64_value(self) -> int:
        """Return the whole number as upstream's ``Value``, with what its int64 does to large numbers (``_in_int64``)."""
        return self._in_int64(0)

    def _in_int64(self, digits: int) -> int:
        """Return the number times 10**digits as an int64.

        Up to 18 digits: rounded away from zero; on overflow 0, or the wrapped product where upstream
        multiplies in one step (by 10**1, 2, 3, 6 or 9). Longer numbers: truncated, plus one if a
        remainder is left, also below zero; overflow wraps modulo 2**64.
        """
        shift = self.exponent + digits
        if shift < 0 and not self.wide:
            return _shifted_away(self.mantissa, shift)
        if shift < 0:
            divisor = _pow10(-shift)
            quotient = abs(self.mantissa) // divisor
            whole = quotient if self.mantissa >= 0 else -quotient
            return _wrapped(whole + (1 if self.mantissa % divisor else 0))
        if self.wide:
            return _wrapped(self.mantissa * _pow10(shift))
        exact = self.mantissa * _pow10(shift)
        if -_MAX_INT64 <= exact <= _MAX_INT64:
            return exact
        return _wrapped(exact) if shift in {1, 2, 3, 6, 9} else 0

    def is_zero(self) -> bool:
        return self.mantissa == 0

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    def __float__(self) -> float:
        """Return the nearest double. Raises OverflowError beyond 1.8e308."""
        if self.exponent >= 0:
            return float(self.mantissa * _pow10(self.exponent))
        return self.mantissa / _pow10(-self.exponent)

    def __str__(self) -> str:
        """Print the canonical form: no fraction, the largest suffix that loses nothing."""
        if self.mantissa == 0:
            return "0"
        if self.format is Format.BINARY_SI:
            whole, fraction = _split(self.mantissa, self.exponent)
            if not fraction and abs(whole) >= 1024:
                power = 0
                while power < 6 and whole % 1024 == 0:
                    whole //= 1024
                    power += 1
                return f"{whole}{_BINARY[power]}"
        mantissa, exponent = _normal(self.mantissa, self.exponent)
        odd = exponent % 3
        mantissa, exponent = mantissa * 10**odd, exponent - odd
        if self.format is not Format.DECIMAL_EXPONENT and exponent in _DECIMAL_TEXT:
            return f"{mantissa}{_DECIMAL_TEXT[exponent]}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)

    def __add__(self, other: Quantity) -> Quantity:
        return _sum(self, other.mantissa, other)

    def __sub__(self, other: Quantity) -> Quantity:
        return _sum(self, -other.mantissa, other)

    def __neg__(self) -> Quantity:
        return Quantity(-self.mantissa, self.exponent, self.format, self.wide)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        a, b = _aligned(self, other)
        return a == b

    def __hash__(self) -> int:
        return hash(_normal(self.mantissa, self.exponent))

    def __lt__(self, other: Quantity) -> bool:
        a, b = _aligned(self, other)
        return a < b

    def __le__(self, other: Quantity) -> bool:
        a, b = _aligned(self, other)
        return a <= b

    def __gt__(self, other: Quantity) -> bool:
        return other < self

    def __ge__(self, other: Quantity) -> bool:
        return other <= self


ZERO = Quantity(0)


# ── Hot paths ───────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=1 << 16, typed=True)
def milli(value: str | float) -> int:
    """Return a quantity in thousandths, rounded away from zero: ``"250m"`` is 250."""
    return Quantity.parse(value).exact_milli()


@lru_cache(maxsize=1 << 16, typed=True)
def whole(value: str | float) -> int:
    """Return a quantity in whole units, rounded away from zero: ``"1Ki"`` is 1024."""
    return Quantity.parse(value).value()


def whole_or_zero(value: str | float) -> int:
    """Return a quantity in whole units as ``whole`` does; 0 for what is no quantity."""
    try:
        return whole(value)
    except QuantityError:
        return 0


def milli_to_text(n: int) -> str:
    """Print thousandths in decimal form: 250 is ``250m``, 2000 is ``2``."""
    if n % 1000:
        return f"{n}m"
    return str(n // 1000) if n % 1_000_000 else str(Quantity(n, -3))


def bytes_to_text(n: int) -> str:
    """Print a multiple of 1024 in binary form (``512Mi``), any other number in decimal form."""
    return str(Quantity(n, 0, Format.DECIMAL_SI if n % 1024 else Format.BINARY_SI))


def readable(text: str) -> str:
    """Return a number of bytes from a MiB on with three digits, as ``422Mi`` or ``1.24Gi``; any other text as it is.

    Bytes are whole numbers, plain or with a binary suffix.
    """
    if not (text.isdecimal() or text.endswith("i")):
        return text
    try:
        amount = float(Quantity.parse(text).value())
    except QuantityError:
        return text
    for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20)):
        if amount >= size:
            shown = amount / size
            digits = 0 if shown >= 100 else 1 if shown >= 10 else 2
            number = f"{shown:.{digits}f}"
            return f"{number.rstrip('0').rstrip('.') if digits else number}{unit}"
    return text


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=1 << 14)
def _parse(text: str) -> Quantity:
    if not text or len(text) > _MAX_TEXT:
        raise _refused(text, _SHAPE_TEXT if not text else "it is too long")
    match = _PATTERN.fullmatch(text)
    assert match is not None  # the last group takes any rest
    sign, digits, fraction, suffix = match.groups()
    fraction = fraction or ""
    if not _SUFFIX_SHAPE.fullmatch(suffix):
        raise _refused(text, _SHAPE_TEXT)
    mantissa = int((digits + fraction) or "0")
    if sign == "-":
        mantissa = -mantissa
    # Upstream counts an absent integer part as the digit 0 here.
    length = len(digits or "0") + len(fraction)
    if suffix in _BINARY[1:]:
        return _parsed_binary(mantissa, length, fraction, _BINARY.index(suffix) * 10)
    if suffix in _DECIMAL:
        return _parsed_decimal(text, mantissa, length, _DECIMAL[suffix] - len(fraction), Format.DECIMAL_SI)
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise _refused(text, "unable to parse quantity's suffix")
    shift = int(exponent[1]) - len(fraction)
    return _parsed_decimal(text, mantissa, length, shift, Format.DECIMAL_EXPONENT)


def _parsed_decimal(text: str, mantissa: int, length: int, exponent: int, form: Format) -> Quantity:
    if exponent > _MAX_EXPONENT:
        raise _refused(text, f"it is larger than 1e{_MAX_EXPONENT}")
    wide = length > 18 or exponent < -9
    if mantissa and exponent < -9:
        # Beyond the number's own digits every shift gives the same: one nano.
        shift = max(exponent + 9, -_MAX_TEXT)
        mantissa, exponent = _shifted_away(mantissa, shift), -9
    return Quantity(mantissa, exponent if mantissa else 0, form, wide)


def _parsed_binary(mantissa: int, length: int, fraction: str, power: int) -> Quantity:
    wide = bool(fraction) or 15 - length - power * 3 // 10 - 1 < 0
    product, exponent = mantissa << power, -len(fraction)
    if exponent < -9:
        product, exponent = _shifted_away(product, exponent + 9), -9
    form = Format.BINARY_SI
    unit = _pow10(-exponent)
    if abs(product) > _MAX_INT64 * unit:
        product, exponent = int(math.copysign(1, product)) * _MAX_INT64, 0
    elif fraction and 0 < abs(product) < unit:
        form = Format.DECIMAL_SI
    return Quantity(product, exponent, form, wide)


def _refused(text: str, why: str) -> QuantityError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return QuantityError(f"{json.dumps(shown, ensure_ascii=False)} is not a quantity: {why}")


# ── Arithmetic ──────────────────────────────────────────────────────────────────────────────────


def _pow10(n: int) -> int:
    return int(10**n)  # int, as the type of ** depends on the sign


def _shifted_away(mantissa: int, shift: int) -> int:
    """Return mantissa * 10**shift, rounded away from zero."""
    if shift >= 0:
        return mantissa * _pow10(shift)
    divisor = _pow10(-shift)
    return -(-mantissa // divisor) if mantissa >= 0 else mantissa // divisor


def _split(mantissa: int, exponent: int) -> tuple[int, bool]:
    """Return the whole part and whether a fraction is left."""
    if exponent >= 0:
        return mantissa * _pow10(exponent), False
    whole_part, rest = divmod(mantissa, _pow10(-exponent))
    return whole_part, rest != 0


def _wrapped(n: int) -> int:
    """Return n as a two's complement int64 holds it."""
    return (n + (1 << 63)) % (1 << 64) - (1 << 63)


def _normal(mantissa: int, exponent: int) -> tuple[int, int]:
    """Move every factor of ten from the mantissa to the exponent."""
    if mantissa == 0:
        return 0, 0
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    return mantissa, exponent


def _aligned(a: Quantity, b: Quantity) -> tuple[int, int]:
    """Return both mantissas at the smaller of the two exponents."""
    low = min(a.exponent, b.exponent)
    return a.mantissa * _pow10(a.exponent - low), b.mantissa * _pow10(b.exponent - low)


def _sum(a: Quantity, mantissa: int, b: Quantity) -> Quantity:
    """Add mantissa at b's exponent to a; a zero left side takes b's format, as upstream."""
    if not (mantissa or a.wide or b.wide):
        return a
    low = min(a.exponent, b.exponent)
    total = a.mantissa * _pow10(a.exponent - low) + mantissa * _pow10(b.exponent - low)
    form = a.format if a.mantissa else b.format
    return Quantity(total, low, form, a.wide or b.wide or abs(total) > _MAX_INT64)


def quantity_error(value: object) -> str | None:
    """Return what is wrong with a JSON value that should be a quantity, or None."""
    if not isinstance(value, str | int | float):
        return f"{json.dumps(value)} is not a quantity: expected a text such as 250m or 1Gi, or a number"
    try:
        Quantity.parse(value)
    except QuantityError as exc:
        return str(exc)
    return None
