"""A dashboard over the records of a folder, and its answers."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import aiohttp
import pytest
import yarl

from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.listener import Listener
from kubetide.web.access import OwnToken
from kubetide.web.history import History
from kubetide.web.server import API, Dashboard

TOKEN = "a-token-of-the-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
ALL_DECISIONS = {"words": "", "loop": "", "subject": "", "until": "", "limit": 500}


@asynccontextmanager
async def serving(history, clock):
    """Serve a dashboard of that history beside the block; yield its host and port."""
    listener = Listener(Dashboard(history, OwnToken(TOKEN), clock).app())
    await listener.listen("127.0.0.1")
    try:
        yield listener.authority
    finally:
        await listener.close()


def asked(folder, *paths, headers=HEADERS, history=None):
    """Serve the folder, and return (status, headers, body) of each path."""

    async def main(clock):
        async with (
            serving(history or History(folder), clock) as authority,
            aiohttp.ClientSession(headers=headers) as session,
        ):
            found = []
            for path in paths:
                url = yarl.URL(f"http://{authority}{path}", encoded=True)
                async with session.get(url, allow_redirects=False) as answer:
                    found.append((answer.status, answer.headers, await answer.text()))
            return found

    return run_real(main)


def answers(folder, *paths):
    """Return the JSON that the API answers to each path; all must be answered."""
    found = asked(folder, *(f"{API}/{path}" for path in paths))
    assert [status for status, _, _ in found] == [200] * len(paths), found
    return [json.loads(body) for _, _, body in found]


def write_records(out, records):
    """Write the records of a run of their own, anew where there is one."""
    writer = RecordWriter(out, warn=pytest.fail)
    writer.start()
    for record in records:
        writer.write(record)
    writer.close()
