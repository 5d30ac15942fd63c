"""The node loop's core in bytes: what the recorder keeps and ``kubetide replay`` decides again."""

from __future__ import annotations

import msgspec

from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import Commands, Outcomes
from kubetide.nodes.state import Delta, State
from kubetide.units.time import Instant

_delta_decoder = msgspec.json.Decoder(Delta)
_outcomes_decoder = msgspec.json.Decoder(Outcomes)
_encoder = msgspec.json.Encoder(order="deterministic")


class NodesCore:
    """See ``explain.records.Core``. ``state`` may be read by explanations between steps."""

    def __init__(self) -> None:
        self.state = State()
        self._commands = Commands()

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Takes over gathered state. Raises ValueError when nodes or pods come in the middle of a tick."""
        self.state.apply(_delta_decoder.decode(delta), full=full)

    def decide(self, now: Instant) -> bytes:
        """Gives the commands of this step."""
        self._commands = decide(self.state, now)
        return _encoder.encode(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Takes in what came of them."""
        return _encoder.encode(absorb(self.state, self._commands, _outcomes_decoder.decode(outcomes), now))

    @property
    def commands(self) -> Commands:
        """What was decided last, as data."""
        return self._commands

    def export(self, delta: Delta) -> bytes:
        """Gives the full form of the state after ``delta``, for a record to start from."""
        self.state.apply(delta)
        return encode(self.state.export())


def encode(value: Delta | Outcomes) -> bytes:
    """Gives the bytes of a delta or of outcomes, keys in a fixed order."""
    return _encoder.encode(value)
