"""Keeps the state for reviews equal to the caches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kubetide.objects.batch import CronJob
from kubetide.objects.kinds import LIMIT_RANGES, VPAS, Kind
from kubetide.objects.limit_range import LimitRange
from kubetide.objects.meta import Key, OwnerReference
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.objects.workload import Deployment, ReplicaSet, ReplicationController
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.admission.state import ControllerTemplate, State
from kubetide.vertical.controller.scales import WORKLOAD_KINDS, ScaleReader
from kubetide.vertical.workloads import Workload, WorkloadView, view_of
from kubetide.watching import Caches, Informer


class StateKeeper:
    """Applies every change at once, so that a review sees all objects created before its pod."""

    def __init__(self, cluster: Cluster, clock: Clock, settings: Settings, caches: Caches) -> None:
        self.state = State(settings)
        home = settings.vpa_object_namespace
        self._vpas = caches.of(VPAS, namespace=home)
        self._ranges = caches.of(LIMIT_RANGES, namespace=home)
        self._workloads: list[tuple[Kind[Any], Informer[Any]]] = [
            (kind, caches.of(kind, keep=partial(view_of, kind.kind), namespace=home))
            for kind in WORKLOAD_KINDS
        ]
        self._scales = ScaleReader(cluster, clock)

    def follow(self) -> None:
        """Apply the content of the caches, and each change from now on."""

        def vpa(key: Key, _: object, new: VerticalPodAutoscaler | None) -> None:
            self.state.put_vpa(key, new)

        def limit_range(key: Key, _: object, new: LimitRange | None) -> None:
            self.state.put_limit_range(key, new)

        def workload(kind: Kind[Any], key: Key, _: object, new: Any) -> None:
            place = kind.kind, *key
            if new is None or isinstance(new, WorkloadView):
                self.state.put_workload(place, new)
            else:
                # In one process the cache holds whole objects.
                self.state.put_workload(place, view_of(kind.kind, new), template_of(kind, new))

        _follow(self._vpas, vpa)
        _follow(self._ranges, limit_range)
        for kind, informer in self._workloads:
            _follow(informer, partial(workload, kind))

    async def synced(self) -> None:
        """Return once every cache is synced, or was refused."""
        await self._vpas.answered()
        await self._ranges.answered()
        for _, informer in self._workloads:
            await informer.answered()

    async def read_scales(self) -> None:
        """Read the scales of custom targets."""
        scales = await self._scales.read(tuple(self._vpas.objects.values()), self.state.workloads)
        for view in scales.changed:
            self.state.put_workload(view.key, view)
        for key in scales.gone:
            self.state.put_workload(key, None)


def template_of(kind: Kind[Any], controller: Workload) -> ControllerTemplate | None:
    """Return the template of the pods that a controller makes itself; None where it makes none now."""
    if isinstance(controller, CronJob | Deployment):
        return None
    template = controller.spec.template
    has_none = isinstance(controller, ReplicaSet | ReplicationController) and controller.spec.replicas == 0
    if template is None or has_none:
        return None
    meta = controller.metadata
    owner = OwnerReference(
        api_version=kind.api_version, kind=kind.kind, name=meta.name, uid=meta.uid, controller=True
    )
    return ControllerTemplate(owner, template)


def _follow(informer: Informer[Any], handler: Callable[[Key, Any, Any], None]) -> None:
    """Call the handler for what is there, and for every change."""
    informer.on_change(handler)
    for key, found in informer.objects.items():
        handler(key, None, found)
