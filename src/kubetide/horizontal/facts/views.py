"""Small views of the objects that the loop reads, built once per change.

Views are what a record holds of the cluster, so they hold nothing that no rule reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from sys import intern

import msgspec

from kubetide.horizontal.options.annotations import GIVEN_COST, ours
from kubetide.objects.base import Quantities
from kubetide.objects.hpa import HorizontalPodAutoscaler, HpaSpec, HpaStatus
from kubetide.objects.meta import controller_of
from kubetide.objects.pod import DELETION_COST, Container, Pod, PodSpec, deletion_cost, pod_condition
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Instant, TimeFormatError, parse_rfc3339

# Go's zero time, year 1, does not fit int64 nanoseconds; every comparison of the rules comes out
# the same with this one, and sums with periods cannot overflow.
YEAR_ONE = -(1 << 62)

_MOST_TEMPLATES = 8_192
"""Templates whose pods share; a list may bring the pods of all of them in turns."""


class ContainerView(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A container or sidecar: its name and its requests in thousandths."""

    name: str
    requests: dict[str, int]


class PodView(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A pod as the rules see it.

    Attributes:
        ready: Status of the Ready condition, empty when there is none.
        ready_since: Its last transition, ns.
        started: ``status.startTime``, ns; None when there is none.
        containers: Containers and sidecars (init containers that restart always).
        pod_level: Effective requests in thousandths if any pod-level request is set.
        owner: ``KIND/NAME`` of its controller, empty when it has none.
        cpu_limit: Sum of its containers' CPU limits in thousandths; None where one of them has none.
        node: Where it runs, empty for nowhere.
        own_cost: Its deletion cost, where somebody else gave it one; else None.
    """

    namespace: str
    name: str
    labels: dict[str, str] = {}
    phase: str = ""
    deleting: bool = False
    ready: str = ""
    ready_since: int = YEAR_ONE
    started: int | None = None
    containers: tuple[ContainerView, ...] = ()
    pod_level: dict[str, int] | None = None
    owner: str = ""
    cpu_limit: int | None = None
    node: str = ""
    own_cost: int | None = None


class HpaView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A HorizontalPodAutoscaler without its status, with only the annotations that are read here."""

    namespace: str
    name: str
    uid: str
    spec: HpaSpec
    annotations: dict[str, str] = {}
    generation: int = 0


class LeftAloneView(msgspec.Struct, frozen=True):
    """An HPA that is left alone, as another controller may serve it; ``why`` is the part of a sentence that follows a colon."""

    namespace: str
    name: str
    why: str


class StatusView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The status of an HPA, if it differs from what the loop wrote last."""

    namespace: str
    name: str
    status: HpaStatus


class ScaleView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The scale of an HPA's target, or the error of reading it.

    Attributes:
        spec_replicas: What is asked for.
        status_replicas: What is there.
        selector: Text form, as the scale client gives it back (parsed and printed again).
        resource_version: Of the scale that was read; the precondition of the write.
        error: Why there is no scale, as events and conditions quote it; empty when there is one.
        error_stage: Which step failed: ``version``, ``resource`` or ``query``.
        owners: ``KIND/NAME`` of what may control the target's pods; None when nobody asks.
        starting: Those of them that are being rolled out.
    """

    namespace: str
    name: str
    spec_replicas: int = 0
    status_replicas: int = 0
    selector: str = ""
    resource_version: str = ""
    error: str = ""
    error_stage: str = ""
    owners: tuple[str, ...] | None = None
    starting: tuple[str, ...] = ()


class CapacityView(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the node loop says of an HPA's replicas that have no node.

    Attributes:
        missing: How many these are; 0 where all have one.
        refused: How many of them no node group takes now.
        expected: When the last of their nodes is expected; None where nobody knows, or none comes.
        detail: What they wait for, or why no node comes.
    """

    namespace: str
    name: str
    missing: int = 0
    refused: int = 0
    expected: Instant | None = None
    detail: str = ""


def instant_or_year_one(text: str | None) -> int:
    """Return a time of the API, year 1 if it is absent or invalid; beyond the years 1823 to 2116 the nearer end of these."""
    if not text:
        return YEAR_ONE
    try:
        return min(max(int(parse_rfc3339(text)), YEAR_ONE), -YEAR_ONE)
    except TimeFormatError:
        return YEAR_ONE


def view_of_hpa(hpa: HorizontalPodAutoscaler) -> HpaView:
    meta = hpa.metadata
    return HpaView(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        spec=hpa.spec,
        annotations=ours(meta.annotations),
        generation=meta.generation,
    )


def view_of_pod(pod: Pod) -> PodView:
    """Return the pod fields that the rules read.

    A request that is no quantity counts as absent: the API server lets none in, and a loop must
    not die of one bad object.
    """
    ready = pod_condition(pod, "Ready")
    spec = pod.spec
    restarting = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    started = pod.status.start_time
    owner = controller_of(pod.metadata)
    return PodView(
        namespace=intern(pod.metadata.namespace),
        name=pod.metadata.name,
        labels=_labels(tuple((pod.metadata.labels or {}).items())),
        phase=intern(pod.status.phase),
        deleting=pod.metadata.deletion_timestamp is not None,
        ready=intern(ready.status) if ready else "",
        ready_since=instant_or_year_one(ready.last_transition_time if ready else None),
        started=Instant(instant_or_year_one(started)) if started else None,
        containers=_containers(
            tuple(
                [
                    (c.name, tuple((c.resources.requests or {}).items()))
                    for c in (*(spec.containers or ()), *restarting)
                ]
            )
        ),
        pod_level=_pod_level(spec),
        owner=intern(f"{owner.kind}/{owner.name}") if owner else "",
        cpu_limit=_cpu_limit(tuple([(c.resources.limits or {}).get("cpu") for c in spec.containers or ()])),
        node=intern(spec.node_name),
        own_cost=_own_cost(pod.metadata.annotations),
    )


def _own_cost(annotations: dict[str, str] | None) -> int | None:
    cost = deletion_cost(annotations)
    if cost is None or annotations is None or annotations.get(GIVEN_COST) == annotations[DELETION_COST]:
        return None
    return cost


# Pods of one template share what they have of it, so they do the seconds of their times.
@lru_cache(maxsize=_MOST_TEMPLATES)
def _labels(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return labels that nobody may change."""
    return {intern(name): intern(value) for name, value in items}


@lru_cache(maxsize=_MOST_TEMPLATES)
def _containers(
    named: tuple[tuple[str, tuple[tuple[str, str | int | float], ...]], ...],
) -> tuple[ContainerView, ...]:
    """Return the views of containers by name and requests; nobody may change them."""
    return tuple([ContainerView(name, _milli(dict(requests))) for name, requests in named])


@lru_cache(maxsize=_MOST_TEMPLATES)
def _cpu_limit(limits: tuple[str | int | float | None, ...]) -> int | None:
    found = [_milli({"cpu": limit}).get("cpu") for limit in limits if limit is not None]
    known = [limit for limit in found if limit is not None]
    return sum(known) if known and len(known) == len(limits) else None


def _quantities(requests: Quantities | None) -> dict[str, Quantity]:
    found = {}
    for resource, text in (requests or {}).items():
        try:
            found[resource] = Quantity.parse(text)
        except QuantityError:
            continue
    return found


def _milli(requests: Quantities | None) -> dict[str, int]:
    return {resource: quantity.milli_value() for resource, quantity in _quantities(requests).items()}


# ── Pod-level requests ──────────────────────────────────────────────────────────────────────────


def _pod_level(spec: PodSpec) -> dict[str, int] | None:
    """Return the effective requests of a pod that sets any pod-level request; None for other pods.

    What is missing at pod level is the larger of containers with sidecars and the peak of the init
    containers. Source: k8s.io/component-helpers v0.36 resource.PodRequests.
    """
    stated = _quantities(spec.resources.requests if spec.resources else None)
    stated = {resource: q for resource, q in stated.items() if _is_pod_level(resource)}
    if not stated:
        return None
    effective = {**_container_requests(spec), **stated}
    for resource, q in _quantities(spec.overhead).items():
        effective[resource] = effective[resource] + q if resource in effective else q
    return {resource: q.milli_value() for resource, q in effective.items()}


def _is_pod_level(resource: str) -> bool:
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _container_requests(spec: PodSpec) -> dict[str, Quantity]:
    running = _sum(c for c in spec.containers or ())
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.init_containers or ():
        own = _quantities(container.resources.requests)
        if container.restart_policy == "Always":
            _add(running, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(running, peak)
    return running


def _sum(containers: Iterable[Container]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for container in containers:
        _add(total, _quantities(container.resources.requests))
    return total


def _add(total: dict[str, Quantity], more: dict[str, Quantity]) -> None:
    for resource, q in more.items():
        total[resource] = total[resource] + q if resource in total else q


def _raise_to(total: dict[str, Quantity], other: dict[str, Quantity]) -> None:
    for resource, q in other.items():
        if resource not in total or total[resource] < q:
            total[resource] = q
