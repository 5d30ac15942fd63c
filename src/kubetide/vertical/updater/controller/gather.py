"""Makes deltas of what the caches hold and of two questions to the API server: the lease, and custom scales."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from kubetide.acting import in_parallel
from kubetide.objects.kinds import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    LIMIT_RANGES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    VPAS,
    Kind,
)
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.units.time import Instant, after, minutes
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.slimming import slim_pod
from kubetide.vertical.updater.state import Delta, LeaseView, State
from kubetide.vertical.workloads import WELL_KNOWN, WorkloadKey, WorkloadView, view_of
from kubetide.watching import Caches, Informer

_WORKLOADS: tuple[Kind[Any], ...] = (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
_SCALE_LIFE = minutes(10)
_PARALLEL = 10
_DEFAULT_NAMESPACE = "kube-system"


def lease_namespace(flag: str) -> str:
    """Return where the admission controller's lease is: the flag, else ``$NAMESPACE``, else kube-system."""
    return flag or os.environ.get("NAMESPACE") or _DEFAULT_NAMESPACE


class Gatherer:
    """Gathers what has changed since the last loop."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        caches: Caches,
        settings: Settings,
        *,
        holds: Callable[[Informer[Any]], Sequence[str]],
    ) -> None:
        self._cluster, self._clock, self._settings = cluster, clock, settings
        self._holds = holds
        self.pods = caches.of(PODS, keep=slim_pod)
        self._vpas = caches.of(VPAS)
        self._ranges = caches.of(LIMIT_RANGES)
        self._workloads: list[tuple[Kind[Any], Informer[Any]]] = [
            (kind, caches.of(kind, keep=partial(view_of, kind.kind))) for kind in _WORKLOADS
        ]
        self._pod_feed = self.pods.feed()
        self._vpa_feed, self._range_feed = self._vpas.feed(), self._ranges.feed()
        self._workload_feeds = [(kind, informer.feed()) for kind, informer in self._workloads]
        self._scales: dict[WorkloadKey, tuple[Instant, WorkloadView]] = {}

    async def synced(self) -> None:
        """Return once the pods are there, and every other kind is or was refused."""
        await self.pods.synced()
        await self._vpas.answered()
        await self._ranges.answered()
        for _, informer in self._workloads:
            await informer.answered()

    async def gather(self, state: State, *, boosts_only: bool = False) -> Delta:
        """Return what has changed; nothing but this reads the caches."""
        pods, vpas = self._pod_feed.drain(), self._vpa_feed.drain()
        ranges = self._range_feed.drain()
        workloads, gone = self._drain_workloads()
        known = dict(state.vpas) | {key: vpa for key, vpa in vpas.items() if vpa is not None}
        for key in [key for key, vpa in vpas.items() if vpa is None]:
            known.pop(key, None)
        workloads += await self._custom(known.values())
        lease, problem = await self._lease()
        live = {key: slim_pod(pod) for key, pod in pods.items() if pod is not None and pod.spec.node_name}
        return Delta(
            vpas=[vpa for vpa in vpas.values() if vpa is not None],
            gone_vpas=[key for key, vpa in vpas.items() if vpa is None],
            pods=list(live.values()),
            gone_pods=[key for key in pods if key not in live and key in state.pods],
            workloads=workloads,
            gone_workloads=gone,
            limit_ranges=[one for one in ranges.values() if one is not None],
            gone_limit_ranges=[key for key, one in ranges.items() if one is None],
            lease=lease,
            lease_error=problem,
            holds=tuple(self._holds(self.pods)),
            boosts_only=boosts_only,
        )

    def _drain_workloads(self) -> tuple[list[WorkloadView], list[WorkloadKey]]:
        found: list[WorkloadView] = []
        gone: list[WorkloadKey] = []
        for kind, feed in self._workload_feeds:
            for (namespace, name), one in feed.drain().items():
                if one is None:
                    gone.append((kind.kind, namespace, name))
                else:
                    # In one process the cache holds whole objects.
                    found.append(one if isinstance(one, WorkloadView) else view_of(kind.kind, one))
        return found, gone

    async def _lease(self) -> tuple[LeaseView | None, str]:
        settings = self._settings
        if not settings.use_admission_controller_status:
            return None, ""
        name = settings.admission_controller_status_lease_name
        home = lease_namespace(settings.admission_controller_status_lease_namespace)
        try:
            lease = await self._cluster.get(LEASES, name, namespace=home)
        except ApiError as error:
            return None, str(error)
        return LeaseView(lease.metadata.creation_timestamp, lease.spec.renew_time), ""

    # ── targets of other kinds ──

    async def _custom(self, vpas: Iterable[VerticalPodAutoscaler]) -> list[WorkloadView]:
        """Read the scales of targets that are of no well-known kind; each once in ten minutes."""
        now = self._clock.now()
        asked: dict[WorkloadKey, VerticalPodAutoscaler] = {}
        for vpa in vpas:
            ref = vpa.spec.target_ref
            if ref is None or ref.kind in WELL_KNOWN:
                continue
            key = ref.kind, vpa.metadata.namespace, ref.name
            read = self._scales.get(key)
            if read is None or after(read[0], _SCALE_LIFE) <= now:
                asked[key] = vpa
        if not asked:
            return []
        try:
            kinds = await self._cluster.kinds()
        except ApiError:
            return []
        views = await in_parallel(
            list(asked.items()), lambda one: self._scale_of(*one, kinds), limit=_PARALLEL
        )
        for view in views:
            self._scales[view.key] = now, view
        return list(views)

    async def _scale_of(
        self, key: WorkloadKey, vpa: VerticalPodAutoscaler, kinds: Sequence[Kind[Any]]
    ) -> WorkloadView:
        kind_name, namespace, name = key
        ref = vpa.spec.target_ref
        group = (ref.api_version.rpartition("/")[0]) if ref is not None else ""
        kind = next((one for one in kinds if one.kind == kind_name and one.group == group), None)
        if kind is None or "scale" not in kind.subresources:
            return WorkloadView(kind_name, namespace, name, problem=f"{kind_name} has no scale subresource")
        try:
            scale = await self._cluster.get_scale(kind, name, namespace=namespace)
        except NotFound:
            return WorkloadView(
                kind_name, namespace, name, problem=f"{kind_name} {namespace}/{name} does not exist"
            )
        except ApiError as error:
            return WorkloadView(kind_name, namespace, name, problem=str(error))
        selector = scale.status.selector or None
        return WorkloadView(kind_name, namespace, name, selector=selector, scalable=True)
