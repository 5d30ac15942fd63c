from __future__ import annotations

import asyncio
import json

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.embedded.kubelet import KubeletPool, Settled
from kubetide.embedded.load import ConstantTrace, EmbeddedMetrics, Service, ServiceLoad
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import pod_condition
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.selectors import Selector
from kubetide.units.time import before, hours, minutes, parse_rfc3339, seconds
from kubetide.watching import Informer

START = parse_rfc3339("2026-03-02T00:00:00Z")


def pod_body(name, memory_limit):
    resources = {
        "requests": {"cpu": "500m", "memory": "64Mi"},
        "limits": {"cpu": "500m", "memory": memory_limit},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1", "resources": resources}]},
    }


def play(body, *, rate, memory_limit="256Mi", settled=None):
    """Run ``body`` in a cluster of two machines with two pods of a service under load."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        cloud = EmbeddedCloud(
            cluster,
            clock,
            seed=3,
            groups=[GroupSpec(name="pool", instance_type="m5.large", max_size=4, initial=2)],
        )
        await cloud.start()
        pods, nodes = Informer(cluster, PODS, clock), Informer(cluster, NODES, clock)
        pool = KubeletPool(cluster, clock, pods=pods, nodes=nodes, seed=3, settled=settled)
        service = Service(
            name="web",
            namespace="default",
            selector=Selector.parse("app=web"),
            trace=ConstantTrace(rate),
            cpu_seconds_per_request=0.01,
            base_memory_bytes=100 << 20,
        )
        load = ServiceLoad([service], clock=clock, pods=pods, nodes=nodes, start=START)
        load.on_oom(pool.oom_kill)
        steps = []
        load.on_step(lambda _end, step: steps.append(step))
        names = [node.metadata.name for node in (await cluster.list(NODES)).items]
        for number, node in enumerate(names):
            await cluster.create(PODS, pod_body(f"web-{number}", memory_limit), namespace="default")
            await cluster.bind(namespace="default", pod=f"web-{number}", node=node)
        tasks = [asyncio.create_task(each.run()) for each in (pods, nodes, pool, cloud)]
        metrics = EmbeddedMetrics(load, clock)
        await body(clock, cluster, cloud, metrics, names)
        load.advance(clock.now())
        found = json.dumps([list((await cluster.list(kind.untyped)).items) for kind in (PODS, NODES)])
        for task in tasks:
            assert not task.done(), task
            task.cancel()
        return steps, found

    return run_virtual(main, start=START)


def test_a_machine_that_is_deleted_takes_its_pods_and_their_capacity():
    """From machines to requests: two pods serve, one machine goes, one pod serves, the other is collected."""

    async def body(clock, cluster, cloud, metrics, names):
        await clock.sleep(minutes(2))
        samples = await metrics.pod_samples()
        assert samples.names == ("web-0", "web-1")
        assert samples.usage["cpu"].milli.tolist() == [300, 300]
        (group,) = await cloud.refresh()
        first = next(each.provider_id for each in group.instances if each.provider_id.endswith(names[0]))
        await cloud.delete_nodes("pool", [first])
        await clock.sleep(minutes(2))
        assert [pod.metadata.name for pod in (await cluster.list(PODS)).items] == ["web-1"]
        assert (await metrics.pod_samples()).usage["cpu"].milli.tolist() == [500]

    steps, _ = play(body, rate=60.0)
    assert [int(step.ready[0]) for step in steps][3::4] == [2, 2, 1, 1]
    assert [bool(step.violated[0]) for step in steps][3::4] == [False, False, True, True]


def test_memory_beyond_the_limit_restarts_pods_again_and_again():
    """A pod whose memory passes its limit is killed, comes back, and is killed again later each time."""

    async def body(clock, cluster, cloud, metrics, names):
        for _ in range(60):
            await metrics.pod_samples()
            await clock.sleep(seconds(15))
        for pod in (await cluster.list(PODS)).items:
            assert pod.status.phase == "Running"
            assert 4 <= pod.status.container_statuses[0].restart_count <= 8

    play(body, rate=10.0, memory_limit="80Mi")


def test_a_settled_world_serves_from_the_first_step():
    """A run can begin with pods that have been up for long: ready, with samples, in the first step."""

    async def body(clock, cluster, cloud, metrics, names):
        await clock.sleep(seconds(15))
        assert len((await metrics.pod_samples()).names) == 2
        ready = pod_condition((await cluster.list(PODS)).items[0], "Ready")
        assert ready.last_transition_time == "2026-03-01T23:00:00Z"

    steps, _ = play(body, rate=10.0, settled=Settled(until=START, since=before(START, hours(1))))
    assert [int(step.ready[0]) for step in steps] == [2]


def test_the_same_seed_makes_the_same_world():
    """Two runs end with byte-identical objects."""

    async def body(clock, cluster, cloud, metrics, names):
        await cloud.increase_size("pool", 2)
        await clock.sleep(minutes(10))

    assert play(body, rate=60.0)[1] == play(body, rate=60.0)[1]
