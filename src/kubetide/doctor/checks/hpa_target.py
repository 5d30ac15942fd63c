"""HPAs whose target does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.targets import is_missing, others_text
from kubetide.objects.kinds import HPAS


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the HPAs whose target does not exist."""
    for hpa in snapshot.every_hpa:
        meta, target = hpa.metadata, hpa.spec.scale_target_ref
        if not is_missing(snapshot, target.kind, meta.namespace, target.name):
            continue
        there = others_text(snapshot, target.kind, meta.namespace)
        yield Finding(
            check="hpa-target",
            severity="critical",
            object=title_of(hpa, HPAS),
            seen=f"its target {target.kind} {target.name} does not exist in namespace {meta.namespace}",
            why="it scales nothing, and reports FailedGetScale for ever",
            fix=f"correct the name of its target ({there}), or delete it",
        )
