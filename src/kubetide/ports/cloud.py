"""The Cloud port: node groups of a cloud.

A cloud shows its groups as data and takes three commands. What upstream asks by many calls
(``TargetSize``, ``Nodes``, ``TemplateNodeInfo``, ``GetOptions`` and so on) is one frozen
``NodeGroup`` here, so that a tick's view of the cloud can be recorded and decided on again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.node import Node
from kubetide.objects.resource import ResourceSlice

InstanceState = Literal["Creating", "Running", "Deleting"]


class InstanceError(ApiStruct):
    """Why an instance could not be made. ``error_class`` is ``OutOfResource`` or ``Other``."""

    error_class: str = "Other"
    error_code: str = ""
    error_message: str = ""


class Instance(ApiStruct):
    """A machine as the cloud sees it; ``provider_id`` is what a joined node has in its spec."""

    provider_id: str = ""
    state: InstanceState = "Running"
    error: InstanceError | None = None


def instance_id(node: Node) -> str:
    """Return the ``provider_id`` of a node's instance: the node's own, or one made of its name where it has none."""
    return node.spec.provider_id or f"node:///{node.metadata.name}"


class NodeTemplate(ApiStruct):
    """What a new node of a group is expected to look like, and who says so.

    ``slices`` are the devices that will be its own: ResourceSlices with any ``nodeName``. ``source`` is one
    sentence for people: which catalogue, tag or setting gave the values.
    """

    node: Node = field(default_factory=Node)
    slices: tuple[ResourceSlice, ...] | None = None
    source: str = ""


class GroupOptions(ApiStruct):
    """Settings of one group that override the flags; None keeps the flag's value.

    Times are Go durations as text, as the clouds' tags hold them.
    """

    scale_down_utilization_threshold: float | None = None
    scale_down_gpu_utilization_threshold: float | None = None
    scale_down_unneeded_time: str | None = None
    scale_down_unready_time: str | None = None
    max_node_provision_time: str | None = None
    ignore_daemonsets_utilization: bool | None = None
    zero_or_max_node_scaling: bool | None = None


class NodeGroup(ApiStruct):
    """One node group as it is now."""

    id: str = ""
    min_size: int = 0
    max_size: int = 0
    target_size: int = 0
    instances: tuple[Instance, ...] | None = None
    template: NodeTemplate | None = None
    """None when the cloud cannot say; then only a live node of the group can serve."""
    template_error: str = ""
    options: GroupOptions | None = None
    price_per_hour: float | None = None
    debug: str = ""


class Cloud(Protocol):
    """A cloud provider. Every method may raise CloudError."""

    @property
    def name(self) -> str:
        """The provider's short name (``aws``, ``embedded``)."""
        ...

    @property
    def gpu_label(self) -> str:
        """The node label that marks GPU nodes, or empty."""
        ...

    async def refresh(self) -> Sequence[NodeGroup]:
        """Gives all node groups as they are now, ordered by id."""
        ...

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Asks for ``delta`` > 0 more nodes. Raises CloudError, also when the maximum would be passed."""
        ...

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Withdraws ``delta`` > 0 nodes that do not exist yet; never removes an existing one. Raises CloudError."""
        ...

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Deletes these instances and lowers the target by their number.

        Raises CloudError, also when the size would fall below the minimum (unless ``force``).
        """
        ...
