"""What KEDA makes of a ScaledObject's annotations and counts, and how it says how one is. Source: KEDA 2.21."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kubetide.objects.timetables import ScaledObject, ScaledObjectSpec

CRON: Final = "cron"
RESOURCES: Final = ("cpu", "memory")
SERVERS: Final = ("external", "prometheus")
"""Types of triggers that are read; all others are refused by name."""

PAUSED: Final = "autoscaling.keda.sh/paused"
PAUSED_AT: Final = "autoscaling.keda.sh/paused-replicas"
PAUSED_DOWN: Final = "autoscaling.keda.sh/paused-scale-in"
PAUSED_UP: Final = "autoscaling.keda.sh/paused-scale-out"
FORCED: Final = "autoscaling.keda.sh/force-activation"
"""Annotations of ScaledObjects."""

_SIZE: Final = re.compile("[0-9]{1,9}", re.ASCII)
_FALSE: Final = {"0", "f", "F", "false", "FALSE", "False"}


def is_annotated(found: ScaledObject, annotation: str) -> bool:
    """Return whether an annotation holds: KEDA takes any value for true that does not say false."""
    value = (found.metadata.annotations or {}).get(annotation)
    return value is not None and value not in _FALSE


def has_pause_at(found: ScaledObject) -> bool:
    """Return whether the annotation ``paused-replicas`` is there, whatever it says."""
    return PAUSED_AT in (found.metadata.annotations or {})


def paused_size(found: ScaledObject) -> int | None:
    """Return the size that the annotation ``paused-replicas`` names; None for none."""
    text = (found.metadata.annotations or {}).get(PAUSED_AT, "")
    return int(text) if _SIZE.fullmatch(text) else None


def pause_problems(found: ScaledObject) -> Iterator[str]:
    """Yield why there is no size to pause at, though the annotation is there."""
    if has_pause_at(found) and paused_size(found) is None:
        text = (found.metadata.annotations or {})[PAUSED_AT]
        yield f"annotation {PAUSED_AT} {text!r}: write a number of replicas"


def needs_hpa(found: ScaledObject) -> bool:
    """Return whether an object is of the loop ``scaledobjects``: an object of cron triggers alone is a time table."""
    return need_hpa(one.type for one in found.spec.triggers or ())


def need_hpa(types: Iterable[str]) -> bool:
    """Return whether an object with triggers of these types is of the loop ``scaledobjects``."""
    return not {*SERVERS, *RESOURCES}.isdisjoint(types)


def replica_problems(spec: ScaledObjectSpec) -> Iterator[str]:
    """Yield what of the counts does not go together. Source: KEDA 2.21: the least is 1 as soon as it is written, 0 or not."""
    least = max(spec.min_replica_count or 0, 1)
    most = 100 if spec.max_replica_count is None else spec.max_replica_count
    if least > most:
        yield f"maxReplicaCount {most} is below minReplicaCount {least}"
    bound = 0 if spec.min_replica_count is None else least
    if spec.idle_replica_count is not None and spec.idle_replica_count >= bound:
        yield f"idleReplicaCount {spec.idle_replica_count} must be below minReplicaCount {bound}"


def trigger_problems(spec: ScaledObjectSpec) -> Iterator[str]:
    """Yield what KEDA refuses of the triggers, whatever their types: names that stand twice, and caches of what is not asked."""
    names: set[str] = set()
    for place, one in enumerate(spec.triggers or ()):
        if one.name and one.name in names:
            yield f"triggers[{place}].name: {one.name!r} stands twice"
        names.add(one.name)
        if one.use_cached_metrics and one.type in {CRON, *RESOURCES}:
            yield f"triggers[{place}].useCachedMetrics: {one.type} triggers have none"


Said = tuple[str, str, str]
"""Of a condition: status, reason and message; people select by the reasons."""

READY: Final = ("True", "ScaledObjectReady", "ScaledObject is defined correctly and is ready for scaling")
ACTIVE: Final = ("True", "ScalerActive", "Scaling is performed because triggers are active")
FORCED_ACTIVE: Final = (
    "True",
    "ScalerActive",
    "Scaling is performed because activation is being forced by annotation",
)
RESTS: Final = ("False", "ScalerCooldown", "Scaler cooling down because triggers are not active")
INACTIVE: Final = ("False", "ScalerNotActive", "Scaling is not performed because triggers are not active")
_FAILING: Final = "riggers defined in ScaledObject are not working correctly"
_PAUSED: Final = ("True", "ScaledObjectPaused", "ScaledObject is paused")


def faulty(why: str) -> Said:
    """Return that an object is not followed, and why."""
    return "False", "ScaledObjectCheckFailed", why


def failing(why: str, *, in_part: bool) -> Said:
    """Return that triggers fail, and why; in part where another says that there is work."""
    if in_part:
        return "Unknown", "PartialTriggerError", f"Some t{_FAILING}: {why}"
    return "False", "TriggerError", f"T{_FAILING}: {why}"


def conditions(
    ready: Said, active: Said, *, paused: bool, fallback: Said | None = None
) -> list[dict[str, str]]:
    """Return the conditions of a status, which take the place of those that it has."""
    found = {"Ready": ready, "Active": active}
    if fallback is not None:
        found["Fallback"] = fallback
    if paused:
        found["Paused"] = _PAUSED
    names = ("status", "reason", "message")
    return [{"type": kind, **dict(zip(names, said, strict=True))} for kind, said in found.items()]
