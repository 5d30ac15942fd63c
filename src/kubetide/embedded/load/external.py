"""The ExternalMetricSource port over traces: series of things outside of the cluster, such as queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kubetide.embedded.load.traces import Trace
from kubetide.embedded.measured import MeasuredSeries, metric_not_found
from kubetide.objects.kinds import NAMESPACES
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, BadRequest, MetricsError, NoSeries
from kubetide.ports.metrics import ExternalValues
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import ZERO, Duration, Instant

_FETCHING = "unable to fetch metrics from external metrics API: "


@dataclass(frozen=True)
class ExternalSeries:
    """A series of a metric.

    Attributes:
        metric: Its name.
        trace: Its values over time.
        labels: Unique among the series of the metric.
        namespace: Where it can be asked for; empty for everywhere.
    """

    metric: str
    trace: Trace
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""


class EmbeddedExternalMetrics:
    """External metrics from traces, cut into steps as a load model's are.

    A value is the mean over the newest step that had ended; before the end of the first there is none.

    Args:
        series: What there is.
        clock: The time.
        start: When the first step begins.
        step: Length of a step.
        scrape_delay: How old the newest step must be.
    """

    def __init__(
        self,
        series: Sequence[ExternalSeries],
        clock: Clock,
        *,
        start: Instant,
        step: Duration,
        scrape_delay: Duration = ZERO,
    ) -> None:
        self._series = tuple(series)
        self._clock = clock
        self._start = start
        self._step = step
        self._delay = scrape_delay

    def external_metrics(self) -> list[str]:
        """Return the name of every metric that there is, once."""
        return list(dict.fromkeys(series.metric for series in self._series))

    def series(self, metric: str, *, namespace: str, selector: str = "") -> list[MeasuredSeries]:
        """Return the series of a metric that a namespace may see and whose labels match, in their order.

        Raises: NotFound for a metric that nobody knows, BadRequest for a selector that cannot be read.
        """
        try:
            parsed = Selector.parse(selector)
        except SelectorError as error:
            raise BadRequest(str(error)) from error
        if all(series.metric != metric for series in self._series):
            raise metric_not_found(NAMESPACES.resource, metric)
        steps = (self._clock.now() - self._delay - self._start) // self._step
        if steps < 1:
            return []
        end = Instant(self._start + steps * self._step)
        begin = Instant(end - self._step)
        return [
            MeasuredSeries(
                labels=series.labels,
                milli=round(series.trace.rate(begin, self._step) * 1000.0),
                at=end,
                window=self._step,
            )
            for series in self._series
            if series.metric == metric
            and series.namespace in {"", namespace}
            and parsed.matches(series.labels)
        ]

    async def external_values(self, metric: str, *, namespace: str, selector: str = "") -> ExternalValues:
        """Return the series of a metric that the selector of its labels matches. Raises MetricsError."""
        try:
            found = self.series(metric, namespace=namespace, selector=selector)
        except ApiError as error:
            raise MetricsError(f"{_FETCHING}{error}") from error
        if not found:
            raise NoSeries("no metrics returned from external metrics API")
        return ExternalValues([one.milli for one in found], found[0].at, [one.labels for one in found])
