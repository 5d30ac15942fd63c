"""Who may ask the dashboard, how many at once, and what its answers let a browser do."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import aiohttp
import pytest
from tests.web.asking import HEADERS, TOKEN, asked, serving

from kubetide.runtime.timing.clock import run_real
from kubetide.web.history import History
from kubetide.web.server import API, MOST_WAITING


def test_nobody_looks_without_the_token(folder):
    """Pages and API require the token; the one of the address goes into a cookie and out of the address."""
    paths = ("/", f"{API}/span", "/app.js", f"/?token={TOKEN}x")
    assert [status for status, _, _ in asked(folder, *paths, headers={})] == [401] * 4
    status, _, said = asked(folder, "/", headers={"Authorization": "Bearer no"})[0]
    assert status == 401
    assert "write ?token= and that of --token-file behind it" in str(said)
    ((status, headers, _),) = asked(folder, f"/decisions?q=web&token={TOKEN}", headers={})
    assert (status, headers["Location"]) == (303, "/decisions?q=web")
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]


@pytest.mark.parametrize(
    "path", ["//elsewhere.example/x", "///elsewhere.example/x", "/\\elsewhere.example/x"]
)
def test_the_token_leads_to_no_other_host(folder, path):
    """An address that a browser would read as that of another host is redirected to a page of this one."""
    ((status, headers, _),) = asked(folder, f"{path}?token={TOKEN}&at=12:00", headers={})
    assert (status, headers["Location"]) == (303, "/elsewhere.example/x?at=12:00")


def test_refused_methods_carry_the_policy(folder):
    """An answer that the router gives has the same headers as all others."""

    async def main(clock):
        async with (
            serving(History(folder), clock) as authority,
            aiohttp.request("POST", f"http://{authority}/", headers=HEADERS) as answer,
        ):
            return answer.status, answer.headers

    status, headers = run_real(main)
    assert status == 405
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_pages_load_nothing_from_elsewhere(folder):
    """Every answer carries the policy; no file of the front end names another host; all weigh under 100 kB."""
    found = asked(folder, "/", "/app.js", "/icon.svg", "/style.css", "/pod/default/some-pod")
    assert all("default-src 'none'" in headers["Content-Security-Policy"] for _, headers, _ in found)
    bodies = [body.replace("http://www.w3.org/2000/svg", "") for _, _, body in found]
    assert not [body for body in bodies if "http://" in body or "https://" in body or "innerHTML" in body]
    assert sum(map(len, bodies)) < 100_000
    assert bodies[0] == bodies[4]


def test_too_many_questions_are_refused(folder):
    """While one question is answered a few wait; more are refused, with the advice to come again."""

    held = Future()

    class Slow(History):
        def span(self):
            return held.result() or super().span()

    async def main(clock):
        connector = aiohttp.TCPConnector(limit=0)
        async with (
            serving(Slow(folder), clock) as authority,
            aiohttp.ClientSession(headers=HEADERS, connector=connector) as session,
        ):

            async def ask():
                async with session.get(f"http://{authority}{API}/span") as answer:
                    return answer.status

            asking = [asyncio.ensure_future(ask()) for _ in range(MOST_WAITING + 5)]
            refused, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            while len(refused) < 5:
                more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                refused |= more
            held.set_result(None)
            answered = await asyncio.gather(*waiting)
        return [one.result() for one in refused], answered

    refused, answered = run_real(main)
    assert refused == [503] * 5
    assert answered == [200] * MOST_WAITING
