"""A workload in a tick: observed load, forecast, actual load of forecast onsets, and the memory between ticks."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from kubetide.forecast.calendar import BELIEVED
from kubetide.forecast.headroom import HeadroomMemory
from kubetide.forecast.memory import CalendarMemory
from kubetide.forecast.second_stage import SecondStageMemory
from kubetide.units.time import Duration, Instant

FIRST_CREDIT: Final = 60.0
"""Pod-minutes that a workload may spend before it has earned any."""


class Seen(NamedTuple):
    """The observations of a workload in a tick.

    Attributes:
        load: In pods at full use; None where metrics did not say.
        replicas: Pods that are asked for.
        reactive: Pods that would be asked for without the forecast.
        rolling: Whether it is being rolled out.
        saturated: Whether its pods use all that they may.
        beyond: A load at the limit counts so many times, as it hides how much more there is.
        share: The target as a share of full use; 0 where headroom is not to be learned.
    """

    load: float | None
    replicas: int
    reactive: int
    rolling: bool = False
    saturated: bool = False
    beyond: float = 1.0
    share: float = 0.0


class Ahead(NamedTuple):
    """The forecast of a workload.

    Attributes:
        pods: The pods to hold now, 0 for none; ``nodes`` those that nodes are to be there for.
        load: What is forecast, in pods at full use; ``nodes_load`` likewise.
        at: When; ``nodes_at`` likewise.
        period: After which it comes again.
        by: The forecaster that says so; empty for the calendar.
        outage: Whether ``pods`` are held because of an outage, until ``at``.
    """

    pods: int = 0
    nodes: int = 0
    load: float = 0.0
    nodes_load: float = 0.0
    at: Instant = Instant(0)
    nodes_at: Instant = Instant(0)
    period: Duration = Duration(0)
    outage: bool = False
    by: str = ""


class Came(NamedTuple):
    """The outcome of a forecast onset.

    Attributes:
        forecast, came: In pods at full use.
        pod_minutes: What was held beyond what the load asked for since the last one.
    """

    at: Instant
    period: Duration
    forecast: float
    came: float
    pod_minutes: float


class Score(msgspec.Struct):
    """The score card of a workload: forecast onsets that came true or not, and their costs."""

    hits: int = 0
    misses: int = 0
    pod_minutes: float = 0.0


class Limit(msgspec.Struct):
    """A load at its limit, and its course at the limit before.

    Attributes:
        reached: The load when it reached the limit; 0 while it is below.
        hits: How often it was still as high when it left the limit, of ``trials``; both lose weight with time.
    """

    reached: float = 0.0
    hits: float = 0.0
    trials: float = 0.0

    @property
    def hides_more(self) -> bool:
        """Return whether the load observed at the limit is probably below the demand, and will last."""
        return (self.hits + 1.0) / (self.trials + 2.0) > BELIEVED

    def take(self, load: float, *, saturated: bool, weight: float) -> None:
        """Apply a tick; earlier ticks count ``weight`` times."""
        self.hits, self.trials = self.hits * weight, self.trials * weight
        if saturated:
            self.reached = self.reached or load
        elif self.reached:
            self.trials += 1.0
            self.hits += load >= self.reached
            self.reached = 0.0


class ForecastMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of one workload.

    Attributes:
        step: The step that ticks are being gathered for; ``gathered`` sum, number and peak of its ticks.
        before: Load of the last two ticks.
        last: When the last tick was.
        outage: Load before the outage, and until when it holds the pods.
        learns_from: Before it nothing is learned.
        credit: Pod-minutes that may still be spent; ``spent`` since the last forecast onset.
        score: Hits, misses, pod-minutes.
        rounds: How often more pods have left the load at the limit, and the pods that were asked for then.
        limit: The load when it reached the limit, 0 while it is below, and how often it was still as high when it
            left the limit, of how many times; both halve within two days.
        long_window: The score of the long window of scale-downs.
    """

    step: int
    gathered: tuple[float, int, float]
    before: tuple[float | None, float | None]
    last: Instant
    outage: tuple[float, Instant] | None
    learns_from: Instant
    credit: float
    spent: float
    score: tuple[int, int, float]
    rounds: tuple[int, int] = (0, 0)
    limit: tuple[float, float, float] = (0.0, 0.0, 0.0)
    long_window: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    calendar: CalendarMemory | None = None
    second: SecondStageMemory | None = None
    headroom: HeadroomMemory | None = None


class Row:
    """One workload between steps."""

    __slots__ = (
        "before", "count", "credit", "grown", "last", "learns_from", "limit", "outage", "peak", "rounds", "score",
        "share", "spent", "step", "sum",
    )  # fmt: skip

    def __init__(self) -> None:
        self.step, self.sum, self.count, self.peak = -1, 0.0, 0, 0.0
        self.before: tuple[float | None, float | None] = (None, None)
        self.last = Instant(0)
        self.outage: tuple[float, Instant] | None = None
        self.learns_from = Instant(0)
        self.credit, self.spent = 0.0, 0.0
        self.score = Score()
        self.rounds = self.grown = 0
        self.share = 0.0
        self.limit = Limit()


NOTHING: Final = Ahead()
