"""What the HPA loop's records tell: of each HPA its target's replicas, ready pods and CPU usage, tick by tick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.facts.pods import IGNORED
from kubetide.horizontal.facts.views import HpaView, PodView
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.runtime.records import read_records
from kubetide.units.time import Duration, Instant

LOOP = "horizontal"
Workload = tuple[str, str, str]
"""(kind, namespace, name)"""
_CPU = "cpu"


class Tick(NamedTuple):
    """One HPA's target at one tick.

    Attributes:
        replicas: What its scale asks for; None where the scale could not be read.
        serving: Pods that are Running and Ready.
        used: Milli-CPU of those of these that were Ready at ``middle``: the sum of the samples, and their mean for each
            that lacks one. None where no sample tells.
        middle: The middle of the time that the samples cover.
    """

    at: Instant
    replicas: int | None
    serving: int
    used: float | None
    middle: Instant


class HpaHistory(msgspec.Struct):
    """One HPA.

    Attributes:
        view: As it was at first.
        changed: When its spec changed; the first time.
    """

    view: HpaView
    ticks: list[Tick] = msgspec.field(default_factory=list)
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


def read_services(folder: Path) -> Services:
    """Read the HPA loop's records of a run, to their end. Raises RecordError."""
    core = HorizontalCore()
    found = Services(core.state.settings)
    started: dict[Key, int] = {}
    for record in read_records(folder, LOOP):
        if record.full:
            core = HorizontalCore()
        core.apply(bytes(record.state), full=record.full)
        state = core.state
        if not found.first:
            found.first, found.settings = record.now, state.settings
        else:
            found.longest_gap = max(found.longest_gap, Duration(record.now - found.last))
        found.last = record.now
        for key in state.hpas:
            history = found.hpas.get(key)
            if history is None:
                history = found.hpas[key] = HpaHistory(state.views[key])
            elif history.changed is None and state.views[key] != history.view:
                history.changed = record.now
            history.ticks.append(_tick(state, key, record.now))
        found.ready_after += _new_ready(msgspec.json.decode(record.state, type=_Pods).pods, started)
    return found


def _tick(state: State, key: Key, now: Instant) -> Tick:
    scale = state.scales.get(key)
    replicas = None if scale is None or scale.error else scale.spec_replicas
    rows = state.table.members_of(key)
    rows = rows[state.table.serving[rows]]
    there, milli = _cpu_of(state, rows)
    sampled = rows[there]
    if not len(sampled):
        return Tick(now, replicas, len(rows), None, now)
    end, window = _median(state.samples.times[sampled]), _median(state.samples.windows[sampled])
    middle = Instant(end - window // 2)
    # Pods that have become Ready since then had no part in what was measured.
    took_part = state.table.ready_since[rows] <= middle
    # Nor have pods that are being deleted any more; what others ask of them goes to those that stay.
    took_part &= state.table.standing[rows] != IGNORED
    lacking = int(np.count_nonzero(took_part & ~there))
    served = int(np.count_nonzero(state.table.ready_since[sampled] <= middle)) or len(sampled)
    return Tick(now, replicas, len(rows), milli * (served + lacking) / served, middle)


def _cpu_of(state: State, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Return whether each pod has samples of its CPU, and their sum; of a pod's single containers where need be."""
    samples = state.samples
    whole = (_CPU, "")
    keys = [whole] if whole in samples.milli else [key for key in samples.milli if key[0] == _CPU]
    if not keys:
        return np.zeros(len(rows), np.bool_), 0.0
    there = np.ones(len(rows), np.bool_)
    for key in keys:
        there &= samples.has[key][rows]
    sampled = rows[there]
    return there, float(sum(samples.milli[key][sampled].sum() for key in keys))


def _median(values: np.ndarray) -> int:
    """Return the median; of samples that were taken together all are the same."""
    least = values.min()
    return int(float(least)) if least == values.max() else int(np.median(values))


class _Pods(msgspec.Struct):
    """Of a delta the pods that are new or have changed."""

    pods: tuple[PodView, ...] = ()


def _new_ready(pods: tuple[PodView, ...], started: dict[Key, int]) -> Iterator[float]:
    """Yield the seconds from start to Ready of the pods that are Ready for the first time."""
    for pod in pods:
        key = pod.namespace, pod.name
        if pod.started is None or pod.ready != "True" or started.get(key) == pod.started:
            continue
        started[key] = pod.started
        if pod.ready_since >= pod.started:
            yield (pod.ready_since - pod.started) / 1e9
