"""From a tally of pods to a number of replicas.

Integers are int64 in thousandths and divisions truncate toward zero; ratios are doubles, computed
in upstream's order, because ``ceil`` turns the last bit into a whole pod. Source: horizontal
controller v1.36, replica calculator.
"""

from __future__ import annotations

import math

from kubetide.horizontal.metrics.types import Arithmetic, Tally, Tolerance

NO_PODS = "no pods returned by selector while calculating replica count"
NO_READY_SAMPLES = "did not receive metrics for targeted pods (pods might be unready)"
NO_MATCH = "no metrics returned matched known pods"

_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1


def wrap64(n: int) -> int:
    """Return n wrapped to a Go int64."""
    return (n + (1 << 63)) % (1 << 64) - (1 << 63)


def wrap32(n: int) -> int:
    """Return n wrapped to a Go int32."""
    return (n + (1 << 31)) % (1 << 32) - (1 << 31)


def truncated_quotient(a: int, b: int) -> int:
    """Return the quotient truncated toward zero, as Go divides."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def to_int32(value: float) -> int:
    """Return a double as an int32 as amd64 converts it: out of range becomes the smallest."""
    if not math.isfinite(value):
        return _INT32_MIN
    whole = int(value)
    return whole if _INT32_MIN <= whole <= _INT32_MAX else _INT32_MIN


def quotient(a: float, b: float) -> float:
    """Return the quotient of doubles as Go divides: by zero, infinity or NaN."""
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a)


def ceiling(value: float) -> float:
    """Return the value rounded up as by Go's ``math.Ceil``, infinities included."""
    return float(math.ceil(value)) if math.isfinite(value) else value


def proposal_by_utilization(
    tally: Tally, current: int, target: int, tolerance: Tolerance
) -> Arithmetic | str:
    """Return the proposal by the used percent of requests; a text if there is none."""
    problem = _no_ground(tally) or tally.problem
    if problem:
        return problem
    requests = wrap64(tally.requests)
    if requests == 0:
        return NO_MATCH
    used = wrap64(tally.matched_usage)
    percent = _percent(used, requests)
    average = truncated_quotient(used, tally.matched)
    ratio = quotient(float(percent), float(target))
    with_unready = tally.unready > 0 and ratio > 1.0
    if not with_unready and not tally.missing:
        return Arithmetic(_plainly(ratio, tally, current, tolerance), ratio, None, percent, average)
    count = tally.samples
    if tally.missing and ratio != 1.0:
        requests += tally.missing_requests
        used += tally.fill if ratio < 1.0 else 0
        count += tally.missing
    if with_unready:
        requests += tally.unready_requests
        count += tally.unready
    if wrap64(requests) == 0:
        return NO_MATCH
    filled = quotient(float(_percent(wrap64(used), wrap64(requests))), float(target))
    return Arithmetic(_filled_in(ratio, filled, count, current, tolerance), ratio, filled, percent, average)


def proposal_by_average(
    tally: Tally, current: int, target_milli: int, tolerance: Tolerance
) -> Arithmetic | str:
    """Return the proposal by the average per pod; a text if there is none."""
    problem = _no_ground(tally)
    if problem:
        return problem
    used = wrap64(tally.usage)
    average = truncated_quotient(used, tally.samples)
    ratio = quotient(float(average), float(target_milli))
    with_unready = tally.unready > 0 and ratio > 1.0
    if not with_unready and not tally.missing:
        return Arithmetic(_plainly(ratio, tally, current, tolerance), ratio, None, None, average)
    count = tally.samples
    if tally.missing and ratio != 1.0:
        used += target_milli * tally.missing if ratio < 1.0 else 0
        count += tally.missing
    if with_unready:
        count += tally.unready
    filled = quotient(float(truncated_quotient(wrap64(used), count)), float(target_milli))
    return Arithmetic(_filled_in(ratio, filled, count, current, tolerance), ratio, filled, None, average)


def _no_ground(tally: Tally) -> str:
    if not tally.pods:
        return NO_PODS
    return "" if tally.samples else NO_READY_SAMPLES


def _percent(used: int, requests: int) -> int:
    return wrap32(truncated_quotient(wrap64(used * 100), requests))


def _plainly(ratio: float, tally: Tally, current: int, tolerance: Tolerance) -> int:
    """The simple case: nothing to fill in."""
    if tolerance.holds(ratio):
        return current
    return to_int32(ceiling(ratio * float(tally.ready)))


def _filled_in(ratio: float, filled: float, count: int, current: int, tolerance: Tolerance) -> int:
    """Missing and unready pods were filled in: they may damp a change, never turn it around."""
    if tolerance.holds(filled) or (ratio < 1.0 < filled) or (ratio > 1.0 > filled):
        return current
    replicas = to_int32(ceiling(filled * float(count)))
    if (filled < 1.0 and replicas > current) or (filled > 1.0 and replicas < current):
        return current
    return replicas
