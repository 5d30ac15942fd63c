"""The JSON patch that sets the recommendation on a new pod.

Source: vertical-pod-autoscaler 1.8.1, pkg/admission-controller/resource/pod.
"""

from __future__ import annotations

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
from kubetide.vertical.resources.capping import running_containers
from kubetide.vertical.resources.limit_ranges import NamespaceBounds
from kubetide.vertical.resources.pod_resources import (
    add,
    annotation_path,
    empty_annotations,
    recommended_resources,
    resource_patches,
    update_items,
)
from kubetide.vertical.resources.policies import is_container_off


def pod_patches(
    pod: Pod, vpa: VerticalPodAutoscaler, bounds: NamespaceBounds, settings: Settings
) -> list[Json]:
    """Return the patch of a pod that ``vpa`` controls.

    Raises: QuantityError, BoostError; the pod then stays as it is.
    """
    patches = empty_annotations(pod.metadata.annotations)
    running = running_containers(pod)
    boosts = settings.gates.cpu_startup_boost
    updates = []
    for index, desired in enumerate(recommended_resources(running, vpa, bounds)):
        container = running[index]
        if boosts:
            if is_container_off(vpa.spec.resource_policy, container.name):
                continue
            saved = apply_boost(container, vpa.spec, desired, Quantity.parse(settings.max_allowed_cpu_boost))
            if saved is not None:
                patches.append(add(annotation_path(boost_annotation(container.name)), saved))
        resources = (pod.spec.containers or ())[index].resources
        written = resource_patches(index, resources, desired)
        if written:
            patches += written
            updates.append(f"container {index}: {', '.join(update_items(desired))}")
    if updates:
        text = f"Pod resources updated by {vpa.metadata.name}: {'; '.join(updates)}"
        patches.append(add(annotation_path(UPDATES_ANNOTATION), text))
    names = tuple(container.name for container in running)
    patches.append(add(annotation_path(OBSERVED_CONTAINERS), observed_text(names)))
    return patches
