"""What a node group of the embedded cloud is, and the nodes its machines become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from kubetide.embedded.cloud.catalogue import InstanceType
from kubetide.embedded.cloud.device_slices import slices_json
from kubetide.embedded.draws import Between, Delay
from kubetide.objects.base import Json
from kubetide.objects.node import Node, Taint
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.cloud import GroupOptions, NodeTemplate
from kubetide.units.quantity import milli_to_text
from kubetide.units.seeds import uuid_of
from kubetide.units.time import Instant, format_rfc3339, seconds

GROUP_LABEL = "kubetide.dev/node-group"
"""Node label with the name of the group."""
GPU_LABEL = "kubetide.dev/accelerator"
"""Node label of machines that have GPUs."""
REGION = "embedded"
KUBELET_VERSION = "v1.36.0"
_BOOT = Between(seconds(60), seconds(90))
_READY = Between(seconds(5), seconds(15))
_SHUTDOWN = Between(seconds(20), seconds(40))

NOT_READY_TAINT = "node.kubernetes.io/not-ready"


@dataclass(frozen=True)
class GroupSpec:
    """A node group.

    Attributes:
        name: Its id.
        instance_type: Name of a type of the catalogue.
        min_size, max_size: Bounds of the target size.
        initial: Machines at start, Ready at once; None takes ``min_size``.
        zones: Machines are spread over them, the emptiest first.
        labels, taints: What each node gets besides the well-known labels.
        price_per_hour: Takes the place of the type's price.
        boot: From the order of a machine to its node's registration.
        ready: From the registration to the node being Ready.
        shutdown: From the deletion of a machine to its end.
        join_failure: Probability that a machine never becomes a node.
        options: What the cloud's tags say about scaling this group.
        devices: Devices of each machine, by driver: published as ResourceSlices once the node is there.
    """

    name: str
    instance_type: str
    max_size: int
    min_size: int = 0
    initial: int | None = None
    zones: tuple[str, ...] = ("zone-a",)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    price_per_hour: float | None = None
    boot: Delay = _BOOT
    ready: Delay = _READY
    shutdown: Delay = _SHUTDOWN
    join_failure: float = 0.0
    options: GroupOptions | None = None
    devices: Mapping[str, int] = field(default_factory=dict)

    @property
    def first_size(self) -> int:
        """Machines at start."""
        return self.min_size if self.initial is None else self.initial

    def __post_init__(self) -> None:
        if not 0 <= self.min_size <= self.first_size <= self.max_size:
            raise ValueError(
                f"node group {self.name}: needs 0 <= min_size <= initial <= max_size, not {self.min_size}, "
                f"{self.first_size}, {self.max_size}"
            )
        if not self.zones:
            raise ValueError(f"node group {self.name}: zones is empty; name at least one")
        if not 0.0 <= self.join_failure <= 1.0:
            raise ValueError(
                f"node group {self.name}: join_failure {self.join_failure} is not between 0 and 1"
            )


_OLD_LABELS: Final = {
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}
"""Deprecated names, which cloud controller managers still set beside the new ones."""


def provider_id(zone: str, name: str) -> str:
    """Return what a node has in ``spec.providerID``."""
    return f"embedded:///{zone}/{name}"


def node_labels(group: GroupSpec, kind: InstanceType, *, name: str, zone: str) -> dict[str, str]:
    """Labels of a node; the group's own win over the well-known ones."""
    labels = {
        "beta.kubernetes.io/arch": kind.arch,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": kind.arch,
        "node.kubernetes.io/instance-type": kind.name,
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": REGION,
        GROUP_LABEL: group.name,
    }
    if kind.gpus:
        labels[GPU_LABEL] = kind.name
    labels |= group.labels
    return labels | {old: labels[new] for old, new in _OLD_LABELS.items()}


def node_json(
    group: GroupSpec, kind: InstanceType, *, name: str, zone: str, ready: bool, now: Instant
) -> Json:
    """The Node that a machine registers; until it is Ready it carries the not-ready taint."""
    taints: list[Json] = [msgspec.to_builtins(taint) for taint in group.taints]
    if not ready:
        taints.append({"key": NOT_READY_TAINT, "effect": "NoSchedule"})
    spec: Json = {"providerID": provider_id(zone, name)}
    if taints:
        spec["taints"] = taints
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": node_labels(group, kind, name=name, zone=zone)},
        "spec": spec,
        "status": {
            "capacity": kind.capacity(),
            "allocatable": kind.allocatable(),
            "conditions": node_conditions(ready=ready, now=now),
            "addresses": [
                {"type": "InternalIP", "address": node_address(name)},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": node_info(kind, name),
        },
    }


def node_address(name: str) -> str:
    """An address within 10.0.0.0/10, drawn from the name; in large clusters two nodes may share one."""
    drawn = int(uuid_of(0, "address", name)[:6], 16)
    return f"10.{drawn >> 16 & 63}.{drawn >> 8 & 255}.{drawn & 255}"


def node_info(kind: InstanceType, name: str) -> Json:
    """Return what a kubelet says of its machine and itself."""
    return {
        "machineID": uuid_of(0, "machine", name).replace("-", ""),
        "systemUUID": uuid_of(0, "system", name),
        "bootID": uuid_of(0, "boot", name),
        "kernelVersion": "embedded",
        "osImage": "Kubetide",
        "containerRuntimeVersion": "containerd://embedded",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": kind.arch,
    }


def node_conditions(*, ready: bool, now: Instant) -> list[Json]:
    """The conditions that a kubelet keeps, without pressure."""
    at = format_rfc3339(now)
    quiet = (
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    )
    times = {"lastHeartbeatTime": at, "lastTransitionTime": at}
    conditions: list[Json] = [
        {"type": kind, "status": "False", "reason": reason, "message": message, **times}
        for kind, reason, message in quiet
    ]
    conditions.append(
        {
            "type": "Ready",
            "status": "True" if ready else "False",
            "reason": "KubeletReady" if ready else "KubeletNotReady",
            "message": "kubelet is posting ready status" if ready else "container runtime network not ready",
            **times,
        }
    )
    return conditions


def template_of(group: GroupSpec, kind: InstanceType) -> NodeTemplate:
    """Return what the catalogue says a new node of the group looks like."""
    zone = group.zones[0]
    name = f"template-node-for-{group.name}"
    raw = node_json(group, kind, name=name, zone=zone, ready=True, now=Instant(0))
    del raw["status"]["addresses"], raw["status"]["nodeInfo"]
    raw["status"]["capacity"] = kind.capacity(listed=True)
    raw["status"]["allocatable"] = kind.allocatable(listed=True)
    listed = raw["status"]["capacity"]
    gpus = f", {kind.gpus} GPU" if kind.gpus else ""
    devices = "".join(f", {count} devices of {driver}" for driver, count in sorted(group.devices.items()))
    source = (
        f"catalogue of the embedded cloud, instance type {kind.name}: {milli_to_text(kind.cpu_milli)} CPU, "
        f"{listed['memory']} memory, {kind.pods} pods{gpus}{devices}"
    )
    slices = msgspec.convert(slices_json(group.devices, node=name), tuple[ResourceSlice, ...])
    return NodeTemplate(node=msgspec.convert(raw, Node), slices=slices or None, source=source)
