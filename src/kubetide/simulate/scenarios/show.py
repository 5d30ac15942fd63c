"""The part of a scenario that is played live: its start and its end."""

from __future__ import annotations

import re

import msgspec

from kubetide.simulate.scenarios.scenario import (
    FaultSpec,
    Scenario,
    ScenarioError,
    ServiceSpec,
    parse_time_of_day,
    start_of,
)
from kubetide.simulate.scenarios.spec import CENTURY, NEVER
from kubetide.units.time import (
    Duration,
    Instant,
    after,
    between,
    format_duration,
    format_rfc3339,
    hours,
    parse_duration,
    parse_rfc3339,
)

_DAY, _HALF_DAY = hours(24), hours(12)
_TIME_OF_DAY = re.compile(r"\d{1,2}(:\d\d){1,2}", re.ASCII)


def shown_part(scenario: Scenario) -> Scenario:
    """Return the scenario with its start moved to ``show.start``; faults keep their time.

    Raises: ScenarioError where a load cannot begin there.
    """
    if scenario.show.start is None:
        return scenario
    later = between(start_of(scenario), parse_rfc3339(scenario.show.start))
    length = Duration(parse_duration(scenario.duration) - later)
    if later < 0 or length <= 0:
        raise ScenarioError(
            f"show.start: {scenario.show.start} is not within the scenario, which starts at {scenario.start} "
            f"and lasts {scenario.duration}; move it"
        )
    return msgspec.structs.replace(
        scenario,
        start=scenario.show.start,
        duration=format_duration(length),
        services=tuple(_service_from(service, later) for service in scenario.services),
        faults=tuple(_fault_from(fault, later) for fault in scenario.faults),
    )


def _service_from(service: ServiceSpec, later: Duration) -> ServiceSpec:
    load = service.load
    if load.trace is None:
        return service
    if load.window is None:
        raise ScenarioError(
            f"services ({service.title}).load: a trace can be shown from later than its beginning only with "
            "a `window`; add one, or leave show.start out"
        )
    start = format_rfc3339(after(parse_rfc3339(load.window[0]), later))
    moved = msgspec.structs.replace(load, window=(start, load.window[1]))
    return msgspec.structs.replace(service, load=moved)


def _fault_from(fault: FaultSpec, later: Duration) -> FaultSpec:
    return msgspec.structs.replace(
        fault,
        start=format_duration(Duration(parse_duration(fault.start) - later)),
        end=None if fault.end is None else format_duration(Duration(parse_duration(fault.end) - later)),
    )


def end_of_show(scenario: Scenario, until: str | None) -> Instant:
    """Return when the show ends: ``until``, else ``show.until``, else the end of the scenario.

    Args:
        until: An RFC 3339 time, a time of day (the first such after the start, but none that
            lies up to half a day before it), a duration from the start, or ``never``: a century after it.
    Raises: ScenarioError that says what would be right.
    """
    start = start_of(scenario)
    text = scenario.show.until if until is None else until
    if text is None:
        return after(start, parse_duration(scenario.duration))
    if text == NEVER:
        return after(start, CENTURY)
    try:
        end = moment_of(text, start)
    except ValueError:
        raise ScenarioError(
            f"until: {text!r} is neither a time (2026-03-02T13:00:00Z), nor a time of day (13:00), "
            "nor a duration from the start (90m), nor `never`"
        ) from None
    if _just_before(text, start):
        raise ScenarioError(
            f"until: {text} is not after the start, {format_rfc3339(start)}; choose a later time, or write "
            f"{format_rfc3339(end)} for the day after"
        )
    if end <= start:
        raise ScenarioError(
            f"until: {text} is not after the start, {format_rfc3339(start)}; choose a later time"
        )
    return end


def is_endless(scenario: Scenario, end: Instant) -> bool:
    """Return whether a show that ends then continues until it is stopped."""
    return between(start_of(scenario), end) >= CENTURY


def _just_before(text: str, start: Instant) -> bool:
    """Return whether a time of day lies at the start or up to half a day before it: a slip, not the next day."""
    if not _TIME_OF_DAY.fullmatch(text):
        return False
    since_midnight = start % _DAY
    return 0 <= since_midnight - parse_time_of_day(text) <= _HALF_DAY


def moment_of(text: str, start: Instant) -> Instant:
    """Return the instant of a time, a time of day (the first after ``start``) or a duration from ``start``. Raises ValueError."""
    if "T" in text:
        return parse_rfc3339(text)
    if _TIME_OF_DAY.fullmatch(text):
        midnight = Instant(start - start % _DAY)
        moment = after(midnight, parse_time_of_day(text))
        return moment if moment > start else after(moment, _DAY)
    return after(start, parse_duration(text))
