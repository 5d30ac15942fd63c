"""How a metric's proposal is computed: the reason with every intermediate number, without text."""

from __future__ import annotations

from math import ceil, isfinite

from kubetide.explain.reasons import Field, Reason, Vocabulary
from kubetide.horizontal.metrics.types import Known, Metric, Proposal, Reading, Tally, Tolerance
from kubetide.horizontal.rules.proposal import quotient
from kubetide.units.quantity import milli_to_text

SENTENCES = {
    "MetricProposal": "{metric}: {value} of {target}: ratio {ratio} x {count:pod} = {product}, so {proposed:replica}",
    "MetricProposalFilledIn": "{metric}: {value} of {target}: ratio {ratio}; with {filled:pod} filled in ({unready} not ready, {missing} without a sample) {filled_ratio} x {count:pod} = {product}, so {proposed:replica}",
    "MetricShare": "{metric}: {value} of {target}: ratio {ratio}; {total} / {target} = {product}, so {proposed:replica}",
    "MetricFromZero": "{metric}: {value} of {target}: with no replica there the ratio {ratio} is rounded up, so {proposed:replica}",
    "MetricWithinTolerance": "{metric}: {value} of {target}: ratio {ratio} is within tolerance {lowest} to {highest}, so {proposed:replica}",
    "MetricWithinToleranceFilledIn": "{metric}: {value} of {target}: ratio {ratio}; with {filled:pod} filled in ({unready} not ready, {missing} without a sample) {filled_ratio} is within tolerance {lowest} to {highest}, so {proposed:replica}",
    "MetricTurned": "{metric}: {value} of {target}: ratio {ratio}; with {filled:pod} filled in ({unready} not ready, {missing} without a sample) {filled_ratio}, which turns the direction and changes nothing, so {proposed:replica}",
    "MetricAgainst": "{metric}: {value} of {target}: ratio {ratio}; with {filled:pod} filled in ({unready} not ready, {missing} without a sample) {filled_ratio} x {count:pod} = {product}, which would go against the direction and changes nothing, so {proposed:replica}",
}
"""By code; ``value`` and ``target`` are quantities or percentages, all else are plain numbers."""

PROPOSALS = frozenset(SENTENCES)
"""A metric that proposes has exactly one of these reasons."""

_Numbers = dict[str, Field]


def proposal_reason(
    metric: Metric,
    found: Proposal,
    known: Known,
    tolerance: Tolerance,
    current: int,
    subject: str,
    vocabulary: Vocabulary,
) -> Reason:
    """Return how a metric's number is computed, by the steps of ``proposal`` and ``shares``.

    Args:
        known: What it was proposed from; a proposal is never made from a text.
        current: ``spec.replicas`` of the target.
    """
    numbers = found.arithmetic
    fields: _Numbers = {
        "metric": short_name(metric),
        "value": value_text(found),
        "target": target_text(metric),
        "ratio": numbers.ratio,
    }
    assert not isinstance(known, str), "a proposal was made without pods or values"
    if isinstance(known, Reading):
        code, more = _of_reading(metric, found, known, tolerance, current)
    else:
        code, more = _of_tally(found, known, tolerance)
    return vocabulary.reason(code, subject, **{**fields, **more}, proposed=found.replicas)


def _of_reading(
    metric: Metric, found: Proposal, reading: Reading, tolerance: Tolerance, current: int
) -> tuple[str, _Numbers]:
    ratio, total, target = found.arithmetic.ratio, found.arithmetic.total, metric.average_milli
    if total is not None and not reading.replicas:
        return "MetricFromZero", {"ratio": quotient(float(total), float(target or 0))}
    if total is None and current == 0:
        return "MetricFromZero", {}
    if tolerance.holds(ratio):
        return "MetricWithinTolerance", _bounds(tolerance)
    if total is not None:
        product = quotient(float(total), float(target or 0))
        return "MetricShare", {"total": milli_to_text(total), "product": product}
    return "MetricProposal", {"count": reading.ready, "product": ratio * reading.ready}


def _of_tally(found: Proposal, tally: Tally, tolerance: Tolerance) -> tuple[str, _Numbers]:
    ratio, filled_ratio = found.arithmetic.ratio, found.arithmetic.filled_ratio
    unready = tally.unready if ratio > 1.0 else 0
    missing = tally.missing if ratio != 1.0 else 0
    if filled_ratio is None or not unready + missing:
        if tolerance.holds(ratio):
            return "MetricWithinTolerance", _bounds(tolerance)
        return "MetricProposal", {"count": tally.ready, "product": ratio * tally.ready}
    filled: _Numbers = {
        "filled": unready + missing,
        "unready": unready,
        "missing": missing,
        "filled_ratio": filled_ratio,
    }
    if tolerance.holds(filled_ratio):
        return "MetricWithinToleranceFilledIn", {**filled, **_bounds(tolerance)}
    if (ratio > 1.0) != (filled_ratio > 1.0):
        return "MetricTurned", filled
    count = tally.samples + unready + missing
    product = filled_ratio * count
    against = isfinite(product) and ceil(product) != found.replicas
    code = "MetricAgainst" if against else "MetricProposalFilledIn"
    return code, {**filled, "count": count, "product": product}


def _bounds(tolerance: Tolerance) -> _Numbers:
    return {"lowest": 1.0 - tolerance.down, "highest": 1.0 + tolerance.up}


def short_name(metric: Metric) -> str:
    """Return a metric's short name; conditions and events use upstream's longer one."""
    if metric.resource:
        what = "utilization" if metric.average_milli is None else "usage"
        where = f" of container {metric.container}" if metric.container else ""
        return f"{metric.resource} {what}{where}"
    if metric.identifier is None:
        return metric.type
    labels = f"{{{metric.selector}}}" if metric.selector else ""
    if metric.described is not None:
        return f"{metric.name}{labels} of {metric.described.kind} {metric.described.name}"
    if metric.type == "Pods":
        return f"{metric.name}{labels} of the pods"
    return f"external {metric.name}{labels}"


def target_text(metric: Metric) -> str:
    """Return the target as in the spec, ``80%`` or ``250m``; empty without one."""
    if metric.average_milli is not None:
        return milli_to_text(metric.average_milli)
    if metric.value_milli is not None:
        return milli_to_text(metric.value_milli)
    return "" if metric.utilization is None else f"{metric.utilization}%"


def value_text(found: Proposal) -> str:
    """Return the measured value in the terms of the target; the total if no replica shares it."""
    numbers = found.arithmetic
    if numbers.utilization is not None:
        return f"{numbers.utilization}%"
    if numbers.total is not None and not isfinite(numbers.ratio):
        return milli_to_text(numbers.total)
    return milli_to_text(numbers.average)
