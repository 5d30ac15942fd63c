"""The filter plugins in upstream's default order: a new one is a file and a line here.

Source: kube-scheduler v1.36 default profile.
"""

from __future__ import annotations

from kubetide.scheduling.filters.base import CapacityFilter, Filter, StaticFilter
from kubetide.scheduling.filters.node_affinity import NodeAffinity
from kubetide.scheduling.filters.node_name import NodeName
from kubetide.scheduling.filters.node_ports import NodePorts
from kubetide.scheduling.filters.node_resources_fit import NodeResourcesFit
from kubetide.scheduling.filters.node_unschedulable import NodeUnschedulable
from kubetide.scheduling.filters.taint_toleration import TaintToleration

NODE_AFFINITY = NodeAffinity()

# All judge a node by itself and only more strictly as pods are added; ``placement`` and ``packing``
# rely on that.
STATIC_FILTERS: tuple[StaticFilter, ...] = (NodeUnschedulable(), NodeName(), TaintToleration(), NODE_AFFINITY)
CAPACITY_FILTERS: tuple[CapacityFilter, ...] = (NodePorts(), NodeResourcesFit())

FILTERS: tuple[Filter, ...] = (*STATIC_FILTERS, *CAPACITY_FILTERS)
"""In the order in which the first failure counts."""
