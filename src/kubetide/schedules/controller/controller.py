"""The time-table controller: a tick gathers, decides, acts, absorbs and records."""

from __future__ import annotations

import msgspec

from kubetide.acting import EventWriter
from kubetide.explain.records import Record
from kubetide.loop import BaseLoop, Parts
from kubetide.plan.board import Workload
from kubetide.schedules.controller.act import Actor
from kubetide.schedules.controller.gather import Gatherer
from kubetide.schedules.core import encode
from kubetide.schedules.decide import absorb, decide, next_due, targets_due
from kubetide.schedules.outlook import SOURCE, intents
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta
from kubetide.units.time import Duration, Instant

COMPONENT = "kubetide-schedules"


class SchedulesController(BaseLoop):
    """Changes targets by the clock; between two ticks it wakes for what is due."""

    name = "schedules"

    def __init__(self, parts: Parts, settings: Settings) -> None:
        super().__init__()
        self._parts = parts
        self._settings = settings
        self._gatherer = Gatherer(parts.cluster, parts.caches, parts.clock)
        events = EventWriter(parts.cluster, parts.clock, COMPONENT)
        self._actor = Actor(parts.cluster, self._gatherer, events)
        self._ticks = 0
        self._announced: set[Workload] = set()
        self.state = State(settings)

    @property
    def period(self) -> Duration:
        """Time between two ticks."""
        return self._settings.schedules_period

    async def synced(self) -> None:
        """Return when each kind has had its first list, or has been refused."""
        await self._gatherer.answered()

    def next_wake(self) -> Instant | None:
        """Return when the next change is due."""
        return next_due(self.state)

    async def wake(self) -> None:
        """Do what is due."""
        await self.tick()

    def start_anew(self) -> None:
        """Forget what was derived; statuses say what has happened."""
        self.state = State(self._settings)
        self._gatherer.start_anew()

    async def tick(self) -> None:
        """Gather, decide, act, absorb and record once."""
        now = self._parts.clock.now()
        self._ticks += 1
        full = self._ticks == 1 or self._parts.recorder.wants_full(self.name)
        changes = self._gatherer.changes()
        self.state.apply(changes)
        views = await self._gatherer.views(targets_due(self.state, now))
        self.state.apply(Delta(views=views))
        delta = (
            msgspec.structs.replace(self.state.dump(), views=views)
            if full
            else msgspec.structs.replace(changes, views=views)
        )
        given = encode(delta)
        commands = decide(self.state, now)
        outcomes = await self._actor.change(commands)
        result = absorb(self.state, commands, outcomes, now)
        self._announce(now)
        self._parts.recorder.write(
            Record(
                loop=self.name,
                tick=self._ticks,
                now=now,
                full=full,
                state=msgspec.Raw(given),
                commands=msgspec.Raw(encode(commands)),
                outcomes=msgspec.Raw(encode(outcomes)),
                result=msgspec.Raw(encode(result)),
                reasons=result.reasons,
            )
        )
        await self._actor.report(result, self.state)

    def _announce(self, now: Instant) -> None:
        """Put up on the board what each workload is about to be asked for."""
        board = self._parts.board
        if board is None:
            return
        found = {intent.workload: intent for intent in intents(self.state, now)}
        for workload in sorted(self._announced - found.keys()):
            board.withdraw(workload, SOURCE)
        for intent in found.values():
            board.announce(intent)
        self._announced = set(found)

    async def close(self) -> None:
        """Withdraw what was announced."""
        if self._parts.board is not None:
            for workload in sorted(self._announced):
                self._parts.board.withdraw(workload, SOURCE)
        self._announced = set()
