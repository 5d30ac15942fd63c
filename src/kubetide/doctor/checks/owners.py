"""Pods whose controller was deleted."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.workloads import PLURALS
from kubetide.objects.meta import ObjectMeta, controller_of
from kubetide.objects.pod import is_finished


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the pods and ReplicaSets whose controller does not exist, or is another object of the same name."""
    for pod in snapshot.pods:
        if not is_finished(pod) and pod.metadata.deletion_timestamp is None:
            yield from _finding(snapshot, "Pod", pod.metadata)
    for replica_set in snapshot.replica_sets:
        yield from _finding(snapshot, "ReplicaSet", replica_set.metadata)


def _finding(snapshot: Snapshot, kind: str, meta: ObjectMeta) -> Iterator[Finding]:
    owner = controller_of(meta)
    if owner is None or owner.kind not in PLURALS or not snapshot.reads(PLURALS[owner.kind]):
        return
    there = snapshot.workloads.get((owner.kind, meta.namespace, owner.name))
    if there is not None and (not owner.uid or not there.metadata.uid or owner.uid == there.metadata.uid):
        return
    gone = "is not there" if there is None else "is another object of that name, with another uid"
    yield Finding(
        check="owners",
        severity="warning",
        object=f"{kind} {meta.namespace}/{meta.name}",
        seen=f"its controller {owner.kind} {owner.name} {gone}",
        why="nobody starts it anew elsewhere, so its node is not removed while it is there",
        fix=f"delete it, or make {owner.kind} {owner.name} again",
    )
