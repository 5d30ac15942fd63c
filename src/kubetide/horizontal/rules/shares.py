"""From the value of an object or an external metric to a number of replicas.

A target in all (``value``) is a ratio that the ready pods are multiplied with; a target for each
replica (``averageValue``) divides the value. Integers are int64 in thousandths, ratios doubles in
upstream's order. Source: horizontal controller v1.36, replica calculator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kubetide.horizontal.metrics.types import Arithmetic, Reading, Tolerance
from kubetide.horizontal.rules.proposal import NO_PODS, ceiling, quotient, to_int32, wrap64

INT64_MAX = (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1
_TOO_LARGE = 2.0**63
"""The largest int64 as a double, which all numbers from 2^63 - 512 on come to."""


def sum_of_values(series: Sequence[int]) -> int:
    """Return the sum for a total target: two positive numbers that overflow give the largest, all else wraps."""
    total = 0
    for value in series:
        before, total = total, wrap64(total + value)
        if before > 0 and value > 0 > total:
            return INT64_MAX
    return total


def sum_of_shares(series: Sequence[int]) -> int:
    """Return the sum for a per-replica target: a negative intermediate sum counts as an overflow."""
    total = 0
    for value in series:
        total = wrap64(total + value)
        if total < 0:
            return INT64_MAX
    return total


def proposal_by_value(
    value: int, reading: Reading, current: int, target_milli: int, tolerance: Tolerance
) -> Arithmetic | str:
    """Return the proposal by the ratio of value and target; a text if there is none.

    From 0 replicas on the ratio itself is the number. If it does not fit an int32 it becomes the least one, as upstream
    has it, so that another metric wins; from other replicas on it becomes the largest.
    """
    ratio = quotient(float(value), float(target_milli))
    if current == 0:
        replicas = to_int32(ceiling(ratio))
    elif tolerance.holds(ratio):
        replicas = current
    elif not reading.pods:
        return f"unable to calculate ready pods: {NO_PODS}"
    else:
        replicas = _saturated(ceiling(ratio * float(reading.ready)))
    return Arithmetic(replicas, ratio, None, None, value)


def proposal_by_share(
    value: int, reading: Reading, target_milli: int, tolerance: Tolerance, *, saturating: bool
) -> Arithmetic:
    """Return the replicas that each get the target's share; within tolerance ``status.replicas``.

    Args:
        saturating: Whether numbers that do not fit stay the largest ones (external metrics): replicas
            beyond int32, and the value itself, which then is not divided for the status.
    """
    there = float(reading.replicas)
    ratio = quotient(float(value), float(target_milli) * there)
    replicas = reading.replicas
    if not tolerance.holds(ratio):
        exact = ceiling(quotient(float(value), float(target_milli)))
        replicas = _saturated(exact) if saturating else to_int32(exact)
    if saturating and float(value) >= _TOO_LARGE:
        share = INT64_MAX
    else:
        share = _to_int64(ceiling(quotient(float(value), there)))
    return Arithmetic(replicas, ratio, None, None, share, value)


def _to_int64(value: float) -> int:
    """Turn a double into an int64 as amd64 does: what does not fit becomes the smallest."""
    fits = math.isfinite(value) and -(2.0**63) <= value < 2.0**63
    return int(value) if fits else -INT64_MAX - 1


def _saturated(value: float) -> int:
    return _INT32_MAX if value > _INT32_MAX else to_int32(value)
