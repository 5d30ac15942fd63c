"""The suite of cron schedules: every next activation and every message of the parser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.cases import Case, difference

from kubetide.units.cron import CronError, parse_cron, zone_of
from kubetide.units.time import format_rfc3339, parse_rfc3339

_NEVER = "never"


def cases(document: Any) -> Iterator[Case]:
    """Yield the cases of a file of this kind."""
    found = document.get("cases") if isinstance(document, dict) else None
    for case in found or ():
        if "Expr" in case:
            yield case


def case_id(case: Case) -> str:
    return f"{case['Expr']!r} {case['Zone']} {case['From']}"


def group(case: Case) -> str:
    return str(case["Zone"])


def has_steps(case: Case) -> bool:
    return False


def metric_types(case: Case) -> set[str]:
    return set()


def first_difference(case: Case) -> str | None:
    """Play a case; return None when every answer is the recorded one."""
    try:
        schedule = parse_cron(case["Expr"])
    except CronError as error:
        return difference("Error", case.get("Error"), str(error))
    at = parse_rfc3339(case["From"])
    found = []
    for _ in case.get("Next") or ():
        due = schedule.next(at, zone_of(case["Zone"]))
        if due is None:
            found.append(_NEVER)
            break
        found.append(format_rfc3339(due))
        at = due
    expected = [
        text if text == _NEVER else format_rfc3339(parse_rfc3339(text)) for text in case.get("Next") or ()
    ]
    return difference("Error", case.get("Error"), None) or difference("Next", expected, found)
