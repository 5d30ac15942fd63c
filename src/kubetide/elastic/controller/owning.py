"""ElasticWorkloads as owners of the HPAs and VPAs that represent their sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubetide.elastic.controller.shown import Shown
from kubetide.elastic.sections import as_hpa, as_vpa
from kubetide.elastic.verdicts import Other, Scene, other_hpa, other_vpa
from kubetide.objects.base import Json
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.kinds import ELASTIC_WORKLOADS, HPAS, VPAS, Kind
from kubetide.objects.meta import Key
from kubetide.ports.cluster import Cluster
from kubetide.watching import Caches, Informer

_SHOWN: Final[Mapping[Kind[Any], Callable[[ElasticWorkload], Any]]] = {HPAS: as_hpa, VPAS: as_vpa}
_VPA_STATUS: Final[Json] = {"recommendation": None, "conditions": None, "observedGeneration": None}


def _hpa(found: Any) -> Other:
    return found if isinstance(found, Other) else other_hpa(found)


def _vpa(found: Any) -> Other:
    return found if isinstance(found, Other) else other_vpa(found)


class Sections:
    """Keeps the shown HPAs and VPAs equal to the sections of ElasticWorkloads, from the caches of all three."""

    kind = ELASTIC_WORKLOADS

    def __init__(self, cluster: Cluster, caches: Caches, workloads: Informer[ElasticWorkload]) -> None:
        self.scene = Scene()
        self.shown = Shown(_SHOWN)
        self.source = workloads
        self._cluster = cluster
        self.source.on_change(lambda key, _, new: self._look(self.scene.put(key, new)))
        for kind, keep, read in ((HPAS, other_hpa, _hpa), (VPAS, other_vpa, _vpa)):
            self._follow(caches, kind, keep, read)

    def _follow(
        self,
        caches: Caches,
        kind: Kind[Any],
        keep: Callable[[Any], Other],
        read: Callable[[Any], Other],
    ) -> None:
        caches.of(kind, keep=keep).on_change(
            lambda key, _, new: self._look(
                self.scene.put_other((kind.kind, *key), None if new is None else read(new))
            )
        )

    def _look(self, keys: set[Key]) -> None:
        """Show what the objects stand for now, and nothing of those that are not followed."""
        for key in sorted(keys):
            found = self.scene.workloads.get(key)
            follows = found is not None and not self.scene.verdict(key).reason
            for kind, stands_for in _SHOWN.items():
                self.shown.show(kind, key, stands_for(found) if found is not None and follows else None)

    def name_of(self, shown: Key) -> str:
        """Return the name of the owner: the same name."""
        return shown[1]

    async def put_status(self, kind: Kind[Any], key: Key, patch: Json | Sequence[Json]) -> Any:
        """Write the status of a section into the status of its ElasticWorkload."""
        if isinstance(patch, dict):
            said = {_part(kind): patch["status"]}
        else:
            [step] = patch
            assert step["path"] == "/status", "loops replace a status as a whole"
            said = {_part(kind): {**_VPA_STATUS, **step["value"]}}
        return await self._cluster.patch(
            ELASTIC_WORKLOADS, key[1], {"status": said}, namespace=key[0], subresource="status"
        )


def _part(kind: Kind[Any]) -> str:
    return "horizontal" if kind.resource == HPAS.resource else "vertical"
