"""Which pods are to be updated, and which first.

Source: vertical-pod-autoscaler 1.8.1, pkg/updater/priority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubetide.objects.pod import ContainerTerminated, Pod
from kubetide.objects.vpa import (
    TARGET_HIGHER,
    TARGET_LOWER,
    EvictionRequirement,
    VerticalPodAutoscaler,
    VpaSpec,
)
from kubetide.units.quantity import ZERO, Quantity, readable
from kubetide.units.time import Instant, TimeFormatError, after, between, parse_rfc3339, seconds
from kubetide.vertical.annotations import observed_containers
from kubetide.vertical.resources.amounts import RESOURCES
from kubetide.vertical.resources.capping import Capped, Running, capped_recommendation, running_containers
from kubetide.vertical.resources.limit_ranges import NamespaceBounds
from kubetide.vertical.resources.policies import is_container_off
from kubetide.vertical.updater.settings import Settings

_ZERO_TIME = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Priority:
    """How urgent an update is.

    Attributes:
        outside: Whether a request is outside of the recommended bounds, or missing.
        grows: Whether a container needs more than it requests; such pods come first.
        difference: Sum over resources of the share by which requests differ from targets.
    """

    outside: bool
    grows: bool
    difference: float

    @property
    def order(self) -> tuple[bool, float]:
        """Sort key: what comes first is smallest."""
        return not self.grows, -self.difference


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod with what it has and what is recommended."""

    pod: Pod
    running: tuple[Running, ...]
    capped: Mapping[str, Capped]


def capped_for(pod: Pod, vpa: VerticalPodAutoscaler, bounds: NamespaceBounds) -> Mapping[str, Capped] | None:
    """Return the capped recommendations of the pod's containers, None without any. Raises: QuantityError."""
    if vpa.status.recommendation is None:
        return None
    found: dict[str, Capped] = {}
    policy = vpa.spec.resource_policy
    for one in capped_recommendation(vpa.status.recommendation, policy, running_containers(pod), bounds):
        found.setdefault(one.container, one)
    return found


def priority_of(candidate: Candidate) -> Priority:
    """Return how urgent an update of the pod is; containers that admission did not see do not count."""
    observed = observed_containers(candidate.pod.metadata.annotations)
    outside = grows = False
    requested: dict[str, int] = {}
    targeted: dict[str, int] = {}
    for container in candidate.running:
        capped = candidate.capped.get(container.name)
        if capped is None or (observed is not None and container.name not in observed):
            continue
        for resource, target in capped.target.items():
            targeted[resource] = targeted.get(resource, 0) + target.milli_value()
            request = container.requests.get(resource)
            if request is None:
                grows = outside = True
                continue
            requested[resource] = requested.get(resource, 0) + request.milli_value()
            grows = grows or target.milli_value() > request.milli_value()
            lower, upper = capped.lower.get(resource), capped.upper.get(resource)
            outside = outside or bool(
                (lower is not None and request < lower) or (upper is not None and request > upper)
            )
    difference = 0.0
    for resource in sorted(targeted):
        base = max(float(requested.get(resource, 0)), 1.0)
        difference += abs(base - float(targeted[resource])) / base
    return Priority(outside, grows, difference)


def change_text(candidate: Candidate) -> str:
    """Return what is to change, resource by resource, as people read it; containers that admission did not see are left out."""
    observed = observed_containers(candidate.pod.metadata.annotations)
    parts = []
    for container in candidate.running:
        capped = candidate.capped.get(container.name)
        if capped is None or (observed is not None and container.name not in observed):
            continue
        for resource, target in capped.target.items():
            request = container.requests.get(resource)
            if request == target:
                continue
            has = "none" if request is None else readable(str(request))
            bounds = [
                readable(str(one)) for side in (capped.lower, capped.upper) if (one := side.get(resource))
            ]
            within = f" (bounds {bounds[0]} to {bounds[1]})" if len(bounds) == 2 else ""
            parts.append(f"{container.name} {resource} from {has} to {readable(str(target))}{within}")
    return ", ".join(parts) or "to what is recommended"


def why_not(pod: Pod, priority: Priority, settings: Settings, now: Instant, *, quick_oom: bool) -> str:
    """Return why the pod is not updated, empty when it is to be.

    Outside of the bounds, or after a quick OOM that the recommendation answers, it is; else it must be old
    enough, and differ enough.
    """
    if quick_oom:
        return "QuickOomNoChange" if priority.difference == 0 else ""
    if priority.outside:
        return ""
    try:
        started = parse_rfc3339(pod.status.start_time or "")
    except TimeFormatError:
        return "InRangeAndNoStartTime"
    if now < after(started, settings.in_recommendation_bounds_eviction_lifetime_threshold):
        return "InRangeAndYoung"
    if priority.difference < settings.pod_update_threshold:
        return "InRangeAndSmallChange"
    return ""


def has_quick_oom(pod: Pod, spec: VpaSpec, settings: Settings, now: Instant) -> bool:
    """Return whether a container that VPA scales was lately killed for its memory, soon after its start."""
    threshold = settings.evict_after_oom_threshold
    policy = spec.update_policy
    own = policy.evict_after_oom_seconds if policy is not None else None
    if settings.gates.per_vpa_config and own is not None:
        threshold = seconds(own)
    observed = observed_containers(pod.metadata.annotations)
    for status in pod.status.container_statuses or ():
        ended = status.last_state.terminated if status.last_state is not None else None
        if ended is None or ended.reason != "OOMKilled":
            continue
        if observed is not None and status.name not in observed:
            continue
        if is_container_off(spec.resource_policy, status.name):
            continue
        started, finished = _times(ended)
        if between(started, finished) >= threshold:
            continue
        if settings.is_1_8_0 or between(finished, now) < threshold:
            return True
    return False


def _times(ended: ContainerTerminated) -> tuple[Instant, Instant]:
    """Return start and end; a time that is missing is Go's zero time, as upstream reads it."""
    return _time(ended.started_at), _time(ended.finished_at)


def _time(text: str | None) -> Instant:
    try:
        return parse_rfc3339(text or _ZERO_TIME)
    except TimeFormatError:
        return parse_rfc3339(_ZERO_TIME)


# ── eviction requirements ───────────────────────────────────────────────────────────────────────


def meets_requirements(candidate: Candidate, spec: VpaSpec) -> bool:
    """Return whether the VPA's ``evictionRequirements`` allow the update.

    They do if one container with a recommendation meets all of them, or lacks a request for CPU or memory. So a pod
    without any recommendation is not updated, as upstream has it where the VPA has an ``updatePolicy``.
    """
    policy = spec.update_policy
    if policy is None:
        return True
    required = policy.eviction_requirements or ()
    for container in candidate.running:
        capped = candidate.capped.get(container.name)
        if capped is None:
            continue
        if any(resource not in container.requests for resource in RESOURCES):
            return True
        if _meets_all(container.requests, capped.target, required):
            return True
    return False


def requirements_text(spec: VpaSpec) -> str:
    """Return the ``evictionRequirements`` of a VPA as people read them."""
    policy = spec.update_policy
    required = (policy.eviction_requirements if policy is not None else None) or ()
    if not required:
        return "none of the pod's containers has a recommendation"
    return " and ".join(f"{' or '.join(one.resources or ())} {one.change_requirement}" for one in required)


def _meets_all(
    requests: Mapping[str, Quantity], target: Mapping[str, Quantity], required: Sequence[EvictionRequirement]
) -> bool:
    return all(any(_meets(one, name, requests, target) for name in one.resources or ()) for one in required)


def _meets(
    required: EvictionRequirement,
    resource: str,
    requests: Mapping[str, Quantity],
    target: Mapping[str, Quantity],
) -> bool:
    desired, has = (side.get(resource, ZERO).milli_value() for side in (target, requests))
    if required.change_requirement == TARGET_HIGHER:
        return desired > has
    return required.change_requirement == TARGET_LOWER and desired < has
