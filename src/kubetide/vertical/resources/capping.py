"""A VPA's recommendation for one pod, within LimitRanges, the VPA's policy and the container's own limits.

In this order: the bounds of pods, then per container those of containers, ``minAllowed`` and ``maxAllowed``,
and with ``RequestsOnly`` the container's limit.

Source: vertical-pod-autoscaler 1.8.1, pkg/utils/vpa/capping.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kubetide.objects.pod import Pod
from kubetide.objects.vpa import (
    REQUESTS_ONLY,
    ContainerPolicy,
    ContainerRecommendation,
    PodRecommendation,
    ResourcePolicy,
)
from kubetide.units.quantity import ZERO, Quantity
from kubetide.vertical.resources.amounts import (
    CPU,
    MEMORY,
    RESOURCES,
    Amounts,
    bounding_request,
    proportional_limit,
    read_amounts,
    running_resources,
    scaled,
)
from kubetide.vertical.resources.limit_ranges import Bounds, NamespaceBounds
from kubetide.vertical.resources.policies import container_policy, controlled_values

_NONE_LEFT = Quantity(-1)


@dataclass(frozen=True, slots=True)
class Running:
    """The requests and limits that a container has now."""

    name: str
    requests: Amounts
    limits: Amounts


@dataclass(frozen=True, slots=True)
class Capped:
    """A container's recommendation, and what it was capped by: remarks for people, of ``target`` only."""

    container: str
    target: Amounts
    lower: Amounts
    upper: Amounts
    remarks: tuple[str, ...] = ()


def running_containers(pod: Pod) -> tuple[Running, ...]:
    """Return the containers of a pod as they run. Raises: QuantityError."""
    return tuple(Running(c.name, *running_resources(pod, c)) for c in pod.spec.containers or ())


def capped_recommendation(
    recommendation: PodRecommendation | None,
    policy: ResourcePolicy | None,
    containers: Sequence[Running],
    bounds: NamespaceBounds,
) -> tuple[Capped, ...]:
    """Return the recommendations of the pod's containers, in the VPA's order; of others none.

    Where a LimitRange bounds pods, a container without a recommendation counts with what it requests now, and
    gets that as its target; upstream does so, too, but dies when the sum is out of bounds.

    Raises: QuantityError.
    """
    given = (recommendation.container_recommendations if recommendation is not None else None) or ()
    drafts = [_Draft.of(one) for one in given]
    if bounds.pod is not None:
        _fit_pod(drafts, containers, bounds.pod)
    running: dict[str, Running] = {}
    for container in containers:
        running.setdefault(container.name, container)
    return tuple(
        _cap_container(draft, running[draft.container], policy, bounds.container)
        for draft in drafts
        if draft.container in running
    )


# ── the bounds of a pod ─────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Draft:
    """A recommendation that is being capped."""

    container: str
    target: Amounts | None
    lower: Amounts | None
    upper: Amounts | None

    @classmethod
    def of(cls, one: ContainerRecommendation) -> _Draft:
        sides = (one.target, one.lower_bound, one.upper_bound)
        return cls(one.container_name, *(None if side is None else read_amounts(side) for side in sides))


_Side = Callable[[_Draft], Amounts | None]
_SIDES: tuple[_Side, ...] = (
    lambda draft: draft.target,
    lambda draft: draft.lower,
    lambda draft: draft.upper,
)


def _fit_pod(drafts: list[_Draft], containers: Sequence[Running], bounds: Bounds) -> None:
    named = {draft.container for draft in drafts}
    drafts += [
        _Draft(c.name, dict(c.requests), None, None) for c in containers if c.name not in named and c.requests
    ]
    by_name: dict[str, _Draft] = {}
    for draft in drafts:
        by_name.setdefault(draft.container, draft)
    pairs = [(c, by_name[c.name]) for c in containers if c.name in by_name]
    for side in _SIDES:
        for resource in RESOURCES:
            _fit_resource(pairs, bounds, resource, side)


def _fit_resource(
    pairs: Sequence[tuple[Running, _Draft]], bounds: Bounds, resource: str, side: _Side
) -> None:
    """Scale the amounts of one resource so that their sum, and that of the limits, is within the pod's bounds."""
    least, most = bounds.min.get(resource, ZERO), bounds.max.get(resource, ZERO)
    default = bounds.default.get(resource, ZERO)
    limits, total = ZERO, ZERO
    for container, draft in pairs:
        amount = (side(draft) or {}).get(resource, ZERO)
        limit, _ = proportional_limit(
            resource,
            container.limits.get(resource, ZERO),
            container.requests.get(resource, ZERO),
            amount,
            default,
        )
        limits, total = limits + (limit or ZERO), total + amount
    if limits.is_zero() or (least <= limits and least <= total and (most.is_zero() or most >= limits)):
        return
    # CPU that is raised to a minimum is rounded up, so that the sum reaches it; memory is not, as upstream does.
    raised = least > total
    base = total if raised else limits
    lowered = not most.is_zero() and most < limits
    result = most if lowered and not raised else least
    if base.is_zero():
        return
    for _, draft in pairs:
        amounts = side(draft)
        if amounts is None:
            continue
        amount = amounts.get(resource, ZERO)
        found = scaled(resource, amount, base, result, up=raised and resource == CPU)[0]
        # Upstream rounds memory that is lowered to nothing to -1, which a minimum of the container may raise.
        amounts[resource] = _NONE_LEFT if resource == MEMORY and not raised and found.is_zero() else found


# ── the bounds of a container ───────────────────────────────────────────────────────────────────


def _cap_container(
    draft: _Draft, container: Running, policies: ResourcePolicy | None, bounds: Bounds | None
) -> Capped:
    policy = container_policy(policies, container.name)
    requests_only = controlled_values(policies, container.name) == REQUESTS_ONLY
    remarks: list[str] = []
    done: list[Amounts] = []
    for side in _SIDES:
        amounts = side(draft) or {}
        said = []
        if bounds is not None:
            said += _cap_to_range(amounts, container, bounds)
        if policy is not None:
            said += _cap_to_policy(amounts, policy)
        if requests_only:
            said += _cap_to_limit(amounts, container.limits)
        if amounts.get(MEMORY) == _NONE_LEFT:
            # With upstream the API server refuses such a pod.
            del amounts[MEMORY]
        remarks = remarks or (said if not done else [])
        done.append(amounts)
    target, lower, upper = done
    return Capped(container.name, target, lower, upper, tuple(remarks))


def _cap_to_range(amounts: Amounts, container: Running, bounds: Bounds) -> list[str]:
    """Cap to the LimitRange: it bounds limits, hence requests in their ratio; its minimum bounds requests, too."""
    lowest: Amounts = {}
    highest: Amounts = {}
    for resource in RESOURCES:
        around = container.limits.get(resource, ZERO), container.requests.get(resource, ZERO)
        default = bounds.default.get(resource, ZERO)
        least = bounds.min.get(resource, ZERO)
        if bounds.min:
            lowest[resource] = max(bounding_request(resource, *around, least, default), least)
        if bounds.max:
            most = bounds.max.get(resource, ZERO)
            highest[resource] = bounding_request(resource, *around, most, default)
    remarks = []
    for resource in tuple(amounts):
        if _raise(amounts, resource, lowest):
            remarks.append(f"{resource} capped to fit Min in container LimitRange")
        if _lower(amounts, resource, highest):
            remarks.append(f"{resource} capped to fit Max in container LimitRange")
    return remarks


def _cap_to_policy(amounts: Amounts, policy: ContainerPolicy) -> list[str]:
    least, most = read_amounts(policy.min_allowed), read_amounts(policy.max_allowed)
    remarks = []
    for resource in tuple(amounts):
        if _raise(amounts, resource, least):
            remarks.append(f"{resource} capped to minAllowed")
        if _lower(amounts, resource, most):
            remarks.append(f"{resource} capped to maxAllowed")
    return remarks


def _cap_to_limit(amounts: Amounts, limits: Mapping[str, Quantity]) -> list[str]:
    remarks = []
    for resource, limit in limits.items():
        if resource in amounts and amounts[resource].milli_value() > limit.milli_value():
            amounts[resource] = limit
            remarks.append(f"{resource} capped to container limit")
    return remarks


def _raise(amounts: Amounts, resource: str, least: Mapping[str, Quantity]) -> bool:
    bound = least.get(resource, ZERO)
    if bound.is_zero() or amounts[resource] >= bound:
        return False
    amounts[resource] = bound
    return True


def _lower(amounts: Amounts, resource: str, most: Mapping[str, Quantity]) -> bool:
    bound = most.get(resource, ZERO)
    if bound.is_zero() or amounts[resource] <= bound:
        return False
    amounts[resource] = bound
    return True
