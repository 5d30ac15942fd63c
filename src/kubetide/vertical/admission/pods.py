"""The JSON patch that sets the recommendation on a new pod.

Source: vertical-pod-autoscaler 1.8.1, pkg/admission-controller/resource/pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubetide.objects.base import Json
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import UPDATES_ANNOTATION, VerticalPodAutoscaler
from kubetide.units.quantity import Quantity
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.annotations import (
    OBSERVED_CONTAINERS,
    boost_annotation,
    observed_text,
)
from kubetide.vertical.resources.boost import apply_boost
from kubetide.vertical.resources.capping import Running, running_containers
from kubetide.vertical.resources.limit_ranges import NamespaceBounds
from kubetide.vertical.resources.pod_resources import (
    ContainerResources,
    add,
    annotation_path,
    empty_annotations,
    recommended_resources,
    resource_patches,
    update_items,
)
from kubetide.vertical.resources.policies import is_container_off


class NewContainer(NamedTuple):
    """What a VPA makes of a container of a new pod; ``saved`` is what the boost annotation keeps, None without a boost."""

    at: int
    name: str
    resources: ContainerResources
    saved: str | None


def new_containers(
    running: Sequence[Running], vpa: VerticalPodAutoscaler, bounds: NamespaceBounds, settings: Settings
) -> Iterator[NewContainer]:
    """Yield what ``vpa`` makes of the containers of a new pod, in the pod's order. Raises: QuantityError, BoostError."""
    boosts = settings.gates.cpu_startup_boost
    most = Quantity.parse(settings.max_allowed_cpu_boost)
    for at, desired in enumerate(recommended_resources(running, vpa, bounds)):
        container, saved = running[at], None
        if boosts:
            if is_container_off(vpa.spec.resource_policy, container.name):
                continue
            saved = apply_boost(container, vpa.spec, desired, most)
        yield NewContainer(at, container.name, desired, saved)


def pod_patches(
    pod: Pod, vpa: VerticalPodAutoscaler, bounds: NamespaceBounds, settings: Settings
) -> list[Json]:
    """Return the patch of a pod that ``vpa`` controls.

    Raises: QuantityError, BoostError; the pod then stays as it is.
    """
    patches = empty_annotations(pod.metadata.annotations)
    running = running_containers(pod)
    updates = []
    for at, name, desired, saved in new_containers(running, vpa, bounds, settings):
        if saved is not None:
            patches.append(add(annotation_path(boost_annotation(name)), saved))
        resources = (pod.spec.containers or ())[at].resources
        written = resource_patches(at, resources, desired)
        if written:
            patches += written
            updates.append(f"container {at}: {', '.join(update_items(desired))}")
    if updates:
        text = f"Pod resources updated by {vpa.metadata.name}: {'; '.join(updates)}"
        patches.append(add(annotation_path(UPDATES_ANNOTATION), text))
    names = tuple(container.name for container in running)
    patches.append(add(annotation_path(OBSERVED_CONTAINERS), observed_text(names)))
    return patches
