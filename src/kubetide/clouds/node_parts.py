"""What template nodes of all clouds have in common.

Source: cluster-autoscaler, ``BuildReadyConditions`` and ``BuildKubeProxy`` of its cloud providers.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus, Taint
from kubetide.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from kubetide.units.quantity import Quantity

READY = (
    Condition(type="Ready", status="True"),
    Condition(type="NetworkUnavailable", status="False"),
    Condition(type="DiskPressure", status="False"),
    Condition(type="MemoryPressure", status="False"),
)
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
OLD_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
OLD_ARCH, OLD_OS = "beta.kubernetes.io/arch", "beta.kubernetes.io/os"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_SYSTEM_NODE_CRITICAL = 2_000_000_000


def template_node(
    name: str,
    *,
    labels: Mapping[str, str],
    taints: tuple[Taint, ...],
    capacity: Mapping[str, Quantity],
    allocatable: Mapping[str, Quantity] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Node:
    """Return a ready node with a hostname label; allocatable is the capacity unless given."""
    usable = capacity if allocatable is None else allocatable
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={**labels, HOSTNAME: name},
            annotations=dict(annotations) if annotations else None,
        ),
        spec=NodeSpec(taints=taints or None),
        status=NodeStatus(
            capacity={key: str(size) for key, size in capacity.items()},
            allocatable={key: str(size) for key, size in usable.items()},
            conditions=READY,
        ),
    )


def kube_proxy(node_name: str) -> Pod:
    """Return the mirror pod that runs on each node beside its DaemonSet pods."""
    name = f"kube-proxy-{node_name}"
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="kube-system",
            annotations={
                "kubernetes.io/config.source": "file",
                "kubernetes.io/config.mirror": "1234567890abcdef",
            },
            labels={"component": "kube-proxy", "tier": "node"},
        ),
        spec=PodSpec(
            node_name=node_name,
            priority=_SYSTEM_NODE_CRITICAL,
            containers=(
                Container(name="kube-proxy", resources=ResourceRequirements(requests={"cpu": "100m"})),
            ),
        ),
    )
