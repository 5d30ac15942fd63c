"""Two HPAs on one target."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the targets that several HPAs scale.

    Source: horizontal controller v1.36 refuses both with AmbiguousSelector where their selectors match the same pods.
    """
    by_target: dict[tuple[str, str, str], list[str]] = {}
    for hpa in snapshot.hpas:
        target = hpa.spec.scale_target_ref
        key = (target.kind, hpa.metadata.namespace, target.name)
        by_target.setdefault(key, []).append(hpa.metadata.name)
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
