"""The facts of a metric in one tick: tallied pods, a measured value, or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kubetide.horizontal.facts.samples import Sample
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.values import Reply
from kubetide.horizontal.facts.views import PodView, ScaleView
from kubetide.horizontal.metrics.types import Known, Metric, Reading, Tally
from kubetide.horizontal.options.freshness import too_old
from kubetide.horizontal.options.ownership import owned_rows
from kubetide.horizontal.rules.tally import tally, tally_of
from kubetide.horizontal.state import State
from kubetide.units.time import Instant
from kubetide.units.vectors import Int64Vector

_NOT_ASKED = "the metric has not been asked for"


def known_of(state: State, spec: Autoscaler, metric: Metric, scale: ScaleView, now: Instant) -> Known:
    """Return the facts of a metric of an HPA.

    A metric with a problem, or of a type that is not known, has nothing to be known: its calculator
    says so itself.
    """
    if metric.resource:
        error = state.samples.error_of(spec.key)
        if error is not None:
            return f"unable to fetch metrics from resource metrics API: {error}"
        if spec.options.asks_for_owners:
            return _tally_chosen(state, spec, metric, scale, now)
        return tally_of(state, spec.key, metric, now)
    question = metric.question(scale.selector)
    if question is None:
        return ""
    reply = state.values.get(question)
    if reply is None:
        return _NOT_ASKED
    if reply.error:
        return reply.error
    stale = too_old(spec.options.max_age, reply.measured, now)
    if stale:
        return stale
    if question.source == "pods":
        pods = pods_of(state, spec, scale)
        values = _without_starting(values_by_pod(reply), pods, scale)
        # Where the options choose pods, values of others are nobody's, as samples of theirs are.
        known = values.keys() if spec.options.asks_for_owners else {pod.name for pod in pods}
        unmatched = [sample for name, sample in values.items() if name not in known]
        return tally(pods, values, unmatched, len(reply.milli), metric, now=now, settings=state.settings)
    rows = _rows_of(state, spec, scale)
    ready = int(np.count_nonzero(state.table.serving[rows]))
    return Reading(reply.milli.tolist(), len(rows), ready, scale.status_replicas)


def _rows_of(state: State, spec: Autoscaler, scale: ScaleView) -> Int64Vector:
    """Return the rows of the pods that count for the HPA at all, ordered by name."""
    rows = state.table.members_of(spec.key)
    if not spec.options.count_only_owned or scale.owners is None:
        return rows
    listed = rows.tolist()
    return np.array(owned_rows(listed, [state.table.view(row) for row in listed], scale.owners), np.int64)


def pods_of(state: State, spec: Autoscaler, scale: ScaleView) -> list[PodView]:
    """Return the pods that count for the HPA at all, ordered by name."""
    return [state.table.view(row) for row in _rows_of(state, spec, scale).tolist()]


def samples_of(state: State, spec: Autoscaler, metric: Metric, scale: ScaleView) -> Mapping[str, Sample]:
    """Return the samples of a pod metric by pod name, possibly of pods that the cache lacks."""
    question = metric.question(scale.selector)
    reply = state.values.get(question) if question else None
    pods = pods_of(state, spec, scale)
    if question is not None and question.source == "pods" and reply is not None and not reply.error:
        return _without_starting(values_by_pod(reply), pods, scale)
    return _without_starting(_usage_of(state, pods, metric), pods, scale)


def _usage_of(state: State, pods: Sequence[PodView], metric: Metric) -> dict[str, Sample]:
    found = {}
    for pod in pods:
        row = state.table.rows[pod.namespace, pod.name]
        sample = state.samples.sample_at(row, metric.sample_key)
        if sample is not None:
            found[pod.name] = sample
    return found


def _without_starting(
    samples: Mapping[str, Sample], pods: Sequence[PodView], scale: ScaleView
) -> Mapping[str, Sample]:
    """Drop the samples of pods that are being rolled out (``options.rollouts``)."""
    if not scale.starting:
        return samples
    new = {pod.name for pod in pods if pod.owner in scale.starting}
    return {name: sample for name, sample in samples.items() if name not in new}


def _tally_chosen(state: State, spec: Autoscaler, metric: Metric, scale: ScaleView, now: Instant) -> Tally:
    """Add up the pods that the options choose; samples of unknown pods are nobody's."""
    pods = pods_of(state, spec, scale)
    samples = _without_starting(_usage_of(state, pods, metric), pods, scale)
    return tally(pods, samples, (), len(samples), metric, now=now, settings=state.settings)


def values_by_pod(reply: Reply) -> dict[str, Sample]:
    """Return pod values as samples; their measuring times are ignored."""
    return {
        name: Sample(milli, 0, 0) for name, milli in zip(reply.pods or (), reply.milli.tolist(), strict=True)
    }
