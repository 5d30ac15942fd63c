"""The cluster as the other loops see it: what they write about a section goes to its ElasticWorkload."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from kubetide.elastic.controller.informers import Sections
from kubetide.loop import Owners
from kubetide.objects.base import Json
from kubetide.objects.kinds import ELASTIC_WORKLOADS, EVENTS, HPAS, VPAS, Kind
from kubetide.ports.cluster import Cluster
from kubetide.watching import Key

_VPA_STATUS: Final[Json] = {"recommendation": None, "conditions": None, "observedGeneration": None}


class ElasticCluster:
    """A cluster whose writes of statuses and events find the ElasticWorkload behind a section."""

    def __init__(self, inner: Cluster, sections: Sections) -> None:
        self._inner = inner
        self._sections = sections

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def patch(
        self,
        kind: Kind[Any],
        name: str,
        patch: Json | Sequence[Json],
        *,
        namespace: str = "",
        subresource: str = "",
        **how: Any,
    ) -> Any:
        """Patch an object; the status of a section stands in the status of its ElasticWorkload."""
        shown = self._sections.shown.get(kind.resource, {})
        if subresource != "status" or (namespace, name) not in shown:
            return await self._inner.patch(
                kind,
                name,
                patch,
                namespace=namespace,
                subresource=subresource,  # type: ignore[arg-type]  # as it came
                **how,
            )
        return await self._inner.patch(
            ELASTIC_WORKLOADS,
            name,
            {"status": _section(kind, patch)},
            namespace=namespace,
            subresource="status",
        )

    async def create(self, kind: Kind[Any], body: Json, *, namespace: str = "") -> Any:
        """Create an object; an event about a section is one about its ElasticWorkload."""
        if kind.resource == EVENTS.resource:
            body = self._about(body)
        return await self._inner.create(kind, body, namespace=namespace)

    def _about(self, event: Json) -> Json:
        involved = event.get("involvedObject") or {}
        key = involved.get("namespace", ""), involved.get("name", "")
        for kind in (HPAS, VPAS):
            if involved.get("kind") == kind.kind and key in self._sections.shown[kind.resource]:
                own = {"apiVersion": ELASTIC_WORKLOADS.api_version, "kind": ELASTIC_WORKLOADS.kind}
                return {**event, "involvedObject": {**involved, **own}}
        return event


def _section(kind: Kind[Any], patch: Json | Sequence[Json]) -> Json:
    """Return what a patch of a status says, as a merge patch of the section's part."""
    if isinstance(patch, dict):
        return {_part(kind): patch["status"]}
    status: Json = {}
    for step in patch:
        assert step["path"] == "/status", "loops replace a status as a whole"
        status = step["value"]
    return {_part(kind): {**_VPA_STATUS, **status}}


def _part(kind: Kind[Any]) -> str:
    return "horizontal" if kind.resource == HPAS.resource else "vertical"


class ElasticOwners:
    """Who serves an HPA: sections are ours, as no other controller knows them."""

    def __init__(self, inner: Owners, sections: Sections) -> None:
        self._inner = inner
        self._shown = sections.shown[HPAS.resource]

    def left_alone(self) -> Collection[Key]:
        """Return the objects that are not to be touched now."""
        return [key for key in self._inner.left_alone() if key not in self._shown]

    def knows(self, key: Key) -> bool:
        """Return whether it has seen an object."""
        return key in self._shown or self._inner.knows(key)
