from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.units.cron import CronError, Every, Grammar, parse_cron, zone_of
from kubetide.units.time import Instant, format_rfc3339, parse_rfc3339, seconds

instants = st.integers(0, 4_000_000_000_000_000_000).map(Instant)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _fields(low, high):
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    return st.one_of(
        st.just("*"),
        number.map(str),
        st.integers(1, high).map(lambda step: f"*/{step}"),
        st.tuples(pair, st.integers(1, 9)).map(lambda it: f"{it[0][0]}-{it[0][1]}/{it[1]}"),
        pair.map(lambda it: f"{it[0]},{it[1]}"),
    )


specs = st.tuples(_fields(0, 59), _fields(0, 23), _fields(1, 28), _fields(1, 12), _fields(0, 6)).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(specs, instants)
def test_the_next_activation_is_the_first_minute_that_matches(text, at):
    """In UTC no minute between the question and the answer matches, and the answer does."""
    spec = parse_cron(text)
    due = spec.next(at)
    if due is None:  # a day of the month that never is that weekday cannot be generated here
        raise AssertionError(text)
    assert due > at
    assert due % 60_000_000_000 == 0
    assert _matches(spec, EPOCH + timedelta(seconds=due // 10**9))
    minute = at // 60_000_000_000 + 1
    for between in range(minute, min(due // 60_000_000_000, minute + 2_000)):
        assert not _matches(spec, EPOCH + timedelta(minutes=between))


def _matches(spec, moment):
    days, weekdays = spec.days >> moment.day & 1, spec.weekdays >> moment.isoweekday() % 7 & 1
    starred = (spec.days | spec.weekdays) >> 63
    return bool(
        spec.minutes >> moment.minute & 1
        and spec.hours >> moment.hour & 1
        and spec.months >> moment.month & 1
        and (days and weekdays if starred else days or weekdays)
    )


@given(st.text(alphabet="0123456789*/-,?@ LWHTZ=everymon", max_size=20))
def test_any_text_is_read_or_refused(text):
    """No text ends in anything but a schedule that can be followed or a CronError."""
    with suppress(CronError):
        due = parse_cron(text).next(Instant(0))
        assert due is None or due > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1--2 * * * *", "too many hyphens: 1--2"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("TZ=Moon/Base 0 0 * * *", "provided bad location Moon/Base: unknown time zone Moon/Base"),
        ("TZ=UTC", "expected a schedule after the time zone UTC"),
        ("*/-2 * * * *", "negative number (-2) not allowed: -2"),
        (
            "9999999999999999999 * * * *",
            'failed to parse int from 9999999999999999999: strconv.Atoi: parsing "9999999999999999999": value out of range',
        ),
    ],
)
def test_the_message_is_that_of_upstreams_parser(text, message):
    """A bad schedule is refused in upstream's words."""
    with pytest.raises(CronError) as caught:
        parse_cron(text)
    assert str(caught.value) == message


def test_the_schedules_own_zone_wins():
    """A zone before the fields overrides the zone of the question."""
    at = parse_rfc3339("2026-11-20T00:00:00Z")
    due = parse_cron("CRON_TZ=Asia/Tokyo 0 9 * * *").next(at, zone_of("America/New_York"))
    assert due == parse_rfc3339("2026-11-21T00:00:00Z")


def test_the_zone_local_is_that_of_who_asks():
    """TZ=Local names no zone: the schedule follows the one that it is asked for."""
    at = parse_rfc3339("2026-03-02T00:00:00Z")
    spec, zone = parse_cron("TZ=Local 0 9 * * *"), zone_of("America/New_York")
    assert spec.next(at, zone) == parse_cron("0 9 * * *").next(at, zone)


def test_a_month_that_begins_without_midnight_is_searched_on():
    """Clocks that skip midnight on 1 April leave the search on 31 March, and April has no 31st. Source: robfig/cron v3.0.1."""
    spec, zone = parse_cron("0 8 10 5 *"), zone_of("America/Havana")
    due = spec.next(parse_rfc3339("2012-04-10T12:00:00Z"), zone)
    assert format_rfc3339(due) == "2012-05-10T12:00:00Z"


def test_a_pause_is_cut_to_whole_seconds():
    """A pause of a fraction of a second is one second, and activations fall on whole seconds."""
    assert parse_cron("@every 300ms") == Every(seconds(1))
    assert parse_cron("@every 90s").next(Instant(1_500_000_000)) == Instant(91_000_000_000)


def test_six_fields_begin_with_the_seconds():
    """A grammar with seconds reads six fields, and the search finds each second."""
    schedule = parse_cron("*/20 30 8 * * *", Grammar(seconds=True))
    at, found = parse_rfc3339("2026-03-02T00:00:00Z"), []
    for _ in range(4):
        at = schedule.next(at)
        found.append(format_rfc3339(at))
    assert found == [
        "2026-03-02T08:30:00Z",
        "2026-03-02T08:30:20Z",
        "2026-03-02T08:30:40Z",
        "2026-03-03T08:30:00Z",
    ]


@pytest.mark.parametrize(
    ("text", "grammar", "message"),
    [
        ("@daily", Grammar(descriptors=False), "parser does not accept descriptors: @daily"),
        ("8 * * *", Grammar(seconds=True, weekday_optional=True), "expected 5 to 6 fields, found 4: 8 * * *"),
        ("? 0 8 * * *", Grammar(seconds=True, blank_in_days_only=True), "? is allowed for days only: ?"),
    ],
)
def test_a_grammar_may_allow_less(text, grammar, message):
    """Fields that a grammar does not allow are refused in the words of upstream's parser."""
    with pytest.raises(CronError) as caught:
        parse_cron(text, grammar)
    assert str(caught.value) == message
