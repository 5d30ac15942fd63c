"""Headroom learned from forecast errors: how far the load exceeded its trend line by the time that new pods serve.

The HPA's target is a fixed headroom: 70 % gives a steady load the same headroom as one that doubles in a minute. Here a
line through the last five minutes forecasts each step. A histogram counts how far the peak five steps later exceeded the
line; its 98th percentile is the learned headroom. The share of full use of the pods stays within bounds around the HPA's
target.

A running back-test decides whether to use it: at each step it compares the pods that this and the plain target would have
asked for (the maximum of ten minutes, because scale-downs wait) with the peak five steps later. The learned headroom is
used for a workload if, over the last days, it would have had fewer minutes short of pods with no more pods, or fewer pods
with no more such minutes.

All workloads are columns; a step is one pass over them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.forecast.calendar import Float32Matrix, Float32Vector
from kubetide.forecast.grid import STEP
from kubetide.units.time import Duration, hours
from kubetide.units.vectors import BoolVector

NAME: Final = "headroom"
"""As a second stage is named."""

LEAST_PODS: Final = 30
"""With fewer pods at full use, single requests overload a second unseen in the mean of a tick."""

HIGHEST: Final = 8 / 7
"""The share of full use of the pods is at most this multiple of the target (80 % for 70 %), ..."""

LOWEST: Final = 5 / 7
"""... and at least this multiple (50 %)."""

FULLEST: Final = 0.95
"""No target makes pods fuller than this."""

COVERED: Final = 0.98
"""Share of the errors that the headroom covers."""

FEWER: Final = 0.9
"""It is better if it has less than this share of the plain target's bad minutes with no more pods, ..."""

CHEAPER: Final = 0.97
"""... or less than this share of its pods with no more bad minutes."""

LEAST_STEPS: Final = 24 * 60
"""The number of steps that must have been scored: a whole day."""

_ERRORS_HALF_LIFE: Final = hours(24)
_SCORE_HALF_LIFE: Final = hours(48)
_LINE, _HORIZON, _WINDOW = 5, 5, 10
"""Steps of a line, of a node's boot and a pod's start together, and of the look back of scale-downs."""

_SLOPE: Final = 2.5
"""A line is followed for half of the horizon: it seldom goes on for all of it."""
_BINS, _MIDDLE, _WIDTH = 260, 130, float(np.log(1.02))
_SMOOTH: Final = 4.0
"""Pods that both sides of an error are taken to have more: at small loads ratios say little."""
_REFRESHED = 10
_LEAST_ERRORS: Final = 60.0

_AT = np.arange(_LINE, dtype=np.float32) - (_LINE - 1)
_ALONG: Final[Float32Vector] = (
    1 / _LINE + (_AT - _AT.mean()) / ((_AT - _AT.mean()) ** 2).sum() * (_SLOPE - _AT.mean())
).astype(np.float32)
"""Weights of the last means, oldest first, by which their least-squares line is followed for ``_SLOPE`` steps."""


class HeadroomScore(NamedTuple):
    """The back-test of one workload: pods asked for, steps short of pods, and the number of scored steps."""

    pods: float
    plain_pods: float
    short: float
    plain_short: float
    steps: int
    used: bool


class HeadroomMemory(msgspec.Struct, frozen=True):
    """One slot: its columns as bytes, valid for the same ``index``."""

    index: int
    columns: tuple[bytes, ...]


class Headroom:
    """The learned headroom of all slots.

    Attributes:
        index: The last applied step.
        capacity: (slots,) the load to provide pods for five steps ahead; 0 where it is not known.
        used: (slots,) whether the back-test beats the plain target's.
    """

    def __init__(self, size: int, step: Duration = STEP) -> None:
        self.index = -1
        self._error_weight = 0.5 ** (_REFRESHED * step / _ERRORS_HALF_LIFE)
        self._score_weight = 0.5 ** (step / _SCORE_HALF_LIFE)
        self.errors: Float32Matrix = np.zeros((_BINS, size), np.float32)
        self.means: Float32Matrix = np.zeros((_LINE, size), np.float32)
        self.lines: Float32Matrix = np.zeros((_HORIZON + 1, size), np.float32)
        self.asked: NDArray[np.float32] = np.zeros((2 * _WINDOW, size), np.float32)
        """Pods that this and the plain target ask for, alternating, for each of the last ten steps."""
        self.most_asked: Float32Matrix = np.zeros((2 * (_HORIZON + 1), size), np.float32)
        self.pods: Float32Matrix = np.zeros((2, size), np.float32)
        self.short: Float32Matrix = np.zeros((2, size), np.float32)
        self.steps: NDArray[np.int32] = np.zeros((2, size), np.int32)
        """Steps that are known without a gap, and steps that were scored."""
        self.factor: Float32Matrix = np.zeros((1, size), np.float32)
        self.capacity: Float32Vector = np.zeros(size, np.float32)
        self.used: BoolVector = np.zeros(size, np.bool_)

    def _columns(self) -> tuple[NDArray[np.generic], ...]:
        return (
            self.errors, self.means, self.lines, self.asked, self.most_asked, self.pods, self.short, self.steps,
            self.factor, self.capacity[None], self.used[None],
        )  # fmt: skip

    def grow(self, size: int) -> None:
        """Grow to ``size`` slots."""
        more = size - len(self.used)
        if more <= 0:
            return
        wider = [np.pad(one, ((0, 0), (0, more))) for one in self._columns()]
        (
            self.errors, self.means, self.lines, self.asked, self.most_asked, self.pods, self.short, self.steps,
            self.factor,
        ) = wider[:9]  # fmt: skip
        self.capacity, self.used = wider[9][0], wider[10][0]

    def clear(self, slot: int) -> None:
        """Forget a workload."""
        for column in self._columns():
            column[:, slot] = 0

    # ── a step ──

    def advance(self, index: int, mean: Float32Vector, peak: Float32Vector, share: Float32Vector) -> None:
        """Apply the next step of all slots.

        Args:
            index: Of the step; where some were left out, all begin anew with their lines.
            mean, peak: (slots,) load in pods at full use; NaN where it is not known, or not to be learned from.
            share: (slots,) the HPA's target as a share of full use; 0 where there is none.
        """
        run = self.steps[0]
        if index != self.index + 1:
            run[:] = 0
        self.index = index
        known = ~np.isnan(mean) & ~np.isnan(peak) & (share > 0)
        run[:] = np.where(known, run + 1, 0)
        mean, peak = np.nan_to_num(mean), np.nan_to_num(peak)
        was, now = (index - _HORIZON) % (_HORIZON + 1), index % (_HORIZON + 1)
        self._note_error(np.flatnonzero(run >= _LINE + _HORIZON), peak, was)
        self._score((run >= _LINE + _HORIZON + _WINDOW) & (self.factor[0] > 0), peak, was)
        self.means[index % _LINE] = mean
        rows = np.arange(index - _LINE + 1, index + 1) % _LINE
        # Row by row, not as a product of matrices: that rounds otherwise with another number of slots.
        line = np.maximum((_ALONG[:, None] * self.means[rows]).sum(axis=0), 0).astype(np.float32)
        self.lines[now] = line
        if index % _REFRESHED == 0:
            self._refresh()
        self.capacity = np.where(run >= _LINE, np.maximum((line + _SMOOTH) * self.factor[0] - _SMOOTH, 0), 0)
        self._note_asked(index, now, peak, np.where(share > 0, share, 1).astype(np.float32))

    def _note_error(self, slots: NDArray[np.intp], peak: Float32Vector, was: int) -> None:
        above = (peak[slots] + _SMOOTH) / (self.lines[was, slots] + _SMOOTH)
        bins = np.clip(np.floor(np.log(above) / _WIDTH).astype(np.int64) + _MIDDLE, 0, _BINS - 1)
        self.errors[bins, slots] += 1

    def _score(self, scored: BoolVector, peak: Float32Vector, was: int) -> None:
        most_asked = self.most_asked[2 * was : 2 * was + 2]
        self.pods = np.where(scored, self.pods * self._score_weight + most_asked, self.pods)
        short = self.short * self._score_weight + (peak > most_asked)
        self.short = np.where(scored, short, self.short).astype(np.float32)
        self.steps[1] += scored
        (own, plain), (bad, plain_bad) = self.pods, self.short
        better = (bad < FEWER * plain_bad) & (own <= plain) | (bad <= plain_bad) & (own < CHEAPER * plain)
        self.used = better & (self.steps[1] >= LEAST_STEPS)

    def _refresh(self) -> None:
        """Decay the histograms, and read the factors from them."""
        self.errors *= self._error_weight
        summed = self.errors.cumsum(axis=0)
        bins = (summed < COVERED * summed[-1]).sum(axis=0)
        enough = summed[-1] >= _LEAST_ERRORS
        self.factor[0] = np.where(enough, np.exp((bins - _MIDDLE + 1) * _WIDTH), 0)

    def _note_asked(self, index: int, now: int, peak: Float32Vector, share: Float32Vector) -> None:
        at = 2 * (index % _WINDOW)
        plain = np.maximum(np.ceil(peak / share - 1e-4), 1)
        own = np.maximum(np.ceil(within(self.capacity, peak, share) - 1e-4), 1)
        self.asked[at], self.asked[at + 1] = np.where(self.capacity > 0, own, plain), plain
        self.most_asked[2 * now] = self.asked[::2].max(axis=0)
        self.most_asked[2 * now + 1] = self.asked[1::2].max(axis=0)

    # ── reading ──

    def score(self, slot: int) -> HeadroomScore:
        """Return the back-test of a slot."""
        (pods, plain), (short, plain_short) = self.pods[:, slot].tolist(), self.short[:, slot].tolist()
        return HeadroomScore(pods, plain, short, plain_short, int(self.steps[1, slot]), bool(self.used[slot]))

    def dump(self, slot: int) -> HeadroomMemory:
        """Return the memory of a slot."""
        return HeadroomMemory(self.index, tuple(one[:, slot].tobytes() for one in self._columns()))

    def restore(self, slot: int, memory: HeadroomMemory) -> None:
        """Restore the memory of a slot; one that does not fit is ignored."""
        columns = self._columns()
        sizes = [len(one) * one.dtype.itemsize for one in columns]
        if [len(data) for data in memory.columns] != sizes or self.index not in {-1, memory.index}:
            return
        self.index = memory.index
        for one, data in zip(columns, memory.columns, strict=True):
            one[:, slot] = np.frombuffer(data, one.dtype)


def within(
    capacity: Float32Vector | float, load: Float32Vector | float, share: Float32Vector | float
) -> Float32Vector:
    """Return the pods for a load with headroom, within the bounds around a target: its share of full use."""
    fewest = load / np.minimum(share * HIGHEST, FULLEST)
    found: Float32Vector = np.clip(capacity, fewest, np.maximum(load / (share * LOWEST), fewest))
    return found
