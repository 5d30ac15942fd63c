"""Changes after which the next tick begins at once. Source: Cluster Autoscaler, --frequent-loops-enabled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubetide.nodes.decision import Action, AddTaint, IncreaseSize, Outcome
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.facts.pods import is_unschedulable
from kubetide.nodes.registry.nominations import awaits_nominations
from kubetide.nodes.state import State
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant
from kubetide.watching import Informer


def has_acted(state: State, actions: Sequence[Action], results: Sequence[Outcome], now: Instant) -> bool:
    """Return whether a step has asked for nodes and got all of them, or has begun to remove some."""
    asked, removed = state.memory.last_scale_up == now, state.memory.scale_down.last_delete == now
    return any(
        (asked and isinstance(action, IncreaseSize))
        or (removed and isinstance(action, AddTaint) and action.key == TO_BE_DELETED)
        for action, outcome in zip(actions, results, strict=True)
        if outcome.status == "ok"
    )


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
