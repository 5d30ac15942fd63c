"""The resources that a resize in place writes, and the end of a CPU start-up boost with it.

Source: vertical-pod-autoscaler 1.8.1, AEP-7862, pkg/updater/inplace.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.objects.base import Json
from kubetide.objects.pod import Pod
from kubetide.vertical.annotations import IN_PLACE_UPDATED, boost_annotation, boosted_containers
from kubetide.vertical.resources.boost import resources_before
from kubetide.vertical.resources.pod_resources import (
    ContainerResources,
    add,
    annotation_path,
    remove,
    resource_patches,
)


def resize_patches(
    pod: Pod, expired: Sequence[str], recommended: Sequence[ContainerResources], *, is_off: bool
) -> list[Json]:
    """Return the patches of a pod's ``resize`` subresource.

    Each container gets what is recommended for it. One whose start-up boost is over gets what it had before, where
    nothing is recommended; one that is still boosted stays as it is.

    Args:
        expired: The containers whose boost is over.
        recommended: In the order of the pod's containers.
        is_off: Whether the VPA's mode is Off: only boosts end then.

    Raises: BoostError.
    """
    boosted = boosted_containers(pod.metadata.annotations)
    patches: list[Json] = []
    for index, container in enumerate(pod.spec.containers or ()):
        desired = recommended[index]
        if container.name in expired:
            # Read first: a resize of a boosted pod whose annotation cannot be read fails as a whole.
            before = resources_before(pod, container.name)
            desired = desired if desired.requests or desired.limits else before
        elif container.name in boosted or is_off:
            continue
        patches += resource_patches(index, container.resources, desired)
    return patches


def resize_marks(expired: Sequence[str]) -> list[Json]:
    """Return the patches of annotations that a resize makes, without the boosts that are over."""
    marks = [remove(annotation_path(boost_annotation(name))) for name in expired]
    return [*marks, add(annotation_path(IN_PLACE_UPDATED), "true")]
