"""The dashboard's server: pages, one JSON API over a records folder, and server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from kubetide.ports.clock import Clock
from kubetide.ports.errors import KubetideError
from kubetide.runtime.recording.records import RecordError
from kubetide.simulate.answers.ahead import PlanAhead
from kubetide.simulate.answers.status import Status
from kubetide.simulate.answers.why import WhyError
from kubetide.units.time import seconds
from kubetide.web.access import HEADERS, Access, keep_token, token_given
from kubetide.web.front import script, static
from kubetide.web.history import Decisions, Explanation, History, Outcome, Span
from kubetide.web.openapi import Parameter, Route, openapi
from kubetide.web.past import Past

T = TypeVar("T")

API: Final = "/api/v1"
MOST_DECISIONS: Final = 500
"""In one answer."""

MOST_WAITING: Final = 32
"""Questions that wait for the one that is being answered; more are sent away."""

MOST_STREAMS: Final = 1000
"""Most browsers that listen for changes at the same time."""

_SLOW_S = 10.0
"""How long a listener may leave an event unread, and between two signs of life."""

_AT = Parameter("at", "a time (RFC 3339), a time of day, or a duration from the start; the end without it")
ROUTES: Final = (
    Route(f"{API}/span", "span", "What the records hold, and how many decisions were when", Span),
    Route(
        f"{API}/status",
        "status",
        "Loops, node groups, workloads, what waits, the last decisions",
        Status,
        (_AT,),
    ),
    Route(f"{API}/summary", "summary", "What a simulation came to; nothing before its end", Outcome),
    Route(
        f"{API}/ahead",
        "ahead",
        "What is to come: changes of time tables, forecast load, nodes asked for",
        PlanAhead,
        (_AT, Parameter("ahead", "how far to look, a duration; an hour without it")),
    ),
    Route(
        f"{API}/history",
        "history",
        "Figures of the past, to be plotted: pods, nodes by group, cost an hour, replicas and metrics of HPAs; of a "
        "simulation its services and what was spent; of a process on a cluster how long ticks take",
        Past,
        (
            Parameter(
                "kind", "of cluster, nodegroup, hpa, metric, forecast, run, service, loop or process only"
            ),
            Parameter("name", "of this object only; for a metric its HPA is enough"),
            Parameter("figure", "of this name only, such as ready, pending or cost"),
            Parameter("at", f"{_AT.about}; nothing after it"),
            Parameter("window", "how far back from there, a duration; all of it without it"),
            Parameter("points", "at most about so many of each line, 400 without it", is_number=True),
        ),
    ),
    Route(
        f"{API}/objects",
        "objects",
        "The names of all that can be explained, by kind",
        dict[str, list[str]],
        (_AT,),
    ),
    Route(
        f"{API}/decisions",
        "decisions",
        "The newest decisions that fit, newest first",
        Decisions,
        (
            Parameter("q", "words that must stand in the decision or its reasons"),
            Parameter("loop", "of this loop only"),
            Parameter(
                "subject", "about this object only; with a loop also about parts of it, such as containers"
            ),
            Parameter("until", "not after this time"),
            Parameter("limit", "at most so many", is_number=True),
            Parameter("skip", "without so many of the newest that fit", is_number=True),
        ),
    ),
    Route(
        f"{API}/explain/{{kind}}/{{name}}",
        "explain",
        "Why an object is as it is; a namespace stands before the name, with a slash",
        Explanation,
        (
            _AT,
            Parameter("view", "another answer about the same object"),
            Parameter("whole", "1: also as data, with all that was decided before", is_number=True),
        ),
    ),
    Route(
        f"{API}/events",
        "events",
        "An event `grown` whenever more was recorded; a comment every ten seconds",
        None,
    ),
)

_FILES = {"style.css": "text/css", "icon.svg": "image/svg+xml"}


class Dashboard:
    """The application over one records folder; every request needs a token that ``access`` accepts."""

    def __init__(self, history: History, access: Access, clock: Clock) -> None:
        self._known = history
        self._clock = clock
        self._grown = asyncio.Event()
        self._access = access
        self._waiting = 0
        self._streams = 0
        # One thread: the answers share what they have read.
        self._worker = ThreadPoolExecutor(1, "history")
        self._documented = openapi(ROUTES)

    def app(self) -> web.Application:
        """Return the application, to be served once."""
        app = web.Application(middlewares=[self._checked])
        for route in ROUTES:
            path = route.path.replace("{name}", "{name:.+}")
            app.router.add_get(path, getattr(self, f"_{route.name}"))
        app.router.add_get(f"{API}/openapi.json", self._openapi)
        app.router.add_get("/{page:.*}", self._page)
        app.on_cleanup.append(self._close)
        app.cleanup_ctx.append(self._watch)
        return app

    async def _close(self, _app: web.Application) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    @web.middleware
    async def _checked(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Ask for the token, and turn errors into answers."""
        given = token_given(request)
        refusal = await self._access.refusal(given)
        if refusal is not None:
            response: web.StreamResponse = web.Response(
                status=refusal.status, text=f"kubetide: {refusal.text}"
            )
        elif "token" in request.query:
            # The token leaves the address bar, so that an address can be pasted into a ticket.
            response = web.Response(status=303, headers={"Location": _here(request)})
            keep_token(request, response, given)
        else:
            response = await self._answered(request, handler)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _answered(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        except (WhyError, RecordError) as error:
            return _error(404, str(error))
        except (ValueError, KubetideError) as error:
            return _error(400, str(error))
        except OSError as error:
            return _error(404, f"the records cannot be read: {error}")

    async def _ask(self, question: Callable[[], T]) -> T:
        """Answer in the thread of the history; too many at once are sent away."""
        if self._waiting >= MOST_WAITING:
            raise web.HTTPServiceUnavailable(headers={"Retry-After": "2"}, text="too many questions at once")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, question)
        finally:
            self._waiting -= 1

    async def _span(self, _request: web.Request) -> web.Response:
        return _json(await self._ask(self._known.span))

    async def _status(self, request: web.Request) -> web.Response:
        at = request.query.get("at", "")
        return _json(await self._ask(lambda: self._known.status(at)))

    async def _summary(self, _request: web.Request) -> web.Response:
        return _json(await self._ask(self._known.summary))

    async def _objects(self, request: web.Request) -> web.Response:
        at = request.query.get("at", "")
        return _json(await self._ask(lambda: self._known.objects(at)))

    async def _ahead(self, request: web.Request) -> web.Response:
        at, ahead = request.query.get("at", ""), request.query.get("ahead", "1h")
        return _json(await self._ask(lambda: self._known.ahead(at, ahead)))

    async def _decisions(self, request: web.Request) -> web.Response:
        query = request.query
        limit = min(_number(query, "limit", 100), MOST_DECISIONS)
        skip = _number(query, "skip", 0)
        return _json(
            await self._ask(
                lambda: self._known.decisions(
                    words=query.get("q", ""),
                    loop=query.get("loop", ""),
                    subject=query.get("subject", ""),
                    until=query.get("until", ""),
                    limit=limit,
                    skip=skip,
                )
            )
        )

    async def _history(self, request: web.Request) -> web.Response:
        query = request.query
        points = _number(query, "points", 400)
        return _json(
            await self._ask(
                lambda: self._known.past(
                    kind=query.get("kind", ""),
                    name=query.get("name", ""),
                    figure=query.get("figure", ""),
                    at=query.get("at", ""),
                    window=query.get("window", ""),
                    points=points,
                )
            )
        )

    async def _explain(self, request: web.Request) -> web.Response:
        kind, name = request.match_info["kind"], request.match_info["name"]
        at, view = request.query.get("at", ""), request.query.get("view", "")
        whole = request.query.get("whole", "") == "1"
        return _json(await self._ask(lambda: self._known.explain(kind, name, at, view, whole=whole)))

    async def _openapi(self, _request: web.Request) -> web.Response:
        return _json(self._documented)

    async def _page(self, request: web.Request) -> web.Response:
        """Return a file of the front end; any other path is a page of it."""
        asked = request.match_info["page"]
        if request.path.startswith("/api/"):
            return _error(404, f"{request.path}: no such path; {API}/openapi.json lists them")
        if asked == "app.js":
            text, kind = script(), "text/javascript"
        elif asked in _FILES:
            text, kind = static(asked), _FILES[asked]
        else:
            text, kind = static("index.html"), "text/html"
        return web.Response(text=text, content_type=kind, headers={"Cache-Control": "no-cache"})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Tell of growth of the records, until the listener goes or no longer reads."""
        if self._streams >= MOST_STREAMS:
            return _error(503, "too many listeners")
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", **HEADERS}
        )
        self._streams += 1
        try:
            await response.prepare(request)
            await self._tell(response, token_given(request))
        except (ConnectionError, TimeoutError):
            return response
        finally:
            self._streams -= 1
        return response

    async def _tell(self, response: web.StreamResponse, token: str) -> None:
        """Send events until the listener may no longer look; a browser then asks anew, and reads why not."""
        event = b": here\n\n"
        while await self._access.refusal(token) is None:
            await asyncio.wait_for(response.write(event), _SLOW_S)
            grown = self._grown
            try:
                await asyncio.wait_for(grown.wait(), _SLOW_S)
            except TimeoutError:
                event = b": still here\n\n"
            else:
                event = b"event: grown\ndata: {}\n\n"

    async def _watch(self, _app: web.Application) -> AsyncIterator[None]:
        """Look for growth once a second, for all listeners together."""

        async def look() -> None:
            before = self._known.version()
            while True:
                await self._clock.sleep(seconds(1))
                version = await asyncio.to_thread(self._known.version)
                if version != before:
                    before = version
                    self._grown.set()
                    self._grown = asyncio.Event()

        task = asyncio.get_running_loop().create_task(look())
        yield
        task.cancel()


def _here(request: web.Request) -> str:
    """Return the address of a request without its token; a browser never takes it for another host's."""
    address = str(request.rel_url.without_query_params("token"))
    # After two slashes, or backslashes, which count as slashes, a browser reads a host.
    return "/" + address.lstrip("/\\")


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not text.isdecimal():
        raise ValueError(f"{name}={text}: not a whole number of 0 or more")
    return int(text)


def _json(value: Any) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(value),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def _error(status: int, text: str) -> web.Response:
    return web.Response(
        status=status, body=msgspec.json.encode({"error": text}), content_type="application/json"
    )
