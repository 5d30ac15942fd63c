"""Carries commands out: scale writes, status writes, events."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from kubetide.acting import BackgroundWrites, EventWriter, Unfinished
from kubetide.horizontal.controller.left_alone import NoOthers
from kubetide.horizontal.controller.targets import TargetError, Targets
from kubetide.horizontal.decision import (
    Commands,
    LateScale,
    Result,
    ScaleOutcome,
    ScaleWrite,
    Settlement,
    Verdict,
    error_of,
    events_in_order,
)
from kubetide.horizontal.options.deletion_cost import marks
from kubetide.horizontal.status.events import status_not_written
from kubetide.loop import Owners
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import HPAS, PODS
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Conflict, Withheld
from kubetide.units.time import milliseconds

# Source: client-go retry.DefaultRetry; its jitter is left out, a tick is to be the same in a replay.
_ATTEMPTS = 5
_PAUSE = milliseconds(10)


class Ending(msgspec.Struct, frozen=True):
    """The errors of one HPA's tick: of the status write, and of the whole tick."""

    settlement: Settlement
    status_error: str
    error: str
    error_label: str
    is_written: bool = True
    """Whether the write of the status has ended."""


class _Scaling(NamedTuple):
    """A write, the verdict that it is for, and the UID of the HPA."""

    write: ScaleWrite
    verdict: Verdict
    uid: str


class Actor:
    """Carries out commands."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        targets: Targets,
        events: EventWriter,
        *,
        uid_of: Callable[[Key], str],
        limit: int,
        owners: Owners | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._targets = targets
        self._events = events
        self._uid_of = uid_of
        self._owners = owners or NoOthers()
        self._scales = BackgroundWrites(self._scale_one, lambda one: one.verdict.key, limit=limit)
        self._statuses = BackgroundWrites(self._put_status, lambda one: one.verdict.key, limit=limit)

    async def scale(self, commands: Commands) -> list[ScaleOutcome]:
        """Write the scales; the outcomes are in the order of the writes. That of one that hangs is pending."""
        verdicts = {one.key: one for one in commands.verdicts if one.rescale}
        keys = [(write.namespace, write.name) for write in commands.writes]
        scalings = [
            _Scaling(write, verdicts[key], self._uid_of(key))
            for key, write in zip(keys, commands.writes, strict=True)
        ]
        found = await self._scales.carry_out(scalings)
        now = self._clock.now()
        return [
            ScaleOutcome(*key, now, pending=one.value) if isinstance(one, Unfinished) else one
            for key, one in zip(keys, found, strict=True)
        ]

    def late(self) -> list[LateScale]:
        """Return the outcomes that have come since the last call, of writes that no tick waited for any longer.

        An HPA that has gone since, or another of its name, has none of them.
        """
        return [
            LateScale(
                outcome.namespace,
                outcome.name,
                outcome.at,
                scaling.verdict.current,
                scaling.verdict.desired,
                scaling.verdict.why,
                outcome.error,
            )
            for scaling, outcome in self._scales.ended()
            if not outcome.withheld and self._uid_of(scaling.verdict.key) == scaling.uid
        ]

    async def close(self) -> None:
        """Wait for no write any longer."""
        await self._scales.close()
        await self._statuses.close()
        await self._events.close()

    async def _scale_one(self, scaling: _Scaling) -> ScaleOutcome:
        write = scaling.write
        try:
            self._check_owner((write.namespace, write.name))
            await self._mark(write)
            error, refused = await self._write_scale(write)
            if refused:
                with suppress(Withheld):
                    await self._mark(write, off=True)
        except Withheld:
            return ScaleOutcome(write.namespace, write.name, self._clock.now(), withheld=True)
        return ScaleOutcome(write.namespace, write.name, self._clock.now(), error)

    def _check_owner(self, key: Key) -> None:
        """Raise: Withheld when another controller has written to the HPA since the tick began."""
        if key in self._owners.left_alone():
            raise Withheld(f"HPA {'/'.join(key)} is left to another controller")

    async def _mark(self, write: ScaleWrite, *, off: bool = False) -> None:
        """Say which pods go first; with ``off`` take that back, as the next scale-in marks its own.

        Raises: Withheld; a pod that cannot be marked goes in its turn.
        """
        for pod, cost in write.costs:
            patch = {"metadata": {"annotations": marks(None if off else cost)}}
            try:
                await self._cluster.patch(PODS, pod, patch, namespace=write.namespace)
            except Withheld:
                raise
            except ApiError:
                continue

    async def _write_scale(self, write: ScaleWrite) -> tuple[str, bool]:
        """Write one scale; after a conflict again, with the version that is then there.

        Return the error, and whether it is known that the number was not written: an answer may be lost on its way.

        Raises: Withheld. The number stays the same: it was decided from the scale that was read first.
        """
        try:
            kind = self._targets.kind_of(write.api_version, write.kind)
        except TargetError as error:
            return str(error), True
        if "scale" not in kind.subresources:
            resource = f"{kind.api_version}, Resource={kind.plural}"
            return (
                f"could not find proper group-version for scale subresource of {resource}: "
                f"could not find scale subresource for {resource} in discovery information"
            ), True
        version, problem, refused = write.resource_version, "", False
        for attempt in range(_ATTEMPTS):
            if attempt:
                await self._clock.sleep(_PAUSE)
            try:
                await self._cluster.replace_scale(
                    kind, write.target, write.replicas, namespace=write.namespace, resource_version=version
                )
            except Withheld:
                raise
            except ApiError as error:
                problem = str(error)
                try:
                    latest = await self._cluster.get_scale(kind, write.target, namespace=write.namespace)
                except ApiError:
                    refused = False
                    break
                refused = latest.spec.replicas != write.replicas
                version = latest.metadata.resource_version
                if not isinstance(error, Conflict):
                    break
            else:
                return "", False
        return problem, refused

    async def settle(self, result: Result) -> list[Ending]:
        """Write statuses and events; return the errors of HPAs that had any."""
        busy = [one for one in result.settlements if one.changes or one.events or one.late_events]
        changed = [one for one in busy if one.changes]
        written = await self._statuses.carry_out(changed)
        problems = {one.verdict.key: problem for one, problem in zip(changed, written, strict=True)}
        endings = [_ending(one, problems.get(one.verdict.key, "")) for one in busy]
        await self._events.emit_all(
            (self._about(one.settlement.verdict.key), note.type, note.reason, note.message)
            for one in endings
            for note in events_in_order(one.settlement, one.status_error)
        )
        return endings

    async def late_statuses(self) -> list[Key]:
        """Return the HPAs whose status write has ended since the last call, after no tick waited for it any longer."""
        ended = [(one.verdict.key, problem) for one, problem in self._statuses.ended()]
        notes = [(key, status_not_written(problem)) for key, problem in ended if problem]
        await self._events.emit_all(
            (self._about(key), one.type, one.reason, one.message) for key, one in notes
        )
        return [key for key, _ in ended]

    async def _put_status(self, settlement: Settlement) -> str:
        """Write a status; return the error."""
        namespace, name = settlement.verdict.key
        try:
            self._check_owner(settlement.verdict.key)
            await self._cluster.patch(
                HPAS, name, {"status": settlement.patch}, namespace=namespace, subresource="status"
            )
        except Withheld:
            pass  # nothing has failed
        except ApiError as error:
            return str(error)
        return ""

    def _about(self, key: Key) -> ObjectReference:
        return ObjectReference(
            api_version=HPAS.api_version,
            kind=HPAS.kind,
            namespace=key[0],
            name=key[1],
            uid=self._uid_of(key),
        )


def _ending(settlement: Settlement, problem: str | Unfinished) -> Ending:
    if isinstance(problem, Unfinished):
        return Ending(settlement, "", settlement.error, settlement.error_label, is_written=False)
    return Ending(settlement, problem, *error_of(settlement, problem))
