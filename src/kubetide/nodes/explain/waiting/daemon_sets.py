"""DaemonSets whose pods leave other pods no room on a new node.

A new node is taken to begin with the pods of all DaemonSets that run on it, whether they fit or not. Source: Cluster
Autoscaler, templates of groups without nodes.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from kubetide.nodes.explain.waiting.pod_changes import Change
from kubetide.nodes.facts.amounts import amount_text
from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.objects.meta import Key, OwnerReference, controller_of
from kubetide.objects.pod import Pod
from kubetide.scheduling import Refusal, Shortfall, classify_unbound

_LARGE_SHARE = 2
"""A DaemonSet's pod that asks for more than a half of a machine is likely a mistake."""


class LargestDaemonSet(NamedTuple):
    """The DaemonSet whose pod asks for most of a resource on a new node; amounts in the resource's unit."""

    key: Key
    resource: str
    requested: int


def largest_daemon_set(template: Template, resource: str) -> LargestDaemonSet | None:
    """Return the DaemonSet whose pod asks for most of a resource on a group's new node; None without any."""
    found = [
        LargestDaemonSet(
            (pod.metadata.namespace, owner.name), resource, classify_unbound(pod).requests.get(resource, 0)
        )
        for pod in template.pods
        if (owner := _daemon_set_of(pod)) is not None
    ]
    return max(found, key=lambda one: (one.requested, one.key), default=None)


def keep_off(refusal: Refusal, template: Template, group: str) -> tuple[Key, Change] | None:
    """Return the DaemonSet that has more than half of what the pod lacks, and the change that keeps it off the group."""
    for short in refusal.numbers:
        largest = largest_daemon_set(template, short.resource)
        if largest is not None and largest.requested * _LARGE_SHARE > short.allocatable:
            return largest.key, _change(largest, short, group)
    return None


def suppose_without(state: State, group: str, key: Key) -> None:
    """Let the group's new nodes begin without the DaemonSet's pod."""
    state.daemon_sets = {name: one for name, one in state.daemon_sets.items() if name != key}
    seen = state.memory.templates.get(group)
    if seen is not None:
        state.memory.templates[group] = replace(
            seen, pods=tuple(pod for pod in seen.pods if not _is_of(pod, key))
        )


def _change(largest: LargestDaemonSet, short: Shortfall, group: str) -> Change:
    asked = amount_text(largest.resource, largest.requested)
    there = amount_text(short.resource, short.allocatable)
    return Change(
        "daemon_set",
        f"keep the pods of DaemonSet {'/'.join(largest.key)} off the nodes of group {group}, or lower their "
        f"request: each asks for {asked} of {there} {largest.resource}",
    )


def _is_of(pod: Pod, key: Key) -> bool:
    owner = _daemon_set_of(pod)
    return owner is not None and (pod.metadata.namespace, owner.name) == key


def _daemon_set_of(pod: Pod) -> OwnerReference | None:
    owner = controller_of(pod.metadata)
    return owner if owner is not None and owner.kind == "DaemonSet" else None
