"""What is said of a pod that has a node."""

from __future__ import annotations

from kubetide.nodes.explain.unready_nodes import unready_text
from kubetide.nodes.state import State
from kubetide.objects.meta import controller_of
from kubetide.objects.pod import Pod
from kubetide.units.lists import listed
from kubetide.units.time import Instant, instant_of

_MOST_NAMED = 3


def placed_sentence(state: State, pod: Pod) -> str:
    """Return where the pod is, what is wrong with its node, and whether it is being deleted."""
    name = pod.spec.node_name
    if name not in state.nodes:
        ends = "goes once the pod garbage collector sees that"
        return f"It is on node {name}, which is gone.{_deletion(pod, ends)}"
    unready = unready_text(state, name)
    if not unready:
        return f"It is on node {name}.{_deletion(pod)}"
    ends = "goes once its node is back or removed"
    return f"It is on node {name}, which is not ready {unready.rstrip('.')}.{_deletion(pod, ends)}"


def _deletion(pod: Pod, ends: str = "") -> str:
    """Return what ends the pod; ``ends`` where its kubelet does not.

    Source: pod lifecycle v1.36: on a lost node a pod stays Terminating, and a StatefulSet waits for its end.
    """
    until = pod.metadata.deletion_timestamp
    if not until:
        return ""
    if not ends:
        return f" It is being deleted, and has until {until} to end."
    owner = controller_of(pod.metadata)
    again = "; its StatefulSet makes it again only then" if owner and owner.kind == "StatefulSet" else ""
    return f" It was to end by {until}, and {ends}{again}."


def lingering_sentence(state: State, now: Instant) -> str:
    """Return which pods of StatefulSets should have ended and stay on lost nodes; empty for none.

    No pod takes the place of such a one, and none waits for a node.
    """
    found = []
    for (namespace, name), pod in sorted(state.pods.items()):
        owner, until = controller_of(pod.metadata), instant_of(pod.metadata.deletion_timestamp)
        if owner is None or owner.kind != "StatefulSet" or until is None or until >= now:
            continue
        node = pod.spec.node_name
        if node and (node not in state.nodes or state.health(node).unready):
            found.append(f"{namespace}/{name} on node {node}")
    if not found:
        return ""
    pods = "1 pod" if len(found) == 1 else f"{len(found)} pods"
    again = "makes it" if len(found) == 1 else "makes them"
    return (
        f"{pods} of StatefulSets should have ended, but the node is lost: {listed(found, _MOST_NAMED)}. The StatefulSet "
        f"{again} again only once the node is back or removed: delete the node if its machine is off."
    )
