"""Since when a node is not ready, and what it lacks, in words."""

from __future__ import annotations

from kubetide.nodes.state import State
from kubetide.objects.node import Node, node_condition
from kubetide.units.time import Instant, format_rfc3339, instant_of


def unready_text(state: State, name: str) -> str:
    """Return since when a node is not ready and why; empty if it is ready or not there."""
    node = state.nodes.get(name)
    if node is None or not state.health(name).unready:
        return ""
    since = unready_since(node)
    return f"{'' if since is None else f'since {format_rfc3339(since)}: '}{what_lacks(node)}"


def unready_since(node: Node) -> Instant | None:
    """Return since when the kubelet has said that it is not ready, else when the node was made; None if neither is known."""
    ready = node_condition(node, "Ready")
    said = ready.last_transition_time if ready is not None and ready.status != "True" else ""
    return instant_of(said) or instant_of(node.metadata.creation_timestamp)


def what_lacks(node: Node) -> str:
    """Return what keeps a node from being ready: the kubelet's words, a taint, or devices that are not there yet."""
    ready = node_condition(node, "Ready")
    if ready is None:
        return "its kubelet has not reported yet"
    if ready.status != "True":
        silent = "its kubelet does not report any more" if ready.status == "Unknown" else ""
        return ": ".join(filter(None, (ready.reason, ready.message))) or silent or f"Ready is {ready.status}"
    taints = ", ".join(taint.key for taint in node.spec.taints or ())
    return f"taint {taints}" if taints else "its devices are not there yet"
