"""The provider ``kwok`` while one thing after another goes wrong between it and the API server: what must hold always.

As ``test_faults`` for the vendors. The world changes by others who create and delete nodes of a group.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clouds.faults import LOST, REFUSALS, WORLD, Fault, FaultyCluster, answer_or_error
from tests.clouds.test_kwok import START, config_of, kwok, template
from tests.tasks import stop

from kubetide.clouds.kwok.cloud import KwokCloud
from kubetide.clouds.kwok.templates import read_groups
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import NODES
from kubetide.objects.node import node_condition
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes, seconds

BOUNDS = {"web": (0, 4), "system": (1, 3), "workers": (2, 2)}
RUNNING = {"web": 1, "system": 2, "workers": 2}
GROUP = "cluster-autoscaler.kwok.nodegroup/name"

faults = st.builds(
    Fault,
    kind=st.sampled_from(("refused", "unwatched", *LOST, *WORLD)),
    first=st.integers(0, 9),
    times=st.sampled_from((1, 2, 6, 100)),
    at=st.floats(0, 1, exclude_max=True),
    refusal=st.sampled_from(REFUSALS),
)
steps = st.tuples(
    st.sampled_from(("look", "wait", "rest", "increase", "decrease", "delete")),
    st.sampled_from(tuple(BOUNDS)),
    st.booleans(),
)


class Life:
    """A provider on a cluster whose nodes kwok plays, and what it may have done.

    What happens to the world between a question and an order can no provider know: a size may then pass its bound by
    one, until the cache has seen it.
    """

    def __init__(self, clock, fault):
        self.clock, self.fault = clock, fault
        self.cluster = EmbeddedCluster(Store(), clock, seed=1)
        templates = [template(name, least=least, most=most) for name, (least, most) in BOUNDS.items()]
        self.groups = {one.name: one for one in read_groups(templates, config_of(), "here")}
        self.faulty = FaultyCluster(self.cluster, clock)
        self.faulty.happen = self.happen
        self.cloud = KwokCloud(self.faulty, clock, config_of(), tuple(self.groups.values()), seed=1)
        self.made, self.gone = 0, set()
        self.slack = int(fault.kind in WORLD)

    async def make(self, group):
        """Create a node, as others may."""
        self.made += 1
        await self.cluster.create(NODES, self.groups[group].new_node(f"{group}-by-others-{self.made}"))

    async def happen(self):
        """Let others do to a group what the fault says."""
        name = sorted(BOUNDS)[int(self.fault.at * len(BOUNDS))]
        nodes = await self.nodes(name)
        one = next(iter(sorted(nodes)), None)
        kind = self.fault.kind
        if kind == "grown" and len(nodes) < BOUNDS[name][1]:
            await self.make(name)
        elif one and (kind == "replaced" or (kind in {"shrunk", "deleted"} and len(nodes) > BOUNDS[name][0])):
            self.gone.add(one)
            await self.cluster.delete(NODES, one)
            if kind == "replaced":
                await self.make(name)

    async def nodes(self, group):
        """Return the nodes of a group as they are, by name."""
        listed = (await self.cluster.list(NODES)).items
        return {
            one.metadata.name: one for one in listed if (one.metadata.annotations or {}).get(GROUP) == group
        }

    async def look(self, _name):
        groups, _ = await answer_or_error(self.cloud.refresh())
        for group in groups or ():
            ids = [one.provider_id for one in group.instances]
            assert len(ids) == len(set(ids))

    async def wait(self, _name):
        await self.clock.sleep(seconds(70))

    async def rest(self, _name):
        await self.clock.sleep(minutes(6))

    async def increase(self, name):
        before = len(await self.nodes(name))
        _, error = await answer_or_error(self.cloud.increase_size(name, 1))
        after = len(await self.nodes(name))
        expected = {before + 1} if error is None else {before, before + 1}
        assert any(abs(after - one) <= self.slack for one in expected)

    async def decrease(self, name):
        before = await self.nodes(name)
        await answer_or_error(self.cloud.decrease_target_size(name, 1))
        lost = before.keys() - (await self.nodes(name)).keys() - self.gone
        assert len(lost) <= 1
        for one in lost:
            assert node_condition(before[one], "Ready") is None, f"{one} was in use"

    async def delete(self, name):
        before = await self.nodes(name)
        for one in sorted(before)[:1]:
            await answer_or_error(self.cloud.delete_nodes(name, [f"kwok:{one}"]))
            assert before.keys() - (await self.nodes(name)).keys() <= {one, *self.gone}

    async def check(self):
        """Check what holds after each step."""
        for name, (least, most) in BOUNDS.items():
            size = len(await self.nodes(name))
            assert least - self.slack <= size <= most + self.slack, f"{name} has {size} nodes"

    async def recovered(self):
        """Look when everything is well for some time: all is as it is in the cluster."""
        self.faulty.set(None)
        await self.clock.sleep(minutes(20))
        groups, error = await answer_or_error(self.cloud.refresh())
        assert groups is not None, error
        for group in groups:
            nodes = await self.nodes(group.id)
            assert (group.stale, group.target_size) == ("", len(nodes))
            assert {one.provider_id for one in group.instances} == {f"kwok:{one}" for one in nodes}


def live(fault, story):
    """Play ``story(life)`` with the nodes of ``RUNNING``, which kwok plays."""

    async def main(clock):
        life = Life(clock, fault)
        for name, count in RUNNING.items():
            for _ in range(count):
                await life.make(name)
        player = asyncio.create_task(kwok(life.cluster, clock))
        await clock.sleep(seconds(30))
        async with life.cloud.open():
            await story(life)
        await stop(player)

    run_virtual(main, start=START)


@settings(max_examples=200, deadline=None)
@given(fault=faults, steps=st.lists(steps, min_size=1, max_size=6), begun=st.booleans())
def test_faults_between_kwok_and_the_api_server(fault, steps, begun):
    """Each call ends in an answer or a CloudError, sizes keep their bounds, nothing is done twice, and all recovers."""

    async def story(life):
        if begun:
            await life.clock.sleep(seconds(1))
        life.faulty.set(fault)
        for step, name, hurries in steps:
            await getattr(life, step)(name)
            await life.check()
            if not hurries:
                await life.clock.sleep(seconds(10))
        await life.recovered()

    live(fault, story)


async def increases(life):
    for _ in range(2):
        await answer_or_error(life.cloud.increase_size("system", 1))


async def deletions(life):
    for one in sorted(await life.nodes("system")):
        await answer_or_error(life.cloud.delete_nodes("system", [f"kwok:{one}"]))


@pytest.mark.parametrize("orders", [increases, deletions], ids=lambda orders: orders.__name__)
def test_an_order_without_an_answer_counts_for_the_bounds(orders):
    """The next order, before the cache has seen what came of it, neither passes the maximum nor the minimum."""

    async def story(life):
        await life.clock.sleep(seconds(1))
        life.faulty.set(Fault("lost after"))
        await orders(life)
        await life.check()
        await life.recovered()

    live(Fault("lost after"), story)


def test_nothing_is_ordered_while_the_nodes_cannot_be_watched():
    """What was created would be forgotten after five minutes, and ordered again; groups say why they are as before."""

    async def story(life):
        await life.clock.sleep(seconds(1))
        life.faulty.set(Fault("unwatched"))
        await life.cloud.increase_size("web", 3)
        await life.clock.sleep(minutes(6))
        assert {one.stale for one in await life.cloud.refresh()} == {
            "the nodes cannot be watched: connection reset"
        }
        with pytest.raises(CloudError, match="web: the nodes cannot be watched: connection reset; nothing"):
            await life.cloud.increase_size("web", 3)
        await life.recovered()

    live(Fault("unwatched"), story)


def test_a_node_that_kwok_plays_by_now_is_not_withdrawn():
    """It may have pods, though the cache has not seen it Ready."""

    async def story(life):
        await life.clock.sleep(seconds(1))
        await life.cloud.increase_size("web", 1)
        await life.clock.sleep(seconds(1))
        new = next(name for name, node in (await life.nodes("web")).items() if not node.status.conditions)
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
        await life.cluster.patch(NODES, new, ready, subresource="status")
        with pytest.raises(CloudError, match="deletion of 1 nodes") as refused:
            await life.cloud.decrease_target_size("web", 1)
        assert refused.value.error_code == "Conflict"
        assert new in await life.nodes("web")
        await life.recovered()

    live(Fault("refused"), story)
