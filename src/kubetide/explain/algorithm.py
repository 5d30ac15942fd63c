"""The pure functions of a loop whose tick is one step, and the core for ``kubetide replay`` built from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kubetide.units.time import Instant

Delta = TypeVar("Delta")
Commands = TypeVar("Commands")
Outcomes = TypeVar("Outcomes")
Result = TypeVar("Result")
State = TypeVar("State", bound="AppliesDeltas")


class AppliesDeltas(Protocol):
    """A loop's state; deltas are the only way to change it."""

    def apply(self, delta: Any, /) -> Any:
        """Apply the changes."""
        ...


def _remembers_nothing(state: Any, commands: Any, outcomes: Any, now: Instant) -> Any:
    """Take in nothing."""


class Latest:
    """The state of a loop that gathers everything again in each tick.

    Attributes:
        found: What was gathered last.
    """

    def __init__(self) -> None:
        self.found: Any = None

    def apply(self, delta: Any, /) -> None:
        """Replace the state by what was gathered."""
        self.found = delta

    def dump(self) -> Any:
        """Return the last delta."""
        return self.found


@dataclass(frozen=True, kw_only=True)
class Algorithm(Generic[State, Delta, Commands, Outcomes, Result]):
    """A state, ``decide`` and ``absorb``, and how to decode deltas and outcomes of a record.

    Attributes:
        state: Makes an empty state.
        decide: Returns the commands, of a state and the time.
        absorb: Takes in what came of the commands, of a state, the commands, the outcomes and the time; returns what is
            to be written and reported, None for nothing.
        read_delta, read_outcomes: Read the JSON of a record; by default as dicts, lists, texts and numbers.
        restore: Makes a state of a full delta; None where an empty one takes it over as it takes over changes.
        encode: Returns a delta, commands, outcomes or a result as JSON.
    """

    state: Callable[[], State]
    decide: Callable[[State, Instant], Commands]
    absorb: Callable[[State, Commands, Outcomes, Instant], Result] = _remembers_nothing
    read_delta: Callable[[bytes], Delta] = msgspec.json.decode
    read_outcomes: Callable[[bytes], Outcomes] = msgspec.json.decode
    restore: Callable[[Delta], State] | None = None
    encode: Callable[[Any], bytes] = msgspec.json.encode

    def core(self) -> StepCore[State]:
        """Return a core with an empty state."""
        return StepCore(self)


class StepCore(Generic[State]):
    """Decides again from recorded deltas (``explain.records.Core``), with the same functions as in production."""

    def __init__(self, algorithm: Algorithm[State, Any, Any, Any, Any]) -> None:
        self._algorithm = algorithm
        self._commands: Any = None
        self.state = algorithm.state()

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Apply gathered state: everything, or the changes."""
        self.take(self._algorithm.read_delta(delta), full=full)

    def take(self, delta: Any, *, full: bool) -> None:
        """Apply a decoded delta."""
        algorithm = self._algorithm
        if full and algorithm.restore is not None:
            self.state = algorithm.restore(delta)
            return
        if full:
            self.state = algorithm.state()
        self.state.apply(delta)

    def decide(self, now: Instant) -> bytes:
        """Return the commands."""
        self._commands = self._algorithm.decide(self.state, now)
        return self._algorithm.encode(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Apply the outcomes of the commands; return the writes and reports."""
        algorithm = self._algorithm
        result = algorithm.absorb(self.state, self._commands, algorithm.read_outcomes(outcomes), now)
        return b"{}" if result is None else algorithm.encode(result)
