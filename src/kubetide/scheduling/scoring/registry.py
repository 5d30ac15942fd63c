"""The plugins and weights of each profile: a new plugin is a file and a line here.

Source: kube-scheduler v1.36 default profile.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.scheduling.scoring.base import Scorer
from kubetide.scheduling.scoring.dynamic_resources import DynamicResources
from kubetide.scheduling.scoring.images import ImageLocality
from kubetide.scheduling.scoring.inter_pod_affinity import InterPodAffinity
from kubetide.scheduling.scoring.node_affinity import NodeAffinity
from kubetide.scheduling.scoring.node_resources import (
    NodeResourcesBalancedAllocation,
    NodeResourcesFit,
    Strategy,
    least_allocated,
    most_allocated,
)
from kubetide.scheduling.scoring.pod_topology_spread import PodTopologySpread
from kubetide.scheduling.scoring.taint_toleration import TaintToleration
from kubetide.scheduling.scoring.volume_binding import VolumeBinding


def _plugins(strategy: Strategy) -> tuple[tuple[Scorer, int], ...]:
    return (
        (TaintToleration(), 3),
        (NodeAffinity(), 2),
        (NodeResourcesFit(strategy), 1),
        (VolumeBinding(), 1),
        (PodTopologySpread(), 2),
        (InterPodAffinity(), 2),
        (DynamicResources(), 2),
        (NodeResourcesBalancedAllocation(), 1),
        (ImageLocality(), 1),
    )


SCORERS: Mapping[str, tuple[tuple[Scorer, int], ...]] = {
    "default": _plugins(least_allocated),
    "mostAllocated": _plugins(most_allocated),
}
"""By profile, its plugins in upstream's order with their weights."""
