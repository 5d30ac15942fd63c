"""The state for reviews: VPA objects, controllers of pods, LimitRanges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kubetide.objects.limit_range import LimitRange
from kubetide.objects.meta import OwnerReference
from kubetide.objects.pod import PodTemplate
from kubetide.objects.vpa import OFF, VerticalPodAutoscaler
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.matching import VpaIndex
from kubetide.vertical.resources.boost import has_boost
from kubetide.vertical.resources.limit_ranges import NO_BOUNDS, NamespaceBounds, merged
from kubetide.vertical.resources.policies import update_mode
from kubetide.vertical.workloads import WorkloadKey, WorkloadView


class ControllerTemplate(NamedTuple):
    """The template of the pods that a controller makes, and how these refer to it."""

    owner: OwnerReference
    template: PodTemplate


@dataclass(slots=True)
class State:
    """The known cluster objects. Only the state keeper changes it.

    Attributes:
        templates: Of controllers that make pods of their own, where the process holds whole objects of them.
    """

    settings: Settings = field(default_factory=Settings)
    vpas: VpaIndex = field(default_factory=VpaIndex)
    workloads: dict[WorkloadKey, WorkloadView] = field(default_factory=dict)
    limit_ranges: dict[str, tuple[LimitRange, ...]] = field(default_factory=dict)
    templates: dict[WorkloadKey, ControllerTemplate] = field(default_factory=dict)

    def bounds(self, namespace: str) -> NamespaceBounds:
        """Return the bounds of a namespace. Raises: QuantityError."""
        ranges = self.limit_ranges.get(namespace)
        return merged(ranges) if ranges else NO_BOUNDS

    def put_vpa(self, key: tuple[str, str], vpa: VerticalPodAutoscaler | None) -> None:
        """Store a VPA object; None removes it."""
        if vpa is None or not admits(vpa, self.settings):
            self.vpas.remove(key)
        else:
            self.vpas.put(vpa)

    def put_limit_range(self, key: tuple[str, str], one: LimitRange | None) -> None:
        """Store a LimitRange; None removes it."""
        others = [old for old in self.limit_ranges.get(key[0], ()) if old.metadata.name != key[1]]
        found = sorted([*others, *([one] if one is not None else [])], key=lambda each: each.metadata.name)
        self.limit_ranges[key[0]] = tuple(found)

    def put_workload(
        self, key: WorkloadKey, view: WorkloadView | None, template: ControllerTemplate | None = None
    ) -> None:
        """Store a controller of pods, with the template of those that it makes; None removes it."""
        if view is None:
            self.workloads.pop(key, None)
        else:
            self.workloads[key] = view
        if template is None:
            self.templates.pop(key, None)
        else:
            self.templates[key] = template


def admits(vpa: VerticalPodAutoscaler, settings: Settings) -> bool:
    """Return whether a VPA object admits pods: mode ``Off`` only with a start-up boost."""
    namespace, home = vpa.metadata.namespace, settings.vpa_object_namespace
    if (home and namespace != home) or namespace in settings.ignored_vpa_object_namespaces:
        return False
    return update_mode(vpa.spec) != OFF or has_boost(vpa.spec)


def index_of(vpas: Iterable[VerticalPodAutoscaler], settings: Settings) -> VpaIndex:
    """Return the index of the VPA objects that admit pods."""
    return VpaIndex(vpa for vpa in vpas if admits(vpa, settings))
