"""VPAs whose target cannot be used, and several VPAs on one."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.targets import is_missing
from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.kinds import VPAS
from kubetide.objects.vpa import OFF
from kubetide.vertical.workloads import WELL_KNOWN


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the VPAs whose target cannot be used, and the targets whose pods several VPAs would change.

    Source: vertical-pod-autoscaler 1.8: a target is the topmost controller; of several VPAs that match a pod the oldest controls it.
    """
    changing: dict[tuple[str, str, str], list[str]] = {}
    for vpa in snapshot.vpas:
        ref, namespace = vpa.spec.target_ref, vpa.metadata.namespace
        if problem := _problem(snapshot, namespace, ref):
            seen, fix = problem
            yield Finding(
                check="vpa-target",
                severity="warning",
                object=title_of(vpa, VPAS),
                seen=seen,
                why="it recommends nothing, and changes no pod",
                fix=fix,
            )
        if ref is None:
            continue
        key = (ref.kind, namespace, ref.name)
        update = vpa.spec.update_policy
        if update is None or update.update_mode != OFF:
            changing.setdefault(key, []).append(vpa.metadata.name)
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


def _problem(
    snapshot: Snapshot, namespace: str, ref: CrossVersionObjectReference | None
) -> tuple[str, str] | None:
    """Return why a target cannot be used, and the fix; None if nothing is known against it."""
    if ref is None:
        return "it has no targetRef", "name the controller of its pods in spec.targetRef, or delete it"
    shown = f"its target {ref.kind} {ref.name}"
    if ref.api_version == "v1" and ref.kind != "ReplicationController":
        # Of the kinds of v1 no other has a scale subresource.
        return (
            f"{shown} is no controller that makes pods",
            "name the Deployment, StatefulSet or DaemonSet of its pods",
        )
    if is_missing(snapshot, ref.kind, namespace, ref.name):
        seen = f"{shown} does not exist in namespace {namespace}"
        return seen, "correct the name of its target, or delete it"
    target = snapshot.workloads.get((ref.kind, namespace, ref.name))
    owner = None if target is None else target.owner
    if owner is not None and owner.kind in WELL_KNOWN:
        return (
            f"{shown} belongs to {owner.kind} {owner.name}",
            f"name {owner.kind} {owner.name} as its target",
        )
    return None
