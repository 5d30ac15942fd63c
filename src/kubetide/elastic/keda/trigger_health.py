"""Objects with a fallback while servers fail: what is counted, and what the answers come to."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubetide.elastic.keda.fallback import Failures
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.state import Answer
from kubetide.objects.base import Json
from kubetide.objects.scaled_objects import Said

_ACTIVATED: Final = ("ScaledObjectFallbackActivated", "ScaledObject fallback is active")
_DEACTIVATED: Final = ("ScaledObjectFallbackDeactivated", "ScaledObject fallback is no longer active")
_EXISTS: Final = ("True", "FallbackExists", "At least one trigger is falling back on this scaled object")
_NONE: Final = ("False", "NoFallbackFound", "No fallbacks are active on this scaled object")
_MOST: Final = 2**63 - 1


def failures_after(source: Source, known: Failures, answer: Answer | None) -> Failures:
    """Return the failures in a row of each metric, once its trigger has been asked again."""
    if source.fallback is None:
        return ()
    if answer is None or source.paused:
        return known
    before = dict(known)
    return tuple(
        (one.metric, before.get(one.metric, 0) + 1 if one.place in answer.failed else 0)
        for one in answer.metrics
        if one.target is not None
    )


def with_fallback(source: Source, failures: Failures, answer: Answer) -> Answer:
    """Return an answer in which metrics that fall back are work, and failures of theirs none."""
    covered = _covered(source, failures)
    if not covered or answer.unread:
        return answer
    places = {one.place for one in answer.metrics if one.metric in covered}
    return replace(
        answer,
        active=True,
        by=(*answer.by, *sorted(covered)),
        error="" if places.issuperset(answer.failed) else answer.error,
    )


def values_of(source: Source, failures: Failures, answer: Answer) -> tuple[tuple[str, int], ...]:
    """Return the values of the metrics that fall back, in thousandths: target times replicas."""
    covered = _covered(source, failures)
    if source.fallback is None or answer.unread:
        return ()
    replicas = source.fallback.replicas_at(answer.replicas)
    return tuple(
        (one.metric, min((one.target or 0) * replicas, _MOST))
        for one in answer.metrics
        if one.metric in covered
    )


def fallback_changes(
    source: Source, known: Failures, failures: Failures
) -> list[tuple[str, tuple[str, str]]]:
    """Return the code and the event for a fallback that begins or ends; nothing where neither does."""
    before, now = _covered(source, known), _covered(source, failures)
    if bool(before) == bool(now):
        return []
    return [("FellBack", _ACTIVATED) if now else ("Recovered", _DEACTIVATED)]


def health_of(source: Source, failures: Failures, known: Failures) -> Json:
    """Return the failures as KEDA's status has them; those of metrics that are gone are taken out."""
    gone: Json = dict.fromkeys(name for name, _ in known)
    found: Json = {
        name: {"numberOfFailures": count, "status": "Failing" if count else "Happy"}
        for name, count in failures
    }
    return {"health": gone | found or None if source.fallback is not None else None}


def fallback_condition(source: Source, failures: Failures) -> Said | None:
    """Return the condition of a fallback; None for an object without one."""
    if source.fallback is None:
        return None
    return _EXISTS if _covered(source, failures) else _NONE


def _covered(source: Source, failures: Failures) -> frozenset[str]:
    return frozenset() if source.fallback is None else source.fallback.covers(failures)
