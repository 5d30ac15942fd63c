"""What of a pod's changes matters to the scheduler."""

from __future__ import annotations

from kubetide.objects.pod import Pod, pod_condition

NAME = "default-scheduler"


def is_ours(pod: Pod) -> bool:
    """Return whether the pod waits for this scheduler."""
    spec = pod.spec
    return (
        spec.scheduler_name in {"", NAME}
        and not spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
    )


def asks_other(old: Pod, new: Pod) -> bool:
    """Return whether a waiting pod is another one to the filters now."""
    return (
        not _same_spec(old, new)
        or old.metadata.labels != new.metadata.labels
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
    )


def counts_the_same(old: Pod, new: Pod) -> bool:
    """Return whether nothing changed that a node's columns hold: the case of most status updates."""
    return old.metadata.deletion_timestamp == new.metadata.deletion_timestamp and asks_the_same(old, new)


def asks_the_same(old: Pod, new: Pod) -> bool:
    """Return whether a pod on a node is the same to others but for its deletion, which alone wakes nobody before it is gone.

    Source: kube-scheduler 1.36, PodSchedulingPropertiesChange.
    """
    return (
        old.spec.node_name == new.spec.node_name
        and _same_spec(old, new)
        and old.metadata.labels == new.metadata.labels
        and _resizes(old) == _resizes(new)
    )


def _same_spec(old: Pod, new: Pod) -> bool:
    # Servers count the generation up with every change of the spec; those that do not say 0.
    if old.metadata.generation and old.metadata.generation == new.metadata.generation:
        return old.spec.node_name == new.spec.node_name
    return old.spec == new.spec


def _resizes(pod: Pod) -> list[object]:
    """Return what in-place resizing reports of a pod; empty for almost all pods."""
    status = pod.status
    found: list[object] = [
        (c.name, c.resources, c.allocated_resources)
        for c in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if c.resources is not None or c.allocated_resources is not None
    ]
    if status.resources is not None or status.allocated_resources is not None:
        found.append((status.resources, status.allocated_resources))
    pending = pod_condition(pod, "PodResizePending")
    if pending is not None:
        found.append(pending.reason)
    return found
