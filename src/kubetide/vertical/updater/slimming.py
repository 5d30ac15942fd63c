"""What the updater keeps of a pod: no volume, no image, no label that no rule reads.

Labels stay, as a VPA's selector may ask for any.
"""

from __future__ import annotations

from msgspec import structs

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus
from kubetide.vertical.annotations import OBSERVED_CONTAINERS, STARTUP_BOOST

_CONDITIONS = frozenset({"Ready", "PodResizePending", "PodResizeInProgress"})


def slim_pod(pod: Pod) -> Pod:
    """Return the pod with what the updater reads of it."""
    meta, status = pod.metadata, pod.status
    return Pod(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            labels=meta.labels,
            annotations=_annotations(meta.annotations),
            owner_references=tuple(one for one in meta.owner_references or () if one.controller) or None,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=PodSpec(
            node_name=pod.spec.node_name,
            containers=tuple(
                Container(name=c.name, resources=c.resources, resize_policy=c.resize_policy)
                for c in pod.spec.containers or ()
            ),
        ),
        status=PodStatus(
            phase=status.phase,
            start_time=status.start_time,
            conditions=tuple(c for c in status.conditions or () if c.type in _CONDITIONS) or None,
            container_statuses=tuple(map(_slim_status, status.container_statuses or ())) or None,
        ),
    )


def _annotations(annotations: dict[str, str] | None) -> dict[str, str] | None:
    """Keep whether there are any at all: a patch must make the map where there is none."""
    if annotations is None:
        return None
    return {
        key: text
        for key, text in annotations.items()
        if key == OBSERVED_CONTAINERS or key.startswith(f"{STARTUP_BOOST}/")
    }


def _slim_status(status: ContainerStatus) -> ContainerStatus:
    return structs.replace(status, ready=False, restart_count=0, state=None, allocated_resources=None)
