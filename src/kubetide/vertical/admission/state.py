"""What reviews are answered from: VPA objects, controllers of pods, LimitRanges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubetide.objects.limit_range import LimitRange
from kubetide.objects.vpa import OFF, VerticalPodAutoscaler
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.boost import has_boost
from kubetide.vertical.limit_ranges import NO_BOUNDS, NamespaceBounds, merged
from kubetide.vertical.matching import VpaIndex
from kubetide.vertical.policies import update_mode
from kubetide.vertical.workloads import Workloads


@dataclass(slots=True)
class State:
    """What is known of the cluster. Only whoever gathers it changes it."""

    settings: Settings = field(default_factory=Settings)
    vpas: VpaIndex = field(default_factory=lambda: VpaIndex(()))
    workloads: Workloads = field(default_factory=dict)
    limit_ranges: Mapping[str, tuple[LimitRange, ...]] = field(default_factory=dict)

    def bounds(self, namespace: str) -> NamespaceBounds:
        """Return the bounds of a namespace. Raises: QuantityError."""
        ranges = self.limit_ranges.get(namespace)
        return merged(ranges) if ranges else NO_BOUNDS


def index_of(vpas: Iterable[VerticalPodAutoscaler], settings: Settings) -> VpaIndex:
    """Return the VPA objects that admit pods: mode ``Off`` only with a start-up boost."""
    home = settings.vpa_object_namespace
    ignored = settings.ignored_vpa_object_namespaces
    return VpaIndex(
        vpa
        for vpa in vpas
        if (not home or vpa.metadata.namespace == home)
        and vpa.metadata.namespace not in ignored
        and (update_mode(vpa.spec) != OFF or has_boost(vpa.spec))
    )
