"""Scaling from and to zero: while there is work, after the cooldown, and when servers do not answer.

Source: KEDA 2.21, pkg/scaling/executor/scale_scaledobjects: activation, cooldownPeriod, initialCooldownPeriod,
idleReplicaCount, minReplicaCount, and the annotations; its admission webhook: one ScaledObject a target.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from kubetide.elastic.decide import Notice
from kubetide.elastic.keda.commands import Commands, Write
from kubetide.elastic.keda.reasons import VOCABULARY
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.state import Answer, Claim, Memory, State
from kubetide.elastic.keda.statuses import status_of
from kubetide.elastic.keda.trigger_health import (
    failures_after,
    fallback_changes,
    health_of,
    values_of,
    with_fallback,
)
from kubetide.elastic.keda.windows import next_change
from kubetide.explain.reasons import Reason
from kubetide.objects.kinds import HPAS
from kubetide.objects.meta import Key
from kubetide.units.time import Instant, after

INVALID: Final = "InvalidScaledObject"


class _Turn(NamedTuple):
    """What is decided about one object."""

    memory: Memory
    write: Write | None
    status: msgspec.Raw | None
    notices: list[Notice]
    reasons: list[Reason]
    values: tuple[tuple[str, int], ...]


def decide(state: State, now: Instant) -> Commands:
    """Return the sizes to write, the statuses that differ, and the events."""
    turns = [_decide_one(state, key, now) for key in state.due(now)]
    return Commands(
        now,
        writes=tuple(one.write for one in turns if one.write is not None),
        statuses=tuple((one.memory.key, one.status) for one in turns if one.status is not None),
        notices=tuple(notice for one in turns for notice in one.notices),
        reasons=tuple(reason for one in turns for reason in one.reasons),
        memory=tuple(one.memory for one in turns),
        fallbacks=tuple((one.memory.key, one.values) for one in turns if one.values),
    )


def _decide_one(state: State, key: Key, now: Instant) -> _Turn:
    source, memory = state.sources[key], state.memory[key]
    answer = state.answers.get(key) if state.asks(key) else None
    problems = problems_of(state, key, answer)
    notices, reasons = _warnings(key, [text for text in problems if text not in memory.warned])
    failures = failures_after(source, memory.failures, answer)
    values: tuple[tuple[str, int], ...] = ()
    if answer is not None:
        values = values_of(source, failures, answer)
        answer = with_fallback(source, failures, answer)
        for code, event in fallback_changes(source, memory.failures, failures):
            notices.append(Notice(key, "Normal", *event))
            reasons.append(VOCABULARY.reason(code, "/".join(key)))
    # A clock that was ahead would let a target rest until that time comes.
    last, write, rests = memory.last_active and min(memory.last_active, now), None, False
    if answer is not None:
        if not source.paused and (answer.active or source.forced):
            last = now
        size = size_of(source, answer, last, now)
        if size is not None:
            write = Write(key, answer.replicas, size, answer.version, answer.by)
        rests = size is None and may_stop(source, answer) and answer.replicas > 0
    status = status_of(source, answer, problems, last, failures, rests=rests)
    raw = msgspec.json.encode(status | health_of(source, failures, memory.failures))
    settled = _settled(source, memory, answer)
    offline = answer is not None and answer.offline and not answer.unread
    return _Turn(
        Memory(key, last, _due(source, now), raw.decode(), problems, settled, failures, offline),
        write,
        msgspec.Raw(raw) if raw.decode() != memory.status else None,
        notices,
        reasons,
        values,
    )


def _warnings(key: Key, texts: list[str]) -> tuple[list[Notice], list[Reason]]:
    """Return the events and the reasons of new problems."""
    return (
        [Notice(key, "Warning", INVALID, text) for text in texts],
        [VOCABULARY.reason("Warned", "/".join(key), why=text) for text in texts],
    )


def _due(source: Source, now: Instant) -> Instant:
    """Return when to look again: after the interval, or as soon as a window opens or closes."""
    due = after(now, source.polling)
    change = next_change(source, now)
    return due if change is None else min(due, change)


def _settled(source: Source, memory: Memory, answer: Answer | None) -> int | None:
    """Return the size at which a paused target has been seen; from then on it is left alone, as KEDA does."""
    at = source.paused_at
    seen = memory.settled if answer is None or answer.unread else answer.replicas
    return at if at is not None and seen == at else None


def size_of(source: Source, answer: Answer, last: Instant | None, now: Instant) -> int | None:
    """Return the size to write, None for none: sizes above zero are left to the autoscaler.

    A server that does not answer takes nothing away, and none is started without work.
    """
    current = answer.replicas
    if source.paused:
        same = source.paused_at is None or answer.unread or current == source.paused_at
        return None if same else source.paused_at
    if answer.unread:
        return None
    if answer.active or source.forced:
        return source.least if current == 0 and not source.holds_out else None
    if answer.error:
        return None
    if source.lowest > 0:
        # KEDA's executor, and an HPA, raise to the minimum even where scaling out is paused.
        return source.lowest if current < source.lowest else None
    over = now >= (source.rests_until if last is None else after(last, source.cooldown))
    return 0 if current > 0 and over and may_stop(source, answer) else None


def may_stop(source: Source, answer: Answer) -> bool:
    """Return whether a target goes to zero once the cooldown is over."""
    works = answer.active or source.forced or bool(answer.error)
    return source.lowest == 0 and not (works or source.paused or source.holds_in)


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
