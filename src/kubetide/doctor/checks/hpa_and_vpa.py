"""An HPA and a VPA that work on the same resource."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.checks.hpa_requests import utilization_of
from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.objects.kinds import HPAS, VPAS
from kubetide.objects.vpa import CONTAINER_OFF, OFF, VerticalPodAutoscaler

_RESOURCES = ("cpu", "memory")
"""What a VPA controls unless its policies name others. Source: vertical-pod-autoscaler 1.8, ``controlledResources``."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the VPAs that change the requests that an HPA divides by."""
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
            yield Finding(
                check="hpa-and-vpa",
                severity="warning",
                object=title_of(vpa, VPAS),
                seen=f"it sets {resource} requests of {ref.kind} {ref.name}, which {scaler} scales by {resource} "
                "utilization",
                why="each change of the request moves the utilization that the HPA sees: the two work against each other",
                fix=f"leave {resource} out of the VPA's controlledResources, set its updateMode to Off, or let the HPA "
                "use AverageValue or another metric",
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
