"""The conditions of an ElasticWorkload: whether it is followed, and whether its schedule can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from kubetide.elastic.reasons import VOCABULARY
from kubetide.elastic.state import State
from kubetide.explain.reasons import Reason
from kubetide.objects.base import Json
from kubetide.objects.elastic import ACCEPTED, ElasticWorkload
from kubetide.objects.meta import Condition, Key
from kubetide.units.time import Instant, format_rfc3339

SCHEDULE_VALID: Final = "ScheduleValid"


class Notice(msgspec.Struct, frozen=True):
    """An event about an object."""

    key: Key
    level: Literal["Normal", "Warning"]
    reason: str
    message: str


class StatusWrite(msgspec.Struct, frozen=True):
    """A merge patch of an object's status."""

    key: Key
    status: msgspec.Raw


class Commands(msgspec.Struct, frozen=True):
    """The writes of a tick, and their reasons."""

    writes: tuple[StatusWrite, ...] = ()
    notices: tuple[Notice, ...] = ()
    reasons: tuple[Reason, ...] = ()


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a write: an error, or empty."""

    error: str = ""


def decide(state: State, now: Instant) -> Commands:
    """Return the statuses that differ from the present ones, with an event for each changed condition."""
    writes, notices, reasons = [], [], []
    for key in sorted(state.due):
        found = state.scene.workloads[key]
        before = {one.type: one for one in found.status.conditions or ()}
        conditions = [_with_transition(one, before.get(one.type), now) for one in _conditions(state, key)]
        if (
            tuple(conditions) == (found.status.conditions or ())
            and found.status.observed_generation == found.metadata.generation
        ):
            continue
        status: Json = {
            "observedGeneration": found.metadata.generation,
            "conditions": msgspec.to_builtins(conditions),
        }
        writes.append(StatusWrite(key, msgspec.Raw(msgspec.json.encode(status))))
        for one in conditions:
            known = before.get(one.type)
            if known is not None and (known.status, known.message) == (one.status, one.message):
                continue
            code = one.type if one.status == "True" else f"Not{one.type}"
            reasons.append(VOCABULARY.reason(code, "/".join(key), **_why(one)))
            if one.status != "True":
                notices.append(Notice(key, "Warning", one.reason, one.message))
    return Commands(tuple(writes), tuple(notices), tuple(reasons))


def absorb(state: State, commands: Commands, outcomes: Sequence[Outcome], now: Instant) -> None:
    """Apply the outcomes of the writes: a failed one is tried again at the next tick."""
    del now
    failed = {write.key for write, outcome in zip(commands.writes, outcomes, strict=True) if outcome.error}
    state.due = failed


def _conditions(state: State, key: Key) -> list[Condition]:
    found = state.scene.workloads[key]
    verdict = state.scene.verdict(key)
    if verdict.reason:
        return [Condition(type=ACCEPTED, status="False", reason=verdict.reason, message=verdict.message)]
    accepted = Condition(
        type=ACCEPTED, status="True", reason=ACCEPTED, message=f"the sections {_sections(found)} are followed"
    )
    schedule = found.status.schedule
    if found.spec.schedule is None or schedule is None:
        return [accepted]
    if schedule.problems:
        text = "; ".join(schedule.problems)
        return [
            accepted,
            Condition(type=SCHEDULE_VALID, status="False", reason="InvalidSchedule", message=text),
        ]
    said = "all rules are followed"
    return [accepted, Condition(type=SCHEDULE_VALID, status="True", reason="Valid", message=said)]


def _sections(found: ElasticWorkload) -> str:
    spec = found.spec
    named = {
        "horizontal": spec.horizontal,
        "vertical": spec.vertical,
        "schedule": spec.schedule,
        "forecast": spec.forecast,
    }
    return ", ".join(name for name, section in named.items() if section is not None)


def _with_transition(new: Condition, known: Condition | None, now: Instant) -> Condition:
    """Return a condition with the time of its last change of status."""
    since = known.last_transition_time if known is not None and known.status == new.status else None
    return msgspec.structs.replace(new, last_transition_time=since or format_rfc3339(now))


def _why(one: Condition) -> dict[str, str]:
    return {} if one.type == SCHEDULE_VALID and one.status == "True" else {"why": one.message}
