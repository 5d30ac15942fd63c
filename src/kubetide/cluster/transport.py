"""Requests to an API server: identity, pace, deadline and repeats; bodies are bytes here."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO

import aiohttp

import kubetide
from kubetide.cluster.access.connection import Connection
from kubetide.cluster.access.credentials import Credentials, Identity
from kubetide.cluster.bounds import ERROR_BYTES, TooMuch, read_bounded
from kubetide.cluster.limits import Limits, TokenBucket
from kubetide.cluster.observing import NO_ANSWER, RequestObserver
from kubetide.cluster.refusals import error_of_body
from kubetide.cluster.repeats import Failure, Stage, pause_before_repeat
from kubetide.cluster.skew import Skew
from kubetide.cluster.stream import Stream, give_up
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, InternalError, Unavailable, Withheld
from kubetide.serving import bound_tls_buffers, make_connector
from kubetide.serving.failures import failure_text
from kubetide.units.quantity import bytes_to_text
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, format_duration, to_seconds

PROGRAM = "kubetide"


def user_agent(program: str = PROGRAM) -> str:
    """Return how a program of ours names itself; the API server notes its writes under the first word."""
    return f"{program}/{kubetide.__version__} ({platform.system().lower()}/{platform.machine()})"


JSON = "application/json"

_LONGEST_PAUSE_DIGITS = 9

# Larger bodies would hold up the event loop when they are sent at once.
_MOST_AT_ONCE = 1 << 20

_READ_AT_ONCE = 1 << 16
"""What a connection reads into: as much as a long list is gathered to (``reading``)."""


@dataclass(frozen=True)
class Asked:
    """A request as it is sent, again and again if need be.

    Attributes:
        data: The body, of type ``media_type``.
        hasty: What fails is not sent again, unless the server names a pause.
    """

    method: str
    path: str
    query: Mapping[str, str] | None = None
    data: bytes | None = None
    media_type: str = JSON
    accept: str = JSON
    hasty: bool = False

    @property
    def writes(self) -> bool:
        return self.method != "GET"


class _Failed(Exception):
    """Carries a failure out of an attempt."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


class Transport:
    """Sends requests over one pool of connections.

    Args:
        connection: Where, and who asks.
        clock: Time; it must be the running loop's.
        limits: Bounds on what is asked.
        seed: Of the jitter of pauses.
        observer: Called for every request.
        refusal: Asked before each write is sent: why it may not be, empty when it may.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        *,
        limits: Limits,
        seed: int,
        observer: RequestObserver,
        refusal: Callable[[], str] | None,
        program: str = PROGRAM,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._limits = limits
        self._seed = seed
        self._observer = observer
        self._refusal = refusal
        self._credentials = Credentials(connection, clock)
        self._bucket = TokenBucket(limits.qps, limits.burst)
        self._writes = asyncio.Semaphore(limits.writes)
        self._sent = 0
        self.skew = Skew(clock)
        bound_tls_buffers(_READ_AT_ONCE)
        # Every watch holds a connection, so there is no limit to them.
        self._session = aiohttp.ClientSession(
            connector=make_connector(limit=0),
            # An API server has no sessions; what a load balancer before it sets is not sent back, as in Go.
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "gzip", "User-Agent": user_agent(program)},
            # Requests have a deadline of their own.
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def send(self, asked: Asked) -> bytes:
        """Return the body of the answer. Raises the ApiError of a refusal, Unavailable for no answer in time."""
        await self._keep_pace(asked.method)
        if not asked.writes:
            return await self._send_in_time(asked)
        async with self._writes:
            return await self._send_in_time(asked)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], accept: str = JSON
    ) -> AsyncGenerator[Stream, None]:
        """Open a watch. Raises the ApiError of a refusal, Unavailable when it cannot be opened in time."""
        asked = Asked("GET", path, query, accept=accept)
        identity = await self._credentials.current()
        try:
            answer = await self._open(asked, identity)
        except _Failed as failed:
            if failed.failure.stage == "refused":
                self._credentials.doubt()
            if failed.failure.code != 401 or not await self._credentials.refused(identity):
                raise failed.failure.error from failed
            try:
                answer = await self._open(asked, await self._credentials.current())
            except _Failed as again:
                raise again.failure.error from again
        try:
            yield Stream(answer)
        finally:
            give_up(answer)

    async def _open(self, asked: Asked, identity: Identity) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(to_seconds(self._limits.deadline)):
                return await self._attempt(asked, identity)
        except TimeoutError:
            raise self._too_late(asked) from None

    async def _keep_pace(self, method: str) -> None:
        wait = self._bucket.wait_of(self._clock.monotonic())
        if wait:
            await self._clock.sleep(wait)
            self._observer.waited(method, wait)

    async def _send_in_time(self, asked: Asked) -> bytes:
        until = Duration(self._clock.monotonic() + self._limits.deadline)
        try:
            async with asyncio.timeout(to_seconds(self._limits.deadline)):
                return await self._send(asked, until)
        except TimeoutError:
            raise self._too_late(asked) from None

    async def _send(self, asked: Asked, until: Duration) -> bytes:
        """Send a request until it is answered, given up, or its repeat would come too late."""
        self._sent += 1
        number, repeats, renewed = self._sent, 0, False
        while True:
            identity = await self._credentials.current()
            try:
                return await self._read(await self._attempt(asked, identity), asked)
            except _Failed as failed:
                failure = failed.failure
                code = str(failure.code) if failure.code else NO_ANSWER
                if failure.stage == "refused":
                    self._credentials.doubt()
                if failure.code == 401 and not renewed and await self._credentials.refused(identity):
                    renewed = True
                    self._observer.repeated(asked.method, code)
                    continue
                draw = unit_interval(self._seed, "repeat", number, repeats)
                pause = pause_before_repeat(asked.method, failure, repeats, draw)
                if asked.hasty and failure.error.retry_after_s is None:
                    pause = None
                if pause is None or self._clock.monotonic() + pause >= until:
                    raise failure.error from failed
            repeats += 1
            self._observer.repeated(asked.method, code)
            try:
                await self._clock.sleep(pause)
            except asyncio.CancelledError as given_up:
                raise given_up from failure.error  # who gives up in a long pause sees why there was one

    async def _attempt(self, asked: Asked, identity: Identity) -> aiohttp.ClientResponse:
        """Return an answer of success, its body not read yet. Raises _Failed, Withheld."""
        if asked.writes and self._refusal is not None and (why := self._refusal()):
            # Asked here, as a request may have waited for its turn.
            raise Withheld(why)
        headers = [*identity.headers, ("Accept", asked.accept)]
        if asked.data is not None:
            headers.append(("Content-Type", asked.media_type))
        begun, code = self._clock.monotonic(), NO_ANSWER
        connection = self._connection
        try:
            answer = await self._session.request(
                asked.method,
                connection.url + asked.path,
                params=asked.query,
                data=_in_pieces(asked.data),
                headers=headers,
                ssl=True if identity.tls is None else identity.tls,
                server_hostname=connection.server_name or None,
                proxy=connection.proxy or None,
                allow_redirects=False,
                middlewares=[_once] if asked.writes else None,
            )
            code = str(answer.status)
            self.skew.note(answer.headers.get("Date", ""), Duration(self._clock.monotonic() - begun))
            if answer.status >= 300:
                async with answer:
                    error = error_of_body(answer.status, await _beginning(answer))
                raise _Failed(Failure(_with_pause(error, answer), "answered", answer.status))
        except (aiohttp.ClientError, OSError) as error:
            raise _Failed(Failure(self._unavailable(asked, error), _stage_of(error))) from error
        finally:
            self._observer.answered(asked.method, code, Duration(self._clock.monotonic() - begun))
        return answer

    async def _read(self, answer: aiohttp.ClientResponse, asked: Asked) -> bytes:
        async with answer:
            try:
                return await read_bounded(answer.content, self._limits.answer_bytes)
            except TooMuch as error:
                give_up(answer)
                raise InternalError(
                    f"{asked.method} {self._connection.url}{asked.path}: the answer is larger than "
                    f"{bytes_to_text(self._limits.answer_bytes)} (max-answer-size) and is not read; where that is "
                    "its real size, allow more"
                ) from error
            except (aiohttp.ClientError, OSError) as error:
                raise _Failed(Failure(self._unavailable(asked, error), "broken")) from error

    def _unavailable(self, asked: Asked, error: Exception) -> Unavailable:
        said = failure_text(error, "the connection broke off")
        return Unavailable(f"{asked.method} {self._connection.url}{asked.path}: {said}")

    def _too_late(self, asked: Asked) -> Unavailable:
        allowed = format_duration(self._limits.deadline)
        return Unavailable(f"{asked.method} {self._connection.url}{asked.path}: no answer within {allowed}")


async def _beginning(answer: aiohttp.ClientResponse) -> bytes:
    """Read a refusal; of one that does not end, as much as may be of use."""
    try:
        return await read_bounded(answer.content, ERROR_BYTES)
    except TooMuch as error:
        give_up(answer)
        return error.begun


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending a PUT or DELETE again whose connection broke off: it may have been done."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise  # it never left
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientPayloadError(str(error)) from error


def _stage_of(error: Exception) -> Stage:
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientHttpProxyError):
        return "refused"
    return "unsent" if isinstance(error, aiohttp.ClientConnectorError) else "broken"


def _with_pause(error: ApiError, answer: aiohttp.ClientResponse) -> ApiError:
    """Note the pause that the header asks for, where the body names none."""
    said = answer.headers.get("Retry-After", "")
    is_seconds = said.isascii() and said.isdecimal() and len(said) <= _LONGEST_PAUSE_DIGITS
    if error.retry_after_s is None and is_seconds:
        error.retry_after_s = int(said)
    return error


def _in_pieces(data: bytes | None) -> bytes | BytesIO | None:
    """Return a body in the form that aiohttp wants: one over a megabyte as a file, so that it is sent piece by piece."""
    return BytesIO(data) if data is not None and len(data) > _MOST_AT_ONCE else data
