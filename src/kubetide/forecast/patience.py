"""Whether a longer look back of scale-downs pays: what it holds must be needed again often enough.

A look back of ten minutes in place of five keeps the pods of a spike for the next one. Where spikes come close together
that saves the minutes for which new pods start; where each is alone, or the load is smooth, it only costs. Five minutes
later it is known: either the load came to need more than the shorter look back would have kept, or it did not.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kubetide.forecast.calendar import HALF_LIFE, Calendar, Float32Matrix, Float32Vector
from kubetide.units.time import Duration, minutes
from kubetide.units.vectors import BoolVector

SHORT: Final = minutes(5)
"""The look back that upstream has, ..."""

LONG: Final = minutes(10)
"""... and the one that is used where it pays."""

PAYS: Final = 0.025
"""It pays while more than this share of what it held was needed: a minute short of pods is worth 40 of holding them."""

_FIRST: Final = 0.5, 10.0
"""What was needed of what was held, in minutes of all pods, is taken to have been so much at first."""


class Patience:
    """Scores of many workloads, one slot each.

    Attributes:
        score: (2, slots) what was needed of what was held beyond the shorter look back, and all of it; in minutes of
            all of the workload's pods.
    """

    def __init__(self, size: int, step: Duration) -> None:
        self.score: Float32Matrix = np.zeros((2, size), np.float32)
        self._step = step
        self._short, self._long = int(SHORT // step), int(LONG // step)
        self._weight = 0.5 ** (step / HALF_LIFE)

    def grow(self, size: int) -> None:
        """Make room for so many slots."""
        self.score = np.pad(self.score, ((0, 0), (0, size - self.score.shape[1])))

    def advance(self, calendar: Calendar, share: Float32Vector) -> None:
        """Score the step of which all is known now, with the calendar's newest step.

        Args:
            share: (slots,) the HPA's target as a share of full use; 0 where nothing is to be learned.
        """
        assert calendar.index is not None
        now, then = calendar.index, calendar.index - self._short
        full = np.where(share > 0, share, 1)
        kept = np.ceil(calendar.highest(then - self._short, then) / full - 1e-4)
        held = np.ceil(calendar.highest(then - self._long, then) / full - 1e-4)
        more = np.where(share > 0, np.maximum(held - kept, 0), 0)
        needed = np.clip(calendar.highest(then + 1, now) - kept, 0, more)
        known = (self._step / minutes(1)) / np.maximum(held, 1)
        self.score *= self._weight
        self.score += np.nan_to_num(np.stack([needed, more]) * known).astype(np.float32)

    @property
    def pays(self) -> BoolVector:
        """Return (slots,) whether the longer look back pays."""
        (needed, held), (first, of) = self.score, _FIRST
        found: BoolVector = (needed + first) / (held + of) > PAYS
        return found
