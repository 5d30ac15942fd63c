"""The series of CapacityBuffers: when they were looked at."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START
from tests.nodes.requests import buffer, world
from tests.runtime.series.reading import read
from tests.runtime.series.scraped import reported

from kubetide.nodes.capacity.definitions import definitions
from kubetide.nodes.series.buffer_gauges import BufferGauges
from kubetide.objects.kinds import CAPACITY_BUFFERS, CUSTOM_RESOURCE_DEFINITIONS
from kubetide.ports.errors import Forbidden
from kubetide.units.exposition import Registry
from kubetide.units.time import after, minutes, seconds

OLDEST = "cluster_autoscaler_capacity_buffer_oldest_reconciliation_timestamp_seconds"


def unix(at):
    return at // seconds(1)


def test_the_oldest_time_at_which_a_buffer_was_looked_at_is_reported():
    """A buffer without conditions is new until a tick has looked at it; where there is none it is the time itself."""
    later = after(START, minutes(1))
    held = world(buffers=[buffer("spare", replicas=1)])
    registry = Registry()
    gauges = BufferGauges(registry)
    gauges.collect(held.state, later)
    created = unix(START) - 7200
    assert read(registry) == {(OLDEST, "true"): created, (OLDEST, "false"): unix(later)}
    gauges.update(held.state, START)
    gauges.collect(held.state, later)
    assert read(registry) == {(OLDEST, "true"): unix(later), (OLDEST, "false"): unix(START)}


def test_buffers_of_others_are_not_reported():
    """Where another controller looks after buffers nothing is said of them, nor of those with a strategy of its own."""
    held = world(buffers=[buffer("spare", replicas=1)], capacity_buffer_controller_enabled=False)
    registry = Registry()
    BufferGauges(registry).collect(held.state, START)
    assert read(registry) == {}
    foreign = world(buffers=[buffer("spare", replicas=1, provisioningStrategy="example.com/own")])
    gauges = BufferGauges(registry := Registry())
    gauges.collect(foreign.state, START)
    assert set(read(registry).values()) == {unix(START)}


class Refusing:
    """A cluster that refuses statuses of the kinds that are listed."""

    def __init__(self, cluster, refused):
        self._cluster, self._refused = cluster, refused

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def patch(self, kind, name, body, **arguments):
        if kind in self._refused:
            raise Forbidden(f"{kind.resource} is forbidden")
        return await self._cluster.patch(kind, name, body, **arguments)


async def create_buffer(world):
    """Create a buffer whose PodTemplate is not there."""
    for body in definitions():
        await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    spare = {"metadata": {"name": "spare"}, "spec": {"podTemplateRef": {"name": "none"}, "replicas": 1}}
    await world.cluster.create(CAPACITY_BUFFERS, spare, namespace="default")


def test_a_buffer_whose_status_cannot_be_written_is_not_up_to_date():
    """As upstream, a new buffer stays new until its status is written."""
    refused = [CAPACITY_BUFFERS]

    def age(world):
        found = world.read()
        oldest = found[OLDEST.removeprefix("cluster_autoscaler_"), "true"]
        return unix(world.clock.now()) - oldest

    async def story(world):
        await create_buffer(world)
        await world.after(minutes(5))
        assert age(world) == 300
        refused.clear()
        await world.after(minutes(1))
        assert age(world) == 0

    reported(story, wrap=lambda cluster: Refusing(cluster, refused), capacity_buffer_controller_enabled=True)


def test_the_last_update_of_a_buffer_counts_while_its_writes_fail():
    """Its time stays as it was, however many ticks look at it."""
    held = world(buffers=[buffer("spare", replicas=1)])
    failed = [(CAPACITY_BUFFERS.plural, "default", "spare")]
    gauges = BufferGauges(registry := Registry())
    gauges.update(held.state, START)
    for tick, unwritten in enumerate(([], failed, failed), 1):
        gauges.update(held.state, after(START, minutes(tick)), unwritten)
    now = after(START, minutes(4))
    gauges.collect(held.state, now, failed)
    assert read(registry) == {(OLDEST, "true"): unix(now), (OLDEST, "false"): unix(START)}
    gauges.collect(held.state, now)
    assert read(registry)[OLDEST, "false"] == unix(after(START, minutes(3)))


@pytest.mark.parametrize("enabled", [True, False])
def test_each_tick_looks_at_all_buffers(enabled):
    """The loop's series have the last tick's time where the loop has buffers to look after."""

    async def story(world):
        await create_buffer(world)
        await world.after(seconds(123))
        found = world.read()
        ticked = found["last_activity", "autoscaling"]
        looked_at = found.get((OLDEST.removeprefix("cluster_autoscaler_"), "false"))
        assert ticked < unix(world.clock.now())
        assert looked_at == (ticked if enabled else None)

    reported(story, capacity_buffer_controller_enabled=enabled)
