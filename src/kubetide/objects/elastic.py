"""kubetide.dev/v1alpha1 ElasticWorkload: everything that scales one target, in one object."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.hpa import Behavior, CrossVersionObjectReference, HpaStatus, MetricSpec
from kubetide.objects.meta import ApiObject, Condition
from kubetide.objects.vpa import (
    RecommenderSelector,
    ResourcePolicy,
    StartupBoost,
    UpdatePolicy,
    VpaStatus,
)


class HorizontalSection(ApiStruct):
    """The spec of a HorizontalPodAutoscaler, autoscaling/v2, without its target."""

    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[MetricSpec, ...] | None = None
    behavior: Behavior | None = None


class VerticalSection(ApiStruct):
    """The spec of a VerticalPodAutoscaler without its target."""

    update_policy: UpdatePolicy | None = None
    resource_policy: ResourcePolicy | None = None
    recommenders: tuple[RecommenderSelector, ...] | None = None
    startup_boost: StartupBoost | None = None


class ElasticCalendar(ApiStruct):
    """Local dates by a name: ``2026-12-24``, ``12-25`` for each year, ``2026-12-24/2027-01-01`` with both ends."""

    name: str = ""
    dates: tuple[str, ...] | None = None


class ElasticRule(ApiStruct):
    """A point (``at``), which holds until a later one, or a window (``start`` to ``end``).

    ``replicas`` is floor and ceiling in one. ``exclude_dates`` are schedules that name dates,
    ``exclude_calendars`` names of calendars: on these the rule does not begin.
    """

    name: str = ""
    at: str = ""
    start: str = ""
    end: str = ""
    time_zone: str = ""
    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    exclude_dates: tuple[str, ...] | None = None
    exclude_calendars: tuple[str, ...] | None = None


class ScheduleSection(ApiStruct):
    time_zone: str = ""
    calendars: tuple[ElasticCalendar, ...] | None = None
    rules: tuple[ElasticRule, ...] | None = None


class ForecastSection(ApiStruct):
    """``mode`` is that of the annotation ``horizontal.kubetide.io/forecast``."""

    mode: str = ""
    time_zone: str = ""


class ElasticSpec(ApiStruct):
    target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    horizontal: HorizontalSection | None = None
    vertical: VerticalSection | None = None
    schedule: ScheduleSection | None = None
    forecast: ForecastSection | None = None


class ScheduleStatus(ApiStruct):
    """What the schedule asks for now; None where it leaves a bound to the horizontal section.

    ``rules`` are the names of those that hold, ``problems`` what is wrong with the schedule.
    """

    min_replicas: int | None = None
    max_replicas: int | None = None
    rules: tuple[str, ...] | None = None
    next_change: str | None = None
    problems: tuple[str, ...] | None = None


class ElasticStatus(ApiStruct):
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] | None = None
    horizontal: HpaStatus | None = None
    vertical: VpaStatus | None = None
    schedule: ScheduleStatus | None = None


class ElasticWorkload(ApiObject):
    spec: ElasticSpec = field(default_factory=ElasticSpec)
    status: ElasticStatus = field(default_factory=ElasticStatus)


ACCEPTED = "Accepted"
"""The condition that says whether the object is followed."""


def is_accepted(found: ElasticWorkload) -> bool:
    """Return whether the condition ``Accepted`` is true."""
    return any(one.type == ACCEPTED and one.status == "True" for one in found.status.conditions or ())
