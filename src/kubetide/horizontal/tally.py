"""What the pods of one HPA add up to for one resource: all that the proposal is computed from.

``tally`` walks over pods; ``tally_columns`` does the same for all HPAs at once with running sums.
Sums are int64 as upstream's; Python's ints are brought back to it where upstream would wrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kubetide.horizontal.grouping import (
    IGNORED_POD,
    MISSING_POD,
    READY_POD,
    UNREADY_POD,
    classify,
    classify_rows,
)
from kubetide.horizontal.metrics.types import Metric, SampleKey, Tally
from kubetide.horizontal.pods import NO_REQUEST
from kubetide.horizontal.samples import Sample
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Segments, State
from kubetide.horizontal.views import PodView
from kubetide.ports.metrics import BoolVector, Int64Vector
from kubetide.units.time import Instant


def fill_percent(metric: Metric) -> int:
    """Gives the percent of its request that a missing pod is taken to use when scaling down."""
    return max(100, metric.utilization or 0)


def pod_request(pod: PodView, key: SampleKey, pod_level: bool) -> int | str:
    """Gives the pod's request in thousandths, or why there is none.

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
    strays: Sequence[Sample],
    answered: int,
    metric: Metric,
    *,
    now: Instant,
    settings: Settings,
) -> Tally:
    """Adds up one HPA's pods, ordered by name, with their samples by pod name."""
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
            fill += _percent_of(request, fill_percent(metric))
        elif found == UNREADY_POD:
            unready_requests += request
    return Tally(
        pods=len(pods),
        ready=counts[READY_POD],
        unready=counts[UNREADY_POD],
        missing=counts[MISSING_POD],
        ignored=counts[IGNORED_POD],
        answered=answered,
        samples=counts[READY_POD] + len(strays),
        usage=usage + sum(sample.milli for sample in strays),
        matched=counts[READY_POD],
        matched_usage=usage,
        requests=requests,
        missing_requests=missing_requests,
        unready_requests=unready_requests,
        fill=fill,
        problem=problem,
    )


def tally_of(state: State, spec_key: tuple[str, str], metric: Metric, now: Instant) -> Tally:
    """Adds up one HPA's pods for one of its metrics, from the state."""
    table, samples = state.table, state.samples
    rows = table.members_of(spec_key).tolist()
    pods = [table.view(row) for row in rows]
    by_name = {}
    for row, pod in zip(rows, pods, strict=True):
        sample = samples.sample_at(row, metric.sample_key)
        if sample is not None:
            by_name[pod.name] = sample
    strays = samples.strays.get(spec_key, {})
    stray_samples = [found[metric.sample_key] for found in strays.values() if metric.sample_key in found]
    answered = samples.own_answers.get(spec_key)
    if answered is None:
        answered = sum(bool(samples.seen[row]) for row in rows) if len(samples.seen) else 0
    return tally(pods, by_name, stray_samples, answered, metric, now=now, settings=state.settings)


def _percent_of(request: int, percent: int) -> int:
    return request * percent // 100


# ── all HPAs, in columns ────────────────────────────────────────────────────────────────────────


def tally_columns(
    state: State, segments: Segments, metrics: Sequence[Metric], now: Instant
) -> list[Tally | None]:
    """Adds up the pods of many HPAs for one resource.

    Args:
        segments: The HPAs and their pods.
        metrics: (H,) the metric of each, all with the same ``sample_key``.
    Returns: (H,) the tallies; None where an HPA must be looked at pod by pod: one of its pods has
        no request, or it has samples of unknown pods.
    """
    key = metrics[0].sample_key
    table, samples, rows = state.table, state.samples, segments.rows
    has_column = samples.has.get(key)
    if has_column is None or len(has_column) != table.capacity:
        return [None] * len(segments.hpas)
    has = has_column[rows]
    classes = classify_rows(
        table,
        rows,
        has,
        samples.times,
        samples.windows,
        cpu=key[0] == "cpu",
        now=now,
        settings=state.settings,
    )
    add = _Adder(segments.starts)
    ready, missing, unready = (classes == code for code in (READY_POD, MISSING_POD, UNREADY_POD))
    usage = np.where(ready, samples.milli[key][rows], 0)
    pods = np.diff(segments.starts).tolist()
    counts = [add(mask) for mask in (ready, unready, missing)]
    usages, answered = add(usage), add(samples.seen[rows])
    zeros = [0] * len(pods)
    sums, lacking = [zeros] * 4, zeros
    if any(metric.utilization is not None for metric in metrics):
        request, lacking = _requests(state, key, rows, add)
        percent = np.repeat(
            np.array([fill_percent(metric) for metric in metrics], np.int64), np.diff(segments.starts)
        )
        fills = add(np.where(missing, request * percent // 100, 0)) if missing.any() else zeros
        sums = [
            *(add(np.where(mask, request, 0)) if mask.any() else zeros for mask in (ready, missing, unready)),
            fills,
        ]
    found: list[Tally | None] = []
    odd = samples.strays
    for hpa, metric, n, up, un, mi, us, an, re, mr, ur, fi, no in zip(
        segments.hpas, metrics, pods, *counts, usages, answered, *sums, lacking, strict=True
    ):
        if hpa in odd or (no and metric.utilization is not None):
            found.append(None)
            continue
        an_own = samples.own_answers.get(hpa, an) if samples.own_answers else an
        found.append(Tally(n, up, un, mi, n - up - un - mi, an_own, up, us, up, us, re, mr, ur, fi, ""))
    return found


class _Adder:
    """Sums over segments: exact in int64, and 0 for empty ones."""

    def __init__(self, starts: Int64Vector) -> None:
        self._starts = starts
        self._running = np.zeros(int(starts[-1]) + 1, np.int64)

    def __call__(self, values: Int64Vector | BoolVector) -> list[int]:
        np.cumsum(values, out=self._running[1:], dtype=np.int64)
        at = self._running[self._starts]
        sums: list[int] = (at[1:] - at[:-1]).tolist()
        return sums


def _requests(state: State, key: SampleKey, rows: Int64Vector, add: _Adder) -> tuple[Int64Vector, list[int]]:
    """Gives (M,) requests, and (H,) how many pods have none."""
    by_shape = state.table.shapes.column(
        key, pod_level=state.settings.gates.pod_level_resources, request=pod_request
    )
    request = by_shape[state.table.shape[rows]]
    lacks = request == NO_REQUEST
    return request, add(lacks) if lacks.any() else [0] * (len(add._starts) - 1)  # noqa: SLF001  # its own helper
