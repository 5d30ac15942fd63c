"""How much of a node its pods request.

Source: Cluster Autoscaler, simulator/utilization: the larger of CPU and memory requests over
allocatable, in doubles; on GPU nodes the GPU alone; on nodes with devices of their own the fullest pool.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

from kubetide.nodes.facts.nodes import has_gpu_devices
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.scale_down.pods import is_long_terminating
from kubetide.nodes.scale_down.unneeded.device_utilization import UtilizationError, fullest_pool
from kubetide.objects.minor_version import OLDEST
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.cloud import GPU_RESOURCES, NVIDIA_GPU
from kubetide.scheduling import PodClass, classify_unbound, node_allocatable
from kubetide.scheduling.devices.offers import DeviceId
from kubetide.scheduling.pods.classes import charges_on_node
from kubetide.scheduling.pods.resources import is_resized
from kubetide.units.time import Instant

__all__ = ["Utilization", "UtilizationError", "go_float", "has_gpu", "requests_of", "utilization_of"]

_Requests = list[Mapping[str, int]]


class Utilization(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Requested shares of what the node offers; ``value`` is that of ``resource``, which decides."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0
    dra: float = 0.0
    resource: str = ""
    value: float = 0.0

    def __str__(self) -> str:
        """As upstream's event prints it: ``{cpu memory gpu dra resource value}``."""
        numbers = " ".join(go_float(number) for number in (self.cpu, self.memory, self.gpu, self.dra))
        return f"{{{numbers} {self.resource} {go_float(self.value)}}}"


def has_gpu(node: Node, gpu_label: str) -> bool:
    """Return whether the node is a GPU node: by the cloud's label, or because it offers GPUs."""
    return _has_gpu(node, gpu_label, node_allocatable(node))


def _has_gpu(node: Node, gpu_label: str, offered: Mapping[str, int]) -> bool:
    labelled = bool(gpu_label) and gpu_label in (node.metadata.labels or {})
    return labelled or any(offered.get(name, 0) > 0 for name in GPU_RESOURCES)


def requests_of(pod: Pod, minor: int, pod_class: PodClass | None = None) -> Mapping[str, int]:
    """Return what the pod takes of its node, resizes in flight included, by the rules of a minor version.

    Its class, as ``classify_unbound`` gives it, need not be made again where it is known.
    """
    if pod_class is None:
        pod_class = classify_unbound(pod)
    if not is_resized(pod):
        return pod_class.requests
    return {name: amount for name, amount in charges_on_node(pod, minor, pod_class) if isinstance(name, str)}


def utilization_of(
    node: Node,
    pods: Sequence[Pod],
    now: Instant,
    *,
    gpu_label: str = "",
    ignore_daemon_sets: bool = False,
    ignore_mirror_pods: bool = False,
    requests: Sequence[Mapping[str, int]] | None = None,
    slices: Sequence[ResourceSlice] = (),
    held: Collection[DeviceId] = (),
    minor: int = OLDEST,
) -> Utilization:
    """Return the node's utilization.

    Pods that should be gone by now are left out. What is ignored is taken off the requests and off
    what the node offers. ``requests`` is what each pod asks for, where that is known already, else it is read by the
    rules of the ``minor`` version;
    ``slices`` are the node's own, as ``local_slices`` gives them, and ``held`` devices that claims of its
    pods have.

    Raises: UtilizationError when the node offers no CPU or no memory, or lacks slices of a pool.
    """
    offered = node_allocatable(node)
    used: _Requests = []
    left_out: _Requests = []
    gpu_node = _has_gpu(node, gpu_label, offered) and not has_gpu_devices(node, gpu_label)
    ignores = ignore_daemon_sets or ignore_mirror_pods
    asked = [requests_of(pod, minor) for pod in pods] if requests is None else requests
    for pod, request in zip(pods, asked, strict=True):
        if ignores and (
            (ignore_daemon_sets and is_daemon_set_pod(pod)) or (ignore_mirror_pods and is_mirror_pod(pod))
        ):
            left_out.append(request)
        elif pod.metadata.deletion_timestamp is None or not is_long_terminating(pod, now):
            used.append(request)
    if gpu_node:
        # A GPU that cannot be allocated yet is not in use.
        resource = next((name for name in GPU_RESOURCES if offered.get(name, 0)), NVIDIA_GPU)
        gpu = _share(resource, offered, used, left_out) if offered.get(resource, 0) else 0.0
        return Utilization(gpu=gpu, resource=resource, value=gpu)
    if slices:
        pool, full = fullest_pool(slices, held)
        return Utilization(dra=full, resource=pool, value=full)
    for resource in ("cpu", "memory"):
        if not offered.get(resource, 0):
            raise UtilizationError(
                f"node {node.metadata.name}: status.allocatable offers no {resource}, "
                "so its utilization is unknown; the kubelet must report it"
            )
    cpu = _share("cpu", offered, used, left_out)
    memory = _share("memory", offered, used, left_out)
    if cpu > memory:
        return Utilization(cpu=cpu, memory=memory, resource="cpu", value=cpu)
    return Utilization(cpu=cpu, memory=memory, resource="memory", value=memory)


def _share(resource: str, offered: Mapping[str, int], used: _Requests, left_out: _Requests) -> float:
    # Upstream divides milli values, also of memory; thousandfold on both sides keeps its rounding.
    scale = 1 if resource == "cpu" else 1000
    requested = sum([requests.get(resource, 0) for requests in used]) * scale
    ignored = sum(requests.get(resource, 0) for requests in left_out)
    total = (offered[resource] - ignored) * scale
    if total == 0:
        return math.inf if requested else 0.0
    return float(requested) / float(total)


def go_float(number: float) -> str:
    """Return a double as Go's ``%v`` prints it: the shortest text that reads back the same, ``1e-05`` below 1e-4."""
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == int(number) and abs(number) < 1e21:
        return str(int(number))
    return repr(number)
