"""The Cloud port: node groups of a cloud.

A cloud shows its groups as data and takes a few commands. What upstream asks by many calls
(``TargetSize``, ``Nodes``, ``TemplateNodeInfo``, ``GetOptions`` and so on) is one frozen
``NodeGroup`` here, so that a tick's view of the cloud can be recorded and decided on again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.node import Node, Taint
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.errors import CloudCause, CloudUnsupported
from kubetide.ports.limits import ResourceLimits

InstanceState = Literal["Creating", "Running", "Deleting"]
Market = Literal["on-demand", "spot", "reserved"]

NVIDIA_GPU: Final = "nvidia.com/gpu"
GPU_RESOURCES: Final = (
    NVIDIA_GPU,
    "habana.ai/gaudi",
    "gpu.intel.com/xe",
    "amd.com/gpu",
    "microsoft.com/directx",
)
"""Extended resources that count as GPUs. Of a node with several the first one that it has any of counts, as upstream."""


_SPOT_LABELS: Final = {
    "cloud.google.com/gke-preemptible": "true",
    "cloud.google.com/gke-spot": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
"""Labels of nodes that may be taken away at any time, with their values."""


def market_of(labels: Mapping[str, str]) -> Market:
    """Return the market that the labels of a node name: spot, or on-demand where none of them says so."""
    return "spot" if any(labels.get(name) == value for name, value in _SPOT_LABELS.items()) else "on-demand"


class InstanceError(ApiStruct):
    """Why an instance could not be created. ``error_class`` is ``OutOfResource`` or ``Other``; ``cause`` says more."""

    error_class: str = "Other"
    error_code: str = ""
    error_message: str = ""
    cause: CloudCause = "Other"


class Instance(ApiStruct):
    """A machine as the cloud sees it; ``provider_id`` is the one in a joined node's spec.

    ``managed`` is False where the group lists and counts the machine, and the provider says that its node belongs to no
    group: it is left alone, and ``delete_nodes`` refuses it.
    """

    provider_id: str = ""
    state: InstanceState = "Running"
    error: InstanceError | None = None
    managed: bool = True


def instance_id(node: Node) -> str:
    """Return the ``provider_id`` of a node's instance: the node's own, or one built from its name."""
    return node.spec.provider_id or f"node:///{node.metadata.name}"


class NodeTemplate(ApiStruct):
    """What a new node of a group is expected to look like, and the source of that.

    ``slices`` are the devices that will be its own: ResourceSlices with any ``nodeName``. ``pods`` are those that
    each node of the provider runs (kube-proxy, agents): mirror pods and pods of DaemonSets; others are ignored, as
    upstream ignores them. ``source`` is one sentence for people: which catalogue, tag or setting gave the values.
    """

    node: Node = field(default_factory=Node)
    slices: tuple[ResourceSlice, ...] | None = None
    pods: tuple[Pod, ...] | None = None
    source: str = ""


class Offering(ApiStruct):
    """One possible offer of a group's next node: an instance type in a zone on a market.

    Attributes:
        instance_type: As in the label ``node.kubernetes.io/instance-type``.
        zone: As in the label ``topology.kubernetes.io/zone``.
        market: How it is paid; ``reserved`` is a commitment that is paid for already.
        share: Part of the group's new nodes that come this way, 0 to 1; None when the cloud decides.
        price_per_hour: Price of one node; None when unknown.
        count: How many nodes can still come this way; None is no known bound.
    """

    instance_type: str = ""
    zone: str = ""
    market: Market = "on-demand"
    share: float | None = None
    price_per_hour: float | None = None
    count: int | None = None


class GroupOptions(ApiStruct):
    """Settings of one group that override the flags; None keeps the flag's value.

    Times are Go durations as text, as the clouds' tags hold them.
    """

    scale_down_utilization_threshold: float | None = None
    scale_down_gpu_utilization_threshold: float | None = None
    scale_down_unneeded_time: str | None = None
    scale_down_unready_time: str | None = None
    max_node_provision_time: str | None = None
    max_node_startup_time: str | None = None
    ignore_daemonsets_utilization: bool | None = None
    zero_or_max_node_scaling: bool | None = None
    allow_non_atomic_scale_up_to_max: bool | None = None


class NewGroup(ApiStruct):
    """The group that ``create_group`` creates; ``instance_type`` and ``zones`` must be the provider's own names."""

    id: str = ""
    min_size: int = 0
    max_size: int = 0
    instance_type: str = ""
    zones: tuple[str, ...] | None = None
    market: Market = "on-demand"
    labels: dict[str, str] | None = None
    taints: tuple[Taint, ...] | None = None


class NodeGroup(ApiStruct):
    """The present state of one node group.

    Attributes:
        exists: False for a group that ``create_group`` could make and that is not there yet.
        autoprovisioned: Whether this program made the group, and so may delete it when it is empty.
        offerings: The ways its next node may come, best known share first; None when the provider cannot say.
        warnings: What is wrong with the group's own settings (a malformed tag), one sentence each; the rest holds.
        stale: Why this view is that of an earlier refresh; empty for one of this refresh.
    """

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
    exists: bool = True
    autoprovisioned: bool = False
    offerings: tuple[Offering, ...] | None = None
    warnings: tuple[str, ...] | None = None
    stale: str = ""


class GroupCandidate(ApiStruct):
    """A group that ``create_group`` could create; the caller may lengthen the id.

    Attributes:
        new: What to ask for.
        group: What it would be: its template, price and options; ``exists`` is False.
        takes_labels: Whether who asks for it may add labels, which its nodes then have.
    """

    new: NewGroup = field(default_factory=NewGroup)
    group: NodeGroup = field(default_factory=NodeGroup)
    takes_labels: bool = True


KnowsMachines = Literal["any", "existing", "former", "groups", "unknown"]
"""Of which nodes a cloud can say whether their machine is there.

``any``: of those that its groups list, which have one. ``existing``: the same, and a machine that is being deleted
counts as gone. ``groups``: of all; what no group lists has no machine. ``unknown``: of none. ``former``: of none either. Of every other
node the taint for deletion says that its machine is gone. ``groups`` and ``former`` still know of which group a machine
was that is gone.
"""


class PodPrices(ApiStruct):
    """Hourly prices of pod requests. The defaults are those of upstream's price model for GCE.

    Attributes:
        cpu_hour: A core.
        gib_hour: A GiB of memory.
        storage_gib_hour: A GiB of ephemeral storage.
        gpu_hour: A GPU (``nvidia.com/gpu``).
    """

    cpu_hour: float = 0.033174
    gib_hour: float = 0.004446
    storage_gib_hour: float = 0.0
    gpu_hour: float = 0.0


class Cloud(Protocol):
    """A cloud provider. Every method may raise CloudError.

    A provider derives from this class and leaves out what it has not: the defaults raise CloudUnsupported.
    """

    @property
    def name(self) -> str:
        """The provider's short name (``aws``, ``embedded``)."""
        ...

    @property
    def gpu_label(self) -> str:
        """The node label that marks GPU nodes, or empty."""
        ...

    @property
    def gpu_types(self) -> Sequence[str]:
        """The values that ``gpu_label`` may have, ordered."""
        return ()

    @property
    def resource_limits(self) -> ResourceLimits | None:
        """The provider's own limits of the cluster; None if it has none and the flags apply."""
        return None

    @property
    def knows_machines(self) -> KnowsMachines:
        """For which nodes the provider can tell whether their machine exists."""
        return "any"

    @property
    def pod_prices(self) -> PodPrices:
        """The price of a pod's share of the provider's machines; only the expander ``price`` uses it."""
        return PodPrices()

    @property
    def creates_groups(self) -> bool:
        """Whether the provider can create and delete node groups."""
        return False

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that ``create_group`` could create, ordered by their distinct ids. Raises CloudError."""
        return ()

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return the present node groups, ordered by id."""
        ...

    async def scaling_policies(self) -> Mapping[str, Sequence[str]]:
        """Return the cloud's own policies, alarms and schedules that change the size of a node group, by group, a few words each.

        Those that are switched off are left out, and so are groups without any. No tick asks.
        Raises CloudError.
        """
        return {}

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Add ``delta`` > 0 nodes. Raises CloudError, also if that would exceed the maximum."""
        ...

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Withdraw ``delta`` > 0 nodes that do not exist yet; never deletes an existing one. Raises CloudError."""
        ...

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Delete these instances and lower the target by their number.

        Raises CloudError, also when the size would fall below the minimum (unless ``force``).
        """
        ...

    async def atomic_increase_size(self, group_id: str, delta: int) -> None:
        """Add ``delta`` > 0 nodes, all or none.

        Raises CloudUnsupported where the cloud cannot promise that, and CloudError as ``increase_size``.
        """
        raise CloudUnsupported(
            f"{self.name}: node group {group_id} cannot grow by {delta} at once or not at all"
        )

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Create a node group without nodes, and return it with the requested id. Raises CloudUnsupported, CloudError."""
        raise CloudUnsupported(f"{self.name}: node group {group.id} cannot be created by this provider")

    async def delete_group(self, group_id: str) -> None:
        """Delete a group that ``create_group`` created and that has no instances. Raises CloudUnsupported, CloudError."""
        raise CloudUnsupported(f"{self.name}: node group {group_id} cannot be deleted by this provider")
