"""One cache through every fault: it lives, says what is wrong, and ends equal to the server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.cluster.faults import kinds as faults
from tests.cluster.faults.proxy import proxied
from tests.cluster.served import served

from kubetide.cluster import HttpCluster
from kubetide.cluster.limits import Limits
from kubetide.objects.kinds import PODS
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds
from kubetide.watching import Informer

SPEED = 25
LIMITS = Limits(deadline=seconds(20), stall=seconds(15))


async def until(clock, holds, about=""):
    deadline = clock.monotonic() + minutes(15)
    while not holds():
        assert clock.monotonic() < deadline, about or "the condition never came to hold"
        await clock.sleep(seconds(0.5))


class Cached:
    """A cluster, the proxy before it, and a cache through the proxy."""

    def __init__(self, cluster, proxy, client, informer, clock):
        self.cluster, self.proxy, self.client = cluster, proxy, client
        self.informer, self.clock = informer, clock
        self.number = 0

    async def churn(self, passes=4):
        """Creates, changes and deletes pods, at the server itself."""
        for _ in range(passes):
            self.number += 1
            name = f"p-{self.number}"
            body = builders.pod(name, labels={"app": "web"})
            await self.cluster.create(PODS, body, namespace="default")
            patch = {"metadata": {"annotations": {"n": str(self.number)}}}
            await self.cluster.patch(PODS, name, patch, namespace="default")
            if self.number > 3:
                await self.cluster.delete(PODS, f"p-{self.number - 2}", namespace="default", grace_period_s=0)
            await self.clock.sleep(seconds(0.2))

    async def versions(self):
        listing = await self.cluster.list(PODS)
        return {item.metadata.name: item.metadata.resource_version for item in listing.items}

    def cached(self):
        return {key[1]: item.metadata.resource_version for key, item in self.informer.objects.items()}

    async def settle(self):
        """End the fault and wait until the cache equals the server, and says that all is well."""
        self.proxy.set()
        await self.churn(2)
        expected = await self.versions()
        await until(
            self.clock,
            lambda: self.cached() == expected and self.informer.failures == 0,
            f"{self.cached()} is not {expected}; {self.informer.last_error}",
        )


@asynccontextmanager
async def caching(clock, **more):
    async with (
        served(clock) as (cluster, _, connection),
        proxied(connection) as (proxy, through),
        HttpCluster(through, clock, limits=LIMITS, **more) as client,
    ):
        informer = Informer(client, PODS, clock)
        cached = Cached(cluster, proxy, client, informer, clock)
        await cached.churn()
        task = asyncio.ensure_future(informer.run())
        try:
            await informer.synced()
            yield cached
            assert not task.done(), "the cache has ended"
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def deep(levels=200_000):
    return b'{"type":"MODIFIED","object":{"x":' + b"[" * levels + b"\n"


def with_nulls(item):
    """Return an object with the nulls that a server may send for every list and map that is empty."""
    item["metadata"].update(labels=None, annotations=None, ownerReferences=None, finalizers=None)
    item.setdefault("spec", {}).update(tolerations=None, volumes=None, nodeSelector=None, affinity=None)
    item.setdefault("status", {}).update(conditions=None, containerStatuses=None)


def with_unknown_fields(item):
    """Return what a newer server sends: fields, phases and values of enums that nobody here knows."""
    item["fromTheFuture"] = {"deep": [1, {"a": None}]}
    item["metadata"]["selfAware"] = True
    item.setdefault("spec", {})["restartPolicy"] = "OnFullMoon"
    item.setdefault("status", {})["phase"] = "Dreaming"


def huge(item):
    item["metadata"]["annotations"] = {"kubernetes.io/last-applied": "x" * (3 << 20)}


READ_FAULTS = {
    "500": [faults.answers(500, "InternalError", where=faults.reads)],
    "503-retry-after": [faults.answers(503, "ServiceUnavailable", where=faults.reads, retry_after=1)],
    "504": [faults.answers(504, "Timeout", where=faults.reads)],
    "429": [faults.answers(429, "TooManyRequests", where=faults.reads, retry_after=1)],
    "429-without-a-word": [faults.answers(429, "TooManyRequests", where=faults.reads)],
    "401": [faults.answers(401, "Unauthorized")],
    "403": [faults.forbids("pods")],
    "404": [faults.answers(404, "NotFound")],
    "409": [faults.answers(409, "Conflict", where=faults.reads)],
    "410": [faults.answers(410, "Expired", where=faults.reads)],
    "410-of-watches-only": [
        faults.no_streams(),
        faults.answers(410, "Expired", where=lambda one: one.watches and "resourceVersion" in one.query),
    ],
    "410-as-an-event": [faults.spoils(faults.error_event(410, "Expired"))],
    "500-as-an-event": [faults.spoils(faults.error_event(500, "InternalError"))],
    "410-in-the-middle-of-a-list": [
        faults.answers(410, "Expired", where=lambda one: "continue" in one.query),
        faults.no_streams(page=2),
    ],
    "redirected": [faults.says(b"", code=307)],
    "hangs-up": [faults.hangs_up()],
    "silent": [faults.is_silent()],
    "silent-watches": [faults.no_streams(), faults.is_silent(faults.watches)],
    "no-http": [faults.sends(b"SSH-2.0-OpenSSH_9.7\r\n")],
    "head-without-end": [faults.sends(b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 100_000)],
    "half-a-chunk": [
        faults.sends(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{"type":"ADDED"')
    ],
    "chunks-of-no-size": [
        faults.sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n")
    ],
    "no-gzip": [faults.sends(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello")],
    "retry-after-forever": [
        faults.sends(
            b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: "
            + b"9" * 5000
            + b"\r\nContent-Length: 0\r\n\r\n"
        )
    ],
    "empty": [faults.says(b"")],
    "null": [faults.says(b"null\n")],
    "a-list-of-nothing": [faults.no_streams(), faults.says(b"[]", where=faults.lists)],
    "html": [faults.says(b"<html>a load balancer</html>\n")],
    "html-500": [faults.says(b"<html>a load balancer</html>", code=502)],
    "no-status": [faults.says(b'{"kind":"Status","details":[1],"code":"x","metadata":7}', code=500)],
    "spoilt-status": [
        faults.says(
            b'{"kind":"Status","reason":5,"message":{},"details":{"causes":[null],"retryAfterSeconds":"z"}}',
            code=429,
        )
    ],
    "not-utf-8": [faults.spoils(b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff\xfe"}}}')],
    "without-end": [faults.spoils(deep())],
    "deep-answers": [faults.says(deep())],
    "null-event": [faults.spoils(b'{"type":"ERROR","object":null}')],
    "nameless": [faults.spoils(b'{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"1"}}}')],
    "unknown-event": [faults.spoils(b'{"type":"RENAMED","object":{"metadata":{"name":"a"}}}')],
    "half-a-line": [faults.spoils(b'{"type":"MODIFIED","object":{"metadata":{"na')],
    "other-kind": [faults.spoils(b'{"type":"MODIFIED","object":{"kind":"Status","metadata":{}}}')],
    "cut-lines": [faults.cuts_lines()],
    "pieces": [faults.dribbles()],
    "repeated": [faults.repeats()],
    "out-of-order": [faults.swaps()],
    "nulls": [faults.rewrites(with_nulls)],
    "nulls-in-pages": [faults.no_streams(page=3), faults.rewrites(with_nulls)],
    "unknown fields": [faults.rewrites(with_unknown_fields)],
    "huge": [faults.rewrites(huge)],
}


MET_BY_LISTS = {"410-in-the-middle-of-a-list", "a-list-of-nothing", "nulls-in-pages"}


@pytest.mark.parametrize("name", READ_FAULTS)
def test_a_cache_outlives(name):
    """While the fault lasts and requests meet it, the cache goes on; after it, the cache equals the server."""

    async def main(clock):
        async with caching(clock) as cached:
            cached.proxy.set(*READ_FAULTS[name])
            cached.proxy.cut()
            if name in MET_BY_LISTS:
                cached.cluster.expire_watches()
            await until(clock, lambda: cached.proxy.hits, "no request met the fault")
            for _ in range(3):
                await cached.churn(2)
            await cached.settle()

    run_paced(main, start=machine_time(), pace=Pace(SPEED))
