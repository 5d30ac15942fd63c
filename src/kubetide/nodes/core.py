"""The node loop's core in bytes: the recorder stores them and ``kubetide replay`` decides again from them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kubetide.explain.pieces import in_pieces
from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import Commands, Outcomes, Result
from kubetide.nodes.memory import Memory
from kubetide.nodes.records.checkpoint import resume
from kubetide.nodes.state import Delta, State
from kubetide.units.time import Instant

_delta_decoder = msgspec.json.Decoder(Delta)
_memory_decoder = msgspec.json.Decoder(Memory)
_outcomes_decoder = msgspec.json.Decoder(Outcomes)
_encoder = msgspec.json.Encoder(order="deterministic")


class NodesCore:
    """See ``explain.records.Core``. ``state`` may be read by explanations between steps."""

    def __init__(self) -> None:
        self.state = State()
        self._commands = Commands()

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Apply gathered state. Raises ValueError if nodes or pods arrive in the middle of a tick."""
        self.state.apply(decode_delta(delta), full=full)

    def resume(self, delta: bytes) -> None:
        """Apply changed objects and the memory of earlier decisions (``explain.records.ResumingCore``)."""
        read = decode_delta(delta)
        self.state.apply(read)
        assert read.checkpoint is not None, "the record says that it has the memory"
        resume(self.state, read.checkpoint)

    def decide(self, now: Instant) -> bytes:
        """Return the commands of this step."""
        self._commands = decide(self.state, now)
        return encode_commands(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Apply the outcomes of the commands; return the result as bytes."""
        return encode_result(absorb(self.state, self._commands, _outcomes_decoder.decode(outcomes), now))


def encode_delta(delta: Delta) -> bytes:
    """Return the bytes of a delta, keys in a fixed order."""
    return _encoder.encode(delta)


def encode_in_pieces(delta: Delta) -> Iterator[bytes]:
    """Return the bytes of ``encode_delta`` in pieces: nodes and pods are encoded on demand, all else at once."""
    # Memory changes from here on, objects do not.
    rest = _encoder.encode(replace(delta, step=Delta().step, nodes=(), pods=()))
    objects = {"nodes": delta.nodes, "pods": delta.pods}
    return in_pieces(_encoder.encode(Delta(step=delta.step)), objects, rest, _encoder.encode)


def decode_delta(delta: bytes | msgspec.Raw) -> Delta:
    """Return the delta of ``encode_delta`` bytes."""
    return _delta_decoder.decode(delta)


def as_read_back(memory: Memory) -> Memory:
    """Return the memory as a record would return it."""
    return _memory_decoder.decode(_encoder.encode(memory))


def encode_commands(commands: Commands) -> bytes:
    """Return the bytes of commands without reasons, which the record stores separately."""
    return _encoder.encode(replace(commands, reasons=()))


def encode_outcomes(outcomes: Outcomes) -> bytes:
    """Return the bytes of outcomes."""
    return _encoder.encode(outcomes)


def encode_result(result: Result) -> bytes:
    """Return the bytes of a result without reasons."""
    return _encoder.encode(replace(result, reasons=()))
