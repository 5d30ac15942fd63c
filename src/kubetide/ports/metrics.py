"""The metric ports: pod usage in columns, custom metrics of pods and objects, external metrics, series.

A source that speaks an API decodes it to these forms; a source in the same process fills them
directly. The numbers must be the same: values in milli-units, rounded up as upstream's
``MilliValue`` rounds them. Each of the three is a port of its own, as each of metrics.k8s.io,
custom.metrics.k8s.io and external.metrics.k8s.io is an API that a cluster may or may not have. Series over time
come from a database of them, such as Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec

from kubetide.ports.clock import Clock
from kubetide.units.time import Duration, Instant
from kubetide.units.vectors import BoolVector, Int64Vector


class ResourceUsage(msgspec.Struct, frozen=True, eq=False):
    """Usage of one resource by container: ``milli`` int64 and ``present`` bool, both (containers,)."""

    milli: Int64Vector
    present: BoolVector


class PodSamples(msgspec.Struct, frozen=True, eq=False):
    """One answer of the resource metrics API.

    Shapes: pods P, containers C. The containers of pod i are ``first[i]:first[i + 1]``.

    Attributes:
        namespaces: (P,) and ``names`` (P,): which pods; a pod may occur twice, the last one holds.
            A source gives the *same* tuple objects again while the set and order of pods is
            unchanged, so that a reader may keep its row numbers.
        timestamp_ns: (P,) int64 wall time of the sample; year 1 when the source has none.
        window_ns: (P,) int64 length of the sampling window.
        first: (P + 1,) int64 offsets into the container axis.
        containers: (C,) container names.
        usage: by resource name (``cpu``, ``memory``).
    """

    namespaces: Sequence[str]
    names: Sequence[str]
    timestamp_ns: Int64Vector
    window_ns: Int64Vector
    first: Int64Vector
    containers: Sequence[str]
    usage: Mapping[str, ResourceUsage]


class MetricSource(Protocol):
    """A source of usage."""

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        """Return samples of all pods, of one namespace or (empty) of all, that match the selector.

        Raises MetricsError with the text that conditions and events quote.
        """
        ...


class PodValues(msgspec.Struct, frozen=True):
    """One custom metric of several pods, one row per pod.

    Attributes:
        names: (P,) pods of the namespace that was asked for; only those that have a value.
        milli: (P,) int64 values.
        timestamp_ns: (P,) int64 wall time of each value.
    """

    names: Sequence[str]
    milli: Int64Vector
    timestamp_ns: Int64Vector


class ObjectValue(NamedTuple):
    """One custom metric of one object: its value in milli-units, and when it was measured (wall time, ns)."""

    milli: int
    timestamp_ns: int


class ExternalValues(NamedTuple):
    """The series of an external metric that a selector matches, at least one.

    Attributes:
        milli: Their values.
        timestamp_ns: When the first was measured (wall time).
        labels: Of each series; empty where the source does not say them.
        oldest_ns: When the oldest was measured; None where that is no other time.
    """

    milli: Sequence[int]
    timestamp_ns: int
    labels: Sequence[Mapping[str, str]] = ()
    oldest_ns: int | None = None


class CustomMetricSource(Protocol):
    """A source of metrics of Kubernetes objects (custom.metrics.k8s.io)."""

    async def pod_values(
        self, metric: str, *, namespace: str, pods: str = "", selector: str = ""
    ) -> PodValues:
        """Return a metric of the pods that match.

        Args:
            metric: Its name.
            namespace: Of the pods.
            pods: Label selector of the pods.
            selector: Label selector of the metric's own labels.

        Raises: MetricsError with the text that conditions and events quote, also when no pod has a value.
        """
        ...

    async def object_value(
        self, metric: str, *, namespace: str, api_version: str, kind: str, name: str, selector: str = ""
    ) -> ObjectValue:
        """Return a metric of one object; of kind Namespace, ``name`` is the namespace that is measured.

        Raises: MetricsError.
        """
        ...


class ExternalMetricSource(Protocol):
    """A source of metrics from outside the cluster (external.metrics.k8s.io)."""

    async def external_values(self, metric: str, *, namespace: str, selector: str = "") -> ExternalValues:
        """Return the series of a metric that the label selector matches. Raises MetricsError, NoSeries."""
        ...


class ExternalMetricOpener(Protocol):
    """A package's source of external metrics: opened when a run begins, closed at its end."""

    def __call__(self, clock: Clock) -> AbstractAsyncContextManager[ExternalMetricSource]: ...


class TimeSeries(msgspec.Struct, frozen=True):
    """One series: its labels, and pairs of Unix seconds and a number as text, oldest first."""

    metric: dict[str, str]
    values: tuple[tuple[float, str], ...]


class SeriesQuery(msgspec.Struct, frozen=True, omit_defaults=True):
    """A PromQL query: at ``end`` only, or from ``start`` to ``end`` in steps."""

    query: str
    end: Instant
    start: Instant | None = None
    step: Duration = Duration(0)


class SeriesSource(Protocol):
    """A source of series over time (the query API of Prometheus)."""

    async def each_series(self, question: SeriesQuery, take: Callable[[TimeSeries], None]) -> None:
        """Call ``take`` with each series of an answer as it arrives. Raises: MetricsError; what ``take`` raises."""
        ...
