"""A server on loopback that speaks a cloud's protocol, as far as a handler does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from aiohttp import web
from yarl import URL


class Asked(NamedTuple):
    """A request as it arrived; header names in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Answer(NamedTuple):
    body: Any
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


@asynccontextmanager
async def served(handler) -> AsyncIterator[str]:
    """Serve until the context ends; yields the address. A handler that fails an assertion answers 500."""
    failures: list[AssertionError] = []

    async def answer(request: web.Request) -> web.Response:
        raw = await request.read()
        asked = Asked(
            request.method,
            URL(request.raw_path, encoded=True).path,
            dict(request.query),
            {name.lower(): value for name, value in request.headers.items()},
            json.loads(raw) if raw else None,
        )
        try:
            found = handler(asked)
        except AssertionError as error:
            failures.append(error)
            return web.Response(status=500, text=str(error))
        return web.json_response(found.body, status=found.status, headers=found.headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        assert not failures, f"the server refused what the API does not have: {failures}"
    finally:
        await runner.cleanup()
