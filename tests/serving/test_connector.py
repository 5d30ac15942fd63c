"""A client leaves nothing open, also when a request was given up just before."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
import threading
from contextlib import suppress

import trustme
from aiohttp import ClientSession
from tests.tasks import stop

from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector

HOST = "127.0.0.1"


class Silent:
    """A server that takes one request and says no more, no good-bye either."""

    def __init__(self, tls):
        self._tls = tls
        self._listening = socket.create_server((HOST, 0))
        self.asked, self.over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self._listening.getsockname()[1]

    def __exit__(self, *_):
        self.over.set()
        self._thread.join(10)
        self._listening.close()

    def _serve(self):
        plain, _ = self._listening.accept()
        with self._tls.wrap_socket(plain, server_side=True) as end:
            end.recv(65536)
            self.asked.set()
            self.over.wait(10)
            with suppress(OSError):
                end.unwrap()


def test_a_request_that_was_given_up_leaves_no_connection(monkeypatch):
    """Its server says nothing, so TLS would wait for a good-bye for longer than the loop runs."""
    left_open = []
    monkeypatch.setattr(sys, "unraisablehook", left_open.append)
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(HOST).configure_cert(server)
    authority.configure_trust(client)
    silent = Silent(server)

    async def main(_clock):
        async with ClientSession(connector=make_connector(ssl=client)) as session:
            asking = asyncio.ensure_future(session.get(f"https://{HOST}:{port}/"))
            assert await asyncio.to_thread(silent.asked.wait, 10)
            await stop(asking)

    with silent as port:
        run_real(main)
        gc.collect()
    assert [str(one.exc_value) for one in left_open] == []
