"""An HPA and a VPA that work on the same resource."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.checks.hpa_requests import utilization_of
from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.objects.kinds import HPAS, VPAS
from kubetide.objects.vpa import CONTAINER_OFF, OFF, VerticalPodAutoscaler
from kubetide.vertical.recommender.targets.conditions import LEFT_TO_HPA

_RESOURCES = ("cpu", "memory")
"""What a VPA controls unless its policies name others. Source: vertical-pod-autoscaler 1.8, ``controlledResources``."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the VPAs that change the requests that an HPA divides by, and those whose recommender leaves these alone."""
    scaled: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for hpa in snapshot.every_hpa:
        target = hpa.spec.scale_target_ref
        for resource, _ in utilization_of(hpa):
            key = (target.kind, hpa.metadata.namespace, target.name)
            scaled.setdefault(key, []).append((resource, title_of(hpa, HPAS)))
    for vpa in snapshot.vpas:
        ref = vpa.spec.target_ref
        if ref is None:
            continue
        controlled = controlled_by(vpa)
        both = sorted(
            {
                pair
                for pair in scaled.get((ref.kind, vpa.metadata.namespace, ref.name), ())
                if pair[0] in controlled
            }
        )
        for resource, scaler in both:
            pods = f"{ref.kind} {ref.name}"
            is_left = _is_left(vpa, resource, snapshot)
            yield (_left if is_left else _conflict)(title_of(vpa, VPAS), resource, pods, scaler)


def _is_left(vpa: VerticalPodAutoscaler, resource: str, snapshot: Snapshot) -> bool:
    """Return whether the VPA's recommender leaves the resource to the HPA: by its status, else by the settings."""
    if any(one.type == LEFT_TO_HPA and one.status == "True" for one in vpa.status.conditions or ()):
        return True
    found = vpa.status.recommendation
    if any(resource in (one.target or {}) for one in (found and found.container_recommendations) or ()):
        return False
    named = tuple(one.name for one in vpa.spec.recommenders or ())
    settings = snapshot.recommender
    return settings.leave_to_hpa and settings.serves(vpa.metadata.namespace, named)


def _conflict(vpa: str, resource: str, pods: str, scaler: str) -> Finding:
    return Finding(
        check="hpa-and-vpa",
        severity="warning",
        object=vpa,
        seen=f"it sets {resource} requests of {pods}, which {scaler} scales by {resource} utilization",
        why="each change of the request moves the utilization that the HPA sees: the two work against each other",
        fix="let kubetide recommend with --vpa-leave-to-hpa, as `kubetide run` does by default; or leave "
        f"{resource} out of the VPA's controlledResources, set its updateMode to Off, or let the HPA use AverageValue "
        "or another metric",
    )


def _left(vpa: str, resource: str, pods: str, scaler: str) -> Finding:
    return Finding(
        check="hpa-and-vpa",
        severity="info",
        object=vpa,
        seen=f"kubetide's recommender leaves {resource} of {pods} to {scaler}, which scales by {resource} utilization",
        why="a VPA that changed the request would move the utilization that the HPA sees",
        fix="nothing needs to be done; upstream's recommender would recommend it all the same",
    )


def controlled_by(vpa: VerticalPodAutoscaler) -> frozenset[str]:
    """Return the resources whose requests the VPA changes."""
    update = vpa.spec.update_policy
    if update is not None and update.update_mode == OFF:
        return frozenset()
    policies = vpa.spec.resource_policy.container_policies if vpa.spec.resource_policy is not None else None
    if not policies:
        return frozenset(_RESOURCES)
    return frozenset(
        resource
        for policy in policies
        if policy.mode != CONTAINER_OFF
        for resource in (_RESOURCES if policy.controlled_resources is None else policy.controlled_resources)
    )
