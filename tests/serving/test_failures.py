"""What is said of a request that got no answer."""

from __future__ import annotations

import asyncio
import socket
import ssl

import aiohttp
import pytest

from kubetide.serving.failures import failure_text


async def failure_of(url: str) -> str:
    async with aiohttp.ClientSession() as session:
        try:
            await session.get(url, ssl=ssl.create_default_context() if url.startswith("https") else True)
        except aiohttp.ClientError as error:
            return failure_text(error, "nothing")
    raise AssertionError("it answered")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_refused_connection_names_host_and_port(scheme):
    """The client's own text has the address of an object, and differs from process to process."""
    port = free_port()
    assert asyncio.run(failure_of(f"{scheme}://127.0.0.1:{port}")) == (
        f"cannot connect to 127.0.0.1:{port}: connection refused"
    )


def test_a_failure_that_says_nothing_has_other_words():
    """An error without a text would leave the sentence open."""
    assert (
        failure_text(aiohttp.ClientPayloadError(), "the connection broke off") == "the connection broke off"
    )
    assert failure_text(OSError("reset"), "the connection broke off") == "reset"
