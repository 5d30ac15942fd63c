from __future__ import annotations

import asyncio

import msgspec

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.nodes.controller.gather import Gatherer
from kubetide.nodes.records.export import export_state
from kubetide.nodes.state import Delta, State
from kubetide.objects.kinds import JOBS, STATEFUL_SETS
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.watching import Caches

POD = {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}
SET = {
    "selector": {"matchLabels": {"app": "db"}},
    "template": {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    },
}


def test_the_loop_knows_the_owners_that_are_there():
    """StatefulSets and Jobs reach the state when they come, leave it when they go, and survive a record."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        groups = [GroupSpec(name="pool", instance_type="m5.large", max_size=1)]
        cloud = EmbeddedCloud(cluster, clock, seed=1, groups=groups)
        state, caches = State(), Caches(cluster, clock)
        gatherer = Gatherer(cluster, cloud, clock, None, state, caches)
        tasks = [asyncio.create_task(caches.run())]
        await cluster.create(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": SET}, namespace="default")
        await cluster.create(
            JOBS, {"metadata": {"name": "work"}, "spec": {"template": {"spec": POD}}}, namespace="default"
        )
        await clock.sleep(seconds(1))
        state.apply(await gatherer.begin())
        gatherer.finished()
        assert (list(state.stateful_sets), list(state.jobs)) == ([("default", "db")], [("default", "work")])
        again = State()
        raw = msgspec.json.encode(export_state(state))
        again.apply(msgspec.json.decode(raw, type=Delta), full=True)
        assert (again.stateful_sets, again.jobs) == (state.stateful_sets, state.jobs)
        # A change of a status is no change for this loop.
        await cluster.patch(
            JOBS, "work", {"status": {"active": 1}}, namespace="default", subresource="status"
        )
        await clock.sleep(seconds(1))
        assert (await gatherer.begin()).jobs == ()
        gatherer.finished()
        await cluster.delete(STATEFUL_SETS, "db", namespace="default")
        await cluster.delete(JOBS, "work", namespace="default")
        await clock.sleep(seconds(1))
        state.apply(await gatherer.begin())
        gatherer.finished()
        assert (state.stateful_sets, state.jobs) == ({}, {})
        for task in tasks:
            task.cancel()

    run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))
