"""Writes the status ConfigMap, and the ConfigMap of learned machine facts."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kubetide.acting import update_object
from kubetide.nodes.registry.status_map import LAST_UPDATED_ANNOTATION, initializing_status, status_time
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.keeping import CONFIG_MAP, DATA_KEY
from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Conflict, Forbidden, NotFound, Withheld
from kubetide.units.time import Instant

_KIND: Final = CONFIG_MAPS.untyped


class StatusMap:
    """The object ``cluster-autoscaler-status``, and that of learned facts; a write that fails is left to the next tick."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._name = settings.status_config_map_name
        self._namespace = settings.namespace
        self._status = _Document(cluster, self._namespace, self._name)
        self._learned = _Document(cluster, self._namespace, CONFIG_MAP)
        self._is_ours = settings.write_status_configmap
        self._unsaved: str | None = None
        self.problems = {self._name: "", CONFIG_MAP: ""}
        """By object why its last write failed, as a sentence; empty if it did not, was withheld, or lacks a right."""

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
        problem = ""
        try:
            await self._status.write("status", document, {LAST_UPDATED_ANNOTATION: status_time(now)})
        except (Withheld, Forbidden):
            pass  # The guard tells of both.
        except ApiError as error:
            name = f"{self._namespace}/{self._name}"
            problem = f"ConfigMap {name} cannot be written: {error}; the status in it is old until then"
        self.problems[self._name] = problem

    async def keep_learned(self, document: str | None, *, now: bool) -> None:
        """Write the learned machine facts to their own object; a failed write is tried again next time.

        ``now``: whether it may be written at once.
        """
        self._unsaved = document or self._unsaved
        if self._unsaved is None or not now:
            return
        try:
            await self._learned.write(DATA_KEY, self._unsaved)
        except (Withheld, Forbidden):
            pass  # Who only advises keeps nothing, nor does an account with the roles of upstream's chart.
        except ApiError as error:
            name = f"{self._namespace}/{CONFIG_MAP}"
            lost = "what was learned of machines is lost with this process until then"
            self.problems[CONFIG_MAP] = f"ConfigMap {name} cannot be written: {error}; {lost}"
            return
        self._unsaved, self.problems[CONFIG_MAP] = None, ""

    async def remove(self) -> None:
        """Delete the object, unless somebody else writes it; a failure is ignored.

        Source: Cluster Autoscaler, ``ExitCleanUp``, which leaves it alone without ``--write-status-configmap``.
        """
        if not self._is_ours:
            return
        with suppress(ApiError):
            await self._cluster.delete(CONFIG_MAPS, self._name, namespace=self._namespace)


class _Document:
    """A text in a ConfigMap, written over the object as this process has left it: mostly one request a write."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._known: Json | None = None

    async def write(self, key: str, text: str, annotations: dict[str, str] | None = None) -> None:
        """Set the key and the annotations; what else the object holds stays. Raises ApiError, Withheld."""

        def change(there: Json) -> Json:
            metadata = there["metadata"]
            noted = {**(metadata.get("annotations") or {}), **(annotations or {})}
            data = {**(there.get("data") or {}), key: text}
            return {**there, "metadata": {**metadata, "annotations": noted}, "data": data}

        if self._known is not None:
            with suppress(Conflict, NotFound):
                self._known = await self._cluster.replace(
                    _KIND, change(self._known), namespace=self._namespace
                )
                return
        try:
            self._known = await update_object(
                self._cluster, CONFIG_MAPS, self._name, change, namespace=self._namespace
            )
        except NotFound:
            body = change({"metadata": {"name": self._name, "namespace": self._namespace}})
            self._known = await self._cluster.create(_KIND, body, namespace=self._namespace)
