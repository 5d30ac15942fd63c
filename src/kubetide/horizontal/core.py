"""The loop's pure core in bytes, for the recorder and for replay (``explain.records.Core``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from kubetide.explain.arrays import decode_array, encode_array
from kubetide.explain.pieces import in_pieces
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import Commands, Result, ScaleOutcome, ScaleWrite, record_of
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta, State
from kubetide.units.time import Instant

_encoder = msgspec.json.Encoder(enc_hook=encode_array)
_deltas = msgspec.json.Decoder(Delta, dec_hook=decode_array)
_outcomes = msgspec.json.Decoder(tuple[ScaleOutcome, ...])


def encode_delta(delta: Delta) -> bytes:
    """Return a delta as JSON; columns become lists."""
    return _encoder.encode(delta)


def decode_delta(delta: bytes | msgspec.Raw) -> Delta:
    """Return the delta of ``encode_delta`` bytes."""
    return _deltas.decode(delta)


def encode_in_pieces(delta: Delta) -> Iterator[bytes]:
    """Return the bytes of ``encode_delta`` in pieces: pods are encoded on demand, all else at once."""
    # Memory and samples change from here on, views of pods do not.
    first = Delta(delta.settings, delta.hpas, delta.gone_hpas, delta.statuses)
    rest = replace(delta, settings=None, hpas=(), gone_hpas=(), statuses=(), pods=())
    return in_pieces(_encoder.encode(first), {"pods": delta.pods}, _encoder.encode(rest), _encoder.encode)


def encode_commands(commands: Commands) -> bytes:
    """Return the writes as JSON: a replay must return the same."""
    writes: tuple[ScaleWrite, ...] = commands.writes
    return _encoder.encode(writes)


def encode_outcomes(outcomes: Sequence[ScaleOutcome]) -> bytes:
    """Return the outcomes as JSON, in the order of the writes."""
    return _encoder.encode(outcomes)


def encode_result(result: Result) -> bytes:
    """Return status changes and events as JSON."""
    return _encoder.encode(record_of(result))


class HorizontalCore:
    """Decides again from recorded deltas, with the same functions as in production."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.state = State(settings)
        self._commands = Commands(Instant(0), (), ())

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Apply gathered state: everything, or the changes."""
        self._take(decode_delta(delta), full=full)

    def _take(self, delta: Delta, *, full: bool) -> None:
        if full:
            self.state = State.from_full(delta)
        else:
            self.state.apply(delta)

    def _decided(self, now: Instant) -> Commands:
        return decide(self.state, now)

    def decide(self, now: Instant) -> bytes:
        """Return the scale writes."""
        self._commands = self._decided(now)
        return encode_commands(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:  # noqa: ARG002  # each outcome says when it came
        """Apply the outcomes of the writes; return changed statuses and events."""
        return encode_result(absorb(self.state, self._commands, _outcomes.decode(outcomes)))

    def dump(self) -> bytes:
        """Return the whole state, memory included, as a full delta."""
        return encode_delta(self.state.dump())
