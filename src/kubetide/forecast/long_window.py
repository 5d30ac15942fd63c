"""Whether a second, longer scale-down window pays: enough of what it holds must be needed.

Upstream's five minutes hold all that was recommended, with the headroom of the HPA's target. Within the longer window
only as much is held as a load that comes again would need at full use: a spike that was served with headroom is served
without it as well. Where spikes come close together that saves the minutes for which new pods start; where each is
alone, or the load is smooth, it only costs. Five minutes later it is known: either the load came to need more than the
shorter window would have held, or it did not.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kubetide.forecast.calendar import HALF_LIFE, MARGIN, Calendar, Float32Matrix, Float32Vector
from kubetide.forecast.rows import FIRST_CREDIT
from kubetide.units.time import Duration, minutes
from kubetide.units.vectors import BoolVector

SHORT: Final = minutes(5)
"""The window that upstream has, ..."""

LONG: Final = minutes(15)
"""... and the longer one."""

PAYS: Final = 0.025
"""It pays while more than this share of what it held was needed: a minute short of pods is worth 40 of holding them."""

_FIRST: Final = 0.5, 10.0
"""What was needed of what was held, in minutes of all pods, is taken to have been so much at first."""


class LongWindow:
    """Scores of many workloads, one slot each.

    Args:
        budget: What it may cost, as a share of the pods that the shorter window holds.

    Attributes:
        score: (4, slots) what was needed of what was held beyond the shorter window, and all of it, both in minutes
            of all of the workload's pods; then, in pod-minutes, what was held while it was used, and what the shorter
            window held.
    """

    def __init__(self, size: int, step: Duration, budget: float) -> None:
        self.score: Float32Matrix = np.zeros((4, size), np.float32)
        self._step, self._budget = step, budget
        self._short, self._long = int(SHORT // step), int(LONG // step)
        self._weight = 0.5 ** (step / HALF_LIFE)

    def grow(self, size: int) -> None:
        """Grow to ``size`` slots."""
        self.score = np.pad(self.score, ((0, 0), (0, size - self.score.shape[1])))

    def advance(self, calendar: Calendar, share: Float32Vector) -> None:
        """Score the newest completed step, with the calendar's newest step.

        Args:
            share: (slots,) the HPA's target as a share of full use; 0 where nothing is to be learned.
        """
        assert calendar.index is not None
        now, then = calendar.index, calendar.index - self._short
        learns = share > 0
        full = np.where(learns, share, 1)
        short_hold = np.ceil(calendar.highest(then - self._short, then) / full - 1e-4)
        again = calendar.highest(then - self._long, then) * np.minimum(MARGIN, 1 / full)
        held = np.maximum(short_hold, np.ceil(again - 1e-4))
        more = np.where(learns, held - short_hold, 0)
        needed = np.clip(calendar.highest(then + 1, now) - short_hold, 0, more)
        step = self._step / minutes(1)
        known = step / np.maximum(held, 1)
        found = [
            needed * known,
            more * known,
            more * step * self.used,
            np.where(learns, short_hold, 0) * step,
        ]
        self.score *= self._weight
        self.score += np.nan_to_num(np.stack(found)).astype(np.float32)

    @property
    def pays(self) -> BoolVector:
        """Return (slots,): whether enough of what is held is needed."""
        (needed, held), (first, of) = self.score[:2], _FIRST
        found: BoolVector = (needed + first) / (held + of) > PAYS
        return found

    @property
    def used(self) -> BoolVector:
        """Return (slots,): whether the window is used: it pays, and has not cost too much."""
        spent, asked = self.score[2:]
        found: BoolVector = self.pays & (spent < self._budget * asked + FIRST_CREDIT)
        return found
