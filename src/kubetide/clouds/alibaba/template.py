"""What a new node of a scaling group looks like.

Source: cluster-autoscaler cloudprovider/alicloud, node templates.
"""

from __future__ import annotations

from kubetide.clouds.alibaba.model import InstanceType, ScalingConfiguration
from kubetide.clouds.common.template import DEFAULT_PODS, generic_labels, template_node
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node
from kubetide.ports.cloud import NVIDIA_GPU, Offering

_GIB = 1 << 30
GPU_LABEL = "aliyun.accelerator/nvidia_name"


OWN = "kubetide.dev/"
"""How the tags begin that are this program's alone, and no labels of nodes."""


def offering(configuration: ScalingConfiguration, zone: str = "") -> Offering:
    """Return the way by which a group's next machine comes; without a zone it is not known."""
    is_spot = configuration.spot_strategy not in {"", "NoSpot"}
    return Offering(
        instance_type=configuration.instance_type, zone=zone, market="spot" if is_spot else "on-demand"
    )


def build_node(
    group: str, configuration: ScalingConfiguration, size: InstanceType, region: str, *, zone: str = ""
) -> Node:
    """Return the node that the group makes next. All tags of its configuration are labels; without a zone it is not known."""
    capacity: Quantities = {
        "pods": str(DEFAULT_PODS),
        "cpu": str(size.cpu_core_count),
        "memory": str(int(size.memory_size * _GIB)),
        NVIDIA_GPU: str(size.gpu_amount),
    }
    generic = generic_labels(arch="amd64", instance_type=size.instance_type_id, region=region, zone=zone)
    tags = {tag.key: tag.value for tag in configuration.listed_tags if not tag.key.startswith(OWN)}
    return template_node(group, labels={**generic, **tags}, taints=(), capacity=capacity)
