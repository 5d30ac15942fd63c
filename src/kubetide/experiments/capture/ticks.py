"""What a workload was asked for, tick by tick."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from math import isnan, nan
from typing import NamedTuple, overload

from kubetide.units.time import Instant

_UNKNOWN = -1
"""Replicas of a scale that could not be read."""


class Tick(NamedTuple):
    """One HPA's target at one tick.

    Attributes:
        replicas: What its scale asks for; None where the scale could not be read.
        serving: Pods that are Running and Ready.
        used: Milli-CPU of those of these that were Ready at ``middle``: the sum of the samples, and their mean for each
            that lacks one. None where no sample tells.
        middle: The middle of the time that the samples cover.
    """

    at: Instant
    replicas: int | None
    serving: int
    used: float | None
    middle: Instant


class Ticks(Sequence[Tick]):
    """Ticks in columns: a week of hundreds of HPAs has millions of them."""

    def __init__(self) -> None:
        self._at, self._middle = array("q"), array("q")
        self._replicas, self._serving = array("i"), array("i")
        self._used = array("d")

    def append(self, tick: Tick) -> None:
        """Add a tick behind the others."""
        self._at.append(tick.at)
        self._replicas.append(_UNKNOWN if tick.replicas is None else tick.replicas)
        self._serving.append(tick.serving)
        self._used.append(nan if tick.used is None else tick.used)
        self._middle.append(tick.middle)

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[Tick]:
        columns = self._at, self._replicas, self._serving, self._used, self._middle
        return (_tick(*row) for row in zip(*columns, strict=True))

    @overload
    def __getitem__(self, at: int) -> Tick: ...
    @overload
    def __getitem__(self, at: slice) -> list[Tick]: ...
    def __getitem__(self, at: int | slice) -> Tick | list[Tick]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        return _tick(self._at[at], self._replicas[at], self._serving[at], self._used[at], self._middle[at])


def _tick(at: int, replicas: int, serving: int, used: float, middle: int) -> Tick:
    return Tick(
        Instant(at),
        None if replicas == _UNKNOWN else replicas,
        serving,
        None if isnan(used) else used,
        Instant(middle),
    )
