"""Bodies and queries that were good or bad to begin with, spoilt at random: every answer is the server's own."""

from __future__ import annotations

import json
from io import BytesIO
from random import Random
from urllib.parse import quote

import aiohttp
import pytest
from tests.bad_input.requests import CASES, SETUP
from tests.cluster.served import TOKEN, served

from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector

REQUESTS = 800
JUNK = [
    None,
    True,
    -1,
    0,
    2**70,
    1.5,
    1e300,
    "",
    "x",
    [],
    {},
    [None],
    [{}],
    {"a": None},
    [[]],
    {"": ""},
    "é\u0000",
]
WORDS = [
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "dryRun",
    "fieldValidation",
    "fieldManager",
    "force",
    "timeoutSeconds",
    "gracePeriodSeconds",
    "propagationPolicy",
    "sendInitialEvents",
    "includeObject",
]
VALUES = [
    "",
    "1",
    "-1",
    "x",
    "true",
    "All",
    "Strict",
    "a in (b)",
    "\0",
    "9" * 30,
    "NotOlderThan",
    "Exact",
    "²",
    "१",
]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


def spoilt(draw, body):
    body = json.loads(json.dumps(body))
    for _ in range(draw.choice([1, 1, 2, 3])):
        places = list(paths(body))
        if not places:
            break
        rest, at = draw.choice(places), body
        for key in rest[:-1]:
            at = at[key]
        if draw.random() < 0.15 and isinstance(at, dict):
            del at[rest[-1]]
        else:
            at[rest[-1]] = json.loads(json.dumps(draw.choice(JUNK)))
    return body


def request(draw, case):
    """Return a method, a path and bytes."""
    path = case.path
    for _ in range(draw.choice([0, 0, 1, 2])):
        path += f"{'&' if '?' in path else '?'}{draw.choice(WORDS)}={quote(draw.choice(VALUES))}"
    data = json.dumps(spoilt(draw, case.body)).encode()
    if draw.random() < 0.1:
        at = draw.randrange(len(data))
        data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    return draw.choice(METHODS) if draw.random() < 0.1 else case.method, path, data


@pytest.mark.parametrize("seed", [1, 2])
def test_no_spoilt_request_is_a_fault_of_the_server(seed):
    """No answer is an error of the server's own, and each comes."""
    draw = Random(seed)
    pool = [case for case in CASES if isinstance(case.body, dict | list) and len(case.data or b"") < 3000]
    sent = [(case.method, case.path, case.data, case.headers) for case in SETUP]
    for _ in range(REQUESTS):
        case = draw.choice(pool)
        sent.append((*request(draw, case), case.headers))

    async def main(clock):
        failed = []
        async with served(clock) as (_, server, connection):
            connector = make_connector(ssl=connection.tls())
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
                for method, path, data, more in sent:
                    url = aiohttp.client.URL(server.url + path, encoded=True)
                    body = data and BytesIO(data)
                    async with session.request(method, url, data=body, headers=more) as answer:
                        if "see the server's log" in await answer.text():
                            failed.append((method, path, data))
        return failed

    assert run_real(main) == []
