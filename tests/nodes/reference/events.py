"""Events as upstream writes them: on a pod, on a Node, or on the ConfigMap that holds its status.

The recording notes each of them; upstream's client would count repeated ones together.
"""

from __future__ import annotations

from tests.nodes.reference.places import pod_key
from tests.nodes.reference.world import Json, World


def on_pod(world: World, pod: Json, reason: str, message: str, *, warning: bool = False) -> None:
    """Note an event on a pod."""
    _note(world, f"Pod/{'/'.join(pod_key(pod))}", reason, message, warning)


def on_node(world: World, node: Json, reason: str, message: str, *, warning: bool = False) -> None:
    """Note an event on a Node, which has no namespace."""
    _note(world, f"Node//{node['metadata']['name']}", reason, message, warning)


def on_status(world: World, reason: str, message: str, *, warning: bool = False) -> None:
    """Note an event on the ConfigMap of the status, if there is one."""
    if world.flags.on("write-status-configmap"):
        name = world.flags.text("status-config-map-name")
        _note(world, f"ConfigMap/kube-system/{name}", reason, message, warning)


def on_priorities(world: World, reason: str, message: str) -> None:
    """Note a warning on the ConfigMap of the priority expander."""
    _note(world, "ConfigMap/kube-system/cluster-autoscaler-priority-expander", reason, message, True)


def _note(world: World, of: str, reason: str, message: str, warning: bool) -> None:
    kind = "Warning" if warning else "Normal"
    world.events.append({"object": of, "type": kind, "reason": reason, "message": message})
