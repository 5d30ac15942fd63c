"""The back-test of a forecaster on a workload's own past, compared with the level that any HPA follows."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from kubetide.forecast.forecaster import Forecaster, History, Loads
from kubetide.units.time import Duration, Instant

ORIGINS: Final = 8
"""So many times of the past are forecast from."""

LEAST: Final = 4
"""A history is long enough if it has so many times the steps that are forecast, half of them known."""

BETTER: Final = 0.95
"""A forecaster is better where its loss is below this share of the level's."""


class BackTest(NamedTuple):
    """The score of a forecaster, (workloads,) each; NaN where too little is known.

    Attributes:
        loss: Mean pinball loss, in pods at full use.
        level_loss: That of the level: the mean of the ten steps before, held, at the factor that its own past errors say.
        coverage: Share of the steps that the quantile was not exceeded in.
    """

    loss: Loads
    level_loss: Loads
    coverage: Loads

    @property
    def is_better(self) -> np.typing.NDArray[np.bool_]:
        """Return (workloads,): whether to use the forecaster."""
        found: np.typing.NDArray[np.bool_] = self.loss < BETTER * self.level_loss
        return found


def backtest(forecaster: Forecaster, history: History, ahead: int, quantile: float) -> BackTest:
    """Return the score of a forecaster on the last steps of a history; each forecast sees only the steps before it.

    Args:
        ahead: So many steps are forecast each time.
        quantile: The one that is scored; too low costs ``quantile`` a pod, too high ``1 - quantile``.
    """
    steps, workloads = history.loads.shape
    none = np.full(workloads, np.nan, np.float32)
    if steps < (ORIGINS + LEAST) * ahead:
        return BackTest(none, none, none)
    own, level, covered, seen = (np.zeros(workloads) for _ in range(4))
    factors = _factors(history.loads[: steps - ORIGINS * ahead], ahead, quantile)
    for origin in range(ORIGINS):
        at = steps - (ORIGINS - origin) * ahead
        before = History(history.loads[:at], history.step, Instant(history.end - (steps - at) * history.step))
        predicted = checked(forecaster, before, ahead, quantile)
        came = history.loads[at : at + ahead]
        held = np.broadcast_to(_level(history.loads[at - 10 : at]) * factors, came.shape)
        known = ~np.isnan(came) & ~np.isnan(held)
        # Where nothing is forecast the level stands.
        predicted = np.where(np.isnan(predicted), held, predicted)
        own += np.where(known, _pinball(came, predicted, quantile), 0).sum(axis=0)
        level += np.where(known, _pinball(came, held, quantile), 0).sum(axis=0)
        covered += (known & (came <= predicted)).sum(axis=0)
        seen += known.sum(axis=0)
    enough = 2 * seen >= ORIGINS * ahead
    divisor = np.where(enough, np.maximum(seen, 1), np.nan)
    return BackTest(*((total / divisor).astype(np.float32) for total in (own, level, covered)))


def checked(forecaster: Forecaster, history: History, ahead: int, quantile: float) -> Loads:
    """Return (steps ahead, workloads): the forecaster's answer. Raises ValueError for another shape."""
    predicted = np.asarray(forecaster.forecast(history, ahead, (quantile,)), np.float32)
    expected = (1, ahead, history.loads.shape[1])
    if predicted.shape != expected:
        raise ValueError(f"an answer of the shape {predicted.shape}, not {expected}")
    found: Loads = predicted[0]
    return found


def _pinball(came: Loads, predicted: Loads, quantile: float) -> Loads:
    error = np.nan_to_num(came - predicted)
    found: Loads = np.maximum(quantile * error, (quantile - 1) * error)
    return found


def _level(rows: Loads) -> Loads:
    known = ~np.isnan(rows)
    found: Loads = np.where(
        known.any(axis=0), np.nansum(rows, axis=0) / np.maximum(known.sum(axis=0), 1), np.nan
    ).astype(np.float32)
    return found


def _factors(loads: Loads, ahead: int, quantile: float) -> Loads:
    """Return (workloads,) by how much the load has risen above its level: the quantile of that over the past."""
    ends = range(10, len(loads) - ahead, ahead)
    rises = [loads[at : at + ahead] / np.maximum(_level(loads[at - 10 : at]), 1e-6) for at in ends]
    if not rises:
        return np.ones(loads.shape[1], np.float32)
    every = np.concatenate(rises)
    every = np.where(np.isfinite(every), every, 1.0)
    found: Loads = np.quantile(every, quantile, axis=0).astype(np.float32)
    return found


def lasts(step: Duration, ahead: int) -> Duration:
    """Return the length that a history needs to be scored."""
    return Duration(step * (ORIGINS + LEAST) * ahead)
