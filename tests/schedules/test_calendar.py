"""When schedules are due: local days, gaps, doubled times."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.schedules.times.calendar import Every
from kubetide.schedules.times.reading import (
    FIVE,
    FIVE_WITH_ZONE,
    SIX,
    SIX_STRICT,
    read_calendar,
    read_dates,
    read_zone,
)
from kubetide.units.cron import CronError
from kubetide.units.time import Instant, after, format_rfc3339, parse_rfc3339, seconds

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
_NS = 1_000_000_000


def calendar(text, zone="UTC", grammar=FIVE, *, dates=False):
    return read_calendar(text, grammar, read_zone(zone), Instant(0), dates=dates)


@pytest.mark.parametrize("zone", ZONES)
@given(hour=st.integers(0, 23), minute=st.integers(0, 59))
def test_a_daily_rule_is_due_once_on_every_date_of_ten_years(zone, hour, minute):
    """Around each change of the clocks a daily rule is due once a date, at its time or the first instant after a gap."""
    found = calendar(f"{minute} {hour} * * *", zone)
    place = ZoneInfo(zone)
    for month, day in ((3, 1), (4, 1), (10, 1), (11, 1)):
        for year in (2026, 2031, 2035):
            at = Instant(int(datetime(year, month, day, tzinfo=UTC).timestamp()) * _NS)
            seen = []
            for _ in range(20):
                at = found.next(at)
                seen.append(found.day_of(at))
                local = datetime.fromtimestamp(at // _NS, place)
                assert (local.hour, local.minute) >= (hour, minute)
            assert seen == [seen[0] + timedelta(days=n) for n in range(20)]


@given(
    at=st.integers(1_760_000_000, 2_060_000_000),
    zone=st.sampled_from(ZONES),
    text=st.sampled_from(["30 2 * * *", "0 */2 * * 1-5", "15 1 1,15 * *", "* * * * 0", "0 0 29 2 *"]),
)
def test_last_and_next_are_neighbours(at, zone, text):
    """Nothing is due between the last and the next activation, and each knows the other."""
    found, now = calendar(text, zone), Instant(at * _NS)
    last, following = found.last(now), found.next(now)
    assert last <= now < following
    assert found.next(last) == following
    assert found.last(following) == following
    assert found.last(Instant(following - _NS)) == last


def test_a_time_in_a_gap_is_the_first_instant_after_it():
    """Berlin skips 02:30 on 29 March 2026: the rule is due at 03:00."""
    found = calendar("30 2 * * *", "Europe/Berlin")
    assert format_rfc3339(found.next(parse_rfc3339("2026-03-28T12:00:00Z"))) == "2026-03-29T01:00:00Z"


def test_a_doubled_time_is_its_first_occurrence():
    """New York has 01:30 twice on 1 November 2026: the rule is due at the first."""
    found = calendar("30 1 * * *", "America/New_York")
    assert format_rfc3339(found.next(parse_rfc3339("2026-11-01T01:00:00Z"))) == "2026-11-01T05:30:00Z"
    assert format_rfc3339(found.next(parse_rfc3339("2026-11-01T05:30:00Z"))) == "2026-11-02T06:30:00Z"


def test_the_year_of_a_date_counts():
    """A rule of 2030 is due in 2030, and never again."""
    found = calendar("@date 2030-06-15 08:00:00", "Asia/Shanghai", SIX, dates=True)
    due = found.next(parse_rfc3339("2026-01-01T00:00:00Z"))
    assert format_rfc3339(due) == "2030-06-15T00:00:00Z"
    assert found.next(due) is None


@pytest.mark.parametrize("text", ["@date 2026-02-30 08:00:00", "@date 2026-13-01 08:00:00", "@date tomorrow"])
def test_impossible_dates_are_refused(text):
    """A date that does not exist is an error that quotes it."""
    with pytest.raises(CronError, match="@date"):
        calendar(text, grammar=SIX, dates=True)


def test_the_wrong_field_is_named():
    """The error of a schedule says which field it is about."""
    with pytest.raises(CronError) as caught:
        calendar("0 0 25 * * *", grammar=SIX)
    assert caught.value.field == "hour (field 3)"


def test_excluded_dates_are_whole_dates():
    """An expression with a fixed hour leaves out the whole date."""
    off = read_dates("0 0 0 15 6 *", SIX)
    assert off(date(2026, 6, 15))
    assert not off(date(2026, 6, 16))


@pytest.mark.parametrize(
    ("text", "grammar", "dates"),
    [
        ("0 8 */2 * 1-5", FIVE, [3, 5, 9, 11, 13]),
        ("0 0 8 */2 * 1-5", SIX, [3, 5, 9, 11, 13]),
        ("0 0 8 */2 * 1-5", SIX_STRICT, [3, 5, 9, 11, 13]),
        ("0 8 */2 * 1-5", FIVE_WITH_ZONE, [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]),
        ("0 8 1-31/2 * 1-5", FIVE, [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]),
    ],
)
def test_a_step_of_days_and_a_weekday_decide_as_in_the_kinds_parser(text, grammar, dates):
    """`*/2` beside a weekday needs both to match, as in robfig/cron v1 and its fork; for KEDA, on v3, either is enough."""
    found, at, seen = calendar(text, grammar=grammar), parse_rfc3339("2026-03-02T00:00:00Z"), []
    while (at := found.next(at)) < parse_rfc3339("2026-03-14T00:00:00Z"):
        seen.append(int(format_rfc3339(at)[8:10]))
    assert seen == dates


@pytest.mark.parametrize("zone", ZONES)
@given(pause=st.integers(900, 200_000), at=st.integers(0, 5 * 86_400), weekdays=st.sets(st.integers(0, 6)))
def test_an_interval_leaves_out_excluded_dates(zone, pause, at, weekdays):
    """Of an interval's activations, those before and after a time are found that are on no excluded date."""
    start = parse_rfc3339("2026-10-23T22:00:00Z")  # the clocks of two of the zones change within the days
    found = Every(start, seconds(pause), read_zone(zone))
    now = after(start, seconds(at))
    whole = [after(start, seconds(count * pause)) for count in range(1, 9 * 86_400 // pause + 1)]
    kept = [one for one in whole if found.day_of(one).weekday() not in weekdays]

    def off(day):
        return day.weekday() in weekdays

    assert found.last(now, off) == max((one for one in kept if one <= now), default=None)
    later = min((one for one in kept if one > now), default=None)
    assert later is None or found.next(now, off) == later


@pytest.mark.timeout(20)
def test_an_interval_whose_dates_are_all_excluded_is_never_due():
    """A second's interval with all dates excluded is answered at once: such an object must not stop all others."""
    found, now = Every(Instant(0), seconds(1)), parse_rfc3339("2026-10-23T00:00:00Z")
    assert found.last(now, lambda _: True) is None
    assert found.next(now, lambda _: True) is None


class CountingZone(tzinfo):
    """Berlin, with the number of its answers."""

    def __init__(self):
        self.zone, self.asked = ZoneInfo("Europe/Berlin"), 0

    def utcoffset(self, when):
        self.asked += 1
        return when.replace(tzinfo=self.zone).utcoffset()

    def fromutc(self, when):
        self.asked += 1
        return when.replace(tzinfo=self.zone).astimezone(self.zone).replace(tzinfo=self)

    def dst(self, when):
        return when.replace(tzinfo=self.zone).dst()


@pytest.mark.parametrize("day", ["2026-03-29T00:59:30Z", "2026-10-25T00:59:30Z"])
def test_each_second_of_a_day_of_a_change_is_found_without_resolving_all(day):
    """Of a schedule with 86,400 activations a day only a few are resolved, also where the clocks change."""
    zone, now = CountingZone(), parse_rfc3339(day)
    found = read_calendar("* * * * * *", SIX, zone, Instant(0))
    # The doubled hour of autumn has its activations at its first occurrence only.
    again = parse_rfc3339("2026-10-25T02:00:00Z")
    for second in (0, 28, 31, 45):
        at = after(now, seconds(second))
        doubled = day.startswith("2026-10") and second > 29
        assert found.next(at) == (again if doubled else after(at, seconds(1)))
        assert found.last(at) == (parse_rfc3339("2026-10-25T00:59:59Z") if doubled else at)
    assert zone.asked < 10_000
