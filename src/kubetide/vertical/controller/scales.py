"""Custom targets, and custom owners of targets, read through their ``scale`` subresource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubetide.acting import UNANSWERED, in_parallel, in_time
from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.kinds import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Kind,
)
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import Duration, minutes
from kubetide.vertical.workloads import WELL_KNOWN, WorkloadKey, Workloads, WorkloadView

WORKLOAD_KINDS: Final[tuple[Kind[Any], ...]] = (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
"""The well-known kinds, which caches hold."""

_LIFE = minutes(1)
_PARALLEL = 10


class ReadScales(NamedTuple):
    """What a reading found: views that have changed, and those that no VPA needs any more."""

    changed: list[WorkloadView]
    gone: list[WorkloadKey]


class ScaleReader:
    """Reads each scale once a minute: as often as upstream's updater, which asks in every loop, and not with each review."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._read_at: dict[WorkloadKey, Duration] = {}
        self._last: dict[WorkloadKey, WorkloadView] = {}

    async def read(self, vpas: Iterable[VerticalPodAutoscaler], workloads: Workloads) -> ReadScales:
        """Read the scales of custom targets, and of custom owners of well-known targets, that were not read lately.

        A VPA must name the owner if that has a scale. The view of what cannot be read holds the error.

        Args:
            workloads: The well-known controllers that there are.
        """
        targets: dict[WorkloadKey, CrossVersionObjectReference] = {}
        for vpa in vpas:
            ref, namespace = vpa.spec.target_ref, vpa.metadata.namespace
            if ref is not None and ref.kind in WELL_KNOWN:
                ref = _custom_owner(workloads.get((ref.kind, namespace, ref.name)))
            if ref is not None:
                targets[ref.kind, namespace, ref.name] = ref
        gone = [key for key in self._last if key not in targets]
        for key in gone:
            self._read_at.pop(key, None)
            del self._last[key]
        return ReadScales(await self._read_due(targets), gone)

    async def _read_due(
        self, targets: Mapping[WorkloadKey, CrossVersionObjectReference]
    ) -> list[WorkloadView]:
        now = self._clock.monotonic()
        due = [
            (key, ref)
            for key, ref in targets.items()
            if key not in self._read_at or self._read_at[key] + _LIFE <= now
        ]
        if not due:
            return []
        try:
            kinds = await self._cluster.kinds()
        except ApiError as error:
            # What was never read may be anything. The next reading asks for it again.
            new = [key for key, _ in due if key not in self._last]
            unread = [WorkloadView(*key, problem=str(error), unreadable=True) for key in new]
            self._last |= {view.key: view for view in unread}
            return unread
        views = await in_parallel(due, lambda one: self._scale_of(*one, kinds), limit=_PARALLEL)
        changed = [view for view in views if self._last.get(view.key) != view]
        self._read_at |= {view.key: now for view in views}
        self._last |= {view.key: view for view in views}
        return changed

    async def _scale_of(
        self, key: WorkloadKey, ref: CrossVersionObjectReference, kinds: Sequence[Kind[Any]]
    ) -> WorkloadView:
        group = ref.api_version.rpartition("/")[0]
        kind = next((one for one in kinds if one.kind == ref.kind and one.group == group), None)
        if kind is None:
            problem = f'no matches for kind "{ref.kind}" in group "{group}"'
            return WorkloadView(*key, problem=problem, unreadable=True)
        if "scale" not in kind.subresources:
            return WorkloadView(*key, problem=f"{ref.kind} has no scale subresource")
        try:
            scale = await in_time(self._cluster.get_scale(kind, ref.name, namespace=key[1]))
        except TimeoutError:
            # What was read last of it holds.
            return self._last.get(key) or WorkloadView(*key, problem=UNANSWERED, unreadable=True)
        except NotFound:
            return WorkloadView(*key, problem=f"{ref.kind} {key[1]}/{ref.name} does not exist")
        except ApiError as error:
            return WorkloadView(*key, problem=str(error), unreadable=True)
        selector = scale.status.selector
        try:
            Selector.parse(selector)
        except SelectorError as error:
            # The API server passes on whatever the custom resource holds.
            return WorkloadView(*key, problem=str(error), scalable=True)
        return WorkloadView(*key, selector=selector or None, scalable=True)


def _custom_owner(view: WorkloadView | None) -> CrossVersionObjectReference | None:
    """Return the owner of a well-known controller where that may have a scale of its own kind; else None."""
    if view is None or view.owner is None or not view.owner_version:
        return None
    kind, name = view.owner
    return CrossVersionObjectReference(api_version=view.owner_version, kind=kind, name=name)
