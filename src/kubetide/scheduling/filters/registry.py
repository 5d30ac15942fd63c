"""The filter plugins in upstream's default order: a new one is a file and a line here.

Those of other packages come behind them (``in_use``).

Source: kube-scheduler v1.36 default profile. In v1.37 NodeName comes first, which changes no verdict.
"""

from __future__ import annotations

from kubetide.scheduling.filters.base import Filter
from kubetide.scheduling.filters.dynamic_resources import DynamicResources
from kubetide.scheduling.filters.inter_pod_affinity import InterPodAffinity
from kubetide.scheduling.filters.node_affinity import NodeAffinity
from kubetide.scheduling.filters.node_declared_features import NodeDeclaredFeatures
from kubetide.scheduling.filters.node_name import NodeName
from kubetide.scheduling.filters.node_ports import NodePorts
from kubetide.scheduling.filters.node_resources_fit import NodeResourcesFit
from kubetide.scheduling.filters.node_unschedulable import NodeUnschedulable
from kubetide.scheduling.filters.node_volume_limits import NodeVolumeLimits
from kubetide.scheduling.filters.pod_topology_spread import PodTopologySpread
from kubetide.scheduling.filters.taint_toleration import TaintToleration
from kubetide.scheduling.filters.volume_binding import VolumeBinding
from kubetide.scheduling.filters.volume_restrictions import VolumeRestrictions
from kubetide.scheduling.filters.volume_zone import VolumeZone

NODE_NAME = NodeName()
NODE_AFFINITY = NodeAffinity()
NODE_RESOURCES_FIT = NodeResourcesFit()

FILTERS: tuple[Filter, ...] = (
    NodeUnschedulable(),
    NODE_NAME,
    TaintToleration(),
    NODE_AFFINITY,
    NodePorts(),
    NODE_RESOURCES_FIT,
    VolumeRestrictions(),
    NodeVolumeLimits(),
    VolumeBinding(),
    VolumeZone(),
    PodTopologySpread(),
    InterPodAffinity(),
    DynamicResources(),
    NodeDeclaredFeatures(),
)
"""In the order in which the first failure counts."""

FIRST_FILTERS = frozenset(
    one.name for one in FILTERS[: [one.name for one in FILTERS].index("PodTopologySpread")]
)
"""Names of the plugins that come before those that look at pods of other nodes."""
