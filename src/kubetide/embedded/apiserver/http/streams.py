"""Answers that are sent piece by piece: long lists, and watches."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Sequence

from aiohttp import web

from kubetide.embedded.apiserver.http.encoding import EventEncoder, View, bookmark_line, error_line
from kubetide.embedded.apiserver.store.store import Store
from kubetide.embedded.apiserver.store.watcher import Entry, Watcher
from kubetide.ports.clock import Clock
from kubetide.units.time import ZERO, minutes, to_seconds

_BOOKMARK_EVERY = minutes(1)

_COMPRESSED_FROM = 128 * 1024
"""Bytes from which an answer is compressed for a client that asks: as kube-apiserver does."""

_EVENTS_A_WRITE = 64
"""Few enough that a write stays near 64 kB, which is what a socket's buffer takes before it makes wait."""

_GZIP_LEVEL = 1
_GZIP_WINDOW = 31  # zlib's number for a gzip header around the widest window


def wants_gzip(request: web.Request) -> bool:
    return "gzip" in request.headers.get("Accept-Encoding", "")


async def send_parts(
    request: web.Request, parts: Iterable[bytes], clock: Clock, *, media_type: str
) -> web.StreamResponse:
    """Send a body of many parts; other tasks get a turn between two of them."""
    held, size, rest = [], 0, iter(parts)
    for part in rest:
        held.append(part)
        size += len(part)
        if size > _COMPRESSED_FROM:
            break
    else:
        return web.Response(body=b"".join(held), content_type=media_type)
    response = web.StreamResponse(headers={"Content-Type": media_type})
    packer = None
    if wants_gzip(request):
        response.headers["Content-Encoding"] = "gzip"
        packer = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_WINDOW)
    response.headers["Vary"] = "Accept-Encoding"
    try:
        await response.prepare(request)
        for group in (held, rest):
            for part in group:
                data = packer.compress(part) if packer else part
                if data:
                    await response.write(data)
                await clock.sleep(ZERO)
        if packer:
            await response.write(packer.flush())
        await response.write_eof()
    except ConnectionError:
        pass  # nobody reads on
    return response


async def send_watch(
    request: web.Request,
    watcher: Watcher,
    view: View,
    encoder: EventEncoder,
    clock: Clock,
    *,
    store: Store,
    bookmarks: bool,
    initial_end: int | None,
    timeout_s: int | None,
) -> web.StreamResponse:
    """Send a watch until it times out, falls behind, or the client goes.

    Args:
        bookmarks: Whether the client wants bookmarks of a quiet watch.
        initial_end: The version to name after the objects that the watch begins with; None for no such mark.
        timeout_s: After how many seconds it ends; None for never.
    """
    loop = asyncio.get_running_loop()
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    timers: list[asyncio.TimerHandle] = []

    def bookmark() -> None:
        watcher.bookmark(store.version)
        timers[0] = loop.call_later(to_seconds(_BOOKMARK_EVERY), bookmark)

    if bookmarks:
        timers.append(loop.call_later(to_seconds(_BOOKMARK_EVERY), bookmark))
    if timeout_s is not None:
        timers.append(loop.call_later(timeout_s, watcher.close))
    first = True

    async def send(entries: Sequence[Entry]) -> None:
        """Send in small writes, each of which waits for the reader, and give others a turn in between.

        So of a reader that has stopped one write is held encoded, besides what the socket holds. What
        it had not read when it fell behind is dropped.
        """
        nonlocal first
        for start in range(0, len(entries), _EVENTS_A_WRITE):
            if watcher.error is not None:
                return
            if start:
                await clock.sleep(ZERO)
            await response.write(encoder.lines(view, entries[start : start + _EVENTS_A_WRITE], first=first))
            first = False

    try:
        # What it begins with is taken before anything is waited for, so that nothing newer is among it.
        entries = watcher.take() if initial_end is not None else []
        await response.prepare(request)
        if initial_end is not None:
            await send(entries)
            await response.write(bookmark_line(view, initial_end, end_of_initial=True))
        while True:
            await watcher.wait()
            entries = watcher.take()
            if entries:
                await send(entries)
            elif watcher.error is not None:
                await response.write(error_line(watcher.error.status()))
                break
            elif watcher.closed:
                break
            entries = []  # not held while nothing happens
        await response.write_eof()
    except ConnectionError:
        pass  # the reader has gone, which is how most watches end
    finally:
        for timer in timers:
            timer.cancel()
        watcher.close()
    return response
