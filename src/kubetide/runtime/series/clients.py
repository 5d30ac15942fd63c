"""``rest_client_*``: the requests of the process to API servers.

Source: client-go's metrics as component-base v0.36 registers them; names, labels and buckets are theirs.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, to_seconds

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class ClientSeries:
    """The series of all clients of a process.

    Attributes:
        total: Requests that were sent, whatever came of them.
    """

    def __init__(self, registry: Registry) -> None:
        self.total = 0
        self.requests = registry.counter(
            "rest_client_requests_total",
            "Requests that were sent, by the code of the answer.",
            ("code", "host", "method"),
        )
        self.durations = registry.histogram(
            "rest_client_request_duration_seconds",
            "Time from sending a request to the head of its answer.",
            ("host", "verb"),
            buckets=_SECONDS,
        )
        self.waits = registry.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time that requests waited for the client's own limit; those that need not wait are not counted.",
            ("host", "verb"),
            buckets=_SECONDS,
        )
        self.retries = registry.counter(
            "rest_client_request_retries_total",
            "Requests that were sent again, by the code of the answer before.",
            ("code", "host", "verb"),
        )

    def of(self, url: str) -> ClientObserver:
        """Return the observer of one client; ``url`` is its server's."""
        return ClientObserver(self, urlsplit(url).netloc)


class ClientObserver:
    """Counts the requests of one client; see ``cluster.observing.RequestObserver``."""

    def __init__(self, series: ClientSeries, host: str) -> None:
        self._series = series
        self._host = host

    def answered(self, method: str, code: str, took: Duration) -> None:
        """Count an attempt."""
        self._series.total += 1
        self._series.requests.add(1.0, code, self._host, method)
        self._series.durations.observe(to_seconds(took), self._host, method)

    def waited(self, method: str, waited: Duration) -> None:
        """Count a wait for the client's own limit."""
        self._series.waits.observe(to_seconds(waited), self._host, method)

    def repeated(self, method: str, code: str) -> None:
        """Count a request that is sent again."""
        self._series.retries.add(1.0, code, self._host, method)
