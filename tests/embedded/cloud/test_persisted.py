from __future__ import annotations

import asyncio
import json

import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.embedded.draws import fixed
from kubetide.objects.kinds import NODES
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds

GROUP = GroupSpec(
    name="pool",
    instance_type="m5.large",
    max_size=5,
    initial=1,
    boot=fixed(seconds(60)),
    ready=fixed(seconds(10)),
    shutdown=fixed(seconds(20)),
)


@pytest.mark.parametrize("at_s", [0, 30, 59, 65, 75, 85, 99, 120])
def test_a_cloud_resumes_from_its_persisted_state(at_s):
    """Whenever the process ends, machines boot, join and end at the times they would have, and none is lost or made twice."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        stored = []

        def make(last):
            return EmbeddedCloud(
                cluster,
                clock,
                seed=1,
                groups=[GROUP],
                keep=lambda value: stored.append(json.dumps(value)),
                stored=last,
            )

        cloud = make(None)
        await cloud.start()
        task = asyncio.create_task(cloud.run())
        found = []

        for second in range(150):
            if second == 20:
                await cloud.increase_size("pool", 2)
            if second == 82:
                (group,) = await cloud.refresh()
                await cloud.delete_nodes("pool", [group.instances[0].provider_id])
            if second == at_s:
                task.cancel()
                cloud = make(json.loads(stored[-1]))
                await cloud.start()
                task = asyncio.create_task(cloud.run())
            (group,) = await cloud.refresh()
            nodes = [node.metadata.name for node in (await cluster.list(NODES)).items]
            found.append(
                (group.target_size, [(each.provider_id, each.state) for each in group.instances], nodes)
            )
            await clock.sleep(seconds(1))
        task.cancel()
        return found

    start = parse_rfc3339("2026-03-02T00:00:00Z")
    found = run_virtual(main, start=start)
    sizes = [size for size, _, _ in found]
    assert (sizes[0], sizes[20], sizes[-1]) == (1, 3, 2)
    assert [len(nodes) for _, _, nodes in found[::30]] == [1, 1, 1, 3, 2]
    assert [len(nodes) for _, _, nodes in found].index(3) == 80
    assert [state for _, state in found[-1][1]] == ["Running", "Running"]


def test_persisted_machines_must_fit_the_groups():
    """Machines of a group that is no longer there are named, not dropped."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        stored = []
        cloud = EmbeddedCloud(cluster, clock, seed=1, groups=[GROUP], keep=stored.append)
        await cloud.start()
        other = GroupSpec(name="other", instance_type="m5.large", max_size=1)
        with pytest.raises(ValueError, match="1 machines of node group pool are stored"):
            EmbeddedCloud(cluster, clock, seed=1, groups=[other], stored=stored[-1])

    run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))
