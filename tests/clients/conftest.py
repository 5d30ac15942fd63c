"""The two servers that must look alike to clients: the embedded one and Kubernetes' own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from queue import Queue

import pytest
from tests.cluster.served import served

from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.runtime.timing.clock import run_real


@contextmanager
def embedded_server(folder):
    """Serve an embedded cluster without controllers from a thread; return the path of its kubeconfig."""
    started: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event] | None] = Queue()
    path = folder / "kubeconfig"

    async def serve(clock):
        async with served(clock) as (_, _, connection):
            config = kubeconfig(
                connection.url, token=connection.token, authority=connection.authority.encode()
            )
            write_kubeconfig(path, config)
            stop = asyncio.Event()
            started.put((asyncio.get_running_loop(), stop))
            await stop.wait()

    def run():
        try:
            run_real(serve)
        finally:
            started.put(None)  # for whoever still waits for a start that failed

    thread = threading.Thread(target=run)
    thread.start()
    loop_and_stop = started.get(timeout=120)
    assert loop_and_stop, "the server did not start"
    loop, stop = loop_and_stop
    try:
        yield path
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)


@pytest.fixture(scope="module", params=["embedded", "kubernetes"])
def kubeconfig_path(request, tmp_path_factory):
    """The kubeconfig of an API server without controllers; every test runs with both."""
    if request.param == "kubernetes":
        yield request.getfixturevalue("quiet_plane").kubeconfig
    else:
        with embedded_server(tmp_path_factory.mktemp("embedded")) as path:
            yield path
