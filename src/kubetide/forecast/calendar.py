"""A calendar of onsets: when a workload's load has jumped, and whether it does so again after a fixed time.

Levels seldom repeat well enough to be worth anything; onsets do (jobs on the hour, shifts, matches, batch imports).
An onset at s is a load within half a minute of s of at least 1.25 times the mean of the ten minutes before, and not
below their peak: noise rises above its own mean all the time, and what it teaches would hold pods at all hours. For each
period the sizes of the last three onsets at the same phase are looked up, and the second largest is forecast: one
onset alone is no forecast, and one that was left out takes nothing away. Each period keeps a score of what it
forecast and what came, and is believed only where enough of it came true; one that is not believed goes on being
scored, so it comes back by itself.

All workloads are columns; a step is one pass over them. Rows are times, so that a phase of all workloads is one row.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubetide.forecast.grid import CLOCK_AHEAD, LOOKED_BACK, PERIODS, STEP, Lengths
from kubetide.forecast.zones import Zones
from kubetide.units.time import Duration, Instant, hours
from kubetide.units.vectors import BoolVector, Int64Vector

Float32Vector = NDArray[np.float32]
Float32Matrix = NDArray[np.float32]
_Number = TypeVar("_Number", bound=np.generic)

RISE: Final = 1.25
"""An onset is a rise to at least so many times the level. It must stay below 1 / target of an HPA: behind a CPU limit
the load that is seen cannot rise further than that, and no onset would ever be seen."""

HIT: Final = 0.7
"""A forecast onset came true if it reached this share of what was forecast."""

MARGIN: Final = 1.1
"""Pods that are held for a load to come: so many times those that serve it at full use."""

BELIEVED: Final = 0.4
"""A period is believed while more than this share of what it forecast came true."""

HALF_LIFE: Final = hours(48)
"""After so long a score counts half."""

_FIRST = 4
_NOTHING = np.float32(0.0)


class Episode(NamedTuple):
    """A forecast onset that is over.

    Attributes:
        at: The step that it was forecast for.
        forecast, came: Load, in replicas at their target.
        period: After which it was forecast to come again.
    """

    at: int
    forecast: float
    came: float
    period: Duration


class Calendar:
    """Onsets of many workloads; one slot each. The caller assigns and clears slots.

    Attributes:
        index: The last step that was taken in, counted from 1970; None before the first.
        means, peaks: (recent steps, slots) load of the last steps, NaN where it is not known.
        onsets: (steps of three weeks and more, slots) size of the onset at a step, 0 for none.
        forecast, period_of: (recent steps, slots) what is forecast for a step, 0 for nothing, and by which period.
        hits, trials: (periods, slots) the score.
        hour_peaks: (25, slots) highest load of each of the last hours, for the cap.
    """

    def __init__(self, step: Duration = STEP, periods: tuple[Duration, ...] = PERIODS) -> None:
        self.step = step
        self.lengths = n = Lengths.of(step)
        self.periods = periods
        self.period_steps: tuple[int, ...] = tuple(int(period // step) for period in periods)
        self.recent = n.base + n.lead + n.size + max(n.nodes_before, n.nodes_after) + 2 * n.near + 4
        self.history_steps = LOOKED_BACK * max(self.period_steps) + self.recent + int(hours(3) // step)
        self.index: int | None = None
        self.zones = Zones(step)
        self._decay = 0.5 ** (step / HALF_LIFE)
        self._size = _FIRST
        self.means = self._ring(self.recent, np.nan)
        self.peaks = self._ring(self.recent, np.nan)
        self.forecast = self._ring(self.recent, 0.0)
        self.period_of = np.zeros((self.recent, self._size), np.int8)
        self.onsets = np.zeros((self.history_steps, self._size), np.float16)
        self.hits = np.zeros((len(periods), self._size), np.float32)
        self.trials = np.zeros((len(periods), self._size), np.float32)
        self.hour_peaks = self._ring(25, 0.0)

    @property
    def size(self) -> int:
        """Return the number of slots."""
        return self._size

    def _ring(self, rows: int, fill: float) -> Float32Matrix:
        return np.full((rows, self._size), fill, np.float32)

    def grow(self, size: int) -> None:
        """Grow to ``size`` slots."""
        more = size - self._size
        if more <= 0:
            return
        self.means, self.peaks = _wider(self.means, more, np.nan), _wider(self.peaks, more, np.nan)
        self.forecast, self.period_of = _wider(self.forecast, more, 0), _wider(self.period_of, more, 0)
        self.onsets, self.hour_peaks = _wider(self.onsets, more, 0), _wider(self.hour_peaks, more, 0)
        self.hits, self.trials = _wider(self.hits, more, 0), _wider(self.trials, more, 0)
        self._size = size

    def clear(self, slot: int) -> None:
        """Forget a workload."""
        self.means[:, slot] = self.peaks[:, slot] = np.nan
        for ring in (self.forecast, self.period_of, self.onsets, self.hits, self.trials, self.hour_peaks):
            ring[:, slot] = 0
        self.zones.clear(slot)

    # ── a step ──

    def advance(self, index: int, mean: Float32Vector, peak: Float32Vector, learns: BoolVector) -> None:
        """Apply the next step of all slots.

        Args:
            index: Of the step; those that were left out since the last one count as not known. One at most an hour
                before the last one is left out; further back a clock that was ahead was set back.
            mean, peak: (slots,) load; NaN where it is not known.
            learns: (slots,) whether an onset now would be one of the load: not after an outage or in a rollout.
        """
        last = self.index
        if last is not None:
            if index <= last:
                if (last - index) * self.step <= CLOCK_AHEAD:
                    return
                self._go_back(index, last)
            else:
                self._skip(last + 1, index)
        self._take(index, mean, peak, learns)

    def _skip(self, first: int, index: int) -> None:
        """Count the steps from ``first`` up to ``index`` as not known."""
        unknown = np.full(self._size, np.nan, np.float32)
        never = np.zeros(self._size, np.bool_)
        begin = first + 2 * self.recent
        for missed in range(first, min(begin, index)):
            self._take(missed, unknown, unknown, never)
        if begin >= index:
            return
        # After so long nothing of the recent past is left: each further step only takes away what is old.
        self._clear_onsets(max(begin, index - self.history_steps), index)
        self.hits *= self._decay ** (index - begin)
        self.trials *= self._decay ** (index - begin)
        for hour in range((begin - 1) // self._an_hour + 1, (index - 1) // self._an_hour + 1)[-25:]:
            self.hour_peaks[hour % 25] = 0.0
        self.index = index - 1

    def _go_back(self, index: int, last: int) -> None:
        """Forget what a clock that was ahead brought; what came before it stays, as far as it reaches."""
        self.means[:] = self.peaks[:] = np.nan
        self.forecast[:] = self.period_of[:] = 0
        self._clear_onsets(index, min(last + 1, index + self.history_steps))

    def _clear_onsets(self, first: int, end: int) -> None:
        """Clear the onsets that the steps from ``first`` up to ``end`` note."""
        noted = np.arange(first, end) - self.lengths.size - self.lengths.near
        self.onsets[noted % self.history_steps] = 0.0

    @property
    def _an_hour(self) -> int:
        return max(1, int(hours(1) // self.step))

    def _take(self, index: int, mean: Float32Vector, peak: Float32Vector, learns: BoolVector) -> None:
        n = self.lengths
        self.index = index
        self.means[index % self.recent], self.peaks[index % self.recent] = mean, peak
        self._note_hour(index, peak)
        self._note_onset(index - n.size - n.near, learns)
        self._forecast_at(index + n.nodes_before)

    def _note_hour(self, index: int, peak: Float32Vector) -> None:
        hour, begins = divmod(index, self._an_hour)
        row = self.hour_peaks[hour % 25]
        if not begins:
            row[:] = 0.0
        np.fmax(row, peak, out=row)

    def _note_onset(self, at: int, learns: BoolVector) -> None:
        """Look whether there was an onset at a step of which all is known now, and score what was forecast for it."""
        n = self.lengths
        size = self.highest(at - n.near, at + n.size)
        level = self.level(at - n.lead)
        near = self.highest(at - n.near, at + n.near)
        before = self.highest(at - n.lead - n.base + 1, at - n.lead)
        came = learns & (near >= RISE * level) & (near > 0) & (near >= before)
        self.onsets[at % self.history_steps] = np.where(came, np.minimum(size, 60000.0), 0.0)
        self.hits *= self._decay
        self.trials *= self._decay
        known = ~np.isnan(level) & learns
        for number, steps in enumerate(self.period_steps):
            expected = self._recurring(at, steps, number)
            tried = known & (expected > 0) & (expected >= RISE * level)
            self.trials[number] += n.trial * tried
            self.hits[number] += n.trial * (tried & came & (size >= HIT * expected))

    def _forecast_at(self, at: int) -> None:
        """Write down what the believed periods forecast for a step to come."""
        level = self.level(self.index or 0)
        best = np.zeros(self._size, np.float32)
        by = np.zeros(self._size, np.int8)
        for number, steps in enumerate(self.period_steps):
            expected = self._recurring(at, steps, number)
            onset = self.believed(number) & (expected > best) & (expected >= RISE * level)
            best[onset], by[onset] = expected[onset], number
        self.forecast[at % self.recent], self.period_of[at % self.recent] = best, by

    def believed(self, number: int) -> BoolVector:
        """Return (slots,): whether a period's forecasts are used."""
        found: BoolVector = (self.hits[number] + 1.0) / (self.trials[number] + 2.0) > BELIEVED
        return found

    def _recurring(self, at: int, steps: int, number: int) -> Float32Vector:
        """Return (slots,) the second largest of the onsets one, two and three periods before a step."""
        return _second_largest(*(self._onset(at, back * steps, number) for back in (1, 2, 3)))

    def _onset(self, at: int, back: int, number: int) -> Float32Vector:
        if self.index is not None and at - back > self.index - self.lengths.size - self.lengths.near:
            # Not noted yet: the row still has what was three weeks before.
            return np.zeros(self._size, np.float32)
        row = self.onsets[(at - back) % self.history_steps]
        if self.periods[number] >= hours(24) and self.zones.any:
            # Days and weeks are those of the workload's own clock.
            shift = self.zones.shift(at, back)
            moved = np.flatnonzero(shift)
            if len(moved):
                row = row.copy()
                row[moved] = self.onsets[(at - back + shift[moved]) % self.history_steps, moved]
        found: Float32Vector = row.astype(np.float32)
        return found

    def _rows(self, first: int, last: int) -> Int64Vector:
        return np.arange(first, last + 1) % self.recent

    def highest(self, first: int, last: int) -> Float32Vector:
        """Return (slots,): the highest load of some recent steps; NaN if none of them is known."""
        found: Float32Vector = self.peaks[self._rows(first, last)]
        most: Float32Vector = np.asarray(np.fmax.reduce(found, axis=0), np.float32)
        return most

    def level(self, until: int) -> Float32Vector:
        """Return (slots,): the mean of the ten minutes up to a step; NaN if less than half of it is known."""
        rows = self.means[self._rows(until - self.lengths.base + 1, until)]
        known = np.count_nonzero(~np.isnan(rows), axis=0)
        total = np.nansum(rows, axis=0)
        found: Float32Vector = np.where(
            2 * known >= self.lengths.base, total / np.maximum(known, 1), np.nan
        ).astype(np.float32)
        return found

    # ── reading ──

    def pods_ahead(self) -> tuple[Float32Vector, Int64Vector]:
        """Return (slots,): the load that pods must be ready for now, and its forecast step."""
        n = self.lengths
        return self._most(-n.pods_after, n.pods_before)

    def nodes_ahead(self) -> tuple[Float32Vector, Int64Vector]:
        """Return (slots,): the same for nodes, which take longer to start and are held longer."""
        n = self.lengths
        return self._most(-n.nodes_after, n.nodes_before - 1)

    def _most(self, first: int, last: int) -> tuple[Float32Vector, Int64Vector]:
        if self.index is None:
            return np.zeros(self._size, np.float32), np.zeros(self._size, np.int64)
        begin = self.index + 1 + first
        rows = self.forecast[self._rows(begin, self.index + 1 + last)]
        place = rows.argmax(axis=0)
        most = rows[place, np.arange(self._size)]
        quiet = ~(most >= RISE * self.level(self.index))
        return np.where(quiet & (place + begin > self.index), _NOTHING, most), begin + place

    def day_peak(self) -> Float32Vector:
        """Return (slots,): the highest load of the last day."""
        found: Float32Vector = self.hour_peaks.max(axis=0)
        return found

    def period_at(self, at: int, slot: int) -> Duration:
        """Return the period that forecasts an onset at a step."""
        return self.periods[int(self.period_of[at % self.recent, slot])]

    def ended(self) -> list[tuple[int, Episode]]:
        """Return the forecast onsets that ended since the last step, by slot: the forecast and the actual load."""
        if self.index is None:
            return []
        n, at = self.lengths, self.index - self.lengths.size - self.lengths.near
        onset = self.forecast[at % self.recent]
        begun = (onset > 0) & (self.forecast[(at - 1) % self.recent] == 0)
        slots = np.flatnonzero(begun)
        if not len(slots):
            return []
        came = self.highest(at - n.near, at + n.size)
        return [
            (
                slot,
                Episode(at, float(onset[slot]), float(np.nan_to_num(came[slot])), self.period_at(at, slot)),
            )
            for slot in slots.tolist()
        ]

    def coming(self, slot: int, steps: int) -> list[Episode]:
        """Return the forecast onsets of a slot for the next steps; their actual load is 0 so far."""
        if self.index is None:
            return []
        least = RISE * float(self.level(self.index)[slot])
        begin = self.index + 1
        at = np.arange(begin, begin + steps)
        best, by = np.zeros(steps, np.float32), np.zeros(steps, np.int64)
        for number, back in enumerate(self.period_steps):
            if self.believed(number)[slot]:
                expected = _second_largest(
                    *(self._onsets(slot, at - k * back, at, number) for k in (1, 2, 3))
                )
                more = expected > best
                best[more], by[more] = expected[more], number
        found: list[Episode] = []
        last = -2
        for step in np.flatnonzero((best > 0) & (best.astype(np.float64) >= least)).tolist():
            load = float(best[step])
            if step > last + 1:
                found.append(Episode(begin + step, load, 0.0, self.periods[int(by[step])]))
            elif load > found[-1].forecast:
                found[-1] = found[-1]._replace(forecast=load)
            last = step
        return found

    def _onsets(self, slot: int, then: Int64Vector, at: Int64Vector, number: int) -> Float32Vector:
        """Return (steps,): what ``_onset`` says of a slot for the steps ``at``, of the steps ``then`` before them."""
        assert self.index is not None, "there are steps"
        noted = then <= self.index - self.lengths.size - self.lengths.near
        if self.periods[number] >= hours(24):
            then = then + self.zones.shifts(slot, at, then)
        found: Float32Vector = self.onsets[then % self.history_steps, slot].astype(np.float32) * noted
        return found

    def forecast_next(self, steps: int) -> Float32Matrix:
        """Return (steps, slots): the onsets that the used periods forecast for the next steps, 0 for none."""
        found = np.zeros((steps, self._size), np.float32)
        if self.index is None:
            return found
        level = self.level(self.index)
        believed = [self.believed(number) for number in range(len(self.periods))]
        for ahead in range(steps):
            at = self.index + 1 + ahead
            for number, back in enumerate(self.period_steps):
                expected = self._recurring(at, back, number)
                onset = believed[number] & (expected > found[ahead]) & (expected >= RISE * level)
                found[ahead][onset] = expected[onset]
        return found

    def instant_of(self, at: int) -> Instant:
        """Return the start time of a step."""
        return Instant(at * self.step)


def _second_largest(a: Float32Vector, b: Float32Vector, c: Float32Vector) -> Float32Vector:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _wider(ring: NDArray[_Number], more: int, fill: float) -> NDArray[_Number]:
    return np.concatenate([ring, np.full((len(ring), more), fill, ring.dtype)], axis=1)
