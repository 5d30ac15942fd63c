"""Writes the status ConfigMap, and the ConfigMap of learned machine facts."""

from __future__ import annotations

from contextlib import suppress

from kubetide.nodes.registry.status_map import LAST_UPDATED_ANNOTATION, initializing_status, status_time
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.keeping import CONFIG_MAP, DATA_KEY
from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound, Withheld
from kubetide.units.time import Instant


class StatusMap:
    """The object ``cluster-autoscaler-status``; a write that fails is counted and left to the next tick."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._name = settings.status_config_map_name
        self._namespace = settings.namespace
        self._is_ours = settings.write_status_configmap
        self.failures = 0
        self._unsaved: str | None = None

    @property
    def is_settled(self) -> bool:
        """Whether no write is pending."""
        return self._unsaved is None

    async def begin(self, now: Instant) -> None:
        """Say that the loop initializes, so that nobody takes what an earlier process left for the present.

        Source: Cluster Autoscaler, ``NewStatusMapRecorder``.
        """
        if self._is_ours:
            await self.write(initializing_status("", now), now)

    async def write(self, document: str, now: Instant) -> None:
        """Write the document; create the object if it is missing."""
        body: Json = {
            "metadata": {"annotations": {LAST_UPDATED_ANNOTATION: status_time(now)}},
            "data": {"status": document},
        }
        try:
            try:
                await self._cluster.patch(CONFIG_MAPS, self._name, body, namespace=self._namespace)
            except NotFound:
                body["metadata"] |= {"name": self._name, "namespace": self._namespace}
                await self._cluster.create(CONFIG_MAPS, body, namespace=self._namespace)
        except ApiError:
            self.failures += 1

    async def keep_learned(self, document: str | None, *, now: bool) -> None:
        """Write the learned machine facts to their own object; a failed write is tried again next time.

        ``now``: whether it may be written at once.
        """
        self._unsaved = document or self._unsaved
        if self._unsaved is None or not now:
            return
        body: Json = {"data": {DATA_KEY: self._unsaved}}
        try:
            try:
                await self._cluster.patch(CONFIG_MAPS, CONFIG_MAP, body, namespace=self._namespace)
            except NotFound:
                body["metadata"] = {"name": CONFIG_MAP, "namespace": self._namespace}
                await self._cluster.create(CONFIG_MAPS, body, namespace=self._namespace)
        except Withheld:
            pass  # Who only advises keeps nothing.
        except ApiError:
            self.failures += 1
            return
        self._unsaved = None

    async def remove(self) -> None:
        """Delete the object, unless somebody else writes it; a failure is ignored.

        Source: Cluster Autoscaler, ``ExitCleanUp``, which leaves it alone without ``--write-status-configmap``.
        """
        if not self._is_ours:
            return
        with suppress(ApiError):
            await self._cluster.delete(CONFIG_MAPS, self._name, namespace=self._namespace)
