"""Statuses of pods: most have the phase and the conditions of many others, but for the times.

So where a status begins like one that was read before, but for the times, the conditions of that one are copied with
its own. A time is eight bytes from 1978 to 3058, so they stand at the same places. Fields come in the order of their
numbers, as Go writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubetide.objects.meta import Condition
from kubetide.objects.pod import PodStatus

_PHASE, _CONDITION = 0x0A, 0x12
"""The tags of a status."""
_TYPE, _STATUS = 0x0A, 0x12
"""The tags of a condition."""
_UP_TO_TIME = b'\x1a\x00"\x08'
"""What comes between its status and its time: no time of a probe, which nobody writes, and the tag and length."""
_TIME_LENGTH = 8
_MOST_SHAPES = 8
_MOST_STRANGERS = 64
_ONE_BYTE = 0x80


class _Shape(NamedTuple):
    """How statuses begin.

    Attributes:
        size: Bytes of the phase and the conditions.
        said: What comes before, between and after the times.
        said_of: Gives the same of another status.
        times_of: Gives the times of a status, in bytes.
        conditions: What they are copied from.
    """

    size: int
    said: tuple[bytes, ...]
    said_of: Callable[[bytes], tuple[bytes, ...]]
    times_of: Callable[[bytes], tuple[bytes, ...]]
    phase: str
    conditions: tuple[Condition, ...]


class Statuses:
    """Reads the statuses of pods.

    Args:
        read: Reads one by itself.
        read_rest: Gives one of the bytes behind phase and conditions, and of these.
        times: The text of each time, by its bytes.
    """

    def __init__(
        self,
        read: Callable[[bytes], PodStatus],
        read_rest: Callable[[bytes, str, tuple[Condition, ...]], PodStatus],
        times: Mapping[bytes, Any],
    ) -> None:
        self._read = read
        self._read_rest = read_rest
        self._times = times
        self._shapes: list[_Shape] = []
        """The last that were in use, the newest first."""
        self._strangers: set[tuple[Any, ...]] = set()
        """What those said that were like none of them, but for the times."""

    def read(self, piece: bytes) -> PodStatus:
        """Return a status; much of it may be shared with others, so nobody may change it."""
        for shape in self._shapes:
            size = shape.size
            if len(piece) > size and shape.said_of(piece) == shape.said and piece[size] != _CONDITION:
                if shape is not self._shapes[0]:
                    self._shapes.remove(shape)
                    self._shapes.insert(0, shape)
                times = self._times
                conditions = [
                    replace(condition, last_transition_time=times[time])
                    for condition, time in zip(shape.conditions, shape.times_of(piece), strict=True)
                ]
                return self._read_rest(piece[size:], shape.phase, tuple(conditions))
        status = self._read(piece)
        if status.conditions:
            self._note(piece, status)
        return status

    def _note(self, piece: bytes, status: PodStatus) -> None:
        """Note how a status begins, when there was one like it before: to find out costs more than to read it."""
        said = (
            status.phase,
            *[(one.type, one.status, one.reason, one.message) for one in status.conditions or ()],
        )
        if said not in self._strangers:
            if len(self._strangers) >= _MOST_STRANGERS:
                self._strangers.clear()
            self._strangers.add(said)
        elif (new := _shape_of(piece, status)) is not None:
            self._shapes = [new, *self._shapes[: _MOST_SHAPES - 1]]


# ── What is noted of a status ───────────────────────────────────────────────────────────────────


def _shape_of(piece: bytes, status: PodStatus) -> _Shape | None:
    """Return how a status begins, None for one without conditions or with one that stands there otherwise."""
    phase = _block(_PHASE, status.phase)
    if not status.conditions or phase is None or not piece.startswith(phase):
        return None
    at = len(phase)
    ends = [0]
    for condition in status.conditions:
        found = _time_at(piece, at, condition)
        if found is None:
            return None
        time_at, at = found
        ends += [time_at, time_at + _TIME_LENGTH]
    if piece[at : at + 1] == bytes([_CONDITION]):
        return None
    ends.append(at)
    said, times = "", ""
    for number, (begin, end) in enumerate(pairwise(ends)):
        length, is_time = end - begin, number % 2 == 1
        said += f"{length}{'x' if is_time else 's'}"
        times += f"{length}{'s' if is_time else 'x'}"
    said_of = Struct(said).unpack_from
    return _Shape(at, said_of(piece), said_of, Struct(times).unpack_from, status.phase, status.conditions)


def _time_at(piece: bytes, at: int, condition: Condition) -> tuple[int, int] | None:
    """Return where the time of the condition that stands there begins, and where the condition ends."""
    if piece[at : at + 1] != bytes([_CONDITION]):
        return None
    length, begin = piece[at + 1], at + 2
    if length >= _ONE_BYTE:
        length, begin = length - _ONE_BYTE + (piece[begin] << 7), begin + 1
    first, second = _block(_TYPE, condition.type), _block(_STATUS, condition.status)
    if first is None or second is None:
        return None
    before = first + second + _UP_TO_TIME
    if not piece.startswith(before, begin):
        return None
    time_at = begin + len(before)
    return (time_at, begin + length) if time_at + _TIME_LENGTH <= begin + length else None


def _block(tag: int, text: str) -> bytes | None:
    content = text.encode()
    return bytes([tag, len(content)]) + content if len(content) < _ONE_BYTE else None
