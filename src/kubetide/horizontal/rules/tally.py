"""The tally of one HPA's pods for one resource: all input of the proposal.

``tally`` walks over pods; ``tally_columns`` does the same for all HPAs at once with running sums.
Sums are int64 as upstream's; Python's ints are brought back to it where upstream would wrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from kubetide.horizontal.batch.hpas import Segments
from kubetide.horizontal.batch.results import TallyColumns
from kubetide.horizontal.cached_results import SteadyTally
from kubetide.horizontal.facts.pods import NO_REQUEST
from kubetide.horizontal.facts.samples import Sample
from kubetide.horizontal.facts.views import PodView
from kubetide.horizontal.metrics.types import Metric, SampleKey, Tally
from kubetide.horizontal.rules.grouping import (
    IGNORED_POD,
    MISSING_POD,
    READY_POD,
    UNREADY_POD,
    classify,
    classify_rows,
)
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Instant
from kubetide.units.vectors import BoolVector, Int64Vector


def pod_request(pod: PodView, key: SampleKey, pod_level: bool) -> int | str:
    """Return the pod's request in thousandths, or the error.

    Sidecars count. Pod-level requests stand for the sum over the pod if the gate is on; a metric
    of one container does not look at them.
    """
    resource, container = key
    if not container and pod_level and pod.pod_level is not None:
        if resource not in pod.pod_level:
            return f"missing pod-level request for {resource} in Pod {pod.name}"
        return pod.pod_level[resource]
    total, found = 0, not container
    for one in pod.containers:
        if container and one.name != container:
            continue
        found = True
        if resource not in one.requests:
            return f"missing request for {resource} in container {one.name} of Pod {pod.name}"
        total += one.requests[resource]
    return total if found else f"container {container} not found in Pod {pod.name}"


# ── one HPA, pod by pod ─────────────────────────────────────────────────────────────────────────


def tally(
    pods: Sequence[PodView],
    samples: Mapping[str, Sample],
    unmatched: Sequence[Sample],
    answered: int,
    metric: Metric,
    *,
    now: Instant,
    settings: Settings,
) -> Tally:
    """Return the tally of one HPA's pods, ordered by name, with their samples by pod name."""
    counts = [0, 0, 0, 0]
    usage = requests = missing_requests = unready_requests = fill = 0
    problem = ""
    wants_requests = metric.utilization is not None
    for pod in pods:
        sample = samples.get(pod.name)
        found = classify(pod, sample, cpu=metric.resource == "cpu", now=now, settings=settings)
        counts[found] += 1
        request: int | str = 0
        if wants_requests:
            request = pod_request(pod, metric.sample_key, settings.gates.pod_level_resources)
        if isinstance(request, str):
            problem = problem or request
            continue
        if found == READY_POD and sample is not None:
            usage += sample.milli
            requests += request
        elif found == MISSING_POD:
            missing_requests += request
            fill += _percent_of(request, metric.fill_percent)
        elif found == UNREADY_POD:
            unready_requests += request
    return Tally(
        pods=len(pods),
        ready=counts[READY_POD],
        unready=counts[UNREADY_POD],
        missing=counts[MISSING_POD],
        ignored=counts[IGNORED_POD],
        answered=answered,
        samples=counts[READY_POD] + len(unmatched),
        usage=usage + sum(sample.milli for sample in unmatched),
        matched=counts[READY_POD],
        matched_usage=usage,
        requests=requests,
        missing_requests=missing_requests,
        unready_requests=unready_requests,
        fill=fill,
        problem=problem,
    )


def tally_of(state: State, spec_key: tuple[str, str], metric: Metric, now: Instant) -> Tally:
    """Return the tally of one HPA's pods for one of its metrics, from the state."""
    table, samples, key = state.table, state.samples, metric.sample_key
    rows = table.members_of(spec_key)
    unmatched = samples.unmatched.get(spec_key, {})
    answered = samples.sample_counts.get(spec_key)
    steady, has = state.steady.get(spec_key, {}).get(key), samples.has.get(key)
    if (
        steady is not None
        and has is not None
        and steady.changes == table.changes
        and steady.rows is rows
        and steady.metric is metric
        and steady.settings is state.settings
        and answered is None
        and has[rows].all()
    ):
        usage = sum(samples.milli[key][rows].tolist())
        return replace(steady.tally, usage=usage, matched_usage=usage)
    pods = [table.view(row) for row in rows.tolist()]
    found_samples = samples.samples_at(rows, key)
    by_name = {
        pod.name: sample for pod, sample in zip(pods, found_samples, strict=True) if sample is not None
    }
    unmatched_samples = [found[key] for found in unmatched.values() if key in found]
    own = answered is not None
    if answered is None:
        answered = int(np.count_nonzero(samples.seen[rows])) if len(samples.seen) else 0
    found = tally(pods, by_name, unmatched_samples, answered, metric, now=now, settings=state.settings)
    if 0 < len(pods) == found.ready and not (found.problem or own or has_young(state, spec_key, now)):
        known = SteadyTally(metric, state.settings, rows, table.changes, found)
        state.steady.setdefault(spec_key, {})[key] = known
    return found


def has_young(state: State, key: Key, now: Instant) -> bool:
    """Return whether time alone may change the class of a pod of the HPA."""
    rows = state.table.members_of(key)
    started = state.table.started[rows]
    return bool(len(rows)) and int(started.max()) + state.settings.cpu_initialization_period > now


def _percent_of(request: int, percent: int) -> int:
    return request * percent // 100


# ── all HPAs, in columns ────────────────────────────────────────────────────────────────────────


def tally_columns(state: State, segments: Segments, now: Instant) -> TallyColumns | None:
    """Return the tallies of many HPAs for one resource; None if no sample has it."""
    key = segments.sample_key
    table, samples, rows = state.table, state.samples, segments.rows
    has_column = samples.has.get(key)
    if has_column is None or len(has_column) != table.capacity:
        return None
    classes = classify_rows(
        table, rows, has_column[rows], samples.times, samples.windows, cpu=key[0] == "cpu", now=now,
        settings=state.settings,
    )  # fmt: skip
    add = _Adder(segments.starts)
    ready, missing, unready = (classes == code for code in (READY_POD, MISSING_POD, UNREADY_POD))
    nothing = np.zeros(len(segments.hpas), np.int64)
    by_shape = table.shapes.column(
        key, pod_level=state.settings.gates.pod_level_resources, request=pod_request
    )
    request = by_shape[table.shape[rows]]
    lacks = request == NO_REQUEST
    odd = (add(lacks) > 0) & segments.by_utilization if lacks.any() else np.zeros(len(nothing), np.bool_)
    for hpa in samples.unmatched:
        odd |= segments.is_hpa(hpa)
    answered = add(samples.seen[rows])
    if samples.sample_counts:
        own = [samples.sample_counts.get(hpa, -1) for hpa in segments.hpas]
        answered = np.where(np.array(own) < 0, answered, own)
    if missing.any():
        percent = np.repeat(segments.fill_percent, np.diff(segments.starts))
        fill, missing_requests = (
            add(np.where(missing, request * percent // 100, 0)),
            add(np.where(missing, request, 0)),
        )
    else:
        fill = missing_requests = nothing
    return TallyColumns(
        pods=np.diff(segments.starts),
        ready=add(ready),
        unready=add(unready),
        missing=add(missing),
        answered=answered,
        usage=add(np.where(ready, samples.milli[key][rows], 0)),
        requests=add(np.where(ready, request, 0)),
        missing_requests=missing_requests,
        unready_requests=add(np.where(unready, request, 0)) if unready.any() else nothing,
        fill=fill,
        by_utilization=segments.by_utilization,
        odd=odd,
    )


class _Adder:
    """Sums over segments: exact in int64, and 0 for empty ones."""

    def __init__(self, starts: Int64Vector) -> None:
        self._starts = starts
        self._running = np.zeros(int(starts[-1]) + 1, np.int64)

    def __call__(self, values: Int64Vector | BoolVector) -> Int64Vector:
        np.cumsum(values, out=self._running[1:], dtype=np.int64)
        at = self._running[self._starts]
        sums: Int64Vector = at[1:] - at[:-1]
        return sums
