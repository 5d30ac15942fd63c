"""What a new node of a scaling group looks like.

Source: cluster-autoscaler cloudprovider/alicloud, node templates.
"""

from __future__ import annotations

from kubetide.clouds.alibaba.model import InstanceType, ScalingConfiguration
from kubetide.clouds.common.template import (
    ARCH,
    DEFAULT_PODS,
    INSTANCE_TYPE,
    NVIDIA_GPU,
    OS,
    REGION,
    ZONE,
    template_node,
)
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node

_GIB = 1 << 30
GPU_LABEL = "aliyun.accelerator/nvidia_name"


def build_node(group: str, configuration: ScalingConfiguration, size: InstanceType, region: str) -> Node:
    """Return the node that the group makes next. All tags of its configuration are labels; the zone is not known."""
    capacity: Quantities = {
        "pods": str(DEFAULT_PODS),
        "cpu": str(size.cpu_core_count),
        "memory": str(int(size.memory_size * _GIB)),
        NVIDIA_GPU: str(size.gpu_amount),
    }
    generic = {
        ARCH: "amd64",
        OS: "linux",
        INSTANCE_TYPE: size.instance_type_id,
        REGION: region,
        ZONE: "",
    }
    tags = (configuration.tags.tag if configuration.tags else None) or ()
    return template_node(
        group, labels={**generic, **{tag.key: tag.value for tag in tags}}, taints=(), capacity=capacity
    )
