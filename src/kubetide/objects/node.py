"""core/v1 Node and Namespace."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import ApiObject, Condition


class Taint(ApiStruct):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(ApiStruct):
    provider_id: str = ""
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeAddress(ApiStruct):
    type: str = ""
    address: str = ""


class ContainerImage(ApiStruct):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(ApiStruct):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: tuple[Condition, ...] | None = None
    addresses: tuple[NodeAddress, ...] | None = None
    declared_features: tuple[str, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None


class Node(ApiObject):
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class NamespaceStatus(ApiStruct):
    phase: str = ""


class Namespace(ApiObject):
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


def internal_ip(node: Node) -> str:
    """Return the node's address within the cluster, empty where it has none."""
    return next((one.address for one in node.status.addresses or () if one.type == "InternalIP"), "")


def node_condition(node: Node, kind: str) -> Condition | None:
    """Return the node's condition of that type, or None."""
    for condition in node.status.conditions or ():
        if condition.type == kind:
            return condition
    return None
