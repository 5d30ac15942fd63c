"""Calls that delete machines: in a group one after another, for a cloud reads the group's size before each."""

from __future__ import annotations

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.nodes.controller.act import Actor
from kubetide.nodes.decision import DeleteNodes
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds


class Slow(Cloud):
    """A cloud that takes a second for each deletion, and refuses that of ``a-1``."""

    def __init__(self, clock):
        self._clock = clock
        self.running: list[str] = []
        self.together: list[tuple[str, ...]] = []

    async def delete_nodes(self, group_id, provider_ids, *, force=False):
        self.running.append(group_id)
        self.together.append(tuple(sorted(self.running)))
        await self._clock.sleep(seconds(1))
        self.running.remove(group_id)
        if "a-1" in provider_ids:
            raise CloudError("throttled")


def test_calls_of_a_group_follow_one_another():
    """Groups do not wait for each other, and a call that fails stops no other; outcomes are in the order of the actions."""

    async def main(clock):
        cloud = Slow(clock)
        actor = Actor(EmbeddedCluster(Store(), clock, seed=1), cloud, clock)
        nodes = ("a-0", "b-0", "a-1", "a-2")
        done = await actor.act([DeleteNodes(one[0], (one,), (one,)) for one in nodes])
        assert [one.status for one in done.results] == ["ok", "ok", "failed", "ok"]
        assert ("a", "b") in cloud.together
        assert not any(len(set(groups)) < len(groups) for groups in cloud.together)

    run_virtual(main, start=parse_rfc3339("2026-01-01T00:00:00Z"))
