"""Pods that fill a group at its maximum and would run elsewhere, while others that only this group takes wait."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod, owner_text
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.scheduling import PodClass, classify_unbound
from kubetide.units.lists import listed

_MOST_OWNERS: Final = 3


def room_text(state: State, group: str) -> str:
    """Return how nodes of a full group get room: which of their pods another group's new nodes would take; empty for none.

    The scheduler puts such pods on any node that takes them, and nothing moves them away.
    """
    there = [
        pod
        for name in state.nodes_by_group().get(group, ())
        if name in state.snapshot
        for pod in state.snapshot.pods_on(name)
        if not is_daemon_set_pod(pod) and not is_mirror_pod(pod)
    ]
    found: dict[str, list[Pod]] = {}
    for other, template in all_templates(state).items():
        if other != group and template is not None and _may_grow(state, other):
            found[other] = _taken(there, template)
    best = max(found, key=lambda other: (len(found[other]), other), default="")
    pods = found.get(best, [])
    if not pods:
        return ""
    owners = [owner for owner, _ in Counter(map(owner_text, pods)).most_common()]
    count = "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
    return (
        f"keep others off the nodes of group {group}, by a taint that this pod tolerates: {count} on them "
        f"({listed(owners, _MOST_OWNERS)}) would run on new nodes of group {best}, too"
    )


def _may_grow(state: State, group: str) -> bool:
    return state.groups[group].target_size < state.groups[group].max_size


def _taken(pods: list[Pod], template: Template) -> list[Pod]:
    """Return the pods that an empty new node would take, each by itself."""
    known: dict[PodClass, bool] = {}
    found = []
    for pod in pods:
        pod_class = classify_unbound(pod)
        if pod_class not in known:
            known[pod_class] = template.fresh.fits(pod_class, template.node.metadata.name)
        if known[pod_class]:
            found.append(pod)
    return found
