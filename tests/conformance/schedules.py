"""The suite of time tables: what is written, reported and held at which instant.

Differences on purpose are rules (``RULES``): each has a name, a reason, a predicate on the input and what is
expected in place of the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.cases import Case
from tests.conformance.schedules_cases import keda, points, stepping, tencent

_PLAYERS = {
    "keda": keda.first_difference,
    "alibaba": points.alibaba_difference,
    "tkestack": points.tkestack_difference,
    "dst": stepping.first_difference,
    "tencent": tencent.first_difference,
}


def cases(document: Any) -> Iterator[Case]:
    """Yield the cases of a file of this kind."""
    if not isinstance(document, dict):
        return
    for case in document.get("cases") or ():
        system = _system(case)
        if system is not None:
            yield {**case, "_system": system}


def _system(case: Case) -> str | None:
    given = case.get("input") or {}
    if "documented" in case:
        return "tencent"
    if case.get("kind") in {"span", "transition", "window"}:
        return "dst"
    if "triggerIndex" in given:
        return "keda"
    objects = given.get("objects") or []
    if any("jobs" in one for one in objects):
        return "alibaba"
    return "tkestack" if any("crons" in one for one in objects) else None


def case_id(case: Case) -> str:
    return str(case["id"])


def group(case: Case) -> str:
    return f"{case['_system']}/{case.get('group') or case['kind']}"


def has_steps(case: Case) -> bool:
    return bool((case.get("input") or {}).get("steps"))


def metric_types(case: Case) -> set[str]:
    return set()


def first_difference(case: Case) -> str | None:
    """Play a case; return None when every answer is the recorded one, or the one that a rule expects."""
    return _PLAYERS[case["_system"]](case)
