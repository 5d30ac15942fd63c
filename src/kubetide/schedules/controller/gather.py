"""Reads time tables from caches, and targets from the API server when they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from kubetide.acting import UNANSWERED, in_parallel, in_time
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, REPLICA_SETS, STATEFUL_SETS, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError
from kubetide.schedules.kinds.base import group_of, is_hpa
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.tables import LATE, Delta, HpaView, Key, Table, Target, View
from kubetide.units.time import Instant, between, seconds
from kubetide.watching import Caches

_LIMIT: Final = 10
"""Requests in flight at once."""
_DISCOVERED_EVERY: Final = seconds(30)


class Gatherer:
    """Reads the input of the loop."""

    def __init__(self, cluster: Cluster, caches: Caches, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self.informers = {name: caches.of(mode.kind) for name, mode in MODES.items()}
        self._feeds = {name: informer.feed() for name, informer in self.informers.items()}
        self._kinds = _by_name((DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS))
        self._asked: Instant | None = None
        self._asking = asyncio.Lock()

    async def answered(self) -> None:
        """Return once each kind is synced, or refused."""
        for informer in self.informers.values():
            await informer.answered()

    def start_anew(self) -> None:
        """Read everything again."""
        for name, informer in self.informers.items():
            informer.close_feed(self._feeds[name])
            self._feeds[name] = informer.feed()

    def changes(self) -> Delta:
        """Return the tables that changed since the last call."""
        tables: list[Table] = []
        gone: list[Key] = []
        for name, feed in self._feeds.items():
            for (namespace, own), found in sorted(feed.drain().items()):
                if found is None or found.metadata.deletion_timestamp or not MODES[name].ours(found):
                    gone.append((name, namespace, own))
                else:
                    tables.append(MODES[name].read(found))
        return Delta(tables=tuple(tables), gone=tuple(gone))

    async def views(self, targets: Iterable[Target]) -> tuple[View, ...]:
        """Return the present targets; the view of a failed read holds the error."""
        return tuple(await in_parallel(list(targets), self._view, limit=_LIMIT))

    async def kind_of(self, target: Target) -> Kind[Any] | None:
        """Return the kind of a target; queries the served kinds at most every half minute."""
        group_kind = (group_of(target), target.kind.lower())
        async with self._asking:  # who asks meanwhile gets the same answer
            now = self._clock.now()
            if group_kind not in self._kinds and (
                self._asked is None or between(self._asked, now) >= _DISCOVERED_EVERY
            ):
                self._kinds = _by_name(await self._cluster.kinds()) | self._kinds
                self._asked = now
            return self._kinds.get(group_kind)

    def name_of(self, target: Target) -> str:
        """Return the kind of a target as the cluster writes it; as the target does where it was never read."""
        if is_hpa(target):
            return HPAS.kind
        known = self._kinds.get((group_of(target), target.kind.lower()))
        return target.kind if known is None else known.kind

    async def _view(self, target: Target) -> View:
        if target.api_version.count("/") > 1:
            return View(
                target, error=f"unexpected GroupVersion string: {target.api_version}", stage="version"
            )
        try:
            return await in_time(self._hpa(target) if is_hpa(target) else self._scale(target))
        except TimeoutError:
            return View(target, error=UNANSWERED, stage=LATE)
        except ApiError as error:
            return View(target, error=str(error), stage="get")

    async def _scale(self, target: Target) -> View:
        kind = await self.kind_of(target)
        if kind is None:
            text = f'no matches for kind "{target.kind}" in group "{group_of(target)}"'
            return View(target, error=text, stage="kind")
        scale = await self._cluster.get_scale(kind, target.name, namespace=target.namespace)
        return View(target, scale.spec.replicas, scale.metadata.resource_version)

    async def _hpa(self, target: Target) -> View:
        found = await self._cluster.get(HPAS, target.name, namespace=target.namespace)
        reference = found.spec.scale_target_ref
        own = Target(reference.api_version, reference.kind, target.namespace, reference.name)
        hpa = HpaView(
            found.spec.min_replicas,
            found.spec.max_replicas,
            found.status.current_replicas,
            own,
            found.metadata.resource_version,
        )
        if is_hpa(own):
            return View(target, error=f"{own.kind} {own.name}, its target, has no scale", stage="hpa-get")
        scale = await self._view(own)
        if scale.error:
            return View(target, error=scale.error, stage=f"hpa-{scale.stage}")
        return View(target, scale.replicas, scale.resource_version, hpa)


def _by_name(kinds: Iterable[Kind[Any]]) -> dict[tuple[str, str], Kind[Any]]:
    """Return the first kind of each group and name; capital letters play no part, as in ``Statefulset``."""
    found: dict[tuple[str, str], Kind[Any]] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.kind.lower()), kind)
    return found
