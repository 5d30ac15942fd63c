"""The loop's history of figures: replicas of each HPA's target tick by tick, its metrics once a minute."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from kubetide.explain.figures import FigureTable
from kubetide.horizontal.decision import Result, Settlement
from kubetide.horizontal.explain.calculation import short_name
from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.metrics.types import Metric
from kubetide.horizontal.state import State
from kubetide.objects.hpa import MetricStatus, MetricValueStatus
from kubetide.objects.meta import Key
from kubetide.units.quantity import milli
from kubetide.units.time import Instant, minutes
from kubetide.units.vectors import Int64Vector

_EVERY = minutes(1)
"""What is measured differs in every tick; a history of it by the minute is small beside the samples themselves."""


class HpaFigures:
    """Computes the figures of each tick; caches those of unchanged HPAs and pods.

    Figures of kind ``hpa``: ``replicas`` asked for in the target when the tick began, ``desired`` by the HPA from then on,
    ``ready`` pods, ``min`` and ``max`` of the spec. Of kind ``metric``, named ``NAMESPACE/NAME/METRIC``: ``value`` and
    ``target``, in percent of the requests or in units. Of kind ``forecast``, of HPAs that ask for forecasts, in pods at full
    use: the load that ``came``, and the one that was ``forecast`` while pods were held for it.
    """

    def __init__(self) -> None:
        self._minute = -1
        self._keys: tuple[Key, ...] = ()
        self._names: list[str] = []
        self._members = -1
        self._rows: Int64Vector = np.zeros(0, np.int64)
        self._owner: Int64Vector = np.zeros(0, np.int64)
        self._ready_at: tuple[PodTable, int, int] | None = None
        self._found: list[float] = []

    def of(self, state: State, result: Result, now: Instant) -> tuple[FigureTable, ...]:
        """Return the figures of a tick that has ended, its metrics in the first tick of each minute."""
        settlements = result.settlements
        keys = tuple(one.verdict.key for one in settlements)
        if keys != self._keys:
            self._keys, self._names = keys, ["/".join(key) for key in keys]
            self._members, self._ready_at = -1, None
        specs = [state.specs.get(key) for key in keys]
        columns = {
            "replicas": [_replicas(one) for one in settlements],
            "desired": [_desired(one) for one in settlements],
            "ready": self._ready(state),
            "min": [nan if one is None else one.minimum for one in specs],
            "max": [nan if one is None else one.maximum for one in specs],
        }
        tables: tuple[FigureTable, ...] = (FigureTable("hpa", self._names, columns),)
        if now // _EVERY != self._minute:
            self._minute = now // _EVERY
            tables += (_metrics(settlements, specs, self._names), _forecasts(settlements, specs, self._names))
        return tables

    def _ready(self, state: State) -> Sequence[float]:
        table = state.table
        at = table, table.changes, table.members.version
        if at == self._ready_at:
            return self._found
        if table.members.version != self._members:
            self._members = table.members.version
            pieces = [table.members_of(key) for key in self._keys]
            self._owner = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
            self._rows = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
        serving = self._owner[table.serving[self._rows]]
        self._found = np.bincount(serving, minlength=len(self._keys)).tolist()
        self._ready_at = at
        return self._found


def _replicas(settlement: Settlement) -> float:
    verdict = settlement.verdict
    return nan if verdict.stage == "unread" else verdict.current


def _desired(settlement: Settlement) -> float:
    """Return the desired replicas; of an HPA that waits for its own sync period those of its last decision."""
    waits = settlement.verdict.stage == "waiting"
    desired = settlement.status.desired_replicas if waits else settlement.desired
    return nan if desired is None else desired


def _metrics(
    settlements: Sequence[Settlement], specs: Sequence[Autoscaler | None], names: Sequence[str]
) -> FigureTable:
    found: dict[str, tuple[float, float]] = {}
    for settlement, spec, name in zip(settlements, specs, names, strict=True):
        waits = settlement.verdict.stage == "waiting"
        statuses = settlement.status.current_metrics if waits else settlement.verdict.metrics
        if spec is None or statuses is None or len(statuses) != len(spec.metrics):
            continue
        for metric, status in zip(spec.metrics, statuses, strict=True):
            found[f"{name}/{short_name(metric)}"] = _value(status), _target(metric)
    columns = {
        "value": [value for value, _ in found.values()],
        "target": [target for _, target in found.values()],
    }
    return FigureTable("metric", list(found), columns)


def _forecasts(
    settlements: Sequence[Settlement], specs: Sequence[Autoscaler | None], names: Sequence[str]
) -> FigureTable:
    asking = [
        (name, settlement.verdict)
        for settlement, spec, name in zip(settlements, specs, names, strict=True)
        if spec is not None and spec.options.forecasts
    ]
    columns = {
        "came": [verdict.load for _, verdict in asking],
        "forecast": [verdict.ahead.load if verdict.ahead.pods else None for _, verdict in asking],
    }
    return FigureTable("forecast", [name for name, _ in asking], columns)


def _value(status: MetricStatus) -> float:
    """Return what was measured, in percent or in units; NaN for a metric that failed."""
    entry = status.resource or status.container_resource or status.pods or status.object or status.external
    current = MetricValueStatus() if entry is None else entry.current
    if current.average_utilization is not None:
        return current.average_utilization
    amount = current.value if current.average_value is None else current.average_value
    return nan if amount is None else milli(amount) / 1000


def _target(metric: Metric) -> float:
    if metric.utilization is not None:
        return metric.utilization
    amount = metric.value_milli if metric.average_milli is None else metric.average_milli
    return nan if amount is None else amount / 1000
