"""A cloud's handler as the end of a connection that there is not, for time that is not real."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

from tests.clouds.fakes.server import Asked

from kubetide.clouds.common.rest import Response


def asked_of(request):
    """Return a request as a server would see it."""
    _, host, path, query, _ = urlsplit(request.url)
    headers = {"host": host} | {name.lower(): value for name, value in request.headers.items()}
    body = json.loads(request.body) if request.body else None
    given = {**dict(parse_qsl(query)), **request.query}
    return Asked(request.method, path or "/", given, headers, body)


class Direct:
    """Sends requests to a handler, and what it answers back."""

    def __init__(self, handler):
        self.handler = handler

    async def __call__(self, request):
        answer = self.handler(asked_of(request))
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status, headers, json.dumps(answer.body).encode())
