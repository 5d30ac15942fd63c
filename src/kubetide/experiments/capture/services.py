"""What the HPA loop's records tell: of each HPA its target's replicas, ready pods and CPU usage, tick by tick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubetide.experiments.capture.demand import Demand
from kubetide.experiments.capture.reading import Records
from kubetide.experiments.capture.ticks import Tick, Ticks
from kubetide.horizontal.core import decode_delta
from kubetide.horizontal.facts.views import HpaView, PodView
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Duration, Instant

LOOP = "horizontal"
Workload = tuple[str, str, str]
"""(kind, namespace, name)"""


class HpaHistory(msgspec.Struct):
    """One HPA.

    Attributes:
        view: As it was at first.
        changed: When its spec changed; the first time.
    """

    view: HpaView
    ticks: Sequence[Tick] = msgspec.field(default_factory=Ticks)
    changed: Instant | None = None


class Services(msgspec.Struct):
    """All HPAs, the loop's settings, and how long pods took from their start to Ready, in seconds.

    Attributes:
        others: Workloads under load that no HPA scales, by kind, namespace and name.
        longest_gap: Longest time between two ticks.
        first, last: Of the ticks.
        step: Between two ticks, where that is not the loop's period.
    """

    settings: Settings
    hpas: dict[Key, HpaHistory] = msgspec.field(default_factory=dict)
    others: dict[Workload, list[Tick]] = msgspec.field(default_factory=dict)
    ready_after: list[float] = msgspec.field(default_factory=list)
    first: Instant = Instant(0)
    last: Instant = Instant(0)
    longest_gap: Duration = Duration(0)
    step: Duration | None = None

    @property
    def period(self) -> Duration:
        """Between two ticks."""
        return self.step or self.settings.sync_period


def read_services(records: Records) -> Services:
    """Read the HPA loop's records of a run, to their end. Raises RecordError."""
    state = State()
    demand = Demand()
    found = Services(state.settings)
    ticks: dict[Key, Ticks] = {}
    started: dict[Key, int] = {}
    for record in records(LOOP):
        delta = decode_delta(record.state)
        if record.full:
            state = State.from_full(delta)
        else:
            state.apply(delta)
        if not found.first:
            found.first, found.settings = record.now, state.settings
        else:
            found.longest_gap = max(found.longest_gap, Duration(record.now - found.last))
        found.last = record.now
        for view in delta.hpas:
            key = view.namespace, view.name
            history = found.hpas.get(key)
            if history is None:
                ticks[key] = Ticks()
                found.hpas[key] = HpaHistory(view, ticks[key])
            elif history.changed is None and view != history.view:
                history.changed = record.now
        for key, tick in zip(state.hpas, demand.ticks(state, record.now), strict=True):
            ticks[key].append(tick)
        found.ready_after += _new_ready(delta.pods, started)
    return found


def _new_ready(pods: Sequence[PodView], started: dict[Key, int]) -> Iterator[float]:
    """Yield the seconds from start to Ready of the pods that are Ready for the first time."""
    for pod in pods:
        key = pod.namespace, pod.name
        if pod.started is None or pod.ready != "True" or started.get(key) == pod.started:
            continue
        started[key] = pod.started
        if pod.ready_since >= pod.started:
            yield (pod.ready_since - pod.started) / 1e9
