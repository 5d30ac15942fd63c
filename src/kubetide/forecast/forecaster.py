"""The interface of a forecaster: history in, quantiles of each coming step's load out.

A forecaster of another package is an entry point of the group ``kubetide.forecasters``, or ``module:Class``. It is a
second stage beside the calendar, and used only for workloads on whose own history it does better than the level
(``backtest``).
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kubetide.forecast.calendar import Calendar
from kubetide.ports.plugins import PluginGroup
from kubetide.units.time import Duration, Instant

Loads = NDArray[np.float32]


class History(NamedTuple):
    """The load of many workloads.

    Attributes:
        loads: (steps, workloads) mean load of each step, oldest first, in pods at full use; NaN where it is not known.
        step: Length of a step.
        end: When the last one ended.
    """

    loads: Loads
    step: Duration
    end: Instant


class Forecaster(Protocol):
    """Forecasts the load of many workloads at once. The same history must give the same forecast."""

    name: str

    def forecast(self, history: History, ahead: int, quantiles: tuple[float, ...]) -> Loads:
        """Return (quantiles, steps ahead, workloads); NaN without a forecast.

        Args:
            history: Up to now.
            ahead: So many steps, the first of them begins at ``history.end``.
            quantiles: Between 0 and 1, rising.
        """
        ...


class CalendarForecaster:
    """The built-in calendar as a forecaster: all quantiles are the forecast onset; no forecast between onsets."""

    name = "calendar"

    def forecast(self, history: History, ahead: int, quantiles: tuple[float, ...]) -> Loads:
        """Return the recurring onsets at their forecast steps."""
        steps, workloads = history.loads.shape
        calendar = Calendar(history.step)
        calendar.grow(workloads)
        size = calendar.size
        row, learns = np.full(size, np.nan, np.float32), np.ones(size, np.bool_)
        first = int(history.end // history.step) - steps
        for at in range(steps):
            row[:workloads] = history.loads[at]
            calendar.advance(first + at, row, row, learns)
        found = np.full((len(quantiles), ahead, workloads), np.nan, np.float32)
        predicted = calendar.forecast_next(ahead)[:, :workloads]
        found[:] = np.where(predicted > 0, predicted, np.nan)
        return found


PLUGINS: Final = PluginGroup[Forecaster](
    name="kubetide.forecasters",
    setting="--horizontal-pod-autoscaler-forecaster",
    noun="forecaster",
    must="have `name` and `forecast(history, ahead, quantiles)`",
    fits=lambda offered: (
        isinstance(getattr(offered, "name", None), str) and callable(getattr(offered, "forecast", None))
    ),
    of_class=True,
)


def load_forecaster(name: str) -> Forecaster:
    """Return a forecaster by its entry point's name, or ``module:Class``. Raises PluginNotUsable."""
    return CalendarForecaster() if name == CalendarForecaster.name else PLUGINS.load(name)[1]
