"""What may be counted of a client's requests, for whoever keeps the series.

Source: client-go v1.36's metrics: ``rest_client_requests_total`` (code, method),
``rest_client_request_duration_seconds`` (verb), ``rest_client_rate_limiter_duration_seconds`` (verb) and
``rest_client_request_retries_total`` (code, verb).
"""

from __future__ import annotations

from typing import Protocol

from kubetide.units.time import Duration

NO_ANSWER = "<error>"
"""The code of a request that got no answer, as upstream counts it."""


class RequestObserver(Protocol):
    """Called for every request; must neither raise nor block."""

    def answered(self, method: str, code: str, took: Duration) -> None:
        """One attempt was answered with that code, or with ``NO_ANSWER``; of a watch, its beginning."""
        ...

    def waited(self, method: str, waited: Duration) -> None:
        """A request waited that long for the client's own rate limit."""
        ...

    def repeated(self, method: str, code: str) -> None:
        """A request is sent again after that answer."""
        ...


class Unobserved:
    """Counts nothing."""

    def answered(self, method: str, code: str, took: Duration) -> None: ...

    def waited(self, method: str, waited: Duration) -> None: ...

    def repeated(self, method: str, code: str) -> None: ...
