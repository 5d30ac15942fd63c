"""An informer that runs beside a test's block, over an embedded cluster in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.errors import ApiError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.watching import Informer

START = parse_rfc3339("2026-03-02T08:00:00Z")


class Outage:
    """Fails every request while ``error`` is set, and notes when."""

    def __init__(self, clock, error=None):
        self.clock, self.error = clock, error
        self.refused = []

    async def before(self, request):
        if self.error is not None:
            self.refused.append((request.verb, self.clock.now()))
            raise self.error


@asynccontextmanager
async def informing(cluster, clock, kind=CONFIG_MAPS, **where):
    """Run an informer beside the block."""
    informer = Informer(cluster, kind, clock, **where)
    task = asyncio.ensure_future(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        ended = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended[0], asyncio.CancelledError), ended[0]


def run(main, **store):
    """Run main(cluster, clock) in virtual time."""
    return run_virtual(lambda clock: main(EmbeddedCluster(Store(**store), clock, seed=1), clock), start=START)


async def put(cluster, name, value="1"):
    body = builders.config_map(name, data={"k": value})
    return await cluster.create(CONFIG_MAPS, body, namespace="default")


async def take_step(cluster, clock, step, name, value):
    """Write to a ConfigMap, wait three seconds, or end all watches; a write that cannot be done changes nothing."""
    patches = {"change": {"data": {"k": value}}, "mark": {"metadata": {"labels": {"mark": value}}}}
    with suppress(ApiError):
        if step == "put":
            await put(cluster, name, value)
        elif step == "delete":
            await cluster.delete(CONFIG_MAPS, name, namespace="default")
        elif step == "pause":
            await clock.sleep(seconds(3))
        elif step == "drop":
            cluster.drop_watches()
        elif step == "expire":
            cluster.expire_watches()
        else:
            await cluster.patch(CONFIG_MAPS, name, patches[step], namespace="default")


def values(changed):
    """Return the values of a drained feed, by name."""
    return {key[1]: None if item is None else item.data["k"] for key, item in changed.items()}
