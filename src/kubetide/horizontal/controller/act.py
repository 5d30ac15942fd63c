"""Carries commands out: scale writes, status writes, events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from kubetide.acting import EventWriter, in_parallel
from kubetide.horizontal.controller.left_alone import NoOthers
from kubetide.horizontal.controller.targets import TargetError, Targets
from kubetide.horizontal.decision import (
    Result,
    ScaleOutcome,
    ScaleWrite,
    Settlement,
    error_of,
    events_in_order,
)
from kubetide.horizontal.options.deletion_cost import marks
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


class Ending(NamedTuple):
    """The errors of one HPA's tick: of the status write, and of the whole tick."""

    settlement: Settlement
    status_error: str
    error: str
    error_label: str


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
        self._limit = limit

    async def scale(self, writes: Sequence[ScaleWrite]) -> list[ScaleOutcome]:
        """Write the scales; the outcomes are in the order of the writes."""
        return await in_parallel(writes, self._scale_one, limit=self._limit)

    async def _scale_one(self, write: ScaleWrite) -> ScaleOutcome:
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
        return await in_parallel(busy, self._settle_one, limit=self._limit)

    async def _settle_one(self, settlement: Settlement) -> Ending:
        problem = ""
        if settlement.changes:
            namespace, name = settlement.verdict.key
            try:
                self._check_owner(settlement.verdict.key)
                await self._cluster.patch(
                    HPAS, name, {"status": settlement.patch}, namespace=namespace, subresource="status"
                )
            except Withheld:
                pass  # nothing has failed
            except ApiError as error:
                problem = str(error)
        for note in events_in_order(settlement, problem):
            await self._events.emit(self._about(settlement.verdict.key), note.type, note.reason, note.message)
        return Ending(settlement, problem, *error_of(settlement, problem))

    def _about(self, key: Key) -> ObjectReference:
        return ObjectReference(
            api_version=HPAS.api_version,
            kind=HPAS.kind,
            namespace=key[0],
            name=key[1],
            uid=self._uid_of(key),
        )
