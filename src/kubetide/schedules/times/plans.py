"""A time table with its texts parsed: calendars, excluded dates, and warnings."""

from __future__ import annotations

from datetime import date, tzinfo
from typing import NamedTuple

from kubetide.schedules.tables import Rule, Table
from kubetide.schedules.times.calendar import Calendar, Days, Off
from kubetide.schedules.times.reading import any_of, position_of, read_calendar, read_dates, read_zone
from kubetide.units.cron import CronError, Grammar
from kubetide.units.time import Instant


class Forms(NamedTuple):
    """The schedule forms that a kind allows.

    Attributes:
        grammar: Of the schedules.
        dates: Whether ``@date`` is allowed.
        six: Of schedules with six fields, where both five and six may be written.
    """

    grammar: Grammar
    dates: bool = False
    six: Grammar | None = None

    def of(self, text: str) -> Grammar:
        """Return the grammar of a schedule."""
        return self.six if self.six is not None and len(text.split()) == 6 else self.grammar


class Entry(NamedTuple):
    """A rule with its calendar.

    Attributes:
        calendar: None where the rule cannot be followed; ``problem`` says why.
        problem: In upstream's words, where upstream has words for it.
        end: When a window ends; None for a rule without an end.
        excluded: Expressions of dates, each with what it names.
        off: Whether any of them names a date.
    """

    rule: Rule
    calendar: Calendar | None
    problem: str = ""
    end: Calendar | None = None
    excluded: tuple[tuple[str, Off], ...] = ()
    off: Off | None = None

    def exclusion(self, due: Instant) -> str:
        """Return the expression that excludes an activation; empty for none."""
        assert self.calendar is not None
        if self.off is None:
            return ""
        day: date = self.calendar.day_of(due)
        return next((text for text, off in self.excluded if off(day)), "")


class Plan(NamedTuple):
    """The entries of a table in order, and warnings."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]


def plan_of(table: Table, forms: Forms, zone: str) -> Plan:
    """Return a table with its texts parsed; what cannot be read is a warning, and the rest is followed.

    Args:
        zone: IANA name of the process's zone.
    """
    if table.refused:
        return Plan((), table.refused)
    warnings: list[str] = []
    entries = tuple(entry_of(rule, table.created, forms, zone, warnings) for rule in table.rules)
    return Plan(entries, tuple(warnings))


def entry_of(rule: Rule, created: Instant, forms: Forms, zone: str, warnings: list[str]) -> Entry:
    """Return a rule with its calendar; append what cannot be read to the warnings.

    Args:
        created: When the rule's object was created.
        zone: IANA name of the process's zone.
    """
    named = f"{rule.name} ({rule.schedule!r})" if rule.name else repr(rule.schedule)
    least = min(one for one in (rule.size, rule.minimum, rule.maximum, 0) if one is not None)
    if least < 0:
        warnings.append(f"{named}: size {least} is negative; it is not followed")
        return Entry(rule, None, f"size {least} must not be negative")
    try:
        own = read_zone(rule.zone or zone, zone)
        calendar = _calendar(rule.schedule, forms, own, created)
        end = _calendar(rule.end, forms, own, created) if rule.end else None
    except CronError as error:
        warnings.append(f"{named}: {position_of(error)}{error}{_hint(rule, error)}")
        return Entry(rule, None, str(error))
    excluded = _excluded(rule, forms, named, warnings)
    off = any_of(excluded)
    if calendar.next(created, off) is None and calendar.last(created, off) is None:
        warnings.append(f"{named}: there is no such date; it never begins")
    elif not isinstance(calendar, Days) and calendar.next(created, off) is None:
        warnings.append(f"{named}: was past when the object was created; it never begins")
    elif forms.grammar.weekday_optional and len(rule.schedule.split()) == 5:
        warnings.append(
            f"{named}: five fields are read as second, minute, hour, day and month; "
            f"for minute, hour, day, month and weekday write '0 {rule.schedule}'"
        )
    return Entry(rule, calendar, "", end, excluded, off)


def _calendar(text: str, forms: Forms, zone: tzinfo, created: Instant) -> Calendar:
    return read_calendar(text, forms.of(text), zone, created, dates=forms.dates)


def _excluded(rule: Rule, forms: Forms, named: str, warnings: list[str]) -> tuple[tuple[str, Off], ...]:
    found = []
    for text in rule.exclude:
        try:
            found.append((text, read_dates(text, forms.of(text), dates=forms.dates)))
        except CronError as error:
            warnings.append(f"{named}: excludeDates {text!r} leaves out no date: {position_of(error)}{error}")
    return tuple(found)


def _hint(rule: Rule, error: CronError) -> str:
    """Return how to write what was meant, where that is known."""
    fields = rule.schedule.split()
    if error.field.startswith("day of week") and fields[-1:] == ["7"]:
        return "; write 0 for Sunday"
    if len(fields) == 5 and "exactly 6" in str(error):
        return f"; seconds stand first: write '0 {rule.schedule}' for minute, hour, day, month and weekday"
    return ""
