"""Pod classes: which of an HPA's pods count, and how.

In this order: being deleted or failed is *ignored*; pending is *unready*; without a sample is
*missing*; for CPU only, a pod without Ready condition or start time, one that is still starting,
or one that never became ready is *unready*; the rest is *ready*. For other resources readiness
plays no part. Source: horizontal controller v1.36, replica calculator.
"""

from __future__ import annotations

import numpy as np

from kubetide.horizontal.facts.pods import (
    IGNORED,
    NO_START,
    ORDINARY,
    PENDING,
    READY_FALSE,
    READY_NONE,
    Int8Vector,
    PodTable,
    pod_state,
    readiness,
)
from kubetide.horizontal.facts.samples import Sample
from kubetide.horizontal.facts.views import PodView
from kubetide.horizontal.settings import Settings
from kubetide.units.time import Instant
from kubetide.units.vectors import BoolVector, Int64Vector

IGNORED_POD, UNREADY_POD, MISSING_POD, READY_POD = 0, 1, 2, 3
CLASS_NAMES = ("ignored", "unready", "missing", "ready")

_CLASS_BY_STATE: Int8Vector = np.zeros(3, np.int8)
_CLASS_BY_STATE[[IGNORED, PENDING, ORDINARY]] = (IGNORED_POD, UNREADY_POD, MISSING_POD)


def classify(pod: PodView, sample: Sample | None, *, cpu: bool, now: Instant, settings: Settings) -> int:
    """Return the class of one pod."""
    state = pod_state(pod)
    if state != ORDINARY:
        return IGNORED_POD if state == IGNORED else UNREADY_POD
    if sample is None:
        return MISSING_POD
    if not cpu:
        return READY_POD
    ready = readiness(pod)
    if ready == READY_NONE or pod.started is None:
        return UNREADY_POD
    if pod.started + settings.cpu_initialization_period > now:
        # Young: its CPU counts once a whole window has passed since it became ready.
        early = sample.time < pod.ready_since + sample.window
        return UNREADY_POD if ready == READY_FALSE or early else READY_POD
    never_ready = ready == READY_FALSE and pod.started + settings.initial_readiness_delay > pod.ready_since
    return UNREADY_POD if never_ready else READY_POD


def classify_rows(
    table: PodTable,
    rows: Int64Vector,
    has: BoolVector,
    times: Int64Vector,
    windows: Int64Vector,
    *,
    cpu: bool,
    now: Instant,
    settings: Settings,
) -> Int8Vector:
    """Return the classes of many pods; the same rules as ``classify``.

    Args:
        rows: (M,) rows of the table.
        has: (M,) whether there is a sample.
        times: (capacity,) of the samples, by row of the table; ``windows`` likewise.
    Returns: (M,) class codes.
    """
    classes = _CLASS_BY_STATE[table.pod_state[rows]]
    sampled = (classes == MISSING_POD) & has
    classes[sampled] = READY_POD
    if not cpu:
        return classes
    ready = table.readiness[rows]
    started = table.started[rows]
    not_ready = ready == READY_FALSE
    young = started + settings.cpu_initialization_period > now
    unready = (ready == READY_NONE) | (started == NO_START)
    if not_ready.any():
        since = table.ready_since[rows]
        never_ready = not_ready & (started + settings.initial_readiness_delay > since)
        unready |= np.where(young, not_ready, never_ready)
    if young.any():
        at = np.nonzero(young)[0]
        chosen = rows[at]
        unready[at] |= times[chosen] < table.ready_since[chosen] + windows[chosen]
    classes[sampled & unready] = UNREADY_POD
    return classes
