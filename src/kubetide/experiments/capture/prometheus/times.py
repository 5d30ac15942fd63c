"""Which time Prometheus is asked for, as a person writes it."""

from __future__ import annotations

from kubetide.experiments.capture.errors import CaptureError
from kubetide.experiments.capture.prometheus.history import Span
from kubetide.units.time import Duration, Instant, TimeFormatError, parse_rfc3339
from kubetide.vertical.recommender.facts.history import prometheus_duration


def span_of(since: str, until: str, step: str, *, records: Instant | None, now: Instant) -> Span:
    """Return the time between two texts: a time each, or a duration before the end.

    Args:
        until: Empty for now.
        step: Empty for that of the samples.
        records: When the records begin; then Prometheus covers the time before.
    Raises: CaptureError that names the option.
    """
    if records is not None and until:
        raise CaptureError("--until: with records Prometheus is asked up to their beginning; leave it out")
    end = records if records is not None else now
    if until:
        end = _time("--until", until)
    try:
        start = Instant(end - prometheus_duration(since))
    except ValueError:
        start = _time("--since", since)
    if start >= end:
        raise CaptureError(
            f"--since {since} is not before the end; write for example 24h, 7d or 2026-03-02T00:00:00Z"
        )
    return Span(start, end, _step(step))


def _time(option: str, text: str) -> Instant:
    try:
        return parse_rfc3339(text)
    except TimeFormatError as error:
        raise CaptureError(
            f"{option} {text}: neither a time such as 2026-03-02T00:00:00Z nor a duration such as 24h or 7d"
        ) from error


def _step(text: str) -> Duration | None:
    if not text:
        return None
    try:
        step = prometheus_duration(text)
    except ValueError:
        step = Duration(0)
    if step <= 0:
        raise CaptureError(f"--step {text}: not a duration above 0 such as 15s or 1m")
    return step
