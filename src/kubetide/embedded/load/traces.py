"""What a service is asked for over time: a recorded series or an invented day.

A trace gives mean requests/s over any interval. A recorded value holds for its whole step, so a
longer step is read as constant and several shorter ones as their average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, pi
from typing import ClassVar, Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.ports.errors import KubetideError
from kubetide.units.seeds import normal
from kubetide.units.time import Duration, Instant, format_rfc3339

_DAY = 86_400_000_000_000
_MINUTE = 60_000_000_000


class TraceError(KubetideError):
    """A trace that cannot be used; the text names the file, the line, what is wrong and the fix."""


class Trace(Protocol):
    """Requests/s over time."""

    @property
    def has_steps(self) -> bool:
        """Whether it has steps of its own; without them ``highest`` is the ``rate``."""
        ...

    def rate(self, at: Instant, length: Duration) -> float:
        """Return the mean requests/s over [at, at + length), at least 0; ``length`` > 0."""
        ...

    def highest(self, at: Instant, length: Duration) -> float:
        """Return the highest rate over [at, at + length) at the trace's own step: what the mean hides."""
        ...

    def require(self, start: Instant, end: Instant) -> None:
        """Raise TraceError when the trace does not cover [start, end)."""
        ...


class SeriesTrace:
    """Recorded values, each constant over one step, from ``start`` on; nothing is asked for outside."""

    has_steps: Final = True

    def __init__(
        self, values: Sequence[float] | NDArray[np.float64], *, step: Duration, start: Instant, name: str
    ) -> None:
        if step <= 0:
            raise TraceError(f"{name}: a step of {step} ns is not positive")
        self.values = np.asarray(values, np.float64)
        self.step = step
        self.start = start
        self.name = name

    @property
    def end(self) -> Instant:
        """When the last value's step ends."""
        return Instant(self.start + self.step * len(self.values))

    def require(self, start: Instant, end: Instant) -> None:
        """Raise TraceError when the series does not cover [start, end)."""
        if start < self.start or end > self.end:
            raise TraceError(
                f"{self.name}: covers {format_rfc3339(self.start)} to {format_rfc3339(self.end)}, but the run goes from "
                f"{format_rfc3339(start)} to {format_rfc3339(end)}; shorten the run or choose another window"
            )

    def rate(self, at: Instant, length: Duration) -> float:
        """Return the mean over [at, at + length); outside of the series the rate is 0."""
        begin, end = at - self.start, at - self.start + length
        first, last = begin // self.step, -(-end // self.step)
        if last - first == 1:
            return float(self.values[first]) if 0 <= first < len(self.values) else 0.0
        low, high = max(first, 0), min(last, len(self.values))
        if low >= high:
            return 0.0
        inside = self.values[low:high]
        if begin % self.step == 0 and end % self.step == 0:
            return float(inside.sum()) / (last - first)
        edges = np.arange(low, high + 1, dtype=np.int64) * self.step
        overlap = np.diff(np.clip(edges, begin, end).astype(np.float64))
        return float(inside @ overlap) / length

    def highest(self, at: Instant, length: Duration) -> float:
        """Return the largest value whose step reaches into [at, at + length); 0 outside of the series."""
        first, last = (at - self.start) // self.step, -(-(at - self.start + length) // self.step)
        if last - first == 1:
            return max(float(self.values[first]), 0.0) if 0 <= first < len(self.values) else 0.0
        return float(self.values[max(first, 0) : max(last, 0)].max(initial=0.0))


class Burst(msgspec.Struct, frozen=True):
    """A burst of each day: the load is multiplied by up to ``height``.

    Attributes:
        at: When it begins to rise, as time since midnight UTC.
        height: The factor at its top, greater than 0.
        rise, hold, fall: How long it takes to rise in a line, stays, and falls in a line.
    """

    at: Duration
    height: float
    rise: Duration
    hold: Duration
    fall: Duration

    def factor(self, of_day: float) -> float:
        """The factor at a time since midnight in ns."""
        since = (of_day - self.at) % _DAY
        if since < self.rise:
            part = since / self.rise
        elif since < self.rise + self.hold:
            part = 1.0
        elif since < self.rise + self.hold + self.fall:
            part = 1.0 - (since - self.rise - self.hold) / self.fall
        else:
            return 1.0
        return 1.0 + (self.height - 1.0) * part


@dataclass(frozen=True)
class DailyTrace:
    """An invented day that repeats: a cosine from ``low`` to ``peak``, a burst, seeded noise.

    Attributes:
        low, peak: Requests/s at the lowest and the highest point, before noise and burst.
        peak_at: Time since midnight UTC of the highest point; the lowest is 12 hours off.
        noise: Standard deviation of a factor around 1, drawn for each minute.
        seed, name: What the noise is drawn from; two services with two names differ.
    """

    low: float
    peak: float
    peak_at: Duration
    noise: float = 0.0
    burst: Burst | None = None
    seed: int = 0
    name: str = ""
    has_steps: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.peak:
            raise TraceError(
                f"daily load {self.name}: low {self.low} must lie between 0 and peak {self.peak}"
            )
        if self.noise < 0:
            raise TraceError(f"daily load {self.name}: noise {self.noise} is negative; the least is 0")
        if self.burst is not None and self.burst.height <= 0:
            raise TraceError(
                f"daily load {self.name}: burst height {self.burst.height} must be greater than 0"
            )

    def require(self, start: Instant, end: Instant) -> None:
        """Accept every interval: the day repeats."""

    def rate(self, at: Instant, length: Duration) -> float:
        """Return the load at the middle of the interval, which is the mean where the load is a line."""
        middle = at + length / 2
        wave = (1.0 + cos(2.0 * pi * ((middle - self.peak_at) % _DAY) / _DAY)) / 2.0
        value = self.low + (self.peak - self.low) * wave
        if self.burst is not None:
            value *= self.burst.factor(middle % _DAY)
        if self.noise > 0:
            value *= _noise(self.seed, self.noise, self.name, int(middle // _MINUTE))
        return value

    def highest(self, at: Instant, length: Duration) -> float:
        """Return the mean: an invented day has no step of its own."""
        return self.rate(at, length)


# The steps of a minute ask for the same draw.
@lru_cache(maxsize=1 << 12)
def _noise(seed: int, sigma: float, name: str, minute: int) -> float:
    """The factor of that minute."""
    return max(0.0, normal(seed, 1.0, sigma, "daily", name, minute))


class ConstantTrace(msgspec.Struct, frozen=True):
    """The same requests/s for ever."""

    value: float
    has_steps: ClassVar[bool] = False

    def require(self, start: Instant, end: Instant) -> None:
        """Accept every interval."""

    def rate(self, at: Instant, length: Duration) -> float:  # noqa: ARG002  the protocol's arguments
        """Return the value."""
        return self.value

    def highest(self, at: Instant, length: Duration) -> float:  # noqa: ARG002  the protocol's arguments
        """Return the value."""
        return self.value


def window_of(trace: SeriesTrace, start: Instant, end: Instant) -> SeriesTrace:
    """The part of a series in [start, end), cut at whole steps. Raises TraceError when it is not covered."""
    trace.require(start, end)
    if (start - trace.start) % trace.step or (end - trace.start) % trace.step or end <= start:
        raise TraceError(
            f"{trace.name}: the window {format_rfc3339(start)} to {format_rfc3339(end)} does not fall on whole "
            f"steps of {trace.step / 1e9:g} s; move its ends onto steps"
        )
    first, last = (start - trace.start) // trace.step, (end - trace.start) // trace.step
    return SeriesTrace(trace.values[first:last], step=trace.step, start=start, name=trace.name)


def moved(trace: SeriesTrace, start: Instant) -> SeriesTrace:
    """The same values from another start on, so that a past day can be played today."""
    return SeriesTrace(trace.values, step=trace.step, start=start, name=trace.name)
