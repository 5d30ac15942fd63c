"""The filter plugins in upstream's default order: a new one is a file and a line here, or an entry point.

Source: kube-scheduler v1.36 default profile.
"""

from __future__ import annotations

from kubetide.scheduling.filters.base import (
    CapacityFilter,
    Filter,
    MovingFilter,
    StaticFilter,
    WholesaleFilter,
)
from kubetide.scheduling.filters.dynamic_resources import DynamicResources
from kubetide.scheduling.filters.installed import installed_filters
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

NODE_AFFINITY = NodeAffinity()
NODE_RESOURCES_FIT = NodeResourcesFit()

_INSTALLED = installed_filters()

FILTERS: tuple[Filter, ...] = (
    NodeUnschedulable(),
    NodeName(),
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
    *_INSTALLED,
)
"""In the order in which the first failure counts; plugins of other packages come last."""

WHOLESALE_FILTERS: tuple[WholesaleFilter, ...] = tuple(
    one for one in FILTERS if isinstance(one, WholesaleFilter)
)
# These judge a node by itself and only more strictly as pods are added; ``packing`` relies on that.
STATIC_FILTERS: tuple[StaticFilter, ...] = tuple(one for one in FILTERS if isinstance(one, StaticFilter))
CAPACITY_FILTERS: tuple[CapacityFilter, ...] = tuple(
    one for one in FILTERS if isinstance(one, CapacityFilter)
)
MOVING_FILTERS: tuple[MovingFilter, ...] = tuple(one for one in FILTERS if isinstance(one, MovingFilter))

FIRST_FILTERS = frozenset(
    one.name for one in FILTERS[: [one.name for one in FILTERS].index("PodTopologySpread")]
)
"""Names of the plugins that come before those that look at pods of other nodes."""

SHARES_VERDICTS = not _INSTALLED
"""Whether classes of equal ``PodClass.standing`` and ``minding`` are judged alike: plugins of other packages may read more."""
