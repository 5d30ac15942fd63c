"""DaemonSets that leave other pods no room on new nodes, or that have none themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.explain.waiting.daemon_sets import LargestDaemonSet, largest_daemon_set
from kubetide.nodes.facts.amounts import amount_text
from kubetide.nodes.facts.pods import is_unschedulable
from kubetide.nodes.templates.build import all_templates
from kubetide.objects.meta import Key, controller_of
from kubetide.objects.pod import Pod
from kubetide.scheduling import node_allocatable

_CHECK: Final = "daemon-sets"
_MOST_GROUPS: Final = 5


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the DaemonSets that are too large for new nodes of a group, and those whose pods wait on nodes.

    A group's new node is taken to begin with the pods of all DaemonSets that run on it, whether they fit or not. Source:
    Cluster Autoscaler, templates of groups without nodes.
    """
    too_large: dict[LargestDaemonSet, list[str]] = {}
    for group, template in sorted(all_templates(snapshot.node_state).items()):
        if template is None:
            continue
        allocatable = node_allocatable(template.node)
        for resource, free in template.stock.items():
            if free >= 0 or not isinstance(resource, str):
                continue
            largest = largest_daemon_set(template, resource)
            if largest is not None:
                has = amount_text(resource, allocatable.get(resource, 0))
                too_large.setdefault(largest, []).append(f"{group} ({has})")
    for one, groups in too_large.items():
        yield _too_large(one, groups)
    waiting: dict[Key, list[Pod]] = {}
    for pod in snapshot.pods:
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind == "DaemonSet" and is_unschedulable(pod, snapshot.settings):
            waiting.setdefault((pod.metadata.namespace, owner.name), []).append(pod)
    for key, pods in sorted(waiting.items()):
        yield _waiting(key, len(pods))


def _too_large(one: LargestDaemonSet, groups: list[str]) -> Finding:
    more = f" and {len(groups) - _MOST_GROUPS} more" if len(groups) > _MOST_GROUPS else ""
    word = "group" if len(groups) == 1 else "groups"
    return Finding(
        check=_CHECK,
        severity="critical",
        object=_title(one.key),
        seen=f"its pod asks for {amount_text(one.resource, one.requested)} {one.resource}: with it the pods of "
        f"DaemonSets do not fit on a new node of {word} {', '.join(groups[:_MOST_GROUPS])}{more}",
        why="they count as there before all others, so no pod gets a new node of that size",
        fix=f"lower its {one.resource} request, or keep it off these nodes by a node selector or a taint",
    )


def _waiting(key: Key, pods: int) -> Finding:
    return Finding(
        check=_CHECK,
        severity="warning",
        object=_title(key),
        seen="1 of its pods waits for capacity on its node"
        if pods == 1
        else f"{pods} of its pods wait for capacity on their nodes",
        why="what it does is missing there, and no node is bought for it",
        fix="give it priorityClassName system-node-critical, so that others make room, or lower its requests; "
        "`kubetide explain pod` says of a run what its node lacks",
    )


def _title(key: Key) -> str:
    return f"DaemonSet {'/'.join(key)}"
