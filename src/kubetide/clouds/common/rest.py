"""One HTTP request to a cloud: sent, repeated where that is safe, its refusal as a CloudError.

A provider says how its cloud words a refusal (``Refusal``); everything below it, real connections or
a scripted world, is one function ``Send``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar

import aiohttp
import msgspec

from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudCause, CloudError, CloudWithheld
from kubetide.serving import OwnsSession, make_connector
from kubetide.serving.failures import failure_text
from kubetide.serving.proxy import ProxyError, proxy_for
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, milliseconds, seconds

T = TypeVar("T")
_SECOND = seconds(1)
_TIMEOUT = seconds(30)
UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What decoding raises of an answer that is no JSON, of another shape, or nested too deeply."""


class Request(NamedTuple):
    """An HTTP request. ``query`` is not yet escaped."""

    method: str
    url: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""


class Response(NamedTuple):
    """An HTTP answer; names of headers in lower case."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


Send = Callable[[Request], Awaitable[Response]]
Refusal = Callable[[Response], CloudError | None]
"""Returns what a cloud's answer refuses, None when it is a good answer."""


Token = Callable[[], Awaitable[str]]
"""Returns an access token that is valid now."""


class NoAnswer(CloudError):
    """The cloud could not be reached, or broke off: nobody knows whether a change was made."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__(f"no answer from {url}: {detail}", error_code="noAnswer", may_be_done=True)


class Patience(NamedTuple):
    """How often a read is repeated: ``repeats`` times, within ``budget``; pauses double from ``first``."""

    repeats: int = 4
    budget: Duration = seconds(20)
    first: Duration = milliseconds(250)


def pause_before_repeat(
    error: CloudError, *, status: int, repeats: int, spent: Duration, patience: Patience, draw: float
) -> Duration | None:
    """Return the pause before a failed read is sent again, None to give up.

    Args:
        error: What was refused.
        status: The HTTP status; 0 without an answer.
        repeats: How often it was repeated already.
        spent: Time since it was first sent.
        patience: The bounds.
        draw: Of the jitter, from [0, 1).
    """
    transient = error.cause == "Throttled" or status == 0 or status in {429, 500, 502, 503, 504}
    if not transient or repeats >= patience.repeats:
        return None
    pause = Duration(patience.first << repeats) if error.retry_after is None else error.retry_after
    pause = Duration(round(pause * (1 + draw)))
    return pause if spent + pause <= patience.budget else None


class Rest:
    """Sends requests of one provider.

    Args:
        send: The transport.
        clock: For pauses and their budget.
        refusal: How this cloud refuses.
        seed: Of the jitter.
        patience: Bounds on repeats.
        renew: Called when a token or key is refused; drops it, and returns whether there will be another one.
        withheld: Returns why nothing may be changed now; empty if it may.
    """

    def __init__(
        self,
        send: Send,
        clock: Clock,
        refusal: Refusal,
        *,
        seed: int = 0,
        patience: Patience | None = None,
        renew: Callable[[], bool] = lambda: False,
        withheld: Callable[[], str] = lambda: "",
    ) -> None:
        self._send = send
        self._clock = clock
        self._refusal = refusal
        self._seed, self._renew, self._withheld = seed, renew, withheld
        self._patience = patience or Patience()
        self._sent = 0
        self._no_repeats_until = Duration(0)

    async def read(self, sign: Callable[[], Awaitable[Request]]) -> Response:
        """Send a request that changes nothing; repeat it while that may help. Raises CloudError.

        ``sign`` makes the request anew for each attempt, as signatures hold for a short time. After one read was
        throttled to the end of its patience, others that are throttled are not repeated, until one succeeds or
        that long has passed: a list for each group would make a refresh take minutes, and the throttling worse.
        """
        start, repeats = self._clock.monotonic(), 0
        while True:
            response, error = await self._attempt(await sign())
            if error is None:
                self._no_repeats_until = Duration(0)
                return response
            if _is_unauthorized(response, error) and self._renew():
                continue
            is_throttled = error.cause == "Throttled"
            if is_throttled and self._clock.monotonic() < self._no_repeats_until:
                raise error
            pause = pause_before_repeat(
                error,
                status=response.status,
                repeats=repeats,
                spent=Duration(self._clock.monotonic() - start),
                patience=self._patience,
                draw=unit_interval(self._seed, self._sent),
            )
            if pause is None:
                if is_throttled and repeats:
                    self._no_repeats_until = Duration(self._clock.monotonic() + self._patience.budget)
                raise error
            repeats += 1
            await self._clock.sleep(pause)

    async def change(self, request: Request) -> Response:
        """Send a request once: what may have been done is never done twice. Raises CloudError, CloudWithheld."""
        if why := self._withheld():
            raise CloudWithheld(why)
        response, error = await self._attempt(request)
        if error is not None:
            error.may_be_done |= response.status >= 500
            if _is_unauthorized(response, error):
                self._renew()
            raise error
        return response

    async def _attempt(self, request: Request) -> tuple[Response, CloudError | None]:
        self._sent += 1
        try:
            response = await self._send(request)
        except NoAnswer as error:
            return Response(0), error
        return response, self._refusal(response)


def _is_unauthorized(response: Response, error: CloudError) -> bool:
    """Return whether a cloud has refused who asks; the codes are those of Alibaba Cloud."""
    return response.status == 401 or error.error_code.startswith(
        ("InvalidSecurityToken", "InvalidAccessKeyId")
    )


async def json_request(
    token: Token | None,
    method: str,
    url: str,
    query: Mapping[str, str],
    body: Mapping[str, Any] | None,
    headers: Mapping[str, str] = {},
) -> Request:
    """Return a request with a JSON body where there is one, and with an access token."""
    sent = dict(headers)
    if token is not None:
        sent["Authorization"] = f"Bearer {await token()}"
    if body is not None:
        sent["Content-Type"] = "application/json"
    return Request(method, url, query, sent, b"" if body is None else msgspec.json.encode(body))


def decoded_without_nulls(body: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Return decoded JSON; a null is as if it were not there. Raises one of UNREADABLE."""
    try:
        return msgspec.json.decode(body, type=kind, strict=False)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(msgspec.json.decode(body)), kind, strict=False)


def converted_without_nulls(value: Any, kind: type[T]) -> T:
    """Return JSON that is decoded as its type; a null is as if it were not there. Raises msgspec.ValidationError."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(value), kind, strict=False)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value if one is not None]
    return value


def decoded(response: Response, kind: type[T]) -> T:
    """Return the decoded JSON body of an answer; a null is as if it were not there. Raises CloudError."""
    try:
        return decoded_without_nulls(response.body, kind)
    except UNREADABLE as error:
        raise CloudError(f"the API's answer cannot be read: {error}") from error


def cause_of_status(status: int) -> CloudCause:
    """Return what a refusal means that says no more than its HTTP status."""
    return "Throttled" if status == 429 else "Permission" if status in {401, 403} else "Other"


def retry_after(headers: Mapping[str, str]) -> Duration | None:
    """Return the pause that ``Retry-After`` asks for, in seconds or as a time; None without it.

    A time counts from the answer's own ``Date``, so that a clock that is off makes no difference.
    """
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return Duration(int(text) * _SECOND)
    try:
        until, sent = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return Duration(max(int((until - sent).total_seconds()), 0) * _SECOND)
    except (TypeError, ValueError):  # no time, or one with a zone and one without
        return None


class HttpSender(OwnsSession):
    """Sends over real connections, by the environment's proxy where it is https; an async context manager.

    Only metadata servers speak plain http. They answer the machine itself, so that no proxy is asked.

    Args:
        environment: Its HTTPS_PROXY and NO_PROXY count, as in Go's programs.
        timeout: For one answer.
    """

    def __init__(self, environment: Mapping[str, str] = {}, *, timeout: Duration = _TIMEOUT) -> None:
        self._environment = environment
        self._timeout = aiohttp.ClientTimeout(total=timeout / _SECOND)

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=make_connector(limit=16), timeout=self._timeout)

    async def __call__(self, request: Request) -> Response:
        assert self._session is not None, "used outside of its context"
        try:
            async with self._session.request(
                request.method,
                request.url,
                params=dict(request.query) or None,
                headers=dict(request.headers),
                data=request.body or None,
                proxy=self._proxy(request.url),
            ) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return Response(answer.status, headers, await answer.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoAnswer(request.url, failure_text(error, type(error).__name__)) from error

    def _proxy(self, url: str) -> str | None:
        if not url.startswith("https://"):
            return None
        try:
            return proxy_for(url, self._environment) or None
        except ProxyError as error:
            raise CloudError(str(error)) from error
