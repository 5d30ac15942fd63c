"""The way back from a CPU start-up boost: which pods, and the patches.

Source: vertical-pod-autoscaler 1.8.1, AEP-7862, pkg/updater.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.objects.base import Json
from kubetide.objects.pod import Pod
from kubetide.vertical.annotations import IN_PLACE_UPDATED, boost_annotation
from kubetide.vertical.resources.boost import resources_before
from kubetide.vertical.resources.pod_resources import (
    ContainerResources,
    add,
    annotation_path,
    remove,
    resource_patches,
)


def unboost_patches(
    pod: Pod, containers: Sequence[str], recommended: Mapping[str, ContainerResources]
) -> tuple[list[Json], list[Json]]:
    """Return the patches of the pod's resources and of its annotations.

    A container gets what is recommended, else what it had before its start.

    Raises: BoostError.
    """
    patches: list[Json] = []
    for index, container in enumerate(pod.spec.containers or ()):
        if container.name not in containers:
            continue
        desired = recommended.get(container.name)
        if desired is None or not (desired.requests or desired.limits):
            desired = resources_before(pod, container.name)
        patches += resource_patches(index, container.resources, desired)
    return patches, resize_marks(containers)


def resize_marks(expired: Sequence[str]) -> list[Json]:
    """Return the patches of annotations that a resize makes, without the boosts that are over."""
    marks = [remove(annotation_path(boost_annotation(name))) for name in expired]
    return [*marks, add(annotation_path(IN_PLACE_UPDATED), "true")]
