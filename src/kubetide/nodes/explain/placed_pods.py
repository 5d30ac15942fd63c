"""What is said of a pod that has a node."""

from __future__ import annotations

from kubetide.nodes.explain.unready_nodes import unready_text
from kubetide.nodes.state import State
from kubetide.objects.meta import controller_of
from kubetide.objects.pod import Pod


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
