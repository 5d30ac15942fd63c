from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.units.quantity import (
    Format,
    Quantity,
    QuantityError,
    bytes_to_text,
    milli,
    milli_to_text,
    quantity_error,
    readable,
    whole,
)

SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60), "e3": Fraction(1000), "E-3": Fraction(1, 1000), "e+2": Fraction(100),
}  # fmt: skip

numbers = st.builds(
    lambda sign, whole, point, digits: f"{sign}{whole}{'.' + digits if point else ''}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**12).map(str),
    st.booleans(),
    st.text("0123456789", max_size=6),
)
texts = st.builds(lambda number, suffix: (number, suffix), numbers, st.sampled_from(sorted(SUFFIXES)))


def fraction_of(quantity):
    return quantity.mantissa * Fraction(10) ** quantity.exponent


def expected_value(number, suffix):
    """Return what the text means, with the two roundings that upstream documents."""
    exact = Fraction(number if number[-1] != "." else number + "0") * SUFFIXES[suffix]
    nanos = exact * 10**9
    up = -(-abs(nanos.numerator) // nanos.denominator)
    rounded = Fraction(up if exact >= 0 else -up, 10**9)
    if suffix.endswith("i"):
        top = Fraction(2**63 - 1)
        rounded = max(-top, min(top, rounded))
    return rounded


@given(texts)
@settings(max_examples=100)
def test_every_suffix_means_its_factor(text):
    """A number with any suffix is read exactly, down to the nano and, with a binary suffix, up to int64."""
    assert fraction_of(Quantity.parse("".join(text))) == expected_value(*text)


@given(texts)
@settings(max_examples=100)
def test_the_canonical_text_reads_back_and_is_stable(text):
    """Printing loses nothing, and what was printed prints the same again."""
    quantity = Quantity.parse("".join(text))
    printed = str(quantity)
    again = Quantity.parse(printed)
    assert again == quantity
    assert str(again) == printed
    assert "." not in printed
    assert not printed.startswith("+")


@given(texts, texts)
@settings(max_examples=100)
def test_order_sum_and_hash_follow_the_value(first, second):
    """Comparison, addition and hash depend on the value and not on the suffix."""
    a, b = Quantity.parse("".join(first)), Quantity.parse("".join(second))
    x, y = fraction_of(a), fraction_of(b)
    assert (a < b, a <= b, a == b, a >= b, a > b) == (x < y, x <= y, x == y, x >= y, x > y)
    assert fraction_of(a + b) == x + y
    assert fraction_of(a - b) == x - y
    assert fraction_of(-a) == -x
    assert a.sign() == (x > 0) - (x < 0)
    if x == y:
        assert hash(a) == hash(b)


@given(texts)
@settings(max_examples=100)
def test_whole_and_milli_round_away_from_zero(text):
    """The value and its thousandths are rounded away from zero on both sides."""
    joined = "".join(text)
    exact = fraction_of(Quantity.parse(joined))
    up = -(-abs(exact.numerator) // exact.denominator)
    assert whole(joined) == (up if exact >= 0 else -up)
    thousandths = exact * 1000
    up = -(-abs(thousandths.numerator) // thousandths.denominator)
    assert milli(joined) == (up if exact >= 0 else -up)
    if abs(milli(joined)) < 2**63 and not Quantity.parse(joined).wide:
        assert Quantity.parse(joined).milli_value() == milli(joined)


@pytest.mark.parametrize(
    ("text", "printed", "form"),
    [
        ("0", "0", Format.DECIMAL_SI),
        ("0Ki", "0", Format.BINARY_SI),
        ("1000m", "1", Format.DECIMAL_SI),
        ("1.5", "1500m", Format.DECIMAL_SI),
        ("100m", "100m", Format.DECIMAL_SI),
        ("5000000", "5M", Format.DECIMAL_SI),
        ("12e6", "12e6", Format.DECIMAL_EXPONENT),
        ("1e2", "100", Format.DECIMAL_EXPONENT),
        ("1E4", "10e3", Format.DECIMAL_EXPONENT),
        ("1.5Gi", "1536Mi", Format.BINARY_SI),
        ("1024Ki", "1Mi", Format.BINARY_SI),
        ("1000Ki", "1000Ki", Format.BINARY_SI),
        ("0.5Ki", "512", Format.BINARY_SI),
        ("0.0001Ki", "102400u", Format.DECIMAL_SI),
        ("0.3Mi", "314572800m", Format.BINARY_SI),
        ("-1.5Gi", "-1536Mi", Format.BINARY_SI),
        ("8Ei", "9223372036854775807", Format.BINARY_SI),
        ("100E", "100E", Format.DECIMAL_SI),
        ("1000E", "1e21", Format.DECIMAL_SI),
        ("0.9n", "1n", Format.DECIMAL_SI),
        ("1.1n", "2n", Format.DECIMAL_SI),
        ("-0.1n", "-1n", Format.DECIMAL_SI),
        ("1e-30", "1e-9", Format.DECIMAL_EXPONENT),
        (".5", "500m", Format.DECIMAL_SI),
        ("5.", "5", Format.DECIMAL_SI),
        ("+1", "1", Format.DECIMAL_SI),
        ("00.10", "100m", Format.DECIMAL_SI),
        ("18446744073709551616", "18446744073709551616", Format.DECIMAL_SI),
    ],
)
def test_quantities_print_in_canonical_form(text, printed, form):
    """The canonical form of apimachinery: no fraction, the largest suffix that loses nothing."""
    quantity = Quantity.parse(text)
    assert str(quantity) == printed
    assert quantity.format is form


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1u", 1),
        ("-199579000n", -200),
        ("-4623259850351475616n", -4623259850350),
        ("4623259850351475616n", 4623259850352),
        ("9E", 0),
        ("1e18", 0),
        ("1Ei", -(1 << 63)),
        ("8Ei", -1000),
        ("1Gi", (1 << 30) * 1000),
        ("1.5Gi", (3 << 29) * 1000),
        ("9223372036854775", 9223372036854775000),
        ("9223372036854776", -9223372036854775616),
        ("1000E", 0),
        ("-0.1n", 1),
    ],
)
def test_milli_values_overflow_as_upstream_does(text, expected):
    """MilliValue has upstream's int64: rounding, zero or wrapping on overflow."""
    assert Quantity.parse(text).milli_value() == expected


@pytest.mark.parametrize(
    ("text", "alone", "and_one"),
    [
        ("1.5", 2, 3),
        ("9E", 9 * 10**18, 9 * 10**18 + 1),
        ("16E", 0, 16 * 10**18 + 1 - (1 << 64)),
        ("20E", 0, 20 * 10**18 + 1 - (1 << 64)),
        ("9223372036854775808", -(1 << 63), -(1 << 63) + 1),
        ("8Ei", (1 << 63) - 1, -(1 << 63)),
    ],
)
def test_values_overflow_as_upstream_does(text, alone, and_one):
    """Value is 0 where a short number does not fit an int64; sums of it wrap, with 0 as without it."""
    found = Quantity.parse(text)
    assert found.int64_value() == alone
    assert (found + Quantity(0)).int64_value() == alone
    assert (found + Quantity(1)).int64_value() == and_one


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must match"), ("1.1.M", "must match"), ("1+1.0M", "must match"), ("0.1mi", "suffix"),
        ("0.1am", "must match"), ("aoeu", "must match"), (".5i", "suffix"), ("1i", "suffix"), ("-3.01i", "suffix"),
        ("-3.01e-", "suffix"), (" 1", "must match"), ("1 ", "must match"), ("1KI", "must match"), ("1MB", "must match"),
        ("250M i", "must match"), ("1e", "suffix"), ("1e99999", "larger than"), ("1\n", "must match"),
        ("٣", "must match"), ("9" * 2000, "too long"),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_by_name(text, why):
    """A text outside the grammar is refused with a message that quotes it and says why."""
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert why in str(caught.value)
    assert json.dumps(text[:50], ensure_ascii=False)[:-1] in str(caught.value)
    assert quantity_error(text) == str(caught.value)


def test_json_numbers_are_quantities():
    """A plain JSON number reads as the decimal it prints; what is no number is refused."""
    assert Quantity.parse(0.1) == Quantity.parse("100m")
    assert Quantity.parse(1e22) == Quantity.parse("1e22")
    assert Quantity.parse(2) == Quantity.parse("2")
    assert milli(0.25) == 250
    assert quantity_error(0.5) is None
    assert quantity_error(None) is not None
    assert Quantity.parse(10**400).value() == 10**400
    for bad in (True, float("nan"), float("inf")):
        with pytest.raises(QuantityError):
            Quantity.parse(bad)


def test_a_sum_has_the_left_format_unless_left_is_zero():
    """The left side's format stays; a zero takes the right side's, as upstream's Add does."""
    assert str(Quantity.parse("1Ki") + Quantity.parse("1k")) == "2024"
    assert str(Quantity.parse("1Mi") + Quantity.parse("1Mi")) == "2Mi"
    assert str(Quantity(0) + Quantity.parse("1Mi")) == "1Mi"
    assert str(Quantity.parse("1") - Quantity.parse("250m")) == "750m"


def test_a_double_is_the_nearest_one():
    """float() rounds once."""
    assert float(Quantity.parse("100m")) == 0.1
    assert float(Quantity.parse("1.5Gi")) == 1610612736.0


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, "0"), (250, "250m"), (2000, "2"), (1500, "1500m"), (-250, "-250m"), (1_000_000, "1k")],
)
def test_millis_print_in_decimal_form(n, expected):
    """Thousandths print with m, or without a suffix when they are whole."""
    assert milli_to_text(n) == expected
    assert milli(expected) == n


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (0, "0"),
        (1024, "1Ki"),
        (512 << 20, "512Mi"),
        (100_000_000, "100M"),
        (1000, "1k"),
        (1_024_000, "1000Ki"),
    ],
)
def test_bytes_print_binary_when_a_multiple_of_1024(n, expected):
    """A multiple of 1024 prints in binary form, any other number in decimal form."""
    assert bytes_to_text(n) == expected
    assert whole(expected) == n


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("442809964", "422Mi"),
        ("97656250000Ki", "90.9Ti"),
        ("1100000000", "1.02Gi"),
        ("1Gi", "1Gi"),
        ("100Gi", "100Gi"),
        ("250Mi", "250Mi"),
        ("195m", "195m"),
        ("100G", "100G"),
        ("2", "2"),
        ("1048575", "1048575"),
        ("none at all", "none at all"),
        ("", ""),
    ],
)
def test_large_amounts_are_shown_with_three_digits(text, shown):
    """Bytes from a MiB on get a unit and three digits; what is smaller, cores, or no quantity, stays."""
    assert readable(text) == shown
