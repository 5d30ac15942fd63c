"""ScaledObjects that need an HPA: how one is parsed, and why one is refused.

Source: KEDA 2.21, apis/keda/v1alpha1/scaledobject_types: fields and defaults; scaledobject_webhook: what is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubetide.elastic.keda.advanced import paused_in, paused_out, read_advanced
from kubetide.elastic.keda.fallback import (
    Failures,
    Fallback,
    fallback_refusals,
    read_failures,
    read_fallback,
)
from kubetide.elastic.keda.triggers import ResourceTrigger, Trigger, read_triggers
from kubetide.objects.hpa import Behavior, CrossVersionObjectReference
from kubetide.objects.meta import Key
from kubetide.objects.scaled_objects import (
    FORCED,
    PAUSED,
    PAUSED_DOWN,
    PAUSED_UP,
    RESOURCES,
    has_pause_at,
    is_annotated,
    pause_problems,
    paused_size,
    replica_problems,
    trigger_problems,
)
from kubetide.objects.timetables import ScaledObject
from kubetide.units.time import Duration, Instant, after, instant_of, seconds


class Source(msgspec.Struct, frozen=True):
    """The parsed parts of a ScaledObject.

    Attributes:
        lowest: Replicas while there is no work.
        least: Replicas while there is some.
        refused: What of it is not followed; nothing of it then is.
        rests_until: Until then nothing is taken away where there has been no work yet.
        resources: Triggers that are metrics of the HPA, and never say that there is work.
        hpa: The name of the HPA.
        behavior: Of the HPA.
        paused_at: The size of a pause that names one.
        holds_in, holds_out: Whether scaling in, or out, is paused.
        forced: Whether there is work, whatever the triggers say.
        fallback: What the HPA goes by while servers fail.
        failures: What its status tells of failures.
    """

    namespace: str
    name: str
    uid: str
    target: CrossVersionObjectReference
    triggers: tuple[Trigger, ...]
    lowest: int
    least: int
    most: int
    cooldown: Duration
    polling: Duration
    paused: bool
    refused: tuple[str, ...]
    last_active: Instant | None
    created: Instant = Instant(0)
    rests_until: Instant = Instant(0)
    resources: tuple[ResourceTrigger, ...] = ()
    hpa: str = ""
    behavior: Behavior | None = None
    paused_at: int | None = None
    holds_in: bool = False
    holds_out: bool = False
    forced: bool = False
    fallback: Fallback | None = None
    failures: Failures = ()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


def read_source(found: ScaledObject) -> Source:
    """Return the parsed parts of a ScaledObject; never raises."""
    meta, spec = found.metadata, found.spec
    created = instant_of(meta.creation_timestamp) or Instant(0)
    triggers = read_triggers(spec.triggers or (), created)
    advanced = read_advanced(spec.advanced)
    least = spec.min_replica_count or 0
    reference = spec.scale_target_ref
    target = CrossVersionObjectReference(
        api_version=reference.api_version or "apps/v1",
        kind=reference.kind or "Deployment",
        name=reference.name,
    )
    return Source(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        target=target,
        triggers=triggers.external,
        lowest=least if spec.idle_replica_count is None else spec.idle_replica_count,
        least=max(least, 1),
        most=100 if spec.max_replica_count is None else spec.max_replica_count,
        cooldown=seconds(300 if spec.cooldown_period is None else spec.cooldown_period),
        polling=seconds(max(30 if spec.polling_interval is None else spec.polling_interval, 1)),
        paused=is_annotated(found, PAUSED) or has_pause_at(found),
        refused=(
            *_refusals(found, target),
            *triggers.refused,
            *advanced.refused,
            *fallback_refusals(spec.fallback, triggers.external),
        ),
        last_active=instant_of(found.status.last_active_time),
        created=created,
        rests_until=after(created, seconds(spec.initial_cooldown_period or 0)),
        resources=triggers.resources,
        hpa=advanced.name or f"keda-hpa-{meta.name}",
        behavior=_with_pauses(found, advanced.behavior),
        paused_at=paused_size(found),
        holds_in=is_annotated(found, PAUSED_DOWN),
        holds_out=is_annotated(found, PAUSED_UP),
        forced=is_annotated(found, FORCED),
        fallback=read_fallback(spec.fallback),
        failures=read_failures(found.status.health),
    )


def _refusals(found: ScaledObject, target: CrossVersionObjectReference) -> Iterable[str]:
    spec = found.spec
    if not spec.scale_target_ref.name:
        yield "scaleTargetRef.name: is missing"
    yield from replica_problems(spec)
    yield from trigger_problems(spec)
    if not spec.min_replica_count and _never_sleeps(found, target):
        yield "minReplicaCount: write 1 or more; with cpu and memory triggers alone nothing goes to 0 replicas"
    if spec.idle_replica_count:
        yield f"idleReplicaCount {spec.idle_replica_count}: only 0 is meant for it"
    yield from pause_problems(found)


def _with_pauses(found: ScaledObject, behavior: Behavior | None) -> Behavior | None:
    if is_annotated(found, PAUSED_DOWN):
        behavior = paused_in(behavior)
    return paused_out(behavior) if is_annotated(found, PAUSED_UP) else behavior


def _never_sleeps(found: ScaledObject, target: CrossVersionObjectReference) -> bool:
    """Return whether KEDA's webhook asks for a minimum: it looks at the triggers of these two kinds alone."""
    of_resources = all(one.type in RESOURCES for one in found.spec.triggers or ())
    return of_resources and target.api_version == "apps/v1" and target.kind in {"Deployment", "StatefulSet"}
