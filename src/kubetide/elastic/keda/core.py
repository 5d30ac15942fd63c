"""The loop's pure core in bytes, for the recorder and for replay (``explain.records.Core``)."""

from __future__ import annotations

import msgspec

from kubetide.elastic.keda.decide import Commands, Outcome, absorb, decide
from kubetide.elastic.keda.state import Delta, State
from kubetide.units.time import Instant

_deltas = msgspec.json.Decoder(Delta)
_outcomes = msgspec.json.Decoder(tuple[Outcome, ...])


class ScaledObjectsCore:
    """Decides again from recorded deltas; the same functions as in production."""

    def __init__(self) -> None:
        self.state = State()
        self._commands = Commands(Instant(0))

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Take over gathered state: everything, or what changed."""
        if full:
            self.state = State()
        self.state.apply(_deltas.decode(delta))

    def decide(self, now: Instant) -> bytes:
        """Return the commands."""
        self._commands = decide(self.state, now)
        return msgspec.json.encode(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Take in what came of the writes."""
        del now
        return msgspec.json.encode(absorb(self.state, self._commands, _outcomes.decode(outcomes)))

    def dump(self) -> bytes:
        """Return the whole state as a full delta."""
        return msgspec.json.encode(self.state.dump())
