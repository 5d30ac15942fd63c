"""What is known of a metric in one tick: pods added up, what was measured elsewhere, or why nothing is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubetide.horizontal.metrics.types import Known, Metric, Reading
from kubetide.horizontal.samples import Sample
from kubetide.horizontal.specs import Autoscaler
from kubetide.horizontal.state import State
from kubetide.horizontal.tally import tally, tally_of
from kubetide.horizontal.values import Reply
from kubetide.horizontal.views import Key, PodView, ScaleView
from kubetide.units.time import Instant

_NOT_ASKED = "the metric has not been asked for"


def known_of(state: State, spec: Autoscaler, metric: Metric, scale: ScaleView, now: Instant) -> Known:
    """Gives what is known of a metric of an HPA.

    A metric with a problem, or of a type that is not known, has nothing to be known: its calculator
    says so itself.
    """
    if metric.resource:
        error = state.samples.error_of(spec.key)
        if error is not None:
            return f"unable to fetch metrics from resource metrics API: {error}"
        return tally_of(state, spec.key, metric, now)
    question = metric.question(scale.selector)
    if question is None:
        return ""
    reply = state.values.get(question)
    if reply is None:
        return _NOT_ASKED
    if reply.error:
        return reply.error
    if question.source == "pods":
        pods = pods_of(state, spec.key)
        values = values_by_pod(reply)
        known = {pod.name for pod in pods}
        strays = [sample for name, sample in values.items() if name not in known]
        return tally(pods, values, strays, len(reply.milli), metric, now=now, settings=state.settings)
    rows = state.table.members_of(spec.key)
    ready = int(np.count_nonzero(state.table.serving[rows]))
    return Reading(reply.milli.tolist(), len(rows), ready, scale.status_replicas)


def pods_of(state: State, hpa: Key) -> list[PodView]:
    """Gives the pods that the HPA's selector takes in, ordered by name."""
    return [state.table.view(row) for row in state.table.members_of(hpa).tolist()]


def samples_of(state: State, hpa: Key, metric: Metric, selector: str) -> Mapping[str, Sample]:
    """Gives the samples of a metric of pods, by pod name; those of pods that the cache lacks may be among them."""
    question = metric.question(selector)
    reply = state.values.get(question) if question else None
    if reply is not None and not reply.error:
        return values_by_pod(reply)
    found = {}
    for row in state.table.members_of(hpa).tolist():
        sample = state.samples.sample_at(row, metric.sample_key)
        if sample is not None:
            found[state.table.view(row).name] = sample
    return found


def values_by_pod(reply: Reply) -> dict[str, Sample]:
    """Gives the values of pods as samples; when they were measured plays no part."""
    return {
        name: Sample(milli, 0, 0) for name, milli in zip(reply.pods or (), reply.milli.tolist(), strict=True)
    }
