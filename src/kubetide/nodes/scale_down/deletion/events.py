"""Events of scale-down in upstream's words; people match on these texts."""

from __future__ import annotations

from kubetide.nodes.decision import EventRecord
from kubetide.nodes.scale_down.memory import Deletion
from kubetide.nodes.settings import Settings

FAILED = "ScaleDownFailed"
"""Reason of the events of a pod that would not go, and of a node that stays for it."""


def on_node(name: str, message: str, *, reason: str = "ScaleDown", warning: bool = False) -> EventRecord:
    """Return an event on a node."""
    return EventRecord(
        kind="Node", name=name, type="Warning" if warning else "Normal", reason=reason, message=message
    )


def on_pod(namespace: str, name: str, uid: str, message: str, *, failed: bool = False) -> EventRecord:
    """Return an event on an evicted pod."""
    return EventRecord(
        kind="Pod",
        namespace=namespace,
        name=name,
        uid=uid,
        type="Warning" if failed else "Normal",
        reason=FAILED if failed else "ScaleDown",
        message=message,
    )


def on_status(settings: Settings, reason: str, message: str) -> tuple[EventRecord, ...]:
    """Return an event on the status object; None when the status object is not written."""
    if not settings.write_status_configmap:
        return ()
    return (
        EventRecord(
            kind="ConfigMap",
            namespace=settings.namespace,
            name=settings.status_config_map_name,
            type="Normal",
            reason=reason,
            message=message,
        ),
    )


def started(deletion: Deletion, settings: Settings) -> tuple[EventRecord, ...]:
    """Return the event that the node was tainted and its removal begins."""
    if deletion.drain:
        pods = ",".join(deletion.reschedule)
        message = (
            f"Scale-down: removing node {deletion.node}, utilization: {deletion.utilization}, "
            f"pods to reschedule: {pods}"
        )
        status = on_status(settings, "ScaleDown", message)
    else:
        status = on_status(settings, "ScaleDownEmpty", f'Scale-down: removing empty node "{deletion.node}"')
    return (*status, on_node(deletion.node, "marked the node as toBeDeleted/unschedulable"))


def marking_failed(node: str, error: str) -> EventRecord:
    """Return the event that the taint could not be set."""
    message = f"failed to mark the node as toBeDeleted/unschedulable: {error}"
    return on_node(node, message, reason=FAILED, warning=True)


def removed(deletion: Deletion, settings: Settings) -> tuple[EventRecord, ...]:
    """Return the event that the cloud accepted the deletion."""
    node = on_node(deletion.node, "nodes removed by cluster autoscaler")
    if deletion.drain:
        return (
            node,
            *on_status(settings, "ScaleDown", f"Scale-down: node {deletion.node} removed with drain"),
        )
    return (
        node,
        *on_status(settings, "ScaleDownEmpty", f"Scale-down: empty node {deletion.node} removed"),
    )


def failed(deletion: Deletion, error: str) -> EventRecord:
    """Return the event that the removal was given up."""
    what = "failed to drain and delete node" if deletion.drain else "failed to delete empty node"
    return on_node(deletion.node, f"{what}: {error}", reason=FAILED, warning=True)


def cleaned(node: str, taint: str, error: str = "") -> EventRecord:
    """Return the event that a taint of an earlier process was removed, or could not be."""
    if error:
        message = f"failed to clean {taint} on node {node}: {error}"
    else:
        message = f"removed {taint} taint from node {node}"
    return on_node(node, message, reason="ClusterAutoscalerCleanup", warning=bool(error))
