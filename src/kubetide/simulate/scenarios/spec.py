"""The format of a scenario: a cluster, its workloads, their load, and faults.

A scenario is YAML in the field's own words. Durations are Go durations (``90s``, ``1h30m``), times
are RFC 3339, a range of durations is ``2s-8s`` (drawn evenly from the seed) or one duration.
``docs/scenarios.md`` shows every field.
"""

from __future__ import annotations

import re

import msgspec

from kubetide.loop import DEFAULT
from kubetide.objects.base import json_name
from kubetide.ports.errors import KubetideError
from kubetide.units.time import Duration, Instant, hours, parse_duration, parse_rfc3339


class ScenarioError(KubetideError):
    """A scenario that cannot be run; the text names file, field and fix."""


class Part(msgspec.Struct, frozen=True, rename=json_name, kw_only=True, forbid_unknown_fields=True):
    """Base of every part: an unknown field is an error, because it is a typo."""


class InstanceTypeSpec(Part, frozen=True, kw_only=True):
    """A machine type: its catalogue values, and (``actual_memory``) what the machines really have."""

    cpu: str | int
    memory: str
    actual_memory: str | None = None
    pods: int = 110
    gpu: int = 0
    price_per_hour: float = 0.0
    reserved_cpu: str = "100m"
    reserved_memory: str = "512Mi"


class TaintSpec(Part, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class NodeGroupSpec(Part, frozen=True, kw_only=True):
    name: str
    instance_type: str
    min: int = 0
    max: int
    initial: int | None = None
    zone: str = "zone-a"
    labels: dict[str, str] = {}
    taints: tuple[TaintSpec, ...] = ()
    devices: dict[str, int] = {}
    """How many devices each node has, by driver."""
    boot_time: str = "60s-90s"
    ready_time: str = "5s-15s"
    shutdown_time: str = "20s-40s"
    price_per_hour: float | None = None


class NewGroupsSpec(Part, frozen=True, kw_only=True):
    """Groups that the cloud can create: one of each instance type in each zone."""

    instance_types: tuple[str, ...]
    zones: tuple[str, ...] = ("zone-a",)
    max: int = 100
    boot_time: str = "60s-90s"
    ready_time: str = "5s-15s"
    shutdown_time: str = "20s-40s"


class PodTimes(Part, frozen=True, kw_only=True):
    """Durations of the steps of a pod's life."""

    image_pull: str = "2s-8s"
    start: str = "1s-3s"
    ready: str = "3s-8s"
    stop: str = "1s-5s"


class BurstSpec(Part, frozen=True, kw_only=True):
    """A burst on top of a daily load: at the time of day ``at`` it rises to ``height`` times the load."""

    at: str
    height: float
    rise: str = "5m"
    hold: str = "20m"
    fall: str = "10m"


class DailySpec(Part, frozen=True, kw_only=True):
    """A synthetic day: ``low`` to ``peak`` requests/s, highest at ``peak_at`` (time of day), with seeded noise."""

    low: float
    peak: float
    peak_at: str = "14:00"
    noise: float = 0.05
    burst: BurstSpec | None = None


class LoadSpec(Part, frozen=True, kw_only=True):
    """The source of a service's requests: a trace file or a synthetic day."""

    trace: str | None = None
    unit: str = "requests/s"
    step: str | None = None
    window: tuple[str, str] | None = None
    column: str | None = None
    gaps: str = "error"
    daily: DailySpec | None = None
    multiplier: float = 1.0
    trace_from: str = ""


class StartupSpec(Part, frozen=True, kw_only=True):
    """CPU time that a container needs after each start, besides its requests, and the CPU that it uses for it."""

    cpu_seconds: float
    cpu: str = "1"


class RolloutSpec(Part, frozen=True, kw_only=True):
    """A new image of the service's Deployment, ``at`` after the start of the run, and the memory of its containers."""

    at: str
    image: str
    base_memory: str | None = None
    leak_per_hour: str | None = None


class ServiceSpec(Part, frozen=True, kw_only=True):
    """Pods under load: the ready ones share the requests.

    They are the pods of a Deployment, or those with the labels of ``selector``, whoever makes them;
    a service of the second kind has a name of its own.
    """

    deployment: str = ""
    name: str = ""
    selector: dict[str, str] = {}
    namespace: str = "default"
    cpu_seconds_per_request: float
    base_cpu: str = "0"
    base_memory: str = "64Mi"
    memory_per_request: str = "0"
    leak_per_hour: str = "0"
    startup: StartupSpec | None = None
    rollouts: tuple[RolloutSpec, ...] = ()
    latency: str = "20ms"
    slo_latency: str | None = None
    max_queue: str = "0s"
    load: LoadSpec

    @property
    def title(self) -> str:
        """The displayed name: its own name, or its Deployment's."""
        return self.name or self.deployment


class ExternalMetricSpec(Part, frozen=True, kw_only=True):
    """One series of an external metric; without ``namespace`` it is visible in every namespace."""

    metric: str
    labels: dict[str, str] = {}
    namespace: str | None = None
    load: LoadSpec


class FaultSpec(Part, frozen=True, kw_only=True):
    """A fault between two times of the run."""

    kind: str
    group: str = ""
    start: str = "0s"
    end: str | None = None
    probability: float = 1.0


class ShowSpec(Part, frozen=True, kw_only=True):
    """The default part for `kubetide up`."""

    start: str | None = None
    until: str | None = None
    speed: float = 60.0


class VariantSpec(Part, frozen=True, kw_only=True):
    """A variant of the scenario: other loops, more flags and manifests."""

    loops: tuple[str, ...] | None = None
    flags: dict[str, str | int | float | bool] = {}
    manifests: tuple[str, ...] = ()


class Scenario(Part, frozen=True, kw_only=True):
    name: str
    description: str = ""
    start: str = "2026-03-02T00:00:00Z"
    duration: str = "24h"
    currency: str = "USD"
    step: str = "15s"
    warm_up: str = "3m"
    instance_types: dict[str, InstanceTypeSpec] = {}
    catalog: str = ""
    """A file of prices and shapes, whose types ``instance_types`` replaces."""
    node_groups: tuple[NodeGroupSpec, ...]
    new_groups: NewGroupsSpec | None = None
    """What ``--node-autoprovisioning-enabled`` may create."""
    pods: PodTimes = PodTimes()
    scheduler: str = "default"
    """The profile by which nodes are scored."""
    manifests: tuple[str, ...] = ()
    services: tuple[ServiceSpec, ...] = ()
    external_metrics: tuple[ExternalMetricSpec, ...] = ()
    loops: tuple[str, ...] = DEFAULT
    """Which loops run."""
    flags: dict[str, str | int | float | bool] = {}
    faults: tuple[FaultSpec, ...] = ()
    show: ShowSpec = ShowSpec()
    variants: dict[str, VariantSpec] = {}
    """What ``kubetide simulate --variants`` plays one after another, by name."""


NEVER = "never"
"""The end of a show that goes on until it is ended from outside."""

CENTURY = hours(24 * 36_525)
"""The longest run, and how long a show without an end may go on."""

MOST_SPEED = 100_000
"""Times real time; beyond it the machine's clock has too few steps in a second of the run."""

FAULT_KINDS = ("stock-out", "boot-failure", "cloud-error", "watch-expiry", "api-error", "node-failure")


class DurationRange(msgspec.Struct, frozen=True):
    """A uniformly drawn duration between ``low`` and ``high``."""

    low: Duration
    high: Duration


def is_speed(speed: float) -> bool:
    """Return whether a run can be played at this multiple of real time; not NaN, not infinite."""
    return 0 < speed <= MOST_SPEED


def read_duration(text: str) -> Duration:
    """Return a Go duration. Raises ValueError with a text for the author of a scenario."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a duration such as 10s or 1h30m") from error


def parse_range(text: str) -> DurationRange:
    """Return the range of ``2s-8s`` or ``5s``. Raises ValueError."""
    low, dash, high = text.partition("-")
    try:
        first = parse_duration(low.strip())
        last = parse_duration(high.strip()) if dash else first
    except ValueError as error:
        raise ValueError(f"{text!r} is neither a duration such as 5s nor a range such as 2s-8s") from error
    if first < 0 or last < first:
        raise ValueError(f"{text!r} is no range: write the smaller duration first, such as 2s-8s")
    return DurationRange(first, last)


def parse_time_of_day(text: str) -> Duration:
    """Return the time since midnight UTC of ``14:30`` or ``14:30:15``. Raises ValueError."""
    match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", text, re.ASCII)
    if not match:
        raise ValueError(f"{text!r} is not a time of day such as 14:30 or 14:30:15")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return Duration((hours * 3600 + minutes * 60 + seconds) * 1_000_000_000)


def start_of(scenario: Scenario) -> Instant:
    """Return when the run begins."""
    return parse_rfc3339(scenario.start)
