"""Which VPA controls a pod.

Source: vertical-pod-autoscaler 1.8.1, pkg/utils/vpa/api.go and pkg/admission-controller/resource/vpa/matcher.go.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.selectors import Selector
from kubetide.units.time import Instant, TimeFormatError, parse_rfc3339
from kubetide.vertical.workloads import OwnedByNode, OwnerProblem, Workloads, owner_of, topmost

Target = tuple[str, str, str]
"""Namespace, and the kind and name that ``targetRef`` names."""


class Match(NamedTuple):
    """The VPA that controls a pod, or why there is none; neither if no VPA selects the pod."""

    vpa: VerticalPodAutoscaler | None = None
    problem: str = ""


class VpaIndex:
    """VPA objects by targeted workload, in order of precedence: oldest first, then by name."""

    def __init__(self, vpas: Iterable[VerticalPodAutoscaler] = ()) -> None:
        self._by_target: dict[Target, list[VerticalPodAutoscaler]] = {}
        self._targets: dict[tuple[str, str], Target] = {}
        for vpa in vpas:
            self.put(vpa)

    def put(self, vpa: VerticalPodAutoscaler) -> None:
        """Add or update a VPA object; one without a target controls no pod."""
        meta, ref = vpa.metadata, vpa.spec.target_ref
        self.remove((meta.namespace, meta.name))
        if ref is None:
            return
        target = meta.namespace, ref.kind, ref.name
        self._targets[meta.namespace, meta.name] = target
        insort(self._by_target.setdefault(target, []), vpa, key=_precedence)

    def remove(self, key: tuple[str, str]) -> None:
        """Remove a VPA object by namespace and name."""
        target = self._targets.pop(key, None)
        if target is not None:
            left = [vpa for vpa in self._by_target.pop(target) if vpa.metadata.name != key[1]]
            if left:
                self._by_target[target] = left

    @property
    def namespaces(self) -> frozenset[str]:
        """Where there are VPA objects with a target."""
        return frozenset(namespace for namespace, _, _ in self._by_target)

    def __len__(self) -> int:
        return len(self._targets)

    def of_pod(self, meta: ObjectMeta, workloads: Workloads) -> Match:
        """Return the VPA that controls a pod."""
        top = topmost_target(meta, workloads)
        return top if isinstance(top, Match) else self.of_target(top, meta.labels, workloads)

    def of_target(self, target: Target, labels: Mapping[str, str] | None, workloads: Workloads) -> Match:
        """Return the VPA that controls pods with these labels whose topmost owner is ``target``."""
        namespace, kind, name = target
        view = workloads.get((kind, namespace, name))
        if view is None or view.selector is None:
            return Match()
        if not Selector.parse(view.selector).matches(labels):
            return Match()
        candidates = self._by_target.get(target, ())
        return Match(candidates[0]) if candidates else Match()


def topmost_target(meta: ObjectMeta, workloads: Workloads) -> Target | Match:
    """Return the topmost owner of a pod, or a match without a VPA that holds the reason."""
    owner = owner_of(meta.owner_references)
    if owner is None:
        return Match()
    try:
        top = topmost(workloads, meta.namespace, owner.kind, owner.name)
    except OwnedByNode:
        # Each node has such pods. They are no problem, as with upstream.
        return Match()
    except OwnerProblem as problem:
        return Match(None, str(problem))
    return Match() if top is None else (meta.namespace, *top)


def _precedence(vpa: VerticalPodAutoscaler) -> tuple[Instant, str]:
    return created_at(vpa.metadata), vpa.metadata.name


def created_at(meta: ObjectMeta) -> Instant:
    """Return when an object was created; the epoch if it has no creation time."""
    try:
        return parse_rfc3339(meta.creation_timestamp or "")
    except TimeFormatError:
        return Instant(0)
