"""Feeds samples, OOMs and history into the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kubetide.objects.meta import Key
from kubetide.units.time import Instant
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.facts.members import PodEntry
from kubetide.vertical.recommender.facts.views import Oom, Samples, Usage
from kubetide.vertical.recommender.targets.floors import Floor
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.buckets import MAX_AMOUNT
from kubetide.vertical.recommender.usage.containers import Containers
from kubetide.vertical.recommender.usage.histograms import first_of_each

_UNKNOWN = -1


class SampleRows:
    """The rows of an answer's containers, cached while neither answer nor pods change."""

    def __init__(self) -> None:
        self._names: tuple[object, ...] = ()
        self._rows = np.empty(0, np.int64)

    def forget(self) -> None:
        """Note that pods or containers have changed."""
        self._names = ()

    def of(self, pods: Mapping[Key, PodEntry], samples: Samples) -> Int64Vector:
        """Return the row of each container; -1 for an untracked or init container."""
        names = (samples.namespaces, samples.names, samples.containers)
        if len(self._names) == 3 and all(a is b for a, b in zip(names, self._names, strict=True)):
            return self._rows
        rows: list[int] = []
        bounds = samples.first.tolist()
        for number, key in enumerate(zip(samples.namespaces, samples.names, strict=True)):
            containers = samples.containers[bounds[number] : bounds[number + 1]]
            pod = pods.get(key)
            if pod is None:
                rows += [_UNKNOWN] * len(containers)
            elif pod.init:
                rows += [
                    _UNKNOWN if name in pod.init else pod.containers.get(name, _UNKNOWN)
                    for name in containers
                ]
            else:
                rows += [pod.containers.get(name, _UNKNOWN) for name in containers]
        self._rows = np.array(rows, np.int64)
        self._names = names
        return self._rows

    def without_aggregate(self, containers: Containers, samples: Samples) -> Int64Vector:
        """Return the rows without an aggregate of which a sample counts, once ``of`` has found the rows.

        Upstream makes an aggregate anew for a sample that it accepts, not for one that it drops.
        """
        found = np.flatnonzero(self._rows >= 0)
        found = found[containers.aggregate[self._rows[found]] < 0]
        rows = self._rows[found]
        if len(rows) == 0:
            return rows
        at = np.repeat(samples.times, np.diff(samples.first))[found]
        counts = (samples.cpu[found] >= 0) & (at > containers.last_cpu[rows])
        counts |= (samples.memory[found] >= 0) & (at >= containers.last_memory[rows])
        return rows[counts]


def feed(containers: Containers, aggregates: Aggregates, rows: Int64Vector, samples: Samples) -> None:
    """Add one answer of the metrics API; a repeated container is fed again.

    Args:
        containers, aggregates: What the samples go to.
        rows: The row of each container of the answer, as ``SampleRows`` finds it; those of which a sample counts have
            an aggregate.
        samples: The answer.
    """
    known = rows >= 0
    at = np.repeat(samples.times, np.diff(samples.first))[known]
    rows, cpu, memory = rows[known], samples.cpu[known], samples.memory[known]
    while len(rows):
        now = first_of_each(rows)
        containers.add_cpu(aggregates, rows[now], cpu[now], at[now])
        containers.add_memory(aggregates, rows[now], memory[now], at[now])
        if len(now) == len(rows):
            return
        left = np.ones(len(rows), np.bool_)
        left[now] = False
        rows, cpu, memory, at = rows[left], cpu[left], memory[left], at[left]


def floor_of(containers: Containers, aggregates: Aggregates, row: int, oom: Oom) -> Floor:
    """Return the raised amount that an OOM kill proves too small; usage and percentiles stay unchanged.

    With a limit that is the request, with which the limit grows; without one the kernel took the container for the
    node's sake, and only what it has used counts. So kills without a limit never add up.
    """
    aggregate = int(containers.aggregate[row])
    used = max(0 if oom.unlimited else oom.memory, int(containers.peak[row]))
    needed = max(
        used + int(aggregates.bump_least[aggregate]), int(used * float(aggregates.bump_ratio[aggregate]))
    )
    until = Instant(oom.at + int(aggregates.interval[aggregate]))
    return Floor(min(needed, MAX_AMOUNT), oom.at, until, "OomFloor")


def feed_history(containers: Containers, aggregates: Aggregates, feeds: Sequence[tuple[int, Usage]]) -> None:
    """Add the past usage of containers, by row."""
    rows = np.array([row for row, _ in feeds], np.int64)
    for now, at, amounts in _in_turn([usage.cpu for _, usage in feeds]):
        containers.add_cpu(aggregates, rows[now], amounts, at)
    for now, at, amounts in _in_turn([usage.memory for _, usage in feeds]):
        containers.add_memory(aggregates, rows[now], amounts, at)


def _in_turn(series: Sequence[Int64Vector]) -> Iterator[tuple[Int64Vector, Int64Vector, Int64Vector]]:
    """Yield the first samples of all series, then the second ones, …: which series, times, amounts.

    Args:
        series: (2, samples) each.
    """
    lengths = np.array([one.shape[1] for one in series], np.int64)
    begins = np.cumsum(lengths) - lengths
    flat = np.concatenate(series, axis=1) if series else np.empty((2, 0), np.int64)
    for place in range(int(lengths.max(initial=0))):
        now = np.flatnonzero(lengths > place)
        at, amounts = flat[:, begins[now] + place]
        yield now, at, amounts
