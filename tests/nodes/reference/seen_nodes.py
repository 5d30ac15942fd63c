"""Nodes as a loop sees them: some that say that they are ready do not count as ready."""

from __future__ import annotations

from tests.nodes.reference.accelerators import lacks_accelerator
from tests.nodes.reference.node_marks import is_ready, taints
from tests.nodes.reference.world import Flags, Json

RESOURCE_UNREADY = "cluster-autoscaler.kubernetes.io/resource-not-ready"
STARTING = "cluster-autoscaler.kubernetes.io/startup-taint"
STARTUP_PREFIXES = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)


def as_seen(node: Json, flags: Flags) -> Json:
    """Return the node, or a copy that is not ready if its GPUs are missing or it still has a startup taint.

    A node that is not ready anyway, or cordoned, is not looked at.
    """
    if not is_ready(node) or node["spec"].get("unschedulable"):
        return node
    if lacks_accelerator(node):
        return _unready(node, RESOURCE_UNREADY)
    if any(is_startup_taint(one["key"], flags) for one in taints(node)):
        return _unready(node, STARTING)
    return node


def is_startup_taint(key: str, flags: Flags) -> bool:
    """Return whether a taint says that the node still starts."""
    return key in flags.names("startup-taint") or key.startswith(
        (*STARTUP_PREFIXES, *flags.names("startup-taint-prefix"))
    )


def lacks_resources(node: Json) -> bool:
    """Return whether a node, as it was seen, is not ready because of its resources."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any((one["type"], one.get("reason")) == ("Ready", RESOURCE_UNREADY) for one in conditions)


def _unready(node: Json, reason: str) -> Json:
    """Return a copy that has not been ready since it was created."""
    since = node["metadata"]["creationTimestamp"]
    ready = {"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": since}
    others = [one for one in node["status"].get("conditions") or () if one["type"] != "Ready"]
    return {**node, "status": {**node["status"], "conditions": [ready, *others]}}
