"""Makes deltas of what the caches hold and of two questions to the API server: the lease, and custom scales."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubetide.objects.kinds import (
    LEASES,
    LIMIT_RANGES,
    PODS,
    VPAS,
    Kind,
)
from kubetide.objects.meta import Key
from kubetide.objects.vpa import VerticalPodAutoscaler, VpaStatus
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError
from kubetide.units.time import format_rfc3339
from kubetide.vertical.controller.lease import lease_namespace
from kubetide.vertical.controller.scales import WORKLOAD_KINDS, ScaleReader
from kubetide.vertical.updater.decision import LateChange
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.slimming import slim_pod
from kubetide.vertical.updater.state import Delta, LeaseView, State
from kubetide.vertical.workloads import WorkloadKey, WorkloadView, view_of
from kubetide.watching import Caches, Informer

_STATUS: Final = msgspec.json.Decoder(VpaStatus)


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
        board: Board,
    ) -> None:
        self._board = board
        self._advised: Mapping[Key, bytes] = {}
        """The statuses that stand in for those that are stored."""
        self._cluster, self._clock, self._settings = cluster, clock, settings
        self._holds = holds
        home = settings.vpa_object_namespace
        self.pods = caches.of(PODS, keep=slim_pod, namespace=home)
        self._vpas = caches.of(VPAS, namespace=home)
        self._ranges = caches.of(LIMIT_RANGES, namespace=home)
        self._workloads: list[tuple[Kind[Any], Informer[Any]]] = [
            (kind, caches.of(kind, keep=partial(view_of, kind.kind), namespace=home))
            for kind in WORKLOAD_KINDS
        ]
        self._pod_feed = self.pods.feed()
        self._vpa_feed, self._range_feed = self._vpas.feed(), self._ranges.feed()
        self._workload_feeds = [(kind, informer.feed()) for kind, informer in self._workloads]
        self._scales = ScaleReader(cluster, clock)

    async def synced(self) -> None:
        """Return once the pods are there, and every other kind is or was refused."""
        await self.pods.synced()
        await self._vpas.answered()
        await self._ranges.answered()
        for _, informer in self._workloads:
            await informer.answered()

    async def gather(
        self,
        state: State,
        late: Sequence[LateChange] = (),
        *,
        replacement_waits: Mapping[str, str] | None = None,
        boosts_only: bool = False,
    ) -> Delta:
        """Return what has changed, with the late changes and what the board says; nothing but this reads the caches."""
        pods, vpas = self._pod_feed.drain(), self._with_advice(self._vpa_feed.drain())
        ranges = self._range_feed.drain()
        workloads, gone = self._drain_workloads()
        known = dict(state.vpas) | {key: vpa for key, vpa in vpas.items() if vpa is not None}
        for key in [key for key, vpa in vpas.items() if vpa is None]:
            known.pop(key, None)
        now_known = ChainMap({one.key: one for one in workloads}, state.workloads)
        scales = await self._scales.read(known.values(), now_known)
        lease, problem = await self._lease()
        live = {key: slim_pod(pod) for key, pod in pods.items() if pod is not None and pod.spec.node_name}
        return Delta(
            vpas=[vpa for vpa in vpas.values() if vpa is not None],
            gone_vpas=[key for key, vpa in vpas.items() if vpa is None],
            pods=list(live.values()),
            gone_pods=[key for key in pods if key not in live and key in state.pods],
            workloads=[*workloads, *scales.changed],
            gone_workloads=[*gone, *scales.gone],
            limit_ranges=[one for one in ranges.values() if one is not None],
            gone_limit_ranges=[key for key, one in ranges.items() if one is None],
            lease=lease,
            lease_error=problem,
            holds=tuple(self._holds(self.pods)),
            boosts_only=boosts_only,
            late=late,
            replacement_waits=replacement_waits,
        )

    def _with_advice(
        self, changed: Mapping[Key, VerticalPodAutoscaler | None]
    ) -> dict[Key, VerticalPodAutoscaler | None]:
        """Return the changed VPAs with the statuses that the recommender of this process would write if it acted."""
        found, before, advised = dict(changed), self._advised, self._board.advised_statuses
        self._advised = advised
        for key in sorted({*before, *advised}):
            vpa, status = self._vpas.objects.get(key), advised.get(key)
            if vpa is None or (status == before.get(key) and key not in changed):
                continue
            found[key] = vpa if status is None else replace(vpa, status=_STATUS.decode(status))
        return found

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
        if self._board.advises_admission:
            # It would renew its lease if it acted.
            return LeaseView(renewed=format_rfc3339(self._clock.now())), ""
        name = settings.admission_controller_status_lease_name
        home = lease_namespace(settings.admission_controller_status_lease_namespace)
        try:
            lease = await self._cluster.get(LEASES, name, namespace=home)
        except ApiError as error:
            return None, str(error)
        return LeaseView(lease.metadata.creation_timestamp, lease.spec.renew_time), ""
