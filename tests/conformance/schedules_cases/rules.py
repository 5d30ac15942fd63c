"""Where kubetide differs from Alibaba's and TKEStack's controllers on purpose.

A case to which a rule applies is compared with what is intended (``intended``), not with the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.conformance.cases import Case
from tests.conformance.schedules_cases.intended import instant, zone_changes

from kubetide.units.cron import CronError, Grammar, parse_cron
from kubetide.units.time import Instant

_NS = 1_000_000_000


class DifferenceRule(NamedTuple):
    """A difference from upstream on purpose.

    Attributes:
        applies: Decides from a case's input.
    """

    name: str
    reason: str
    applies: Callable[[Case], bool]


def _entries(case: Case) -> list[tuple[Any, Any]]:
    given = case["input"]
    objects = [*given["objects"], *(step["object"] for step in given.get("steps") or [] if "object" in step)]
    return [(one, entry) for one in objects for entry in one.get("jobs") or one.get("crons") or []]


def _schedule(case: Case, text: str) -> Any:
    six = case["_system"] == "alibaba"
    try:
        return parse_cron(text, Grammar(seconds=six, weekday_optional=six, zones=False))
    except CronError:
        return None


def _never(case: Case) -> bool:
    found = (_schedule(case, entry["schedule"]) for _, entry in _entries(case))
    return any(
        one is not None and one.next(Instant(instant(case["input"]["start"]) * _NS)) is None for one in found
    )


def _removes(case: Case) -> bool:
    return any(step["op"] in {"delete", "apply"} for step in case["input"].get("steps") or [])


def _same_names(case: Case) -> bool:
    return any(
        len({job["name"] for job in one["jobs"]}) < len(one["jobs"])
        for one, _ in _entries(case)
        if one.get("jobs")
    )


def _old(case: Case) -> bool:
    start = instant(case["input"]["start"])
    return any(
        instant(one.get("lastScheduleTime") or one["creationTimestamp"]) < start - 60
        for one in case["input"]["objects"]
        if "creationTimestamp" in one
    )


def _outage(case: Case) -> bool:
    return any(step["op"] == "controller_up" for step in case["input"].get("steps") or [])


RULES = (
    DifferenceRule(
        "clock changes", "a time in a gap or a doubled one is due once, on its local day", zone_changes
    ),
    DifferenceRule(
        "excluded dates",
        "a date is left out where the expression names any second of it; a skip is not the one run of runOnce",
        lambda case: any(one.get("excludeDates") for one, _ in _entries(case)),
    ),
    DifferenceRule(
        "outages",
        "what is due last holds as soon as the controller is back",
        lambda case: _outage(case) or _old(case),
    ),
    DifferenceRule(
        "dated",
        "the year of @date counts",
        lambda case: any(one["schedule"].startswith("@date") for _, one in _entries(case)),
    ),
    DifferenceRule("removal", "removing or changing a job delays no other", _removes),
    DifferenceRule("never", "a schedule without a date never runs", _never),
    DifferenceRule("same names", "of two jobs of one name the first runs", _same_names),
    DifferenceRule(
        "invalid",
        "a schedule that cannot be read stops nothing else",
        lambda case: "panic" in (case.get("result") or {}),
    ),
    DifferenceRule(
        "negative sizes",
        "a size below 0 is refused",
        lambda case: any(
            one.get("targetSize", one.get("targetReplicas", 0)) < 0 for _, one in _entries(case)
        ),
    ),
)


def rule_of(case: Case) -> DifferenceRule | None:
    return next((rule for rule in RULES if rule.applies(case)), None)
