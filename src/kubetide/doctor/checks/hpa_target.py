"""HPAs whose target does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.workloads import PLURALS
from kubetide.objects.kinds import HPAS


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the HPAs whose target does not exist."""
    for hpa in snapshot.every_hpa:
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
            object=title_of(hpa, HPAS),
            seen=f"its target {target.kind} {target.name} does not exist in namespace {meta.namespace}",
            why="it scales nothing, and reports FailedGetScale for ever",
            fix=f"correct the name of its target ({there}), or delete it",
        )
