"""ScaledObjects with external and Prometheus triggers: how one is parsed, and why one is refused.

Source: KEDA 2.21, concepts/scaling-deployments: fields and defaults; scalers/external and scalers/prometheus: metadata.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from kubetide.objects.hpa import (
    CrossVersionObjectReference,
    ExternalMetricSource,
    HorizontalPodAutoscaler,
    HpaSpec,
    HpaStatus,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
)
from kubetide.objects.kinds import HPAS
from kubetide.objects.meta import Key, LabelSelector, ObjectMeta
from kubetide.objects.scaled_objects import (
    FORCED,
    PAUSED,
    PAUSED_AT,
    PAUSED_DOWN,
    PAUSED_UP,
    is_annotated,
    replica_problems,
    trigger_problems,
)
from kubetide.objects.timetables import KedaTrigger, ScaledObject
from kubetide.units.time import Duration, Instant, TimeFormatError, after, parse_rfc3339, seconds

EXTERNAL: Final = "external"
PROMETHEUS: Final = "prometheus"
LABEL: Final = "scaledobject.keda.sh/name"
_PREFIX: Final = "keda-hpa-"
_ADDRESSES: Final = {EXTERNAL: "scalerAddress", PROMETHEUS: "serverAddress"}
_OF_PROMETHEUS: Final = ("serverAddress", "query", "threshold", "activationThreshold", "ignoreNullValues")
LARGEST: Final = 2**63 / 1000
"""No metric reaches it: in thousandths it is no quantity any more."""
_TLS: Final = ("enableTLS", "unsafeSsl", "tlsCertFile", "tlsClientCert", "caCert")


class Trigger(msgspec.Struct, frozen=True):
    """One trigger.

    Attributes:
        place: In the list of triggers; names of metrics begin with it.
        address: ``HOST:PORT`` of its server, a URL for Prometheus.
        average: Whether the target is a value a pod, and not one for all.
    """

    place: int
    address: str
    metadata: dict[str, str]
    average: bool = True
    type: str = EXTERNAL


class Source(msgspec.Struct, frozen=True):
    """The parsed parts of a ScaledObject.

    Attributes:
        lowest: Replicas while there is no work.
        least: Replicas while there is some.
        refused: What of it is not followed; nothing of it then is.
        rests_until: Until then nothing is taken away where there has been no work yet.
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

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


def is_ours(found: ScaledObject) -> bool:
    """Return whether any trigger has a supported type; all other objects belong to the time-table loop."""
    return any(one.type in _ADDRESSES for one in found.spec.triggers or ())


def read_source(found: ScaledObject) -> Source:
    """Return the parsed parts of a ScaledObject; never raises."""
    meta, spec = found.metadata, found.spec
    refused = list(_refusals(found))
    triggers = []
    for place, one in enumerate(spec.triggers or ()):
        if one.type in _ADDRESSES:
            refused += _trigger_refusals(place, one)
            data = {name: str(value) for name, value in (one.metadata or {}).items()}
            triggers.append(
                Trigger(place, data.get(_ADDRESSES[one.type], ""), data, one.metric_type != "Value", one.type)
            )
        else:
            refused.append(
                f"triggers[{place}]: type {one.type!r}: only {' and '.join(_ADDRESSES)} are read here"
            )
    least = spec.min_replica_count or 0
    reference = spec.scale_target_ref
    created = _instant(meta.creation_timestamp) or Instant(0)
    return Source(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        target=CrossVersionObjectReference(
            api_version=reference.api_version or "apps/v1",
            kind=reference.kind or "Deployment",
            name=reference.name,
        ),
        triggers=tuple(triggers),
        lowest=least if spec.idle_replica_count is None else spec.idle_replica_count,
        least=max(least, 1),
        most=100 if spec.max_replica_count is None else spec.max_replica_count,
        cooldown=seconds(300 if spec.cooldown_period is None else spec.cooldown_period),
        polling=seconds(max(30 if spec.polling_interval is None else spec.polling_interval, 1)),
        paused=is_annotated(found, PAUSED),
        refused=tuple(refused),
        last_active=_instant(found.status.last_active_time),
        created=created,
        rests_until=after(created, seconds(spec.initial_cooldown_period or 0)),
    )


def _refusals(found: ScaledObject) -> Iterable[str]:
    spec = found.spec
    if not spec.scale_target_ref.name:
        yield "scaleTargetRef.name: is missing"
    yield from replica_problems(spec)
    yield from trigger_problems(spec)
    if spec.idle_replica_count:
        yield f"idleReplicaCount {spec.idle_replica_count}: only 0 is meant for it"
    for name, value in (("advanced", spec.advanced), ("fallback", spec.fallback)):
        if value:
            yield f"{name}: is not read; leave it out"
    if PAUSED_AT in (found.metadata.annotations or {}):
        yield f"annotation {PAUSED_AT}: is not read; write {PAUSED}"
    for annotation in (PAUSED_DOWN, PAUSED_UP, FORCED):
        if is_annotated(found, annotation):
            yield f"annotation {annotation}: is not read; leave it out"


def _trigger_refusals(place: int, one: KedaTrigger) -> Iterable[str]:
    at, data = f"triggers[{place}]", one.metadata or {}
    address = _ADDRESSES[one.type]
    if not data.get(address):
        yield f"{at}.metadata.{address}: is missing; write {'a URL' if one.type == PROMETHEUS else 'HOST:PORT'}"
    if one.type == PROMETHEUS:
        yield from _prometheus_refusals(at, data)
    if one.metric_type not in {"", "AverageValue", "Value"}:
        yield f"{at}.metricType: {one.metric_type!r} is neither AverageValue nor Value"
    for name in _TLS:
        if str(data.get(name, "false")).lower() not in {"", "false"}:
            yield f"{at}.metadata.{name}: TLS is not spoken; leave it out"
    for name in data:
        if name.endswith("FromEnv"):
            yield f"{at}.metadata.{name}: environments of pods are not read; write the value"
    if one.authentication_ref:
        yield f"{at}.authenticationRef: is not read; leave it out"
    if one.use_cached_metrics:
        yield f"{at}.useCachedMetrics: is not read; leave it out"


def _prometheus_refusals(at: str, data: Mapping[str, Any]) -> Iterable[str]:
    for name in data:
        if name not in _OF_PROMETHEUS:
            yield f"{at}.metadata.{name}: is not read; leave it out"
    if not data.get("query"):
        yield f"{at}.metadata.query: is missing"
    for name, least, bound in (
        ("threshold", 0.001, " from 0.001 on"),
        ("activationThreshold", -math.inf, ""),
    ):
        text = str(data.get(name, "" if name == "threshold" else "0"))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (abs(number) < LARGEST and number >= least):
            yield f"{at}.metadata.{name}: {text!r} is no number{bound}"


def _instant(text: str | None) -> Instant | None:
    try:
        return parse_rfc3339(text) if text else None
    except TimeFormatError:
        return None


# ── the HPA that stands for it ──


class Asked(msgspec.Struct, frozen=True):
    """A metric of a trigger's server: its name without the index, and its target in thousandths.

    The target is None where the server has not named its metrics yet.
    """

    place: int
    name: str
    target: int | None

    @property
    def metric(self) -> str:
        """The name of the external metric."""
        return f"s{self.place}-{self.name}"


def unnamed(trigger: Trigger) -> Asked:
    """Return what stands for the metrics of a trigger whose server has not named them yet: it has no value."""
    return Asked(trigger.place, "unknown", None)


def hpa_name(name: str) -> str:
    """Return the name of the HPA of a ScaledObject."""
    return f"{_PREFIX}{name}"


def owner_name(hpa: str) -> str:
    """Return the name of the ScaledObject of an HPA."""
    return hpa.removeprefix(_PREFIX)


def hpa_of(source: Source, asked: Iterable[Asked], status: HpaStatus) -> HorizontalPodAutoscaler:
    """Return the HPA that KEDA would create, with the metrics of the servers."""
    average = {one.place: one.average for one in source.triggers}
    return HorizontalPodAutoscaler(
        api_version=HPAS.api_version,
        kind=HPAS.kind,
        metadata=ObjectMeta(namespace=source.namespace, name=hpa_name(source.name), uid=source.uid),
        spec=HpaSpec(
            scale_target_ref=source.target,
            min_replicas=source.least,
            max_replicas=source.most,
            metrics=tuple(_metric(source, one, average=average[one.place]) for one in asked),
        ),
        status=status,
    )


def _metric(source: Source, one: Asked, *, average: bool) -> MetricSpec:
    # An HPA has a target for each metric; of one that has no value it is not read.
    amount = f"{one.target or 0}m"
    target = (
        MetricTarget(type="AverageValue", average_value=amount)
        if average
        else MetricTarget(type="Value", value=amount)
    )
    metric = MetricIdentifier(name=one.metric, selector=LabelSelector(match_labels={LABEL: source.name}))
    return MetricSpec(type="External", external=ExternalMetricSource(metric=metric, target=target))
