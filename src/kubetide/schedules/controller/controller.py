"""The time-table controller."""

from __future__ import annotations

from functools import partial

import msgspec

from kubetide.acting import EventWriter
from kubetide.explain.reasons import Reason
from kubetide.loop import OneStepLoop, Parts
from kubetide.schedules.controller.act import Actor
from kubetide.schedules.controller.gather import Gatherer
from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.decide import next_due, targets_due
from kubetide.schedules.decision import Commands, Outcome, Result
from kubetide.schedules.outlook import SOURCE, Announcements
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta
from kubetide.units.time import Duration, Instant

COMPONENT = "kubetide-schedules"


class SchedulesController(OneStepLoop[State, Delta, Commands, list[Outcome], Result]):
    """Changes targets by the clock; between two ticks it wakes for due changes."""

    name = "schedules"

    def __init__(self, parts: Parts, settings: Settings) -> None:
        super().__init__(parts, ALGORITHM, partial(State, settings))
        self._settings = settings
        self._gatherer = Gatherer(parts.cluster, parts.caches, parts.clock)
        events = EventWriter(parts.cluster, parts.clock, COMPONENT)
        self._actor = Actor(parts.cluster, self._gatherer, events)
        self._announcements = Announcements(self._gatherer.name_of)

    @property
    def period(self) -> Duration:
        """Time between two ticks."""
        return self._settings.schedules_period

    async def synced(self) -> None:
        """Return once each kind is synced, or refused."""
        await self._gatherer.answered()

    def next_wake(self) -> Instant | None:
        """Return when the next change is due."""
        return next_due(self.state)

    async def wake(self) -> None:
        """Carry out what is due."""
        await self.tick()

    def start_anew(self) -> None:
        """Drop derived state; statuses hold what has happened."""
        super().start_anew()
        self._gatherer.start_anew()

    async def gather(self, now: Instant) -> Delta:
        """Apply changed tables, and the targets of those that are due; return them as a delta."""
        changes = self._gatherer.changes()
        self.state.apply(changes)
        views = await self._gatherer.views(targets_due(self.state, now))
        self.state.apply(Delta(views=views))
        return msgspec.structs.replace(changes, views=views)

    async def act(self, commands: Commands) -> list[Outcome]:
        """Change the targets."""
        return await self._actor.change(commands)

    def reasons(self, commands: Commands, result: Result) -> tuple[Reason, ...]:
        """Return the reasons; the result includes those of the commands."""
        del commands
        return result.reasons

    async def report(self, commands: Commands, result: Result) -> None:
        """Announce coming changes on the board; write statuses and events."""
        self._announce(commands.now)
        await self._actor.report(result, self.state)

    def _announce(self, now: Instant) -> None:
        """Put up on the board what each workload is about to be asked for."""
        if self.parts.board is not None:
            self.parts.board.announce_all(SOURCE, self._announcements.of(self.state, now))

    async def close(self) -> None:
        """Withdraw the announcements; wait for no write any longer."""
        await self._actor.close()
        if self.parts.board is not None:
            self.parts.board.announce_all(SOURCE, ())
