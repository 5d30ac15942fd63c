"""The recommender's pure core in bytes, for the recorder and for replay (``explain.records.Core``)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from kubetide.units.time import Instant
from kubetide.vertical.recommender.decide import absorb, decide
from kubetide.vertical.recommender.decision import Commands, Outcomes, Result
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.dump import dump, restored
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State


def _encode_array(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _decode_array(kind: type, value: Any) -> Any:
    if kind is np.ndarray or getattr(kind, "__origin__", None) is np.ndarray:
        return np.array(value, np.int64)
    raise NotImplementedError(f"{kind} has no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=_encode_array)
_deltas = msgspec.json.Decoder(Delta, dec_hook=_decode_array)
_outcomes = msgspec.json.Decoder(Outcomes)


def encode_delta(delta: Delta) -> bytes:
    """Return a delta as JSON; columns become lists."""
    return _encoder.encode(delta)


def encode_commands(commands: Commands) -> bytes:
    """Return the commands as JSON: what a replay must come to again."""
    return _encoder.encode(commands)


def encode_outcomes(outcomes: Outcomes) -> bytes:
    """Return the outcomes as JSON."""
    return _encoder.encode(outcomes)


def encode_result(result: Result) -> bytes:
    """Return the result as JSON."""
    return _encoder.encode(result)


class RecommenderCore:
    """Decides again from recorded deltas; the same functions as in production."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.state = State(settings)
        self._commands = Commands(Instant(0))

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Take over gathered state: everything, or what changed."""
        read = _deltas.decode(delta)
        if full:
            self.state = restored(read)
        else:
            self.state.apply(read)

    def decide(self, now: Instant) -> bytes:
        """Return the statuses to write, whose checkpoints are due, and the checkpoints to delete."""
        self._commands = decide(self.state, now)
        return encode_commands(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Take in what came of the writes; return what is tracked and what went wrong."""
        return encode_result(absorb(self.state, self._commands, _outcomes.decode(outcomes), now))

    def dump(self) -> bytes:
        """Return the whole state, memory included, as a full delta."""
        return encode_delta(dump(self.state))
