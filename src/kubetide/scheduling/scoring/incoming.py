"""What scoring reads of a pod."""

from __future__ import annotations

from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.scoring.base import Incoming
from kubetide.scheduling.scoring.images import image_names
from kubetide.units.selectors import Selector


def incoming(pod: Pod, pod_class: PodClass, spread: Selector | None, *, images: bool, minor: int) -> Incoming:
    """Return what scoring reads of a pod to place.

    Args:
        pod: The pod.
        pod_class: Its class.
        spread: From which pods the system spreads it, see ``default_selector``; used only where the pod
            has no constraints itself.
        images: Whether any node reports images; else those of the pod are not looked at.
        minor: The minor version of Kubernetes whose rules hold.
    """
    if pod_class.preferences.is_spread:
        spread = None
    if not images:
        return Incoming(pod_class, spread)
    containers = len(pod.spec.containers or ()) + len(pod.spec.init_containers or ())
    images_of_volumes = sum(one.image is not None for one in pod.spec.volumes or ()) if minor >= 37 else 0
    return Incoming(pod_class, spread, image_names(pod), containers + images_of_volumes)
