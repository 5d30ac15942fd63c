"""The loop's pure core in bytes, for the recorder and for replay (``explain.records.Core``)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubetide.schedules.decide import absorb, decide
from kubetide.schedules.decision import Commands, Outcome, Result
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta
from kubetide.units.time import Instant

_deltas = msgspec.json.Decoder(Delta)
_outcomes = msgspec.json.Decoder(tuple[Outcome, ...])


def encode(value: Delta | Commands | Result | Sequence[Outcome]) -> bytes:
    """Return a value of a record as JSON."""
    return msgspec.json.encode(value)


class SchedulesCore:
    """Decides again from recorded deltas; the same functions as in production."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.state = State(settings)
        self._commands = Commands(Instant(0))

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Take over gathered state: everything, or what changed."""
        read = _deltas.decode(delta)
        if full:
            self.state = State.from_full(read)
        else:
            self.state.apply(read)

    def decide(self, now: Instant) -> bytes:
        """Return the commands."""
        self._commands = decide(self.state, now)
        return encode(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Take in what came of the runs; return statuses, events and reasons."""
        return encode(absorb(self.state, self._commands, _outcomes.decode(outcomes), now))

    def dump(self) -> bytes:
        """Return the whole state as a full delta."""
        return encode(self.state.dump())
