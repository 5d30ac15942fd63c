"""A long series with fewer points that looks the same when plotted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kubetide.units.time import Instant

if TYPE_CHECKING:
    from kubetide.runtime.figures.reading import Column
    from kubetide.units.vectors import Float64Vector, Int64Vector


def thinned(column: Column, since: Instant, until: Instant, points: int) -> Column:
    """Return a series between two times, both included, with at most so many points.

    The first point is what held at ``since``. Where there are too many, the first, the least, the greatest and the last
    of each of equal parts of the time stay (M4), so that no peak is lost, and no point is made up.
    """
    times, values = column
    first = int(np.searchsorted(times, since, side="right")) - 1
    last = int(np.searchsorted(times, until, side="right"))
    if last <= 0:
        return column._replace(times=times[:0], values=values[:0])
    times, values = times[max(first, 0) : last].copy(), values[max(first, 0) : last]
    if first >= 0:
        times[0] = max(times[0], since)
    if len(times) > points:
        chosen = _m4(times, values, max(1, points // 4))
        times, values = times[chosen], values[chosen]
    return column._replace(times=times, values=values)


def _m4(times: Int64Vector, values: Float64Vector, parts: int) -> Int64Vector:
    width = max(1, -(-(int(times[-1]) - int(times[0]) + 1) // parts))
    number = (times - times[0]) // width
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    lengths = np.diff(starts, append=len(times))
    part = np.repeat(np.arange(len(starts)), lengths)
    known = ~np.isnan(values)
    least = np.minimum.reduceat(np.where(known, values, np.inf), starts)[part]
    greatest = np.maximum.reduceat(np.where(known, values, -np.inf), starts)[part]
    chosen = [starts, starts + lengths - 1]
    for extreme in (least, greatest):
        found = np.flatnonzero(known & (values == extreme))
        chosen.append(found[np.diff(part[found], prepend=-1) > 0])  # the first of each part
    return np.unique(np.concatenate(chosen))
