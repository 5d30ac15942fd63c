"""What tags of a group say, and what its new node looks like.

Source: cluster-autoscaler cloudprovider/tencentcloud, node templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubetide.clouds.common.old_labels import OLD_INSTANCE_TYPE, OLD_REGION, OLD_ZONE
from kubetide.clouds.common.tag_problems import tag_problems
from kubetide.clouds.common.template import (
    DEFAULT_PODS,
    generic_labels,
    readable_quantities,
    readable_taints,
    template_node,
)
from kubetide.clouds.tencent.model import Group, InstanceType, Tag
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node, Taint
from kubetide.units.quantity import Quantity

_GIB = 1 << 30
PREFIX = "k8s.io/cluster-autoscaler/node-template/"
_OWN = "tencentcloud:"
GPU_LABEL = "cloud.tencent.com/tke-accelerator"


def _of_kind(tags: Iterable[Tag], prefix: str) -> Iterator[tuple[str, str]]:
    for tag in tags:
        parts = tag.key.split(prefix)
        if len(parts) > 1:
            yield parts[1], tag.value


def labels(tags: Iterable[Tag]) -> dict[str, str]:
    """Return the node labels that tags give, the last of a name; ``tencentcloud:<key>`` gives one as well."""
    found: dict[str, str] = {}
    for tag in tags:
        given = tuple(_of_kind((tag,), f"{PREFIX}label/")) or tuple(_of_kind((tag,), _OWN))
        found.update((key, value) for key, value in given if key)
    return found


def taints(tags: Iterable[Tag]) -> tuple[Taint, ...]:
    """Return the node taints that tags give, ``value:Effect``; other values are left out, but not an empty key."""
    return readable_taints(_of_kind(tags, f"{PREFIX}taint/"))


def resources(tags: Iterable[Tag]) -> dict[str, Quantity]:
    """Return the further resources that tags give; what is no quantity is left out."""
    return readable_quantities(one for one in _of_kind(tags, f"{PREFIX}resources/") if one[0])


def problems(tags: Iterable[Tag]) -> tuple[str, ...]:
    """Return one sentence for each tag about new nodes that says nothing that is read."""
    return tag_problems(((tag.key, tag.value) for tag in tags), prefix=PREFIX, options=())


def build_node(group: Group, size: InstanceType, *, region: str, zone_number: str, name: str = "") -> Node:
    """Return the node that the group makes next, in the zone of its first subnet. It has no GPU resource.

    Args:
        group: The group.
        size: The type of its machines.
        region: Where it is.
        zone_number: The number of the zone.
        name: What the group is called where that is not its id.
    """
    tags = group.tags or ()
    capacity: Quantities = {
        "pods": str(DEFAULT_PODS),
        "cpu": str(size.cpu),
        "memory": str(size.memory * _GIB),
        **{name: str(amount) for name, amount in resources(tags).items()},
    }
    generic = {
        **generic_labels(arch="amd64", instance_type=size.instance_type, region=region, zone=zone_number),
        OLD_INSTANCE_TYPE: size.instance_type,
        OLD_REGION: region,
        OLD_ZONE: zone_number,
    }
    return template_node(
        name or group.auto_scaling_group_id,
        labels={**generic, **labels(tags)},
        taints=taints(tags),
        capacity=capacity,
    )
