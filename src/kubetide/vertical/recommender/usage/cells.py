"""Sums of aggregates: all data of a VPA about one of its containers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.histograms import NEVER, Histograms


class Sums(msgspec.Struct, frozen=True, eq=False):
    """Histograms and counts by container of a VPA: copies that may be changed."""

    cpu: Histograms
    memory: Histograms
    first: Int64Vector
    last: Int64Vector
    count: Int64Vector


def summed(aggregates: Aggregates, rows: Sequence[tuple[int, ...]]) -> Sums:
    """Return the sum of each tuple of rows, added from left to right.

    References of rows that are added must have been aligned before (``alignment``).
    """
    sums = Sums(
        Histograms(aggregates.cpu.buckets, aggregates.cpu.half_life, len(rows)),
        Histograms(aggregates.memory.buckets, aggregates.memory.half_life, len(rows)),
        *counted(aggregates, rows),
    )
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    for place in range(int(lengths.max(initial=0))):
        into = np.flatnonzero(lengths > place)
        sources = np.fromiter((rows[cell][place] for cell in into.tolist()), np.int64, len(into))
        sums.cpu.merge(into, aggregates.cpu, sources)
        sums.memory.merge(into, aggregates.memory, sources)
    return sums


def counted(
    aggregates: Aggregates, rows: Sequence[tuple[int, ...]]
) -> tuple[Int64Vector, Int64Vector, Int64Vector]:
    """Return the first sample, the last one and the number of samples of each tuple of rows."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    sources = np.fromiter((row for one in rows for row in one), np.int64, int(lengths.sum()))
    if len(sources) == 0:
        return tuple(np.empty(0, np.int64) for _ in range(3))  # type: ignore[return-value]  # always three
    begins = np.cumsum(lengths) - lengths
    never_last = np.where(aggregates.first[sources] == NEVER, (1 << 63) - 1, aggregates.first[sources])
    first = np.minimum.reduceat(never_last, begins)
    return (
        np.where(first == (1 << 63) - 1, NEVER, first),
        np.maximum.reduceat(aggregates.last[sources], begins),
        np.add.reduceat(aggregates.count[sources], begins),
    )
