"""Ten years of changes of the clocks: robfig's stepping as CronJobs need it, and the wall clocks of this loop."""

from __future__ import annotations

import hashlib
from datetime import date

from tests.conformance.cases import Case, difference

from kubetide.schedules.tables import Rule
from kubetide.schedules.times.calendar import resolve
from kubetide.schedules.times.plans import Entry
from kubetide.schedules.times.reading import FIVE, read_calendar, read_zone
from kubetide.schedules.times.windows import opening
from kubetide.units.cron import parse_cron
from kubetide.units.time import Instant, format_rfc3339, parse_rfc3339

_NS = 1_000_000_000
_SPAN = 36 * 3600 * _NS


def first_difference(case: Case) -> str | None:
    """Windows and wall clocks are as intended; robfig's stepping is as recorded."""
    return {"window": _window, "transition": _transition, "span": _span}[case["kind"]](case)


def _window(case: Case) -> str | None:
    zone = read_zone(case["zone"])
    rule = Rule("", case["start"], end=case["end"])
    entry = Entry(
        rule,
        read_calendar(case["start"], FIVE, zone, Instant(0)),
        "",
        read_calendar(case["end"], FIVE, zone, Instant(0)),
    )
    at, end, found = parse_rfc3339(case["from"]), parse_rfc3339(case["to"]), []
    while at < end:
        now = opening(entry, at)
        until = min(one for one in (entry.calendar.next(at), entry.end.next(at), end) if one is not None)
        if now.active:
            if found and found[-1][1] == format_rfc3339(at):
                found[-1][1] = format_rfc3339(until)
            else:
                found.append([format_rfc3339(at), format_rfc3339(until)])
        at = until
    return difference("intended", case["intended"], found)


def _transition(case: Case) -> str | None:
    zone = read_zone(case["zone"])
    for one in case["go"]:
        hour, minute = one["wall"].split(":")
        found = resolve(zone, date.fromisoformat(one["date"]), int(hour) * 3600 + int(minute) * 60)
        expected = one["instants"][0] if one["instants"] else case["transition"]
        wrong = difference(f"wall clock {one['date']}", expected, format_rfc3339(Instant(found * _NS)))
        if wrong:
            return wrong
    spec = parse_cron(case["expr"])
    middle = parse_rfc3339(case["transition"])
    at, firings = Instant(middle - _SPAN), []
    while (due := spec.next(at, zone)) is not None and due < middle + _SPAN:
        firings.append(format_rfc3339(due))
        at = due
    wrong = difference("robfig", case["robfig"], firings)
    for one in case["robfig_next_from"]:
        due = spec.next(parse_rfc3339(one["from"]), zone)
        wrong = wrong or difference(
            f"next from {one['from']}", one["next"], format_rfc3339(due) if due else ""
        )
    return wrong


def _span(case: Case) -> str | None:
    zone, spec = read_zone(case["zone"]), parse_cron(case["expr"])
    first, last = case["years"]
    at = Instant(resolve(zone, date(first, 1, 1), 0) * _NS - 1)
    end = resolve(zone, date(last + 1, 1, 1), 0) * _NS
    found = []
    while (due := spec.next(at, zone)) is not None and due < end:
        found.append(format_rfc3339(due))
        at = due
    total = hashlib.sha256("\n".join(found).encode()).hexdigest()
    return difference("robfig_count", case["robfig_count"], len(found)) or difference(
        "robfig_sha256", case["robfig_sha256"], total
    )
