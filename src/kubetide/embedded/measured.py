"""Custom and external metrics as a metrics server holds them: what there is, and values.

Source: k8s.io/metrics v0.36, custom_metrics and external_metrics. The words for what is not there are
those of the library that metrics servers are built on (custom-metrics-apiserver, pkg/provider).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubetide.ports.errors import NotFound
from kubetide.units.time import Duration, Instant


class CustomMetric(NamedTuple):
    """A metric that objects of a resource (``pods``, ``deployments.apps``) have."""

    resource: str
    name: str
    namespaced: bool = True


class Measured(NamedTuple):
    """A custom metric of one object.

    Attributes:
        milli: The value in thousandths.
        at: When it was measured.
        window: Over which time before.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    milli: int
    at: Instant
    window: Duration


class MeasuredSeries(NamedTuple):
    """One series of an external metric: its labels, and its value as that of an object."""

    labels: Mapping[str, str]
    milli: int
    at: Instant
    window: Duration


def metric_not_found(resource: str, metric: str, *, name: str = "", selector: str = "") -> NotFound:
    """Return the refusal for a metric that the resource, or the named object, does not have."""
    text = f"the server could not find the metric {metric} for {resource}"
    text += f" {name}" if name else ""
    return NotFound(f"{text} with selector {selector}" if name and selector else text)
