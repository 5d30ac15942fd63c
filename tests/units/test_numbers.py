"""Numbers in flags and tags are read as upstream reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.units.numbers import NumberError, parse_bool, parse_float, parse_integer


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_integer_of_64_bits_is_read(number):
    """Printed numbers read back."""
    assert parse_integer(str(number)) == number


@pytest.mark.parametrize("text", ["", "1e1", " 1", "1_0", "0x1", "٣", "1.0", "--1", str(1 << 63)])
def test_what_is_no_integer_is_refused(text):
    """No spaces, exponents, underscores, other digits or more than 64 bits."""
    with pytest.raises(NumberError, match="parsing"):
        parse_integer(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-1", 0.1), ("0x1p-2", 0.25), (".5", 0.5), ("5.", 5.0), ("+1_0.5", 10.5), ("-0X1.8P1", -3.0)],
)
def test_floats(text, value):
    """Decimal and hexadecimal forms, underscores between digits."""
    assert parse_float(text) == value


def test_special_floats():
    """Infinity and NaN in any case."""
    assert parse_float("-INF") == -math.inf
    assert math.isnan(parse_float("nan"))


@pytest.mark.parametrize("text", ["", "0.5x", "1h", "_1", "1__0", "0x1", "1e400", ".", "0x1p5000", "٠.٥"])
def test_what_is_no_float_is_refused(text):
    """Units, misplaced underscores, hexadecimal without exponent, and what is out of range."""
    with pytest.raises(NumberError):
        parse_float(text)


def test_truth_values():
    """Twelve spellings and no other."""
    assert [parse_bool(text) for text in ("1", "t", "T", "TRUE", "true", "True")] == [True] * 6
    assert [parse_bool(text) for text in ("0", "f", "F", "FALSE", "false", "False")] == [False] * 6
    with pytest.raises(NumberError):
        parse_bool("yes")
