"""What a service says of its own health, and of what it may not do."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.horizontal.running import START, Usage
from tests.nodes.live import FREE

from kubetide.embedded.store import EmbeddedCluster, Store
from kubetide.objects.kinds import PODS
from kubetide.ports.errors import Forbidden
from kubetide.runtime.clock import run_virtual
from kubetide.runtime.config import make_config
from kubetide.runtime.service import Service, Sources
from kubetide.units.exposition import Registry
from kubetide.units.time import minutes


class Nothing:
    def wants_full(self, loop):
        return False

    def write(self, record):
        pass


class Refusing(EmbeddedCluster):
    """Pods may not be listed."""

    async def list(self, kind, **where):
        if kind is PODS:
            raise Forbidden(
                'pods is forbidden: User "system:serviceaccount:kubetide:kubetide" cannot list resource "pods" '
                'in API group "" at the cluster scope'
            )
        return await super().list(kind, **where)


def service_of(clock, cluster, said):
    return Service(
        make_config([]),
        cluster,
        clock,
        sources=Sources(Usage(cluster, clock, 100)),
        cloud=None,
        guard=FREE,
        recorder=Nothing(),
        registry=Registry(),
        warn=said.append,
        seed=1,
    )


def health_of(cluster_class):
    """Gives what is said of readiness and life: at first, after ten minutes of waiting, and after three of running."""

    async def main(clock):
        said = []
        cluster = cluster_class(Store(), clock, seed=1)
        service = service_of(clock, cluster, said)
        found = [(service.not_ready(), service.not_alive())]
        await clock.sleep(minutes(10))
        found.append((service.not_ready(), service.not_alive()))
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(3))
        found.append((service.not_ready(), service.not_alive()))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return found, said

    return run_virtual(main, start=START)


def test_who_waits_for_a_turn_is_well():
    """A standby has no caches and ends no ticks, for as long as it takes; it must not be killed for that."""
    found, said = health_of(EmbeddedCluster)
    assert found == [("", "")] * 3
    assert said == []


def test_a_refusal_names_what_is_missing_and_who_grants_it():
    """A cache that may not be read: not ready, not alive in the end, and one sentence with the role."""
    found, said = health_of(Refusing)
    assert found[:2] == [("", "")] * 2
    assert found[2] == ("no first list yet of pods", "the horizontal loop has ended no tick for 3m0s")
    (sentence,) = said
    assert sentence == (
        'cannot read pods: pods is forbidden: User "system:serviceaccount:kubetide:kubetide" cannot list resource '
        '"pods" in API group "" at the cluster scope; ClusterRole kubetide-horizontal of deploy/ grants it'
    )
