"""Changes after which the next tick begins at once. Source: Cluster Autoscaler, --frequent-loops-enabled."""

from __future__ import annotations

from collections.abc import Callable

from kubetide.nodes.facts.pods import is_unschedulable
from kubetide.nodes.registry.nominations import awaits_nominations
from kubetide.nodes.state import State
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.watching import Informer


def trigger_on_demand(
    pods: Informer[Pod], nodes: Informer[Node], state: State, call: Callable[[], None]
) -> None:
    """Call when a pod becomes unschedulable, and when a node only waits for nominations. Objects of the first lists do not count."""

    def pod_changed(_key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is None or not pods.has_synced:
            return
        settings = state.settings
        if is_unschedulable(new, settings) and not (old is not None and is_unschedulable(old, settings)):
            call()

    def node_changed(_key: Key, old: Node | None, new: Node | None) -> None:
        if new is None or not nodes.has_synced or not awaits_nominations(new, state.settings):
            return
        if old is None or not awaits_nominations(old, state.settings):
            call()

    pods.on_change(pod_changed)
    nodes.on_change(node_changed)
