"""HPAs that scale nothing: the target is not there."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.workloads import PLURALS


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the HPAs whose target does not exist."""
    for hpa in snapshot.hpas:
        meta, target = hpa.metadata, hpa.spec.scale_target_ref
        key = (target.kind, meta.namespace, target.name)
        plural = PLURALS.get(target.kind)
        if key not in snapshot.missing_scales and (
            plural is None or not snapshot.reads(plural) or key in snapshot.workloads
        ):
            continue
        near = [
            name
            for kind, namespace, name in snapshot.workloads
            if namespace == meta.namespace and kind == target.kind
        ]
        there = f"there are {', '.join(sorted(near)[:5])}" if near else f"there is no {target.kind} at all"
        yield Finding(
            check="hpa-target",
            severity="critical",
            object=f"HorizontalPodAutoscaler {meta.namespace}/{meta.name}",
            seen=f"its target {target.kind} {target.name} does not exist in namespace {meta.namespace}",
            why="it scales nothing, and reports FailedGetScale for ever",
            fix=f"correct spec.scaleTargetRef ({there}), or delete the HPA",
        )
