"""Pods that fit no node group."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.explain.equivalent_pods import explain_equivalent_pods, refusals_text
from kubetide.nodes.explain.waiting.counterfactual import CopyOnDemand
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
    if len(alike) > _MOST:
        yield _left_out(len(alike) - _MOST)
    shared_copy = CopyOnDemand(snapshot.node_state, snapshot.now)
    for pods in list(alike.values())[:_MOST]:
        pods.sort(key=lambda pod: pod.metadata.name)
        meta = pods[0].metadata
        keys = [(pod.metadata.namespace, pod.metadata.name) for pod in pods]
        found = explain_equivalent_pods(snapshot.node_state, keys, snapshot.now, shared_copy)
        if found.status != "refused":
            continue
        way_out, or_room = found.way_out, f"; or {found.room}" if found.room else ""
        more = f" (and {len(pods) - 1} like it)" if len(pods) > 1 else ""
        yield Finding(
            check="no-group",
            severity="critical",
            object=f"Pod {meta.namespace}/{meta.name}{more}",
            seen=f"no node group would take it: {refusals_text(found)}",
            why="it waits: no node that can be bought helps it",
            fix=found.without_nodes if way_out is None else f"{way_out.text_with_group}{or_room}",
        )


def _left_out(workloads: int) -> Finding:
    verb = "workload has" if workloads == 1 else "workloads have"
    return Finding(
        check="no-group",
        severity="info",
        object="waiting pods",
        seen=f"{workloads} {verb} pods that wait and were not asked about: only those of the first {_MOST} are",
        why="what keeps their pods may be something else",
        fix="put right what is found, and ask again; `kubetide explain pod` answers about any pod of a run",
    )
