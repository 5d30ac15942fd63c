from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.units import time as t

YEAR_1 = -62_135_596_800_000_000_000
YEAR_9999 = 253_402_300_799_999_999_999

instants = st.integers(YEAR_1, YEAR_9999).map(t.Instant)
durations = st.integers(-(1 << 63), (1 << 63) - 1).map(t.Duration)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("0001-01-01T00:00:00Z", YEAR_1),
        ("1969-12-31T23:59:59.5Z", -500_000_000),
        ("2024-02-29T12:00:00+02:00", 1_709_200_800_000_000_000),
        ("2024-02-29T12:00:00-02:30", 1_709_217_000_000_000_000),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T00:00:00.0000000019Z", 1),
    ],
)
def test_rfc3339_texts_are_read_to_the_nanosecond(text, expected):
    """An RFC 3339 text with any offset becomes UTC nanoseconds, and finer digits are dropped."""
    assert t.parse_rfc3339(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-02-30T00:00:00Z",
        "2024-02-01 00:00:00Z",
        "2024-02-01T24:00:00Z",
        "2024-02-01T00:60:00Z",
        "2024-02-01T00:00:60Z",
        "2024-02-01T00:00:00",
        "2024-02-01T00:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "２０24-02-01T00:00:00Z",
        "2024-02-01T00:00:00Z ",
    ],
)
def test_a_bad_time_is_refused_by_name(text):
    """A text that is no RFC 3339 time is refused with a message that quotes it."""
    with pytest.raises(t.TimeFormatError) as caught:
        t.parse_rfc3339(text)
    assert json.dumps(text, ensure_ascii=False) in str(caught.value)


def test_a_field_without_a_time_that_can_be_read_states_none():
    """Nothing, an empty text and any other that is no time are one; a time is itself."""
    assert [t.instant_of(text) for text in (None, "", "yesterday", "2024-02-01T00:00:00")] == [None] * 4
    assert t.instant_of("1970-01-01T00:00:01Z") == t.seconds(1)


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59Z", "0001-01-01T00:30:00+01:00"]
)
def test_a_time_at_the_ends_of_the_calendar_is_none(text):
    """What is counted from it would have no text."""
    assert t.instant_of(text) is None


@given(instants)
@settings(max_examples=100)
def test_printed_instants_read_back(instant):
    """The three printed forms read back as the instant, cut to whole seconds, micros, nanos."""
    assert t.parse_rfc3339(t.format_rfc3339_nano(instant)) == instant
    assert t.parse_rfc3339(t.format_rfc3339_micro(instant)) == instant // 1000 * 1000
    assert t.parse_rfc3339(t.format_rfc3339(instant)) == instant // 10**9 * 10**9


@given(instants)
@settings(max_examples=100)
def test_instants_print_as_the_standard_library_counts(instant):
    """The calendar agrees with datetime's."""
    whole = instant // 10**9
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole)
    assert t.format_rfc3339(instant) == expected.replace(tzinfo=None).isoformat() + "Z"


def test_micro_and_nano_forms_differ_in_digits():
    """MicroTime has always six digits; the nano form only those that are needed."""
    instant = t.Instant(1_500_000_000)
    assert t.format_rfc3339_micro(instant) == "1970-01-01T00:00:01.500000Z"
    assert t.format_rfc3339_nano(instant) == "1970-01-01T00:00:01.5Z"
    assert t.format_rfc3339_nano(t.Instant(0)) == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("+0", 0),
        ("5s", 5_000_000_000),
        ("1h15m0.5s", 4_500_500_000_000),
        ("-1.5h", -5_400_000_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("3us", 3_000),
        ("3\u00b5s", 3_000),
        ("3\u03bcs", 3_000),
        ("39h9m14.425s", 140_954_425_000_000),
        ("0.3333333333333333333h", 1_200_000_000_000),
        ("9007199254740993ns", 9_007_199_254_740_993),
        ("-9223372036854775808ns", -(1 << 63)),
        ("0.100000000000000000000h", 360_000_000_000),
    ],
)
def test_go_durations_are_read(text, expected):
    """Durations read as Go reads them (rows from the documentation and tests of package time)."""
    assert t.parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        (".s", 'time: invalid duration ".s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1h 2m", 'time: unknown unit "h " in duration "1h 2m"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("1e3s", 'time: unknown unit "e" in duration "1e3s"'),
        ("9" * 5000 + "s", f'time: invalid duration "{"9" * 5000}s"'),
    ],
)
def test_a_bad_duration_is_refused_in_gos_words(text, message):
    """A text that is no duration is refused in the words that users of Go programs know."""
    with pytest.raises(t.TimeFormatError) as caught:
        t.parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1\u00b5s"),
        (150_000_000, "150ms"),
        (1_500_000_000, "1.5s"),
        (60_000_000_000, "1m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (245_700_500_000_001, "68h15m0.500000001s"),
        (-2_000_000, "-2ms"),
        (-(1 << 63), "-2562047h47m16.854775808s"),
    ],
)
def test_durations_print_as_go_prints_them(nanoseconds, expected):
    """A duration prints as Go's Duration.String."""
    assert t.format_duration(t.Duration(nanoseconds)) == expected


@given(durations)
@settings(max_examples=100)
def test_printed_durations_read_back(duration):
    """Every int64 duration reads back from its text."""
    assert t.parse_duration(t.format_duration(duration)) == duration


def test_constructors_are_exact_for_ints_and_round_floats():
    """Whole numbers are exact at any size; a float is rounded to the nanosecond."""
    assert t.minutes(10) == t.seconds(600) == t.milliseconds(600_000) == 600 * 10**9
    assert t.hours(10**9) == 3600 * 10**18
    assert t.seconds(0.1) == 100_000_000
    assert t.seconds(0.1234567894) == 123_456_789


def test_instants_and_durations_combine():
    """after, before and between are one another's inverses."""
    start = t.parse_rfc3339("2026-01-01T00:00:00Z")
    end = t.after(start, t.minutes(5))
    assert t.before(end, t.minutes(5)) == start
    assert t.between(start, end) == t.minutes(5)
    assert t.between(end, start) == -t.minutes(5)
    assert t.to_seconds(t.between(start, end)) == 300.0
    assert t.to_seconds(t.Duration(-1_500_000_000)) == -1.5
