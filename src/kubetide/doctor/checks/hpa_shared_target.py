"""Two HPAs on one target."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.objects.hpa import HorizontalPodAutoscaler


def target_of(hpa: HorizontalPodAutoscaler) -> tuple[str, str, str]:
    """Return kind, namespace and name of what an HPA scales."""
    target = hpa.spec.scale_target_ref
    return target.kind, hpa.metadata.namespace, target.name


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the targets that several HPAs scale.

    Source: horizontal controller v1.36 refuses both with AmbiguousSelector where their selectors match the same pods.
    """
    by_target: dict[tuple[str, str, str], list[str]] = {}
    for hpa in snapshot.hpas:
        by_target.setdefault(target_of(hpa), []).append(hpa.metadata.name)
    for (kind, namespace, name), hpas in sorted(by_target.items()):
        if len(hpas) < 2:
            continue
        yield Finding(
            check="hpa-shared-target",
            severity="critical",
            object=f"{kind} {namespace}/{name}",
            seen=f"{len(hpas)} HPAs scale it: {', '.join(sorted(hpas))}",
            why="Kubernetes reports AmbiguousSelector and scales by neither; other controllers overwrite each other",
            fix=f"put all metrics into one HPA, and delete the other {len(hpas) - 1}; the largest proposal wins",
        )
