"""Custom targets, read through their ``scale`` subresource."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kubetide.acting import in_parallel
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
from kubetide.units.time import Instant, after, minutes
from kubetide.vertical.workloads import WELL_KNOWN, WorkloadKey, WorkloadView

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


class ScaleReader:
    """Reads each scale once a minute: as often as upstream's updater, which asks in every loop, and not with each review."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._read_at: dict[WorkloadKey, Instant] = {}
        self._last: dict[WorkloadKey, WorkloadView] = {}

    async def read(self, vpas: Iterable[VerticalPodAutoscaler]) -> list[WorkloadView]:
        """Read the custom targets that were not read lately, and return those that have changed.

        The view of one that cannot be read holds the error.
        """
        now = self._clock.now()
        asked: dict[WorkloadKey, CrossVersionObjectReference] = {}
        for vpa in vpas:
            ref = vpa.spec.target_ref
            if ref is None or ref.kind in WELL_KNOWN:
                continue
            key = ref.kind, vpa.metadata.namespace, ref.name
            last = self._read_at.get(key)
            if last is None or after(last, _LIFE) <= now:
                asked[key] = ref
        if not asked:
            return []
        try:
            kinds = await self._cluster.kinds()
        except ApiError:
            return []
        views = await in_parallel(
            list(asked.items()), lambda one: self._scale_of(*one, kinds), limit=_PARALLEL
        )
        self._read_at |= dict.fromkeys(asked, now)
        changed = [view for view in views if self._last.get(view.key) != view]
        self._last |= {view.key: view for view in changed}
        return changed

    async def _scale_of(
        self, key: WorkloadKey, ref: CrossVersionObjectReference, kinds: Sequence[Kind[Any]]
    ) -> WorkloadView:
        group = ref.api_version.rpartition("/")[0]
        kind = next((one for one in kinds if one.kind == ref.kind and one.group == group), None)
        if kind is None or "scale" not in kind.subresources:
            return WorkloadView(*key, problem=f"{ref.kind} has no scale subresource")
        try:
            scale = await self._cluster.get_scale(kind, ref.name, namespace=key[1])
        except NotFound:
            return WorkloadView(*key, problem=f"{ref.kind} {key[1]}/{ref.name} does not exist")
        except ApiError as error:
            return WorkloadView(*key, problem=str(error))
        return WorkloadView(*key, selector=scale.status.selector or None, scalable=True)
