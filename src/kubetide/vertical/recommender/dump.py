"""The whole state as one full delta, and a state built from it: both decide the same."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np

from kubetide.units.time import Instant
from kubetide.vertical.recommender.delta import (
    AggregateRecord,
    ContainerRecord,
    Delta,
    HistogramRecord,
    Memory,
)
from kubetide.vertical.recommender.facts.views import CheckpointView, PodView, StatusView
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.histograms import Histograms


def dump(state: State) -> Delta:
    """Return everything as one full delta."""
    return Delta(
        at=state.at,
        settings=state.settings,
        sizes=state.sizes,
        vpas=[state.views[key] for key in sorted(state.views)],
        statuses=[StatusView(*key, state.vpas[key].stored.read()) for key in sorted(state.vpas)],
        checkpoints=[CheckpointView(*key, state.stored[key]) for key in sorted(state.stored)],
        pods=[
            PodView(
                *key, state.labels.sets[pod.labels], pod.phase, tuple(pod.containers), pod.init, pod.resources
            )
            for key, pod in sorted(state.pods.items())
        ],
        memory=Memory(
            aggregates=tuple(_aggregates(state)),
            containers=tuple(_containers(state)),
            checkpointed=tuple(
                (*key, vpa.checkpointed)
                for key, vpa in sorted(state.vpas.items())
                if vpa.checkpointed is not None
            ),
            aggregates_collected=state.aggregates_collected,
            checkpoints_collected=state.checkpoints_collected,
            ghosts=tuple(sorted(state.ghosts)),
            untracked=tuple(state.untracked.values()),
            problems=tuple(state.problems),
            floors=tuple(sorted(state.floors.held.items())),
            pasts=tuple((place, copy(past)) for place, past in sorted(state.pasts.items())),
        ),
    )


def _aggregates(state: State) -> Iterator[AggregateRecord]:
    """Yield the aggregates by group, in the order of groups that adding up follows, and then what was loaded."""
    for namespace, number in sorted(state.groups, key=lambda key: (key[1], key[0])):
        labels = state.labels.sets[number]
        for container, row in state.groups[namespace, number].aggregates.items():
            yield _aggregate(state.aggregates, row, namespace, container, labels, "")
    for key, vpa in sorted(state.vpas.items()):
        for container, row in vpa.loaded.items():
            yield _aggregate(state.aggregates, row, key[0], container, {}, key[1])


def _aggregate(
    rows: Aggregates, row: int, namespace: str, container: str, labels: dict[str, str], vpa: str
) -> AggregateRecord:
    return AggregateRecord(
        namespace=namespace,
        container=container,
        cpu=_histogram(rows.cpu, row),
        memory=_histogram(rows.memory, row),
        created=int(rows.created[row]),
        first=int(rows.first[row]),
        last=int(rows.last[row]),
        count=int(rows.count[row]),
        bump_ratio=float(rows.bump_ratio[row]),
        bump_least=int(rows.bump_least[row]),
        interval=int(rows.interval[row]),
        interval_count=int(rows.interval_count[row]),
        labels=labels,
        vpa=vpa,
    )


def _histogram(histograms: Histograms, row: int) -> HistogramRecord:
    weights = histograms.weights[row]
    buckets = np.flatnonzero(weights)
    return HistogramRecord(
        int(histograms.reference[row]),
        float(histograms.total[row]),
        int(histograms.low[row]),
        int(histograms.high[row]),
        bool(histograms.stray[row]),
        tuple(buckets.tolist()),
        tuple(weights[buckets].tolist()),
    )


def _containers(state: State) -> Iterator[ContainerRecord]:
    columns = state.containers
    found = [((*key, name), row) for key, pod in state.pods.items() for name, row in pod.containers.items()]
    for key, row in sorted(found):
        yield ContainerRecord(
            *key,
            bool(columns.aggregate[row] >= 0),
            int(columns.last_cpu[row]),
            int(columns.last_memory[row]),
            int(columns.window_end[row]),
            int(columns.peak[row]),
            int(columns.oom_peak[row]),
        )


# ── and back ────────────────────────────────────────────────────────────────────────────────────


def restored(delta: Delta) -> State:
    """Return the state that a full delta holds."""
    state = State(delta.settings)
    memory = delta.memory or Memory()
    # Numbers of label sets decide in which order histograms are added up.
    for record in memory.aggregates:
        if not record.vpa:
            state.aggregate_of(record.namespace, state.labels.number(record.labels), record.container)
    without_saving = Delta(
        at=delta.at,
        sizes=delta.sizes,
        vpas=delta.vpas,
        statuses=delta.statuses,
        checkpoints=delta.checkpoints,
        pods=() if state.settings.memory_saver else delta.pods,
    )
    state.apply(without_saving)
    if state.settings.memory_saver:
        for pod in delta.pods:
            state.track(pod)
    rows = {_put_aggregate(state, record) for record in memory.aggregates}
    _put_containers(state, memory.containers)
    state.keep_only(rows)
    for namespace, name, at in memory.checkpointed:
        if (namespace, name) in state.vpas:
            state.vpas[namespace, name].checkpointed = Instant(at)
    state.aggregates_collected = memory.aggregates_collected
    state.checkpoints_collected = memory.checkpoints_collected
    state.ghosts = set(memory.ghosts)
    state.untracked = {(view.namespace, view.name): view for view in memory.untracked}
    state.problems = list(memory.problems)
    state.floors.held = dict(memory.floors)
    state.pasts = {place: copy(past) for place, past in memory.pasts}
    return state


def _put_aggregate(state: State, record: AggregateRecord) -> int:
    rows = state.aggregates
    if record.vpa:
        vpa = state.vpas[record.namespace, record.vpa]
        row = rows.add(Instant(record.created))
        vpa.loaded[record.container] = row
        vpa.cells = None
    else:
        labels = state.labels.number(record.labels)
        row = state.aggregate_of(record.namespace, labels, record.container)
    for histograms, part in ((rows.cpu, record.cpu), (rows.memory, record.memory)):
        histograms.weights[row, list(part.buckets)] = part.weights
        histograms.reference[row], histograms.total[row] = part.reference, part.total
        histograms.low[row], histograms.high[row] = part.low, part.high
        histograms.stray[row] = part.stray
    rows.created[row], rows.first[row], rows.last[row] = record.created, record.first, record.last
    rows.count[row] = record.count
    rows.bump_ratio[row], rows.bump_least[row] = record.bump_ratio, record.bump_least
    rows.interval[row], rows.interval_count[row] = record.interval, record.interval_count
    return row


def _put_containers(state: State, records: tuple[ContainerRecord, ...]) -> None:
    columns = state.containers
    for record in records:
        row = state.pods[record.namespace, record.pod].containers[record.container]
        columns.last_cpu[row], columns.last_memory[row] = record.last_cpu, record.last_memory
        columns.window_end[row] = record.window_end
        columns.peak[row], columns.oom_peak[row] = record.peak, record.oom_peak
        if not record.has_aggregate:
            columns.aggregate[row] = -1
