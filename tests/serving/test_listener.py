"""A listener leaves nothing open, however far a connection has come when it closes."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
from contextlib import suppress

import pytest
import trustme
from aiohttp import ClientSession, web

from kubetide.runtime.timing.clock import run_real
from kubetide.serving import Listener

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def contexts(authority):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


def hello():
    async def handle(_request):
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", handle)
    return app


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("passes", range(9))
def test_a_connection_that_is_being_made_is_broken_off(authority, monkeypatch, passes, secure):
    """The client has come as far as that many passes of the loop let it."""
    left_open = []
    monkeypatch.setattr(sys, "unraisablehook", left_open.append)
    tls, trusting = contexts(authority) if secure else (None, None)
    ends = []

    def shake(end):
        if secure:
            with suppress(ssl.SSLError, OSError):
                end.do_handshake()

    async def main(_clock):
        listener = Listener(hello(), grace_s=0.1)
        await listener.listen(HOST, tls=tls)
        end = socket.create_connection(listener.address)
        end.setblocking(False)
        if trusting is not None:
            end = trusting.wrap_socket(end, server_hostname=HOST, do_handshake_on_connect=False)
        ends.append(end)
        for _ in range(passes):
            shake(end)
            await asyncio.sleep(0)
        await listener.close()
        shake(end)

    run_real(main)
    gc.collect()
    ends[0].close()
    assert [str(one.exc_value) for one in left_open] == []


def test_who_came_before_is_answered_when_nobody_else_may_come(authority):
    async def main(_clock):
        listener = Listener(hello())
        await listener.listen(HOST)
        host, port = listener.address
        url = f"http://{listener.authority}/"
        async with ClientSession() as session:
            assert await (await session.get(url)).text() == "hello"
            await listener.deafen()
            with pytest.raises(OSError, match="Connect call failed"):
                await asyncio.open_connection(host, port)
            assert await (await session.get(url)).text() == "hello"
            await listener.listen(host, port)
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            await listener.close()
            await listener.close()

    run_real(main)


def test_a_taken_port_is_refused():
    async def main(_clock):
        first, second = Listener(hello()), Listener(hello())
        await first.listen(HOST)
        with pytest.raises(OSError, match="in use"):
            await second.listen(*first.address)
        await second.close()
        await first.close()

    run_real(main)


@pytest.mark.parametrize(
    "malformed",
    [b"GET /?a=\xc3\xa9", b"GET /?a=" + b"x" * 9000, b"GET http://a:99999999/"],
    ids=["raw bytes", "too long", "no address"],
)
def test_a_malformed_request_is_answered_and_not_logged(caplog, malformed):
    """Who has no token cannot fill the log; what an answer's own code does wrong is logged as before."""

    async def fail(_request):
        raise LookupError("of the page")

    async def main(_clock):
        app = hello()
        app.router.add_get("/fails", fail)
        listener = Listener(app)
        await listener.listen(HOST)
        answers = []
        for words in (malformed, b"GET /fails"):
            reader, writer = await asyncio.open_connection(*listener.address)
            writer.write(words + b" HTTP/1.1\r\nHost: a\r\n\r\n")
            answers.append((await reader.readline()).split()[1])
            writer.close()
        await listener.close()
        return answers

    assert run_real(main) == [b"400", b"500"]
    (logged,) = caplog.records
    assert "of the page" in caplog.text
    assert logged.exc_info is not None
