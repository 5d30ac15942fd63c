"""Carries out changes: bounds, sizes, statuses and events."""

from __future__ import annotations

from typing import Any

import msgspec

from kubetide.acting import BackgroundWrites, EventWriter, Unfinished
from kubetide.objects.base import Json
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import HPAS
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound, Withheld
from kubetide.schedules.controller.gather import Gatherer
from kubetide.schedules.decision import Commands, Outcome, Result, Run
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.state import State
from kubetide.schedules.tables import Key, Table

_LIMIT = 10


class Actor:
    """Writes; a failed status write is tried again at the next tick."""

    def __init__(self, cluster: Cluster, gatherer: Gatherer, events: EventWriter) -> None:
        self._cluster = cluster
        self._gatherer = gatherer
        self._events = events
        self._unwritten: dict[Key, tuple[str, Json]] = {}
        """By table, its UID and its status."""
        self._changes = BackgroundWrites(self._change, lambda run: run.change.workload.identity, limit=_LIMIT)
        self._statuses = BackgroundWrites(self._write_status, lambda key: key, limit=_LIMIT)

    async def change(self, commands: Commands) -> list[Outcome]:
        """Change the targets side by side; of two contradicting changes of one workload the last listed holds."""
        self._changes.ended()  # the target, which is read again, shows what has become of it
        found = await self._changes.carry_out(commands.runs)
        return [Outcome(pending=one.value) if isinstance(one, Unfinished) else one for one in found]

    async def report(self, result: Result, state: State) -> None:
        """Write statuses and events."""
        for key, raw in result.statuses:
            self._unwritten[key] = state.tables[key].uid, msgspec.json.decode(raw)
        # Another object of the name has none of what was to be written.
        uids = {key: state.tables[key].uid for key in self._unwritten if key in state.tables}
        self._unwritten = {key: one for key, one in self._unwritten.items() if uids.get(key) == one[0]}
        self._statuses.ended()
        await self._statuses.carry_out(sorted(self._unwritten))
        await self._events.emit_all(
            (_about(state.tables[one.table]), one.level, one.reason, one.message)
            for one in result.notices
            if one.table in state.tables
        )

    async def close(self) -> None:
        """Wait for no write any longer."""
        await self._changes.close()
        await self._statuses.close()
        await self._events.close()

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
        kind, status = MODES[name].kind, self._unwritten[key]
        try:
            await self._cluster.patch(
                kind,
                own,
                {"status": status[1]},
                namespace=namespace,
                subresource="status" if "status" in kind.subresources else "",
            )
        except (NotFound, Withheld):
            pass
        except ApiError:
            return
        if self._unwritten.get(key) is status:  # else it has changed since
            del self._unwritten[key]


def _about(table: Table) -> ObjectReference:
    kind = MODES[table.kind].kind
    return ObjectReference(
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=table.namespace,
        name=table.name,
        uid=table.uid,
    )
