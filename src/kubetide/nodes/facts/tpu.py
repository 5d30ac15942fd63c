"""Cloud TPUs: they are reached over the network, so a pod that requests one needs no node that offers it.

Source: Cluster Autoscaler, which takes these requests off the containers of pending pods and of pods that a removal moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from kubetide.objects.base import Quantities
from kubetide.objects.pod import Container, Pod

PREFIX: Final = "cloud-tpus.google.com/"


def any_requested(resources: Iterable[str]) -> bool:
    """Return whether a Cloud TPU is among the resources."""
    return any(name.startswith(PREFIX) for name in resources)


def without_tpu_requests(pod: Pod) -> Pod:
    """Return the pod without its containers' requests for Cloud TPUs; the pod itself where there are none."""
    containers = pod.spec.containers or ()
    if not any(_asks(container) for container in containers):
        return pod
    changed = tuple(_cleared(container) if _asks(container) else container for container in containers)
    return replace(pod, spec=replace(pod.spec, containers=changed))


def _asks(container: Container) -> bool:
    resources = container.resources
    return any_requested((*(resources.requests or ()), *(resources.limits or ())))


def _cleared(container: Container) -> Container:
    given = container.resources
    resources = replace(given, requests=_others(given.requests), limits=_others(given.limits))
    return replace(container, resources=resources)


def _others(amounts: Quantities | None) -> Quantities:
    return {name: value for name, value in (amounts or {}).items() if not name.startswith(PREFIX)}
