"""Calls that delete machines: in a group one after another, for a cloud reads the group's size before each."""

from __future__ import annotations

import pytest
from tests.nodes.live import SHORT, play, replayed

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.nodes.controller.act import Actor
from kubetide.nodes.decision import DeleteNodes
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes, parse_rfc3339, seconds


class Slow(Cloud):
    """A cloud that takes a second or longer for each deletion, and refuses that of ``a-1``."""

    def __init__(self, clock, takes_s=1):
        self._clock, self._takes = clock, seconds(takes_s)
        self.running: list[str] = []
        self.together: list[tuple[str, ...]] = []

    async def delete_nodes(self, group_id, provider_ids, *, force=False):
        self.running.append(group_id)
        self.together.append(tuple(sorted(self.running)))
        await self._clock.sleep(self._takes)
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


def test_calls_of_a_slow_cloud_are_put_off():
    """The first of each group is made in any case; after three seconds the others are left to the next step."""

    async def main(clock):
        actor = Actor(EmbeddedCluster(Store(), clock, seed=1), Slow(clock, takes_s=2), clock)
        nodes = ("a-0", "b-0", "a-2", "a-3", "a-4")
        done = await actor.act([DeleteNodes(one[0], (one,), (one,)) for one in nodes])
        assert [one.status for one in done.results] == ["ok", "ok", "ok", "skipped", "skipped"]

    run_virtual(main, start=parse_rfc3339("2026-01-01T00:00:00Z"))


def seen_of(world, name):
    node = world.controller.state.nodes.get(name)
    if node is None:
        return "gone"
    return "closed" if any(one.key == TO_BE_DELETED for one in node.spec.taints or ()) else "open"


@pytest.mark.parametrize(
    ("is_done", "may_be_done", "expected"),
    [
        (True, True, ["closed", "gone"]),
        (False, True, ["closed", "open"]),
        (False, False, ["open"]),
    ],
    ids=["done all the same", "not done", "refused"],
)
def test_a_node_whose_deletion_has_no_answer_takes_no_pods_for_a_while(is_done, may_be_done, expected):
    """Its machine may be going. One that is there after five minutes is open again; one that was refused is so at once."""

    async def story(world):
        delete = world.cloud.delete_nodes

        async def lost(*args, **options):
            if is_done:
                await delete(*args, **options)
            raise CloudError("the answer is lost", may_be_done=may_be_done)

        await world.deploy(replicas=1, cpu="1500m")
        await world.after(minutes(4))
        [name] = world.nodes
        world.controller._actor._cloud.delete_nodes = lost
        await world.scale("web", 0)
        while not world.controller.state.memory.scale_down.results:
            await world.after(seconds(1))
        for _ in range(40):
            await world.after(seconds(10))
            seen.append(seen_of(world, name))

    seen = []
    assert replayed(play(story, **SHORT))
    assert list(dict.fromkeys(seen))[: len(expected)] == expected
    assert seen.count("closed") <= 30


def test_pods_get_nodes_while_a_slow_cloud_deletes_others():
    """Eight machines of ten seconds each take over a minute; a pod that comes meanwhile is served after an interval."""

    async def story(world):
        delete = world.cloud.delete_nodes

        async def slow(*args, **options):
            await world.after(seconds(10))
            await delete(*args, **options)

        await world.deploy(replicas=8, cpu="1500m")
        await world.after(minutes(4))
        world.controller._actor._cloud.delete_nodes = slow
        await world.scale("web", 0)
        while not any(
            one.phase == "deleting" for one in world.controller.state.memory.scale_down.deletions.values()
        ):
            await world.after(seconds(1))
        await world.deploy("large", replicas=1, cpu="1900m")
        await world.after(seconds(30))
        assert len(await world.events("TriggeredScaleUp")) == 9
        assert len(world.controller.state.memory.scale_down.deletions) > 3
        await world.after(minutes(4))
        assert not world.controller.state.memory.scale_down.deletions
        assert len(world.nodes) == 1

    assert replayed(play(story, **SHORT))
