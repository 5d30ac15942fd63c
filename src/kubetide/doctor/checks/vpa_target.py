"""VPAs without a target, and several VPAs on one."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.targets import is_missing
from kubetide.objects.kinds import VPAS
from kubetide.objects.vpa import OFF


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the VPAs whose target does not exist, and the targets whose pods several VPAs would change.

    Source: vertical-pod-autoscaler 1.8: of several VPAs that match a pod the oldest controls it.
    """
    changing: dict[tuple[str, str, str], list[str]] = {}
    for vpa in snapshot.vpas:
        ref, namespace = vpa.spec.target_ref, vpa.metadata.namespace
        if ref is None:
            continue
        key = (ref.kind, namespace, ref.name)
        update = vpa.spec.update_policy
        if update is None or update.update_mode != OFF:
            changing.setdefault(key, []).append(vpa.metadata.name)
        if is_missing(snapshot, *key):
            yield Finding(
                check="vpa-target",
                severity="warning",
                object=title_of(vpa, VPAS),
                seen=f"its target {ref.kind} {ref.name} does not exist in namespace {namespace}",
                why="it recommends nothing, and changes no pod",
                fix="correct the name of its target, or delete it",
            )
    for (kind, namespace, name), vpas in sorted(changing.items()):
        if len(vpas) > 1:
            yield Finding(
                check="vpa-target",
                severity="warning",
                object=f"{kind} {namespace}/{name}",
                seen=f"{len(vpas)} VPAs would change its pods: {', '.join(sorted(vpas))}",
                why="only the oldest does, so what the others say has no effect",
                fix=f"put all policies into one VPA, and delete the other {len(vpas) - 1}",
            )
