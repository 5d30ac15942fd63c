"""How answers of the metrics APIs are asked for and read; shared by their three clients.

Source: client-go v1.36 (texts of errors). What fails is not asked again before the next tick, as
upstream's clients do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol, TypeVar

import msgspec

from kubetide.cluster.decoding import decode
from kubetide.cluster.refusals import UNEXPECTED
from kubetide.objects.base import json_name
from kubetide.ports.errors import ApiError, MetricsError
from kubetide.units.quantity import Quantity
from kubetide.units.time import parse_rfc3339

T = TypeVar("T")

_YEAR_ONE = "0001-01-01T00:00:00Z"
_FIRST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1


class Server(Protocol):
    """What answers: an HttpCluster."""

    async def get_raw(
        self, path: str, query: Mapping[str, str] | None = None, *, hasty: bool = False
    ) -> bytes:
        """Return the body of an answer. Raises ApiError."""
        ...


class Part(msgspec.Struct, rename=json_name, gc=False):
    """Base of what is read of an answer: the fields in use."""


class Named(Part, gc=False):
    name: str = ""
    namespace: str = ""


async def ask(server: Server, path: str, query: Mapping[str, str] | None, model: type[T], about: str) -> T:
    """Read an answer. Raises MetricsError; one that the server did not explain says what was asked ``about``."""
    try:
        return decode(model, await server.get_raw(path, query, hasty=True))
    except ApiError as error:
        unexplained = any(cause.get("reason") == UNEXPECTED for cause in error.causes)
        raise MetricsError(f"{error} (get {about})" if unexplained else str(error)) from error


def milli_of(value: str | float) -> int:
    """Read a value. What metrics-server sends, nano-cores and KiB, needs no parser: it comes by the 10,000."""
    if isinstance(value, str) and len(value) < 14 and value.isascii():
        if value.endswith("n") and value[:-1].isdecimal():
            return -(-int(value[:-1]) // 1_000_000)
        if value.endswith("Ki") and value[:-2].isdecimal():
            return int(value[:-2]) * 1_024_000
    return Quantity.parse(value).milli_value()


# All samples of one scrape have the same.
@lru_cache(maxsize=1 << 10)
def time_of(text: str | None) -> int:
    """Nanoseconds of a timestamp, bounded by what they can hold; without one it is of year 1."""
    return min(max(parse_rfc3339(text or _YEAR_ONE), _FIRST_NS), _LAST_NS)
