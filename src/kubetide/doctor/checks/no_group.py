"""Pods that fit no node group."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.facts.pods import is_unschedulable
from kubetide.objects.meta import controller_of
from kubetide.objects.pod import Pod

_MOST = 20
"""Workloads whose pods are looked at: each asks the scheduler's filters of every group, again for each change."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield, per workload, the pending pods that no group's new node would accept, with the smallest change."""
    if not snapshot.groups:
        return
    alike: dict[Hashable, list[Pod]] = {}
    for pod in snapshot.pods:
        if is_unschedulable(pod, snapshot.settings):
            owner = controller_of(pod.metadata)
            name = pod.metadata.name if owner is None else f"{owner.kind}/{owner.name}"
            alike.setdefault((pod.metadata.namespace, name), []).append(pod)
    for pods in list(alike.values())[:_MOST]:
        meta = pods[0].metadata
        found = explain_pod(snapshot.node_state, (meta.namespace, meta.name), snapshot.now)
        if found.status != "refused":
            continue
        refusals = "; ".join(f"{one.group}: {one.why}" for one in found.groups)
        more = f" (and {len(pods) - 1} like it)" if len(pods) > 1 else ""
        yield Finding(
            check="no-group",
            severity="critical",
            object=f"Pod {meta.namespace}/{meta.name}{more}",
            seen=f"no node group would take it: {refusals}",
            why="it waits for ever: no node that can be bought helps it",
            fix=found.remedy.text + f" (group {found.remedy.group})"
            if found.remedy is not None
            else "ask less, drop a constraint, or add a group that meets all of them",
        )
