"""What the updater decides from: everything that it has gathered, and what it remembers.

``State.apply(delta)`` is the only way in, so a record of the deltas is a record of the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kubetide.objects.limit_range import LimitRange
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.time import Duration, Instant, TimeFormatError, after, parse_rfc3339
from kubetide.vertical.resources.limit_ranges import NO_BOUNDS, NamespaceBounds, merged
from kubetide.vertical.updater.decision import LateChange
from kubetide.vertical.updater.memory import Memory
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.workloads import WorkloadKey, WorkloadView


class LeaseView(msgspec.Struct, frozen=True):
    """The admission controller's lease: when it was made and last renewed (RFC 3339)."""

    created: str | None = None
    renewed: str | None = None

    def is_fresh(self, now: Instant, timeout: Duration) -> bool:
        """Return whether it was made or renewed less than ``timeout`` ago."""
        return any(_is_after(text, timeout, now) for text in (self.created, self.renewed))


def _is_after(text: str | None, timeout: Duration, now: Instant) -> bool:
    try:
        return text is not None and after(parse_rfc3339(text), timeout) > now
    except TimeFormatError:
        return False


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was gathered since the last loop; a full one also holds settings and memory.

    Attributes:
        lease: The admission controller's, always; None when there is none.
        lease_error: Why it could not be read.
        holds: Why nothing may be changed (a cache too old ...), as sentences; always the whole list.
        boosts_only: Whether this loop only ends start-up boosts.
        late: Changes for whose answers earlier loops waited no longer; always the whole list.
        replacement_waits: By uid of a running pod, what its replacement would wait for, empty where a node has the capacity
            for it; None where no node loop looks for it, or nobody asks. Always the whole mapping.
        limit_ranges, gone_limit_ranges: LimitRange objects that are new, changed or deleted.
        workloads, gone_workloads: Controllers of pods, likewise.
    """

    settings: Settings | None = None
    vpas: Sequence[VerticalPodAutoscaler] = ()
    gone_vpas: Sequence[Key] = ()
    pods: Sequence[Pod] = ()
    gone_pods: Sequence[Key] = ()
    workloads: Sequence[WorkloadView] = ()
    gone_workloads: Sequence[WorkloadKey] = ()
    limit_ranges: Sequence[LimitRange] = ()
    gone_limit_ranges: Sequence[Key] = ()
    lease: LeaseView | None = None
    lease_error: str = ""
    holds: Sequence[str] = ()
    boosts_only: bool = False
    late: Sequence[LateChange] = ()
    replacement_waits: Mapping[str, str] | None = None
    memory: Memory | None = None


class State:
    """Everything that decisions are made from. Only ``apply`` and the loop itself change it."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.vpas: dict[Key, VerticalPodAutoscaler] = {}
        self.pods: dict[Key, Pod] = {}
        self.workloads: dict[WorkloadKey, WorkloadView] = {}
        self.lease: LeaseView | None = None
        self.lease_error = ""
        self.holds: tuple[str, ...] = ()
        self.boosts_only = False
        self.late: tuple[LateChange, ...] = ()
        self.replacement_waits: Mapping[str, str] | None = None
        self.memory = Memory()
        self._limit_ranges: dict[Key, LimitRange] = {}
        self._bounds: dict[str, NamespaceBounds] = {}

    @classmethod
    def from_full(cls, delta: Delta) -> State:
        """Return the state that a full delta holds."""
        state = cls(delta.settings)
        state.apply(delta)
        return state

    def apply(self, delta: Delta) -> None:
        """Take over what was gathered since the last loop."""
        for vpa in delta.vpas:
            self.vpas[vpa.metadata.namespace, vpa.metadata.name] = vpa
        for key in delta.gone_vpas:
            self.vpas.pop(key, None)
        for pod in delta.pods:
            self.pods[pod.metadata.namespace, pod.metadata.name] = pod
        for key in delta.gone_pods:
            self.pods.pop(key, None)
        for view in delta.workloads:
            self.workloads[view.key] = view
        for workload in delta.gone_workloads:
            self.workloads.pop(workload, None)
        for one in delta.limit_ranges:
            self._limit_ranges[one.metadata.namespace, one.metadata.name] = one
        for key in delta.gone_limit_ranges:
            self._limit_ranges.pop(key, None)
        if delta.limit_ranges or delta.gone_limit_ranges:
            self._bounds = {}
        self.lease, self.lease_error = delta.lease, delta.lease_error
        self.holds, self.boosts_only = tuple(delta.holds), delta.boosts_only
        self.late = tuple(delta.late)
        self.replacement_waits = delta.replacement_waits
        if delta.memory is not None:
            # A copy: whoever holds the delta keeps it as it was.
            self.memory = msgspec.convert(msgspec.to_builtins(delta.memory), Memory)

    def bounds(self, namespace: str) -> NamespaceBounds:
        """Return what the LimitRanges of a namespace allow. Raises: QuantityError."""
        if not self._limit_ranges:
            return NO_BOUNDS
        if namespace not in self._bounds:
            ranges = [one for (home, _), one in sorted(self._limit_ranges.items()) if home == namespace]
            self._bounds[namespace] = merged(ranges)
        return self._bounds[namespace]

    def dump(self) -> Delta:
        """Return everything as one full delta: applied to a new state, it decides the same."""
        return Delta(
            settings=self.settings,
            vpas=tuple(self.vpas.values()),
            pods=tuple(self.pods.values()),
            workloads=tuple(self.workloads.values()),
            limit_ranges=tuple(self._limit_ranges.values()),
            lease=self.lease,
            lease_error=self.lease_error,
            holds=self.holds,
            boosts_only=self.boosts_only,
            late=self.late,
            replacement_waits=self.replacement_waits,
            memory=msgspec.convert(msgspec.to_builtins(self.memory), Memory),
        )
