"""Carries commands out: evictions, resizes and what marks them, events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kubetide.acting import BackgroundWrites, EventWriter, Unfinished
from kubetide.objects.base import Json
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import PODS, VPAS
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Unavailable, Withheld
from kubetide.units.time import Duration
from kubetide.vertical.updater.decision import (
    Command,
    EventNote,
    Evict,
    LateChange,
    Outcome,
    Resize,
    change_of,
)

_FORBIDDEN, _NODE_CAPACITY = "Forbidden", "NodeCapacity"


class Actor:
    """Does what was decided, one command after another; one that hangs goes on in the background."""

    def __init__(
        self, cluster: Cluster, clock: Clock, events: EventWriter, *, uid_of: Callable[[str, Key], str]
    ) -> None:
        self._cluster, self._clock, self._events, self._uid_of = cluster, clock, events, uid_of
        self._commands = BackgroundWrites(self._send, lambda one: (one.pod, one.uid), limit=1)
        self.unmarked = 0
        """Resized pods that did not get their annotation; nothing depends on it."""

    async def carry_out(self, command: Command) -> Outcome:
        """Wait until the command is due, send it, and return what came of it; pending if there is no answer for long."""
        wait = Duration(command.due - self._clock.now())
        if wait > 0:
            await self._clock.sleep(wait)
        [outcome] = await self._commands.carry_out([command])
        if isinstance(outcome, Unfinished):
            return Outcome(self._clock.now(), unknown=True, pending=True)
        return outcome

    def late(self, *, unanswered_only: bool = False) -> list[LateChange]:
        """Return the commands for which no loop waits any longer, each with what has come of it since the last call.

        Args:
            unanswered_only: Whether all are taken for unanswered; their outcomes are for the next call.
        """
        ended = [] if unanswered_only else self._commands.ended()
        return [
            *(_late(command, outcome) for command, outcome in ended),
            *(_late(command, None) for command in self._commands.unfinished()),
        ]

    async def close(self) -> None:
        """Wait for no write any longer."""
        await self._commands.close()
        await self._events.close()

    async def _send(self, command: Command) -> Outcome:
        try:
            if isinstance(command, Evict):
                namespace, name = command.pod
                await self._cluster.evict(namespace=namespace, pod=name, uid=command.uid)
            else:
                await self._patch(command, command.resources, resizes=True)
        except Withheld:
            return Outcome(self._clock.now(), withheld=True)
        except ApiError as error:
            return Outcome(
                self._clock.now(),
                str(error),
                node_capacity=_is_node_capacity(error),
                unknown=isinstance(error, Unavailable),
            )
        if isinstance(command, Resize):
            await self._mark(command)
        return Outcome(self._clock.now())

    async def _mark(self, command: Resize) -> None:
        try:
            await self._patch(command, command.annotations, resizes=False)
        except ApiError:
            self.unmarked += 1

    async def _patch(self, command: Resize, patch: Sequence[Json], *, resizes: bool) -> None:
        """Patch the pod that was read, and no other one of its name."""
        namespace, name = command.pod
        same: list[Json] = (
            [{"op": "test", "path": "/metadata/uid", "value": command.uid}] if command.uid else []
        )
        await self._cluster.patch(
            PODS,
            name,
            [*same, *patch],
            namespace=namespace,
            patch_type="json",
            subresource="resize" if resizes else "",
        )

    async def tell(self, notes: Iterable[EventNote]) -> None:
        """Write events."""
        await self._events.emit_all(
            (self._about(note), "Normal", note.reason, note.message) for note in notes
        )

    def _about(self, note: EventNote) -> ObjectReference:
        return ObjectReference(
            api_version=(PODS if note.kind == "Pod" else VPAS).api_version,
            kind=note.kind,
            namespace=note.namespace,
            name=note.name,
            uid=note.uid or self._uid_of(note.kind, (note.namespace, note.name)),
        )


def _late(command: Command, outcome: Outcome | None) -> LateChange:
    return LateChange(command.pod, command.uid, command.vpa, change_of(command), outcome)


def _is_node_capacity(error: ApiError) -> bool:
    """Return whether the node of the pod can never hold what the resize asks for."""
    return error.reason == _FORBIDDEN and any(cause.get("reason") == _NODE_CAPACITY for cause in error.causes)
