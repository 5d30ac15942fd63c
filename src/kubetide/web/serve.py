"""Serves the dashboard until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable
from pathlib import Path

from kubetide.cluster import Connection, HttpCluster
from kubetide.cluster.limits import Limits
from kubetide.ports.clock import Clock
from kubetide.ports.errors import KubetideError
from kubetide.runtime.process import tune_gc
from kubetide.runtime.recording.folder import is_running
from kubetide.runtime.recording.records import recorded_loops
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.listener import Listener
from kubetide.units.time import seconds
from kubetide.web.access import Access, OwnToken
from kubetide.web.history import History
from kubetide.web.reviews import ReviewedAccess
from kubetide.web.server import Dashboard

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16
_DEADLINE = seconds(5)
"""For a review; who waits for it waits for a page."""


class DashboardError(KubetideError):
    """The dashboard cannot be served; the text gives the reason and the fix."""


def serve(
    folder: Path,
    listen: str,
    token_file: Path | None,
    *,
    say: Callable[[str], object],
    visit: Callable[[str], object] | None = None,
    api_server: Connection | None = None,
) -> None:
    """Serve the dashboard of a records folder.

    Args:
        listen: ``HOST:PORT``; without a host all addresses of the machine, port 0 takes a free one. Beyond loopback a
            token of one's own is needed, or ``api_server``.
        token_file: Holds the token; without one it is made up.
        say: Takes the line with the address.
        visit: Opens an address.
        api_server: Is asked who may look, instead of a token of our own; a folder without records is then
            waited for.

    Raises: DashboardError; RecordError where the folder holds no records.
    """
    host, colon, port = listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise DashboardError(
            f"--listen: `{listen}` is not an address: write HOST:PORT, for example 127.0.0.1:8080"
        )
    if host not in _LOOPBACK and token_file is None and api_server is None:
        raise DashboardError(
            f"--listen: {listen} can be reached from other machines; name a file with a token (--token-file) or let "
            "the API server say who may look (--kubernetes-access), and put TLS before it"
        )
    token = secrets.token_urlsafe(24) if token_file is None else _read_token(token_file)
    if not is_running(folder) and api_server is None:
        recorded_loops(folder)  # a run that goes on may not have decided yet

    tune_gc()

    async def serve_for(access: Access, query: str, clock: Clock) -> None:
        listener = Listener(Dashboard(History(folder), access, clock).app())
        try:
            await listener.listen(host or None, int(port))
        except OSError as error:
            raise DashboardError(f"--listen: cannot listen on {listen}: {error.strerror}") from error
        address = f"http://{listener.authority}/"
        try:
            behind = f" (write ?token= and the token of {token_file} behind it)" if token_file else query
            say(f"dashboard {address}{behind}")
            if visit is not None:
                visit(f"{address}{query}")
            await _ended()
        finally:
            await listener.close()

    async def main(clock: Clock) -> None:
        if api_server is None:
            await serve_for(OwnToken(token), f"?token={token}", clock)
            return
        async with HttpCluster(api_server, clock, limits=Limits(deadline=_DEADLINE)) as cluster:
            await serve_for(ReviewedAccess(cluster, clock), "", clock)

    run_real(main)


async def _ended() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, ended.set)
    await ended.wait()


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise DashboardError(f"--token-file: {path} cannot be read: {why}; check the path") from error
    if len(token) < _LEAST_TOKEN:
        raise DashboardError(f"--token-file: the token in {path} is shorter than {_LEAST_TOKEN} characters")
    return token
