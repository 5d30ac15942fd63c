"""Changes after which the next tick begins at once. Source: Cluster Autoscaler, --frequent-loops-enabled."""

from __future__ import annotations

from collections.abc import Callable

from kubetide.nodes.facts.pods import is_unschedulable
from kubetide.nodes.registry.nominations import may_be_nominated_to
from kubetide.nodes.state import State
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.watching import Informer


def call_on_demand(
    pods: Informer[Pod], nodes: Informer[Node], state: State, call: Callable[[], None]
) -> None:
    """Call for each pod that has just become unschedulable, and each node that waits for nominations; what the first lists hold is not new."""

    def pod_changed(_key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is None or not pods.has_synced:
            return
        settings = state.settings
        if is_unschedulable(new, settings) and not (old is not None and is_unschedulable(old, settings)):
            call()

    def node_changed(_key: Key, old: Node | None, new: Node | None) -> None:
        if new is None or not nodes.has_synced or not may_be_nominated_to(new):
            return
        if old is None or not may_be_nominated_to(old):
            call()

    pods.on_change(pod_changed)
    nodes.on_change(node_changed)
