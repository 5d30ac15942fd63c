"""The HPA that stands for a ScaledObject. Source: KEDA 2.21, controllers/keda/hpa: its name, bounds, and order of metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.triggers import ResourceTrigger, Trigger
from kubetide.objects.hpa import (
    ContainerResourceMetricSource,
    ExternalMetricSource,
    HorizontalPodAutoscaler,
    HpaSpec,
    HpaStatus,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from kubetide.objects.kinds import HPAS
from kubetide.objects.meta import LabelSelector, ObjectMeta

LABEL: Final = "scaledobject.keda.sh/name"


class TriggerMetric(msgspec.Struct, frozen=True):
    """A metric of a trigger: its name without the index, and its target in thousandths.

    The target is None where the trigger's server has not named its metrics yet.
    """

    place: int
    name: str
    target: int | None

    @property
    def metric(self) -> str:
        """The name of the external metric."""
        return f"s{self.place}-{self.name}"


def unnamed(trigger: Trigger) -> TriggerMetric:
    """Return what stands for the metrics of a trigger whose server has not named them yet: it has no value."""
    return TriggerMetric(trigger.place, "unknown", None)


def hpa_of(source: Source, asked: Iterable[TriggerMetric], status: HpaStatus) -> HorizontalPodAutoscaler:
    """Return the HPA that KEDA would create, with the metrics of the servers."""
    average = {one.place: one.average for one in source.triggers}
    metrics = [
        *(_external_metric(source, one, average=average[one.place]) for one in asked),
        *(_resource_metric(one) for one in source.resources),
    ]
    return HorizontalPodAutoscaler(
        api_version=HPAS.api_version,
        kind=HPAS.kind,
        metadata=ObjectMeta(namespace=source.namespace, name=source.hpa, uid=source.uid),
        spec=HpaSpec(
            scale_target_ref=source.target,
            min_replicas=source.least,
            max_replicas=source.most,
            metrics=tuple(sorted(metrics, key=lambda one: one.type)),
            behavior=source.behavior,
        ),
        status=status,
    )


def resource_names(source: Source) -> list[str]:
    """Return the names of the resource metrics, as KEDA's status has them: those of single containers are left out."""
    return [one.resource for one in source.resources if not one.container]


def _resource_metric(one: ResourceTrigger) -> MetricSpec:
    target = (
        MetricTarget(type="AverageValue", average_value=one.average)
        if one.utilization is None
        else MetricTarget(type="Utilization", average_utilization=one.utilization)
    )
    if not one.container:
        return MetricSpec(type="Resource", resource=ResourceMetricSource(name=one.resource, target=target))
    return MetricSpec(
        type="ContainerResource",
        container_resource=ContainerResourceMetricSource(
            name=one.resource, container=one.container, target=target
        ),
    )


def _external_metric(source: Source, one: TriggerMetric, *, average: bool) -> MetricSpec:
    # An HPA has a target for each metric; of one that has no value it is not read.
    amount = f"{one.target or 0}m"
    target = (
        MetricTarget(type="AverageValue", average_value=amount)
        if average
        else MetricTarget(type="Value", value=amount)
    )
    metric = MetricIdentifier(name=one.metric, selector=LabelSelector(match_labels={LABEL: source.name}))
    return MetricSpec(type="External", external=ExternalMetricSource(metric=metric, target=target))
