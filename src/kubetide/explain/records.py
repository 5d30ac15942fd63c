"""The decision record: one JSON line per tick and loop, from which the tick can be decided again.

A line holds what the tick was given (the whole state every N ticks, else only what changed), what
it decided, what came of the commands, and the reasons. ``Core`` is what a loop offers so that
production, simulation and replay run the same code over it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, runtime_checkable

import msgspec

from kubetide.explain.figures import FigureTable
from kubetide.explain.reasons import Reason
from kubetide.units.steps import Steps
from kubetide.units.time import Instant

SCHEMA = "kubetide-record/1"

NOTHING: Final = msgspec.Raw(b"{}")
"""Of a part of a record that has nothing to say; the part is left out of the line."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tick of one loop.

    Attributes:
        loop: ``horizontal``, ``nodes`` ...
        tick: Count from 1 since the process started.
        phase: Count from 0 within the tick, for loops that decide several times a tick.
        now: What the loop was given as the time, ns.
        full: Whether ``state`` is everything (a replay may start here) or only what changed.
        has_memory: Whether ``state`` is what changed and all that earlier decisions left behind: a core that was given
            all changes before, and decided none of them, may go on from here (``ResumingCore``).
        state: The loop's own delta, as JSON.
        commands: What ``decide`` answered, as JSON.
        outcomes: What came of the commands, as JSON.
        result: What ``absorb`` answered (statuses, events), as JSON.
        reasons: Why; a verdict that has not changed since the last tick is left out here.
        repeated: How many unchanged verdicts were left out.
        figures: Figures that have a history. A file beside the records holds them, not the line.
    """

    loop: str
    tick: int
    now: Instant
    phase: int = 0
    full: bool = False
    has_memory: bool = False
    state: msgspec.Raw = NOTHING
    commands: msgspec.Raw = NOTHING
    outcomes: msgspec.Raw = NOTHING
    result: msgspec.Raw = NOTHING
    reasons: tuple[Reason, ...] = ()
    repeated: int = 0
    figures: tuple[FigureTable, ...] = ()


class Recorder(Protocol):
    """Stores records; the runtime's writes them to a folder, a test's keeps them in memory."""

    def wants_full(self, loop: str) -> bool:
        """Return whether the next record of the loop must hold the whole state."""
        ...

    def write(self, record: Record) -> None:
        """Store one record. Never raises: a failing recorder reports the failure and drops the record."""
        ...

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:
        """Store one record with a state that is too large to be held, or encoded, at once; else as ``write``.

        Args:
            record: The record; its own ``state`` is not read.
            state: Pieces of JSON that one after another are the record's ``state``. Read once at most.
        """
        ...


class Core(Protocol):
    """A loop's pure core; its controller and ``replay`` drive it the same way.

    The only way into the core is ``apply``; so a record that holds the deltas holds everything.
    All bytes are JSON, made with a fixed field order.
    """

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Apply gathered state: everything (``full``, memory included) or the changes."""
        ...

    def decide(self, now: Instant) -> bytes:
        """Return the commands of this phase."""
        ...

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Apply the outcomes of the last commands; return statuses, events and such."""
        ...


@runtime_checkable
class ResumingCore(Core, Protocol):
    """A core that needs no earlier decisions if a record holds the memory of its loop."""

    def resume(self, delta: bytes) -> None:
        """Apply the changes as ``apply`` does, and the memory of earlier decisions."""
        ...


class OneObjectCore(Core, Protocol):
    """A core that follows one object, and applies of the others only what it needs for that.

    Attributes:
        stands_alone: Whether it could; if not, the whole core must be asked.
    """

    stands_alone: bool
