"""A forecaster besides the calendar, used only for workloads on whose own past it beats the level."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from kubetide.forecast.backtest import backtest, checked
from kubetide.forecast.calendar import Float32Matrix, Float32Vector
from kubetide.forecast.forecaster import Forecaster, History
from kubetide.units.time import Duration, Instant, hours, minutes
from kubetide.units.vectors import BoolVector, Int64Vector

QUANTILE: Final = 0.9
"""What is held is what the load does not exceed in nine of ten steps."""

AHEAD: Final = minutes(70)
"""So far it forecasts each time, ..."""

EVERY: Final = hours(1)
"""... which is so often."""

REMEMBERED: Final = hours(14 * 24)


class SecondStageMemory(msgspec.Struct, frozen=True):
    """One slot: its history, its forecast from the step ``base`` on, and whether that is used."""

    index: int
    base: int
    history: bytes
    told: bytes
    used: bool


class SecondStage:
    """The histories of all slots, and the forecaster's forecasts for them.

    Attributes:
        used: (slots,) whether the back-test was better than the level's.
        problem: Why the forecaster is not used at all; empty where it answers.
    """

    def __init__(self, forecaster: Forecaster, step: Duration, size: int) -> None:
        self.forecaster = forecaster
        self.step = step
        self.rows = int(REMEMBERED // step)
        self.ahead = int(AHEAD // step)
        self.index = -1
        self.problem = ""
        self.base = 0
        self.history: Float32Matrix = np.full((self.rows, size), np.nan, np.float32)
        self.predicted: Float32Matrix = np.full((self.ahead, size), np.nan, np.float32)
        self.used: BoolVector = np.zeros(size, np.bool_)

    def grow(self, size: int) -> None:
        """Grow to ``size`` slots."""
        more = size - len(self.used)
        if more > 0:
            self.history = np.pad(self.history, ((0, 0), (0, more)), constant_values=np.nan)
            self.predicted = np.pad(self.predicted, ((0, 0), (0, more)), constant_values=np.nan)
            self.used = np.pad(self.used, (0, more))

    def clear(self, slot: int) -> None:
        """Forget a workload."""
        self.history[:, slot] = self.predicted[:, slot] = np.nan
        self.used[slot] = False

    def advance(self, index: int, mean: Float32Vector) -> None:
        """Apply a step; from time to time score and forecast again."""
        for missed in range(max(self.index + 1, index - self.rows), index):
            self.history[missed % self.rows] = np.nan
        if index <= self.index:  # a clock that was ahead was set back
            for ahead in range(index, min(self.index + 1, index + self.rows)):
                self.history[ahead % self.rows] = np.nan
            self.predicted[:] = np.nan
        self.history[index % self.rows] = mean
        self.index = index
        if index % int(EVERY // self.step) == 0:
            self._refresh()

    def most(self, steps: int) -> tuple[Float32Vector, Int64Vector]:
        """Return (slots,): the highest forecast of the next steps, 0 if it is not used, and its step."""
        first = self.index + 1 - self.base
        rows = self.predicted[max(first, 0) : max(first + steps, 0)]
        if not len(rows):
            return np.zeros(len(self.used), np.float32), np.zeros(len(self.used), np.int64)
        rows = np.where(np.isnan(rows) | ~self.used, np.float32(0), rows)
        place = rows.argmax(axis=0)
        return rows[place, np.arange(rows.shape[1])], self.index + 1 + place

    def _refresh(self) -> None:
        begin = (self.index + 1) % self.rows
        loads = np.concatenate([self.history[begin:], self.history[:begin]])
        known = np.flatnonzero(~np.isnan(loads).all(axis=1))
        if not len(known):
            return
        history = History(loads[known[0] :], self.step, Instant((self.index + 1) * self.step))
        self.base, self.problem = self.index + 1, ""
        try:
            self.predicted = checked(self.forecaster, history, self.ahead, QUANTILE)
            self.used = backtest(self.forecaster, history, self.ahead, QUANTILE).is_better
        # Another package's code; whatever it does, the HPA goes on alone.
        except Exception as error:  # noqa: BLE001
            self.problem = f"the forecaster {self.forecaster.name} is not used: {error!r}"
            self.predicted[:] = np.nan
            self.used[:] = False

    # ── records ──

    def dump(self, slot: int) -> SecondStageMemory:
        """Return the memory of a slot."""
        column, predicted = self.history[:, slot], self.predicted[:, slot]
        return SecondStageMemory(
            self.index, self.base, column.tobytes(), predicted.tobytes(), bool(self.used[slot])
        )

    def restore(self, slot: int, memory: SecondStageMemory) -> None:
        """Restore the memory of a slot; one that does not fit is ignored."""
        if len(memory.history) != 4 * self.rows or len(memory.told) != 4 * self.ahead:
            return
        if self.index not in {-1, memory.index}:
            return
        self.index, self.base = memory.index, memory.base
        self.history[:, slot] = np.frombuffer(memory.history, np.float32)
        self.predicted[:, slot] = np.frombuffer(memory.told, np.float32)
        self.used[slot] = memory.used


def larger(
    one: tuple[Float32Vector, Int64Vector], other: tuple[Float32Vector, Int64Vector]
) -> tuple[Float32Vector, Int64Vector]:
    """Return the larger forecast of two stages for each slot, and its step."""
    return np.maximum(one[0], other[0]), np.where(other[0] > one[0], other[1], one[1])
