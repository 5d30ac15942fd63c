"""Samples, OOMs and history on their way into the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kubetide.ports.metrics import Int64Vector
from kubetide.units.time import Instant
from kubetide.vertical.recommender.buckets import MAX_AMOUNT
from kubetide.vertical.recommender.floors import Floor
from kubetide.vertical.recommender.histograms import first_of_each
from kubetide.vertical.recommender.views import History, Oom, PodView, Samples, Usage

if TYPE_CHECKING:
    from kubetide.vertical.recommender.state import State

_UNKNOWN = -1


class SampleRows:
    """The rows that the containers of an answer go to, kept while neither answer nor pods change."""

    def __init__(self) -> None:
        self._names: tuple[object, ...] = ()
        self._rows = np.empty(0, np.int64)

    def forget(self) -> None:
        """Note that pods or containers have changed."""
        self._names = ()

    def of(self, state: State, samples: Samples) -> Int64Vector:
        """Return the row of each container; -1 for one that is not tracked, or is an init container."""
        names = (samples.namespaces, samples.names, samples.containers)
        if len(self._names) == 3 and all(a is b for a, b in zip(names, self._names, strict=True)):
            return self._rows
        rows: list[int] = []
        bounds = samples.first.tolist()
        for number, key in enumerate(zip(samples.namespaces, samples.names, strict=True)):
            containers = samples.containers[bounds[number] : bounds[number + 1]]
            pod = state.pods.get(key)
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


def feed(state: State, samples: Samples) -> None:
    """Add one answer of the metrics API."""
    at = np.repeat(samples.times, np.diff(samples.first))
    rows = state.sample_rows.of(state, samples)
    known = rows >= 0
    _feed_rows(state, rows[known], samples.cpu[known], samples.memory[known], at[known])


def _feed_rows(
    state: State, rows: Int64Vector, cpu: Int64Vector, memory: Int64Vector, at: Int64Vector
) -> None:
    """Add samples in their order; a container that occurs again is fed again."""
    while len(rows):
        now = first_of_each(rows)
        one, at_one = rows[now], at[now]
        _ensure_aggregates(state, one)
        state.containers.add_cpu(state.aggregates, one, cpu[now], at_one)
        state.containers.add_memory(state.aggregates, one, memory[now], at_one)
        if len(now) == len(rows):
            return
        left = np.ones(len(rows), np.bool_)
        left[now] = False
        rows, cpu, memory, at = rows[left], cpu[left], memory[left], at[left]


def _ensure_aggregates(state: State, rows: Int64Vector) -> None:
    """Make aggregates anew that have been dropped although their containers still use something."""
    containers = state.containers
    lacking = containers.aggregate[rows] < 0
    if not lacking.any():
        return
    fed = set(rows[lacking].tolist())
    for (namespace, _), pod in state.pods.items():
        for name, row in pod.containers.items():
            if row in fed:
                containers.aggregate[row] = state.aggregate_of(namespace, pod.labels, name)


def feed_oom(state: State, oom: Oom) -> None:
    """Add what an OOM says; one of a container that is not tracked is passed over."""
    pod = state.pods.get((oom.namespace, oom.pod))
    row = None if pod is None else pod.containers.get(oom.container)
    if row is None:
        return
    _ensure_aggregates(state, np.array([row]))
    if state.settings.oom_lower_bound:
        _raise_floor(state, oom, row)
        return
    taken = state.containers.add_oom(
        state.aggregates, row, oom.memory, oom.at, by_window=state.settings.oom_age_by_window
    )
    if not taken:
        where = f"{oom.namespace}/{oom.pod}/{oom.container}"
        state.problems.append(f"OOM of {where} is discarded: it is older than a window of memory peaks")


def _raise_floor(state: State, oom: Oom, row: int) -> None:
    """Note that an OOM kill proved what the container had to be too little; usage and percentiles stay as they are.

    With a limit that is the request, with which the limit grows; without one the kernel took the container for the
    node's sake, and only what it has used counts. So kills without a limit never add up.
    """
    containers, aggregates = state.containers, state.aggregates
    aggregate = int(containers.aggregate[row])
    used = max(0 if oom.unlimited else oom.memory, int(containers.peak[row]))
    needed = max(
        used + int(aggregates.bump_least[aggregate]), int(used * float(aggregates.bump_ratio[aggregate]))
    )
    until = Instant(oom.at + int(aggregates.interval[aggregate]))
    pod = state.pods[oom.namespace, oom.pod]
    for vpa in state.groups[oom.namespace, pod.labels].vpas:
        state.floors.put(
            (*vpa, oom.container, "memory"), Floor(min(needed, MAX_AMOUNT), oom.at, until, "OomFloor")
        )


def feed_history(state: State, history: Sequence[History]) -> None:
    """Add what is known of containers from before the start; pods that are not found after that are dropped."""
    feeds: list[tuple[int, Usage]] = []
    for one in history:
        pod = state.track(PodView(one.namespace, one.pod, one.labels, "Unknown", tuple(one.containers)))
        state.ghosts.add((one.namespace, one.pod))
        feeds += [(pod.containers[name], usage) for name, usage in one.containers.items()]
    rows = np.array([row for row, _ in feeds], np.int64)
    containers, aggregates = state.containers, state.aggregates
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
