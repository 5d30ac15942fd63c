"""The controller of a loop whose tick is one step, as a base to start from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from kubetide.explain.algorithm import Algorithm, AppliesDeltas
from kubetide.explain.records import NOTHING, Record
from kubetide.loop.base import BaseLoop

if TYPE_CHECKING:
    from kubetide.explain.reasons import Reason
    from kubetide.loop.protocol import Parts
    from kubetide.units.time import Instant


class _State(AppliesDeltas, Protocol):
    def dump(self) -> Any:
        """Return everything as a full delta."""
        ...


class _Commands(Protocol):
    @property
    def reasons(self) -> tuple[Reason, ...]: ...


State = TypeVar("State", bound=_State)
Delta = TypeVar("Delta")
Commands = TypeVar("Commands", bound=_Commands)
Outcomes = TypeVar("Outcomes")
Result = TypeVar("Result")


class OneStepLoop(BaseLoop, ABC, Generic[State, Delta, Commands, Outcomes, Result]):
    """A loop whose tick gathers, decides, acts, absorbs, records and reports once.

    Attributes:
        parts: The ends of the ports.
        state: What the last tick was decided from.
    """

    name: str
    """The loop's name in records, series and ``--controllers``."""

    def __init__(
        self,
        parts: Parts,
        algorithm: Algorithm[State, Delta, Commands, Outcomes, Result],
        state: Callable[[], State] | None = None,
    ) -> None:
        """Prepare the loop; it sends no request before the first tick.

        Args:
            state: Makes the empty state, where it is made of settings.
        """
        super().__init__()
        self.parts = parts
        self._algorithm = algorithm
        self._new_state = state or algorithm.state
        self._ticks = 0
        self.state = self._new_state()

    @abstractmethod
    async def gather(self, now: Instant) -> Delta:
        """Update the state; return its changes."""

    @abstractmethod
    async def act(self, commands: Commands) -> Outcomes:
        """Carry the commands out; return their outcomes."""

    def everything(self) -> Delta:
        """Return the whole state as a full delta, from which a replay can start."""
        everything: Delta = self.state.dump()
        return everything

    def reasons(self, commands: Commands, result: Result) -> tuple[Reason, ...]:
        """Return the reasons for the record."""
        del result
        return commands.reasons

    async def report(self, commands: Commands, result: Result) -> None:
        """Write the reports of the tick, such as statuses and events."""

    def start_anew(self) -> None:
        """Drop derived state."""
        self.state = self._new_state()

    async def tick(self) -> None:
        """Gather, decide, act, absorb, record and report once."""
        algorithm, recorder = self._algorithm, self.parts.recorder
        now = self.parts.clock.now()
        self._ticks += 1
        full = self._ticks == 1 or recorder.wants_full(self.name)
        changes = await self.gather(now)
        gathered = algorithm.encode(self.everything() if full else changes)
        commands = algorithm.decide(self.state, now)
        outcomes = await self.act(commands)
        result = algorithm.absorb(self.state, commands, outcomes, now)
        recorder.write(
            Record(
                loop=self.name,
                tick=self._ticks,
                now=now,
                full=full,
                state=msgspec.Raw(gathered),
                commands=msgspec.Raw(algorithm.encode(commands)),
                outcomes=msgspec.Raw(algorithm.encode(outcomes)),
                result=NOTHING if result is None else msgspec.Raw(algorithm.encode(result)),
                reasons=self.reasons(commands, result),
            )
        )
        await self.report(commands, result)
