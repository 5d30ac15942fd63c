"""The forecasts of many workloads between ticks, with guards that keep them harmless.

A tick brings each workload's load as pods at full use. Ticks are gathered into the steps of the calendar. The guards:

- what is forecast is never more than twice the highest load of the last day;
- an outage (the load falls below 30 % of the least of the last half hour, within two ticks) holds the pods for at most
  30 minutes and teaches nothing, nor does a rollout or a time without metrics;
- what a workload's pods cost more in a day than its load asked for stays within a budget.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, Generic, TypeVar

import numpy as np

from kubetide.forecast.calendar import HALF_LIFE, HIT, MARGIN, Calendar, Float32Vector
from kubetide.forecast.forecaster import Forecaster
from kubetide.forecast.grid import CLOCK_AHEAD
from kubetide.forecast.headroom import Headroom, HeadroomScore
from kubetide.forecast.long_window import LongWindow
from kubetide.forecast.memory import dumped, restore
from kubetide.forecast.rows import FIRST_CREDIT, NOTHING, Ahead, Came, ForecastMemory, Limit, Row, Score, Seen
from kubetide.forecast.second_stage import SecondStage, larger
from kubetide.units.time import Duration, Instant, after, hours, minutes
from kubetide.units.vectors import BoolVector, Int64Vector

K = TypeVar("K", bound=Hashable)

MOST_OF_DAY: Final = 2.0
"""What is forecast is at most so many times the highest load of the last day."""

OUTAGE: Final = 0.3
"""A fall below this share is an outage, ..."""

OUTAGE_HOLD: Final = minutes(30)
"""... which holds the pods for so long."""

_OUTAGE_LEAST: Final = 1.0
"""Below so many pods at full use a fall to nothing is chance."""

MOST_ROUNDS: Final = 4
"""So often more pods may leave the load at its limit; then it is not load that pods take away."""

_DAY: Final = hours(24)


class Forecasts(Generic[K]):
    """Forecasts by key of workload.

    Args:
        budget: What the pods held for forecasts may cost in a day, as a share of what the load asked for.
        forecaster: A second stage beside the calendar.
        headroom: Whether headroom is learned, as a second stage of another kind.
    """

    def __init__(
        self, budget: float, forecaster: Forecaster | None = None, *, headroom: bool = False
    ) -> None:
        self.budget = budget
        self.calendar = Calendar()
        self.long_window = LongWindow(self.calendar.size, self.calendar.step, budget)
        self.second = (
            None if forecaster is None else SecondStage(forecaster, self.calendar.step, self.calendar.size)
        )
        self.headroom = Headroom(self.calendar.size, self.calendar.step) if headroom else None
        self.came: dict[K, Came] = {}
        """What has come of forecast onsets at the last tick."""
        self._slots: dict[K, int] = {}
        self._rows: dict[K, Row] = {}
        self._free: list[int] = []
        self._pods: tuple[list[float], list[int]] = ([], [])
        self._nodes: tuple[list[float], list[int]] = ([], [])
        self._cap: list[float] = []
        self._held_longer: list[bool] = []
        self._by_second: list[bool] = []

    def __contains__(self, key: K) -> bool:
        return key in self._slots

    def __len__(self) -> int:
        return len(self._slots)

    def keys(self) -> Sequence[K]:
        """Return the known workloads, in order of addition."""
        return tuple(self._slots)

    def score(self, key: K) -> Score:
        """Return the score card of a workload."""
        row = self._rows.get(key)
        return Score() if row is None else row.score

    def forget(self, key: K) -> None:
        """Remove a workload, if it is known."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            del self._rows[key]
            if slot < len(self._cap):
                self._pods[0][slot] = self._nodes[0][slot] = self._cap[slot] = 0.0
                self._held_longer[slot], self._by_second[slot] = True, False
            self.came.pop(key, None)
            self.calendar.clear(slot)
            self.long_window.score[:, slot] = 0
            if self.second is not None:
                self.second.clear(slot)
            if self.headroom is not None:
                self.headroom.clear(slot)
            self._free.append(slot)

    def put_zone(self, key: K, zone: str) -> None:
        """Set the time zone of a workload's days and weeks; empty for UTC."""
        self.calendar.zones.put(self._slot(key), zone)

    # ── reading ──

    def ahead(self, key: K, now: Instant) -> Ahead:
        """Return the forecast of a workload."""
        slot = self._slots.get(key)
        if slot is None or slot >= len(self._cap):
            return NOTHING
        row, cap = self._rows[key], self._cap[slot]
        if row.outage is not None and now < row.outage[1]:
            held = _pods(row.outage[0] * MARGIN)
            return Ahead(held, held, row.outage[0], row.outage[0], row.outage[1], row.outage[1], outage=True)
        load, nodes_load = min(self._pods[0][slot], cap), min(self._nodes[0][slot], cap)
        if nodes_load <= 0 and load <= 0:
            return NOTHING
        at, nodes_at = self._pods[1][slot], self._nodes[1][slot]
        if self._by_second[slot] and self.second is not None:
            period, by = Duration(0), self.second.forecaster.name
        else:
            period, by = self.calendar.period_at(at if load > 0 else nodes_at, slot), ""
        return Ahead(
            pods=_pods(load * MARGIN) if row.credit > 0 else 0,
            nodes=_pods(nodes_load * MARGIN) if row.credit > 0 else 0,
            load=load,
            nodes_load=nodes_load,
            at=self.calendar.instant_of(at),
            nodes_at=self.calendar.instant_of(nodes_at),
            period=period,
            by=by,
        )

    def coming(self, key: K, now: Instant, ahead: Duration) -> list[Ahead]:
        """Return the forecast onsets within a time, as far as the used periods reach."""
        slot = self._slots.get(key)
        if slot is None or slot >= len(self._cap):
            return []
        cap = self._cap[slot]
        return [
            Ahead(
                _pods(min(one.forecast, cap) * MARGIN),
                0,
                min(one.forecast, cap),
                0.0,
                self.calendar.instant_of(one.at),
                period=one.period,
            )
            for one in self.calendar.coming(slot, int(ahead // self.calendar.step))
            if self.calendar.instant_of(one.at) >= now
        ]

    def most_of_day(self, key: K) -> float:
        """Return the highest plausible load by the last day, 0 if nothing is known yet."""
        slot = self._slots.get(key)
        return 0.0 if slot is None or slot >= len(self._cap) else self._cap[slot]

    def may_boost(self, key: K) -> bool:
        """Return whether a load at its limit may count more: so far it has lasted, and more pods have lowered it."""
        row = self._rows.get(key)
        return row is None or (row.rounds < MOST_ROUNDS and row.limit.hides_more)

    def limit(self, key: K) -> Limit:
        """Return the history of a workload's load at its limit."""
        row = self._rows.get(key)
        return Limit() if row is None else row.limit

    def holds_longer(self, key: K) -> bool:
        """Return whether to use the long scale-down window: at first, and while it pays."""
        slot = self._slots.get(key)
        return slot is None or slot >= len(self._held_longer) or self._held_longer[slot]

    def long_window_pays(self, key: K) -> bool:
        """Return whether enough of what the long window holds is needed, whatever it costs."""
        slot = self._slots.get(key)
        return slot is None or bool(self.long_window.pays[slot])

    def capacity(self, key: K) -> float | None:
        """Return the load to provide pods for by the learned headroom; None if it is not used."""
        slot = self._slots.get(key)
        if self.headroom is None or slot is None or slot >= len(self._cap) or not self.headroom.used[slot]:
            return None
        return min(float(self.headroom.capacity[slot]), self._cap[slot]) or None

    def headroom_score(self, key: K) -> HeadroomScore | None:
        """Return the back-test of the learned headroom; None if none is learned."""
        slot = self._slots.get(key)
        return None if self.headroom is None or slot is None else self.headroom.score(slot)

    # ── a tick ──

    def take(self, seen: Sequence[tuple[K, Seen]], now: Instant) -> None:
        """Apply a tick; ``ahead`` then returns the forecasts of the newest whole step."""
        self.came = {}
        step = int(now // self.calendar.step)
        newest = self.calendar.index
        for key, one in seen:
            self._slot(key)
            row = self._rows[key]
            if -1 < row.step < step and (newest is None or self._is_next(row.step, newest)):
                self._advance(row.step, step - 1)
                newest = self.calendar.index
            self._gather(row, one, now, step, key)

    def _is_next(self, step: int, newest: int) -> bool:
        """Return whether a step comes after the newest one, or a clock that was ahead was set back since."""
        return step > newest or (newest - step) * self.calendar.step > CLOCK_AHEAD

    def _gather(self, row: Row, one: Seen, now: Instant, step: int, key: K) -> None:
        if row.last > after(now, CLOCK_AHEAD):
            row.outage, row.before, row.learns_from = None, (None, None), after(now, self._settling)
        if row.step != step:
            row.step, row.sum, row.count, row.peak = step, 0.0, 0, 0.0
        if one.rolling or one.load is None:
            row.learns_from = after(now, self._settling)
        passed = min(max(0, now - row.last), minutes(5)) if row.last else 0
        if one.load is not None:
            load = max(one.load * one.beyond, 0.0)  # an external metric may be below zero
            row.sum, row.count, row.peak = row.sum + load, row.count + 1, max(row.peak, load)
            self._look_for_outage(row, load, now, key)
            row.before = row.before[1], load
            row.limit.take(one.load, saturated=one.saturated, weight=0.5 ** (passed / HALF_LIFE))
        elapsed = passed / minutes(1)
        row.last, row.share = now, one.share
        self._count_rounds(row, one)
        extra = max(0, one.replicas - one.reactive) * elapsed
        row.spent += extra
        row.score.pod_minutes += extra
        most = self.budget * one.reactive * (_DAY / minutes(1))
        row.credit = min(row.credit + self.budget * one.reactive * elapsed - extra, most)

    @staticmethod
    def _count_rounds(row: Row, one: Seen) -> None:
        """Count how often more pods have left the load at the limit."""
        if not one.saturated:
            row.rounds = row.grown = 0
        elif one.replicas > row.grown:
            row.rounds += row.grown > 0
            row.grown = one.replicas

    @property
    def _settling(self) -> Duration:
        """Return for how long after a disturbance the level is not to be trusted."""
        n = self.calendar.lengths
        return Duration((n.base + n.lead) * self.calendar.step)

    def _look_for_outage(self, row: Row, load: float, now: Instant, key: K) -> None:
        if row.outage is not None:
            if now >= row.outage[1] or load >= row.outage[0] * (1 - OUTAGE):
                row.outage = None
            row.learns_from = after(now, self._settling)
            return
        former = row.before[0]
        if former is None or former < _OUTAGE_LEAST or load >= OUTAGE * former:
            return
        lately = self.calendar.means[:, self._slots[key]]
        lately = lately[~np.isnan(lately)]
        # A burst ends with a fall as well, but to what there was before it.
        if len(lately) >= self.calendar.lengths.base and load < OUTAGE * float(lately.min()):
            row.outage = float(np.median(lately)), after(now, OUTAGE_HOLD)
            row.learns_from = after(now, self._settling)

    def _advance(self, index: int, last: int) -> None:
        """Hand a whole step over to the calendar, and those without a tick up to ``last``."""
        size = self.calendar.size
        mean = np.full(size, np.nan, np.float32)
        peak = mean.copy()
        learns: BoolVector = np.zeros(size, np.bool_)
        share, level = np.zeros(size, np.float32), mean.copy()
        # What is scored now happened so long ago.
        scored = (index - self.calendar.lengths.size - self.calendar.lengths.near) * self.calendar.step
        for key, slot in self._slots.items():
            row = self._rows[key]
            if row.step == index and row.count:
                mean[slot], peak[slot] = row.sum / row.count, row.peak
                if row.learns_from <= index * self.calendar.step:
                    level[slot], share[slot] = mean[slot], row.share
            learns[slot] = row.learns_from <= scored
        for at in range(index, min(last, index + self.calendar.recent) + 1):
            self.calendar.advance(at, mean, peak, learns)
            self.long_window.advance(self.calendar, share)
            if self.second is not None:
                self.second.advance(at, mean)
            if self.headroom is not None:
                self.headroom.advance(at, level, peak, share)
            self._note_ended()
            mean[:] = peak[:] = level[:] = np.nan
            share[:] = 0
        self._read()

    def _read(self) -> None:
        """Read what is forecast as of the newest step, the larger of both stages."""
        n = self.calendar.lengths
        pods, nodes = self.calendar.pods_ahead(), self.calendar.nodes_ahead()
        self._by_second = np.zeros(len(pods[0]), np.bool_).tolist()
        if self.second is not None:
            more, also = self.second.most(n.pods_before + 1), self.second.most(n.nodes_before)
            self._by_second = (np.maximum(more[0], also[0]) > np.maximum(pods[0], nodes[0])).tolist()
            pods, nodes = larger(pods, more), larger(nodes, also)
        self._pods, self._nodes = _lists(pods), _lists(nodes)
        self._held_longer = self.long_window.used.tolist()
        self._cap = (MOST_OF_DAY * self.calendar.day_peak()).tolist()

    def _note_ended(self) -> None:
        ended = self.calendar.ended()
        if not ended:
            return
        names = {slot: key for key, slot in self._slots.items()}
        for slot, episode in ended:
            if slot not in names:
                continue
            key = names[slot]
            row = self._rows[key]
            if episode.came >= HIT * episode.forecast:
                row.score.hits += 1
            else:
                row.score.misses += 1
            at = self.calendar.instant_of(episode.at)
            spent, row.spent = row.spent, 0.0
            self.came[key] = Came(at, episode.period, episode.forecast, episode.came, spent)

    def _slot(self, key: K) -> int:
        slot = self._slots.get(key)
        if slot is None:
            slot = self._free.pop() if self._free else len(self._slots)
            if slot >= self.calendar.size:
                self.calendar.grow(2 * self.calendar.size)
                self.long_window.grow(self.calendar.size)
                if self.second is not None:
                    self.second.grow(self.calendar.size)
                if self.headroom is not None:
                    self.headroom.grow(self.calendar.size)
            self._slots[key] = slot
            row = self._rows[key] = Row()
            row.credit = FIRST_CREDIT
        return slot

    # ── records ──

    def dump(self, key: K) -> ForecastMemory | None:
        """Return the memory of a workload; None if it is unknown."""
        slot = self._slots.get(key)
        if slot is None:
            return None
        row = self._rows[key]
        return ForecastMemory(
            step=row.step,
            gathered=(row.sum, row.count, row.peak),
            before=row.before,
            last=row.last,
            outage=row.outage,
            learns_from=row.learns_from,
            credit=row.credit,
            spent=row.spent,
            score=(row.score.hits, row.score.misses, row.score.pod_minutes),
            rounds=(row.rounds, row.grown),
            limit=(row.limit.reached, row.limit.hits, row.limit.trials),
            long_window=tuple(self.long_window.score[:, slot].tolist()),
            calendar=dumped(self.calendar, slot),
            second=None if self.second is None else self.second.dump(slot),
            headroom=None if self.headroom is None else self.headroom.dump(slot),
        )

    def put(self, key: K, memory: ForecastMemory) -> None:
        """Restore the memory of a workload; a calendar that does not fit starts empty."""
        slot = self._slot(key)
        row = self._rows[key]
        row.step, (row.sum, row.count, row.peak) = memory.step, memory.gathered
        row.before, row.last, row.outage = memory.before, memory.last, memory.outage
        row.learns_from, row.credit, row.spent = memory.learns_from, memory.credit, memory.spent
        row.score = Score(*memory.score)
        row.rounds, row.grown = memory.rounds
        row.limit = Limit(*memory.limit)
        self.long_window.score[:, slot] = memory.long_window
        if memory.calendar is not None and restore(self.calendar, slot, memory.calendar):
            if self.second is not None and memory.second is not None:
                self.second.restore(slot, memory.second)
            if self.headroom is not None and memory.headroom is not None:
                self.headroom.restore(slot, memory.headroom)
            self._read()


def _pods(load: float) -> int:
    return int(np.ceil(load - 1e-6))


def _lists(found: tuple[Float32Vector, Int64Vector]) -> tuple[list[float], list[int]]:
    return found[0].tolist(), found[1].tolist()
