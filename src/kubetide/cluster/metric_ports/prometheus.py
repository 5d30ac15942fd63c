"""Prometheus: external metrics without an adapter between, and series over time.

Source: Prometheus 3, HTTP API v1 (``/api/v1/query``, ``/api/v1/query_range``).
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import ROUND_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec

from kubetide.acting import both
from kubetide.cluster.access.connection import Connection
from kubetide.cluster.access.credentials import Credentials
from kubetide.cluster.bounds import TooMuch, read_bounded
from kubetide.cluster.metric_ports.promql import PromQuestion, prometheus_question
from kubetide.cluster.metric_ports.series_stream import SeriesCutter
from kubetide.cluster.transport import user_agent
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, MetricsError
from kubetide.ports.metrics import ExternalMetricSource, ExternalValues, SeriesQuery, TimeSeries
from kubetide.serving import OwnsSession, make_connector
from kubetide.serving.failures import failure_text
from kubetide.units.quantity import bytes_to_text
from kubetide.units.time import Duration, Instant, seconds, to_seconds

_FAILED = "unable to fetch metrics from Prometheus: "
_PATIENCE = seconds(10)
_LARGEST_ANSWER = 16 << 20
_POINTS = 60
_SHORTEST_STEP = seconds(1)
_NOT_NUMBERS = ("NaN", "+Inf", "-Inf")
_LARGEST = 9 * 10**15


class BasicAuth(NamedTuple):
    """A user, and the password or the file that holds it."""

    user: str
    password_file: Path | None
    password: str = ""

    def __repr__(self) -> str:
        return f"BasicAuth({self.user!r}, {self.password_file!r})"


class _Answer(msgspec.Struct):
    status: str = ""
    data: Any = None
    error_type: str = msgspec.field(default="", name="errorType")
    error: str = ""


class Series(NamedTuple):
    """One series of an answer: its numbers as Prometheus writes them, oldest first."""

    values: Sequence[str]


class PrometheusClient(OwnsSession):
    """Asks a Prometheus server, or what speaks its API; an async context manager.

    Args:
        connection: URL up to before ``/api/v1``, token or token file, authorities, client certificate.
        basic: In place of a token.
        patience: Within which an answer must be there in full.
        warn: Takes what the server warns of beside series, such as that they are not all.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        *,
        basic: BasicAuth | None = None,
        patience: Duration = _PATIENCE,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._credentials = Credentials(connection, clock)
        self._basic = basic
        self._patience = patience
        self._warn = warn

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=make_connector(),
            headers={"User-Agent": user_agent()},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=to_seconds(self._patience)),
        )

    async def instant(self, query: str, at: Instant) -> list[Series]:
        """Return the series of an instant query, or of a scalar one. Raises: MetricsError."""
        return await self._ask("query", {"query": query, "time": _unix(at)})

    async def range(self, query: str, start: Instant, end: Instant, step: Duration) -> list[Series]:
        """Return the series of a range query, each with a value for each step that has one. Raises: MetricsError."""
        times = {"start": _unix(start), "end": _unix(end), "step": _unix(step)}
        return await self._ask("query_range", {"query": query, **times})

    async def each_series(self, question: SeriesQuery, take: Callable[[TimeSeries], None]) -> None:
        """Hand over the series of an answer one by one; never is more than one of them held as JSON.

        Raises: MetricsError; what ``take`` raises.
        """
        if question.start is None:
            what, form = "query", {"query": question.query, "time": _unix(question.end)}
        else:
            times = {"start": question.start, "end": question.end, "step": question.step}
            what = "query_range"
            form = {"query": question.query, **{name: _unix(time) for name, time in times.items()}}
        cutter = SeriesCutter()
        async with self._posted(what, form) as answer:
            async for piece in answer.content.iter_any():
                for one in cutter.take(piece):
                    take(one)
        cutter.end()
        for text in cutter.warnings():
            self._warn(text)

    async def _ask(self, what: str, form: Mapping[str, str]) -> list[Series]:
        async with self._posted(what, form) as posted:
            try:
                body = await read_bounded(posted.content, _LARGEST_ANSWER)
            except TooMuch as error:
                posted.close()
                raise MetricsError(
                    f"the answer of {posted.url} is larger than {bytes_to_text(_LARGEST_ANSWER)} and is not read; let "
                    "the query give fewer series, as sum(...) does"
                ) from error
        try:
            answer = msgspec.json.decode(body, type=_Answer)
            if answer.status == "error":
                raise MetricsError(f"{answer.error_type}: {answer.error}")
            return _series_of(answer.data)
        except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError, AttributeError) as error:
            raise MetricsError(f"the answer is not one of Prometheus' API: {error}") from error

    @asynccontextmanager
    async def _posted(self, what: str, form: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Put a question; yield the answer, whose body is still to be read. Raises: MetricsError."""
        assert self._session is not None, "used outside of its context"
        url = f"{self._connection.url.rstrip('/')}/api/v1/{what}"
        try:
            identity = await self._credentials.current()
            async with self._session.post(
                url,
                data=form,
                headers=[*identity.headers, *self._authorization()],
                ssl=True if identity.tls is None else identity.tls,
                server_hostname=self._connection.server_name or None,
                proxy=self._connection.proxy or None,
                allow_redirects=False,
            ) as answer:
                if 300 <= answer.status < 400:
                    # The query of an address may hold what a log-in hands over.
                    to = answer.headers.get("Location", "").partition("?")[0]
                    raise MetricsError(
                        f"{answer.status} {answer.reason} from {url}, which leads to {to or 'nowhere'}; give the "
                        "address of the API itself, or the token or password that is asked for there"
                    )
                # Refusals of a query are JSON too; what a proxy says in its place is not.
                if answer.status >= 400 and answer.content_type != "application/json":
                    raise MetricsError(f"{answer.status} {answer.reason} from {url}")
                yield answer
        except TimeoutError as error:
            raise MetricsError(f"no answer from {url} within {to_seconds(self._patience):g}s") from error
        except (aiohttp.ClientError, OSError, ApiError) as error:
            raise MetricsError(f"{url}: {failure_text(error, 'the connection broke off')}") from error

    def _authorization(self) -> list[tuple[str, str]]:
        """Read the password anew, as it may be replaced while the process runs."""
        if self._basic is None:
            return []
        password = self._basic.password
        if self._basic.password_file is not None:
            try:
                password = self._basic.password_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise MetricsError(f"{self._basic.password_file}: cannot be read: {error}") from error
        shown = base64.b64encode(f"{self._basic.user}:{password}".encode()).decode()
        return [("Authorization", f"Basic {shown}")]


class PrometheusMetrics:
    """External metrics whose selector names Prometheus come from it, all others from another source.

    Args:
        client: Opened.
        otherwise: Answers for the other metrics.
    """

    def __init__(self, client: PrometheusClient, clock: Clock, otherwise: ExternalMetricSource) -> None:
        self._client = client
        self._clock = clock
        self._otherwise = otherwise

    async def external_values(self, metric: str, *, namespace: str, selector: str = "") -> ExternalValues:
        """Return a value a series, and when the oldest of them was scraped. Raises MetricsError."""
        try:
            question = prometheus_question(metric, selector)
            if question is None:
                return await self._otherwise.external_values(metric, namespace=namespace, selector=selector)
        except ValueError as error:
            raise MetricsError(f"{_FAILED}{error}") from error
        try:
            return await self._values(question)
        except MetricsError as error:
            raise MetricsError(f"{_FAILED}{question.query}: {error}") from error

    async def _values(self, question: PromQuestion) -> ExternalValues:
        now = self._clock.now()
        # The times in an answer are those of the query; when a value was scraped is a query of its own.
        series, scraped = await both(
            self._series(question, now), self._client.instant(f"timestamp({question.query})", now)
        )
        if not series:
            raise MetricsError("no series; is it scraped, and not older than Prometheus' five minutes?")
        stamps = [_number(one.values[-1]) for one in scraped if one.values]
        measured = int(min(stamps) * 10**9) if stamps else 0
        return ExternalValues([_milli(one.values) for one in series], measured)

    async def _series(self, question: PromQuestion, now: Instant) -> list[Series]:
        if question.over is None:
            return await self._client.instant(question.query, now)
        step = max(Duration(question.over // _POINTS), _SHORTEST_STEP)
        return await self._client.range(question.query, Instant(now - question.over), now, step)


def _series_of(data: Any) -> list[Series]:
    """Read ``data`` of an answer of type vector, scalar or matrix."""
    kind, result = data["resultType"], data["result"]
    if kind == "vector":
        return [Series([_text(one["value"])]) for one in result if "value" in one]
    if kind == "scalar":
        return [Series([_text(result)])]
    if kind == "matrix":
        return [Series([_text(pair) for pair in one["values"]]) for one in result if one.get("values")]
    raise MetricsError(f"a result of type {kind} has no value to scale by")


def _text(pair: Any) -> str:
    _, value = pair
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text of a number")
    return value


def _number(text: str) -> Decimal:
    """Read a value. Raises: MetricsError for NaN, infinities and what is no number."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise MetricsError(f"{text} is no number") from None
    if not number.is_finite():
        raise MetricsError(f"the value is {text}")
    return number


def _milli(values: Sequence[str]) -> int:
    """Return the average in thousandths, rounded away from zero as quantities are.

    A step without a number is left out of an average of several; where it is all there is, there is no value.
    """
    numbers = [_number(text) for text in values if len(values) == 1 or text not in _NOT_NUMBERS]
    if not numbers:
        raise MetricsError("no value in that time is a number")
    mean = sum(numbers, Decimal(0)) / len(numbers)
    if abs(mean) > _LARGEST:
        raise MetricsError(f"{mean:.3e} is beyond what a quantity can hold")
    # Within 9.2e15 thousandths fit into 64 bits.
    return int((mean * 1000).to_integral_value(ROUND_UP))


def _unix(time: int) -> str:
    """Return nanoseconds as seconds, exactly."""
    whole, rest = divmod(time, 10**9)
    return f"{whole}.{rest:09d}"
