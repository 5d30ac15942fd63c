"""Carries out changes: bounds, sizes, statuses and events."""

from __future__ import annotations

from typing import Any

import msgspec

from kubetide.acting import EventWriter, in_parallel
from kubetide.objects.base import Json
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import HPAS
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound, Withheld
from kubetide.schedules.controller.gather import Gatherer
from kubetide.schedules.decision import Commands, Outcome, Result, Run
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.state import State
from kubetide.schedules.tables import Key

_LIMIT = 10


class Actor:
    """Writes; a failed status write is tried again at the next tick."""

    def __init__(self, cluster: Cluster, gatherer: Gatherer, events: EventWriter) -> None:
        self._cluster = cluster
        self._gatherer = gatherer
        self._events = events
        self._unwritten: dict[Key, tuple[str, Json]] = {}
        """By table, its UID and its status."""

    async def change(self, commands: Commands) -> list[Outcome]:
        """Change the targets one after another, so that the last listed of two contradicting changes holds."""
        return [await self._change(run) for run in commands.runs]

    async def report(self, result: Result, state: State) -> None:
        """Write statuses and events."""
        for key, raw in result.statuses:
            self._unwritten[key] = state.tables[key].uid, msgspec.json.decode(raw)
        # Another object of the name has none of what was to be written.
        uids = {key: state.tables[key].uid for key in self._unwritten if key in state.tables}
        self._unwritten = {key: one for key, one in self._unwritten.items() if uids.get(key) == one[0]}
        await in_parallel(sorted(self._unwritten), self._write_status, limit=_LIMIT)
        for notice in result.notices:
            table = state.tables.get(notice.table)
            if table is None:
                continue
            kind = MODES[table.kind].kind
            about = ObjectReference(
                api_version=kind.api_version,
                kind=kind.kind,
                namespace=table.namespace,
                name=table.name,
                uid=table.uid,
            )
            await self._events.emit(about, notice.level, notice.reason, notice.message)

    async def _change(self, run: Run) -> Outcome:
        change = run.change
        if not change.writes:
            return Outcome()
        try:
            if change.minimum is not None or change.maximum is not None:
                await self._bound(run)
            if change.replicas is not None:
                await self._size(run)
        except Withheld:
            return Outcome(withheld=True)
        except ApiError as error:
            return Outcome(str(error))
        return Outcome()

    async def _bound(self, run: Run) -> None:
        change = run.change
        bounds = {"minReplicas": change.minimum, "maxReplicas": change.maximum}
        patch: dict[str, Any] = {"spec": {name: value for name, value in bounds.items() if value is not None}}
        if change.hpa_version:
            patch["metadata"] = {"resourceVersion": change.hpa_version}
        await self._cluster.patch(HPAS, run.target.name, patch, namespace=run.target.namespace)

    async def _size(self, run: Run) -> None:
        change = run.change
        kind = await self._gatherer.kind_of(change.workload)
        assert kind is not None, "its scale has been read"
        assert change.replicas is not None
        await self._cluster.replace_scale(
            kind,
            change.workload.name,
            change.replicas,
            namespace=change.workload.namespace,
            resource_version=change.scale_version,
        )

    async def _write_status(self, key: Key) -> None:
        name, namespace, own = key
        kind = MODES[name].kind
        try:
            await self._cluster.patch(
                kind,
                own,
                {"status": self._unwritten[key][1]},
                namespace=namespace,
                subresource="status" if "status" in kind.subresources else "",
            )
        except (NotFound, Withheld):
            pass
        except ApiError:
            return
        self._unwritten.pop(key, None)
