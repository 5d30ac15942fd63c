"""A server whose lists and watches a test specifies, and readers of its answers."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

from aiohttp import web
from tests.cluster.answering import config_map

END = {"k8s.io/initial-events-end": "true"}


def event(kind, name="", version="1", **metadata):
    """Return one line of a watch."""
    body = config_map(name, version)
    body["metadata"] |= metadata
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def names(items):
    return [item.metadata.name for item in items]


def list_of(*items, version="7", more=""):
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    return web.json_response({"kind": "ConfigMapList", "metadata": metadata, "items": list(items)})


class Recorded:
    """Answers lists and watches as a test specifies; notes every query.

    ``lists`` holds the answers to lists in turn. ``streams`` holds, for each watch in turn, the pieces that are
    sent and, last, whether the watch then stays open in silence. ``refuses`` answers requests to stream a list.
    """

    def __init__(self, *, lists=(), streams=(), refuses=None):
        self.lists, self.streams, self.refuses = list(lists), list(streams), refuses
        self.queries = []

    async def __call__(self, request):
        self.queries.append(dict(request.query))
        if "watch" not in request.query:
            return self.lists.pop(0)
        if "sendInitialEvents" in request.query and self.refuses is not None:
            return self.refuses
        *pieces, silent = self.streams.pop(0) if self.streams else [True]
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if silent:
            await asyncio.Event().wait()
        return response


async def first_of(stream, count):
    """Return the first parts of a stream, and close it."""
    async with aclosing(stream) as parts:
        return [await anext(parts) for _ in range(count)]


async def drained(stream):
    """Return all events of a watch until it ends."""
    async with aclosing(stream) as batches:
        return [one async for batch in batches for one in batch]
