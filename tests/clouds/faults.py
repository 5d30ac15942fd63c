"""Answers of a cloud that go wrong: one fault at a time between a provider and its vendor's fake."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from kubetide.clouds.common.rest import NoAnswer, Response
from kubetide.ports.errors import (
    CloudError,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from kubetide.units.time import seconds

_PAGE = b"<html><body>Service Unavailable</body></html>"
BODIES = {
    "html": _PAGE,
    "nothing": b"",
    "cut off": b'{"value": [{"na',
    "deep": b'{"a":' * 50_000,
    "bytes": b"\xff",
}
STATUSES = (301, 401, 403, 404, 429, 500, 503)
LOST = ("lost before", "lost after", "slow")
"""Requests that get no answer: not carried out, carried out, and carried out after a minute."""
WORLD = ("grown", "shrunk", "replaced", "in two", "deleted")
"""What happens to a group between two requests: others change its size, its machine or its place, or delete it."""
_PAGES = {"pageToken", "$skiptoken", "PageNumber", "NextToken", "Offset"}
CHANGES = ("drop", "null", "text", "list", "object", "unknown", "more", "double", "again")
"""What is done to one value of an answer."""


REFUSALS = (Conflict, Expired, Forbidden, InternalError, Invalid, TooManyRequests, Unauthorized, Unavailable)
"""What an API server may say to any request."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong from one request on.

    Attributes:
        kind: One of the names above, or ``status``.
        first: How many requests are answered well before it.
        times: How many go wrong.
        at: Which of an answer's values, as a part of them all.
        status: The status, for ``status``.
        retry_after: The header, empty for none.
        refusal: The error of an API server, for ``refused``.
    """

    kind: str
    first: int = 0
    times: int = 1
    at: float = 0.0
    status: int = 503
    retry_after: str = ""
    refusal: type = Unavailable


async def answer_or_error(call):
    """Return the answer of a call and None, or None and its error; any error but a CloudError is a defect."""
    try:
        return await call, None
    except CloudError as error:
        told = error
    assert str(told), f"{type(told).__name__} without a text, which the port promises"
    return None, told


class Faulty:
    """Sends to a fake, and spoils what comes back while a fault is set.

    Attributes:
        sent: Requests since the last ``begin``.
        happen: What to do when a fault of the world is due.
        spoiled: The places of answers that were changed, as texts.
    """

    def __init__(self, send, clock, *, most):
        self._send, self._clock, self._most = send, clock, most
        self._fault, self._seen, self._first = None, 0, {}
        self.sent, self.spoiled, self._field = 0, [], None
        self.happen = lambda: None

    def begin(self):
        self.sent = 0

    def set(self, fault):
        self._fault, self._seen, self._first = fault, 0, {}
        self.spoiled.clear()

    def spoil(self, key, value):
        """From now on give that value to each field of that name, or leave it out for None."""
        self._field = key, value

    async def __call__(self, request):
        self.sent += 1
        if self.sent > self._most:
            raise RuntimeError(f"{self.sent} requests in one call: {request.method} {request.url}")
        fault = self._fault
        if fault is not None:
            self._seen += 1
            if not fault.first < self._seen <= fault.first + fault.times:
                fault = None
        if fault is None and self._field is not None:
            good = await self._answer(request)
            return good._replace(body=json.dumps(_given(json.loads(good.body), *self._field)).encode())
        if fault is None:
            return await self._answer(request)
        return await self._spoiled(fault, request)

    async def _answer(self, request):
        try:
            return await self._send(request)
        except (AssertionError, KeyError, ValueError) as error:
            if not self.spoiled:
                raise
            return Response(400, {}, json.dumps({"error": {"code": 400, "message": repr(error)}}).encode())

    async def _spoiled(self, fault, request):
        self.spoiled.append(fault.kind)
        if fault.kind in WORLD:
            if self._seen == fault.first + 1:
                self.happen()
            return await self._answer(request)
        if fault.kind == "lost before":
            raise NoAnswer(request.url, "connection reset")
        if fault.kind == "status":
            headers = {"retry-after": fault.retry_after} if fault.retry_after else {}
            return Response(fault.status, headers, _PAGE)
        good = await self._answer(request)
        if fault.kind == "slow":
            await self._clock.sleep(seconds(60))
        if fault.kind in LOST:
            raise NoAnswer(request.url, "timeout")
        if fault.kind in BODIES:
            return good._replace(body=BODIES[fault.kind])
        if fault.kind == "again":
            if request.url.endswith("/wait"):
                return good
            return self._first.setdefault(_list_of(request), good)
        return good._replace(body=json.dumps(self._changed(json.loads(good.body), fault)).encode())

    def _changed(self, body, fault):
        body = copy.deepcopy(body)
        places = list(_places(body))
        if fault.kind == "double":
            places = [one for one in places if isinstance(one[0][one[1]], list)]
        if fault.kind == "unknown":
            places = [one for one in places if _is_word(one[1], one[0][one[1]])]
        if not places:
            return body
        holder, key, path = places[min(int(fault.at * len(places)), len(places) - 1)]
        self.spoiled.append(path)
        value = holder[key]
        match fault.kind:
            case "drop":
                del holder[key]
            case "double":
                holder[key] = [*value, *value]
            case "more":
                (value if isinstance(value, dict) else body)["newField"] = {"new": [1]}
            case kind:
                holder[key] = {
                    "null": None,
                    "text": str(value),
                    "list": [value],
                    "object": {"value": value},
                    "unknown": "FUTURE_VALUE",
                }[kind]
        return body


class FaultyCluster:
    """A cluster whose requests about nodes go wrong while a fault is set; ``unwatched`` ends watches, and begins none.

    Attributes:
        happen: What to do when a fault of the world is due.
    """

    def __init__(self, cluster, clock):
        self._cluster, self._clock = cluster, clock
        self._fault, self._seen = None, 0
        self.happen = None

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def set(self, fault):
        self._fault, self._seen = fault, 0

    async def list(self, kind, **where):
        return await self._through(lambda: self._cluster.list(kind, **where))

    async def create(self, kind, body, **where):
        return await self._through(lambda: self._cluster.create(kind, body, **where))

    async def delete(self, kind, name, **how):
        return await self._through(lambda: self._cluster.delete(kind, name, **how))

    async def watch(self, kind, **where):
        await self._through(None)
        async for batch in self._cluster.watch(kind, **where):
            self._check_watched()
            yield batch

    def _check_watched(self):
        if self._fault is not None and self._fault.kind == "unwatched":
            raise Unavailable("connection reset")

    async def _through(self, request):
        """Return what a request is answered; ``request`` is None where there is nothing to be carried out."""
        fault = self._fault
        if fault is not None:
            self._seen += 1
            if not fault.first < self._seen <= fault.first + fault.times:
                fault = None
        if fault is not None and fault.kind in WORLD and self._seen == fault.first + 1:
            await self.happen()
        if request is None:
            self._check_watched()
        if fault is None or fault.kind in {*WORLD, "unwatched"}:
            return request and await request()
        if fault.kind == "refused":
            raise fault.refusal("no")
        if fault.kind == "lost before":
            raise Unavailable("connection reset")
        if request:
            await request()
        if fault.kind == "slow":
            await self._clock.sleep(seconds(60))
        raise Unavailable("timeout")


def _places(value, path=""):
    """Yield each value within another, with what holds it, and the path to it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(pairs):
        here = f"{path}.{key}"
        yield value, key, here
        yield from _places(one, here)


def _is_word(key, value):
    return isinstance(value, str) and str(key).lower().endswith(("state", "status", "action", "mode"))


def _list_of(request):
    """Return what a request has in common with those for the other pages of its list."""
    _, host, path, query, _ = urlsplit(request.url)
    asked = {**dict(parse_qsl(query)), **request.query}
    body = json.loads(request.body) if request.body else {}
    kept = {key: one for key, one in {**asked, **body}.items() if key not in _PAGES}
    action = [value for name, value in request.headers.items() if name.lower().endswith("-action")]
    return json.dumps([request.method, host, path, action, kept], sort_keys=True)


def _given(body, key, value):
    if isinstance(body, list):
        return [_given(one, key, value) for one in body]
    if not isinstance(body, dict):
        return body
    kept = {name: _given(one, key, value) for name, one in body.items() if name != key or value is not None}
    return {name: value if name == key else one for name, one in kept.items()}
