"""The node loop's core in bytes: what the recorder keeps and ``kubetide replay`` decides again."""

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
        """Take over gathered state. Raises ValueError when nodes or pods come in the middle of a tick."""
        self.state.apply(decode_delta(delta), full=full)

    def resume(self, delta: bytes) -> None:
        """Take over what changed and what earlier decisions left behind (``explain.records.ResumingCore``)."""
        read = decode_delta(delta)
        self.state.apply(read)
        assert read.checkpoint is not None, "the record says that it has the memory"
        resume(self.state, read.checkpoint)

    def decide(self, now: Instant) -> bytes:
        """Return the commands of this step."""
        self._commands = decide(self.state, now)
        return encode_commands(self._commands)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Take in what came of them."""
        return encode_result(absorb(self.state, self._commands, _outcomes_decoder.decode(outcomes), now))


def encode_delta(delta: Delta) -> bytes:
    """Return the bytes of a delta, keys in a fixed order."""
    return _encoder.encode(delta)


def encode_in_pieces(delta: Delta) -> Iterator[bytes]:
    """Return what ``encode_delta`` gives in pieces: nodes and pods are encoded when asked for, all else at once."""
    # Memory changes from here on, objects do not.
    rest = _encoder.encode(replace(delta, step=Delta().step, nodes=(), pods=()))
    objects = {"nodes": delta.nodes, "pods": delta.pods}
    return in_pieces(_encoder.encode(Delta(step=delta.step)), objects, rest, _encoder.encode)


def decode_delta(delta: bytes | msgspec.Raw) -> Delta:
    """Read what ``encode_delta`` gave."""
    return _delta_decoder.decode(delta)


def as_read_back(memory: Memory) -> Memory:
    """Return the memory as it reads in a record."""
    return _memory_decoder.decode(_encoder.encode(memory))


def encode_commands(commands: Commands) -> bytes:
    """Return the bytes of commands; reasons are left out, the record has a place of their own for them."""
    return _encoder.encode(replace(commands, reasons=()))


def encode_outcomes(outcomes: Outcomes) -> bytes:
    """Return the bytes of outcomes."""
    return _encoder.encode(outcomes)


def encode_result(result: Result) -> bytes:
    """Return the bytes of a result, reasons left out."""
    return _encoder.encode(replace(result, reasons=()))
