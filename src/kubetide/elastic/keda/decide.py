"""Scaling from and to zero: while there is work, after the cooldown, and when servers do not answer.

Source: KEDA 2.21, concepts/scaling-deployments: activation, cooldownPeriod, initialCooldownPeriod, idleReplicaCount,
minReplicaCount; its admission webhook: one ScaledObject a target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from kubetide.elastic.keda.hpas import resource_names
from kubetide.elastic.keda.reasons import VOCABULARY
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.state import Answer, Claim, Memory, State
from kubetide.elastic.keda.windows import next_change
from kubetide.explain.reasons import Reason
from kubetide.objects.base import Json
from kubetide.objects.kinds import HPAS
from kubetide.objects.meta import Key
from kubetide.objects.scaled_objects import ACTIVE, INACTIVE, READY, RESTS, Said, conditions, failing, faulty
from kubetide.units.time import Instant, after, format_rfc3339

INVALID: Final = "InvalidScaledObject"


class Notice(msgspec.Struct, frozen=True):
    """An event about an object."""

    key: Key
    level: Literal["Normal", "Warning"]
    reason: str
    message: str


class Write(msgspec.Struct, frozen=True):
    """A new size of a target."""

    key: Key
    current: int
    replicas: int
    version: str


class Commands(msgspec.Struct, frozen=True):
    """The actions of a tick."""

    now: Instant
    writes: tuple[Write, ...] = ()
    statuses: tuple[tuple[Key, msgspec.Raw], ...] = ()
    notices: tuple[Notice, ...] = ()
    reasons: tuple[Reason, ...] = ()
    memory: tuple[Memory, ...] = ()


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a write; ``withheld`` means that the program only advises."""

    error: str = ""
    withheld: bool = False


class Result(msgspec.Struct, frozen=True):
    """Events and reasons once the outcomes are known."""

    notices: tuple[Notice, ...] = ()
    reasons: tuple[Reason, ...] = ()


def decide(state: State, now: Instant) -> Commands:
    """Return the sizes to write, the statuses that differ, and the events."""
    writes, statuses, notices, reasons, memories = [], [], [], [], []
    for key in state.due(now):
        source, memory = state.sources[key], state.memory[key]
        answer = state.answers.get(key)
        problems = problems_of(state, key, answer)
        for text in problems:
            if text not in memory.warned:
                notices.append(Notice(key, "Warning", INVALID, text))
                reasons.append(VOCABULARY.reason("Warned", "/".join(key), why=text))
        # A clock that was ahead would let a target rest until that time comes.
        last, rests = memory.last_active and min(memory.last_active, now), False
        if answer is not None and state.follows(key):
            if answer.active:
                last = now
            size = size_of(source, answer, last, now)
            if size is not None:
                writes.append(Write(key, answer.replicas, size, answer.version))
            idle = not answer.active and not answer.error and source.lowest == 0
            rests = idle and size is None and answer.replicas > 0
        active = RESTS if rests else ACTIVE if answer is not None and answer.active else INACTIVE
        raw = msgspec.json.encode(_status(source, answer, last, _ready(answer, problems), active))
        if raw.decode() != memory.status:
            statuses.append((key, msgspec.Raw(raw)))
        memories.append(Memory(key, last, _due(source, now), raw.decode(), problems))
    return Commands(now, tuple(writes), tuple(statuses), tuple(notices), tuple(reasons), tuple(memories))


def _due(source: Source, now: Instant) -> Instant:
    """Return when to look again: after the interval, or as soon as a window opens or closes."""
    due = after(now, source.polling)
    change = next_change(source, now)
    return due if change is None else min(due, change)


def size_of(source: Source, answer: Answer, last: Instant | None, now: Instant) -> int | None:
    """Return the size to write, None for none: sizes above zero are left to the autoscaler.

    A server that does not answer takes nothing away, and none is started without work.
    """
    current = answer.replicas
    if answer.active:
        return source.least if current == 0 else None
    if answer.error:
        return None
    if source.lowest > 0:
        return source.lowest if current < source.lowest else None
    over = now >= (source.rests_until if last is None else after(last, source.cooldown))
    return 0 if current > 0 and over else None


def problems_of(state: State, key: Key, answer: Answer | None) -> tuple[str, ...]:
    """Return the reasons why an object is not followed, or not fully."""
    source = state.sources[key]
    if source.refused:
        return source.refused
    if key in state.served:
        return (f"HorizontalPodAutoscaler {source.hpa} is there: KEDA itself serves the object",)
    rival = state.rival_of(source)
    if rival is not None:
        claim, first = rival
        return (f"ScaledObject {first[1]}, which is older, {_shared(claim)}",)
    return (answer.error,) if answer is not None and answer.error else ()


def _shared(claim: Claim) -> str:
    if claim.kind == HPAS.kind:
        return f"has the HPA name {claim.name}: write another advanced.horizontalPodAutoscalerConfig.name"
    return f"scales {claim.kind} {claim.name}: leave one of the two out"


def absorb(state: State, commands: Commands, outcomes: Sequence[Outcome], now: Instant) -> Result:
    """Apply the outcomes of the writes; return the events and reasons."""
    for one in commands.memory:
        state.memory[one.key] = one
    notices, reasons = [], []
    for write, outcome in zip(commands.writes, outcomes, strict=True):
        source = state.sources[write.key]
        named = f"{source.target.api_version}.{source.target.kind} {source.namespace}/{source.target.name}"
        up = write.replicas > write.current
        subject, sizes = "/".join(write.key), {"current": write.current, "size": write.replicas}
        if outcome.withheld:
            reasons.append(VOCABULARY.reason("Advised", subject, **sizes))
        elif outcome.error:
            reason = "KEDAScaleTargetActivationFailed" if up else "KEDAScaleTargetDeactivationFailed"
            notices.append(Notice(write.key, "Warning", reason, f"Failed to scale {named}: {outcome.error}"))
            reasons.append(VOCABULARY.reason("Failed", subject, error=outcome.error))
            state.memory[write.key] = replace(state.memory[write.key], due=after(now, source.polling))
        elif up:
            answer = state.answers.get(write.key)
            by = ";".join(answer.by) if answer is not None else ""
            said = f"Scaled {named} from {write.current} to {write.replicas}, triggered by {by}"
            notices.append(Notice(write.key, "Normal", "KEDAScaleTargetActivated", said))
            reasons.append(VOCABULARY.reason("Activated", subject, **sizes))
        else:
            said = f"Deactivated {named} from {write.current} to {write.replicas}"
            notices.append(Notice(write.key, "Normal", "KEDAScaleTargetDeactivated", said))
            reasons.append(VOCABULARY.reason("Deactivated", subject, **sizes))
    return Result(tuple(notices), tuple(reasons))


def _ready(answer: Answer | None, problems: tuple[str, ...]) -> Said:
    said = "; ".join(problems)
    if not problems:
        return READY
    if answer is None or said != answer.error or answer.unread:
        return faulty(said)
    return failing(said, in_part=answer.active)


def _status(source: Source, answer: Answer | None, last: Instant | None, ready: Said, active: Said) -> Json:
    return {
        "externalMetricNames": [one.metric for one in answer.metrics if one.target is not None]
        if answer is not None
        else None,
        "resourceMetricNames": resource_names(source) or None,
        "hpaName": source.hpa,
        "lastActiveTime": None if last is None else format_rfc3339(last),
        "conditions": conditions(ready, active, paused=source.paused),
    }
