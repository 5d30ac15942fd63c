"""Electors of one Lease on an embedded cluster, and Leases in the form in which client-go writes them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

from kubetide.acting import Elector, LeaseLost, LeaseTimes
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import LEASES
from kubetide.ports.errors import Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import Instant, format_rfc3339_micro, parse_rfc3339

START = parse_rfc3339("2026-03-02T00:00:00.123456Z")
NAME = {"namespace": "kube-system", "name": "cluster-autoscaler"}
TIMES = LeaseTimes()


class Outage:
    """Fails or swallows every request while it lasts."""

    def __init__(self):
        self.mode = ""

    async def before(self, _request):
        if self.mode == "fails":
            raise Unavailable("down")
        if self.mode == "hangs":
            await asyncio.Event().wait()


def elector(cluster, clock, identity, **more):
    return Elector(cluster, clock, identity=identity, component="tester", **{**NAME, **more})


@asynccontextmanager
async def running(one):
    """Run an elector beside the block; return its task."""
    task = asyncio.ensure_future(one.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LeaseLost):
            await task


def run(main):
    async def inside(clock):
        return await main(EmbeddedCluster(Store(), clock, 1), clock)

    return run_virtual(inside, start=START)


async def lease(cluster):
    return (await cluster.get(LEASES, NAME["name"], namespace=NAME["namespace"])).spec


async def write(cluster, spec):
    """Write the whole Lease, as client-go does, over whatever is there."""
    body = {"metadata": NAME, "spec": spec}
    found = [one for one in (await cluster.list(LEASES)).items if one.metadata.name == NAME["name"]]
    if not found:
        await cluster.create(LEASES, body, namespace=NAME["namespace"])
        return
    body["metadata"] = {**NAME, "resourceVersion": found[0].metadata.resource_version}
    await cluster.replace(LEASES, body, namespace=NAME["namespace"])


def go_spec(clock, identity="host_go", *, transitions=0, skew=0, duration=15):
    """Return a spec in client-go's form, by a clock that may be wrong."""
    stamp = format_rfc3339_micro(Instant(clock.now() + skew))
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": duration,
        "acquireTime": stamp,
        "renewTime": stamp,
        "leaseTransitions": transitions,
    }
