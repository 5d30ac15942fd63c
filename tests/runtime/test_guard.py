"""Nothing is written past a guard that says no."""

from __future__ import annotations

import inspect

import pytest
from tests.nodes.live import SHORT, play, replayed

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.reasons import VOCABULARY
from kubetide.objects.kinds import CONFIG_MAPS, EVENTS, NODES, PODS
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import CloudWithheld, Forbidden, Withheld
from kubetide.runtime.guard import Advice, guarded_cloud, guarded_cluster
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import Instant, minutes, seconds

READS = {
    *("get", "list", "watch", "get_scale", "kinds"),
    *("group_candidates", "name", "gpu_label", "scaling_policies", "refresh"),
}


class Switch:
    """A guard that a test can switch to refuse."""

    def __init__(self):
        self.why = ""

    def refusal(self):
        return self.why


class Untouched:
    """Fails when anything of it is called."""

    def __getattr__(self, name):
        async def called(*_args, **_kwargs):
            raise AssertionError(f"{name} was called")

        return called


def methods(port):
    return [name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize(
    ("port", "guarded", "error"),
    [(Cluster, guarded_cluster, Withheld), (Cloud, guarded_cloud, CloudWithheld)],
    ids=["cluster", "cloud"],
)
def test_every_write_of_the_port_is_refused(port, guarded, error):
    """All that the port offers besides its reads ends at the guard, whatever it is given."""
    inner = guarded(Untouched(), Advice())
    writes = [name for name in methods(port) if name not in READS]
    assert writes

    async def story(_clock):
        for name in writes:
            with pytest.raises(error, match="only advises"):
                await getattr(inner, name)("some", "thing", namespace="shop")

    run_virtual(story, start=Instant(0))


def test_nodes_are_advised_and_nothing_is_bought():
    """Pending pods lead to the same advice in each tick: no machine, no backoff, no event, no status object."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(8))
        assert world.nodes == []
        assert len(world.pending) == 6
        assert [e for e in (await world.cluster.list(EVENTS)).items if "ScaleUp" in e.reason] == []
        assert not (await world.cluster.list(CONFIG_MAPS)).items
        assert world.controller.state.memory.backoff == {}

    world = play(story, guard=Advice())
    advised = [one for one in world.recorder.reasons if one.code == "IncreaseAdvised"]
    assert {(one.fields["size"], one.fields["to"]) for one in advised} == {(0, 6)}
    assert replayed(world) > 20


def test_what_was_begun_rests_when_the_guard_refuses_and_goes_on_after():
    """Unneeded nodes are only advised on while the guard refuses, without a taint; then they go."""
    guard = Switch()

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(5))
        guard.why = "the lease is lost"
        await world.scale("web", 1)
        await world.after(minutes(12))
        assert len(world.nodes) == 6
        nodes = (await world.cluster.list(NODES)).items
        assert not any(
            taint.key == "ToBeDeletedByClusterAutoscaler"
            for node in nodes
            for taint in node.spec.taints or ()
        )
        guard.why = ""
        await world.after(minutes(3))
        assert len(world.nodes) == 1

    world = play(story, guard=guard, **SHORT)
    assert any(one.code == "RemovalAdvised" for one in world.recorder.reasons)
    assert replayed(world) > 50


def refuse_nodes(world):
    """Let nobody read a node by its name, as the shipped role of a run that advises."""
    get = world.cluster.get

    async def refused(kind, name, **where):
        if kind.resource == NODES.resource:
            raise Forbidden(f'nodes "{name}" is forbidden')
        return await get(kind, name, **where)

    world.cluster.get = refused


def test_a_removal_is_advised_once_as_advice_and_the_next_steps_follow_it():
    """Nodes are not read for a taint nobody may set, nothing counts as failed, and each node is named once in ten minutes."""
    guard = Switch()

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(5))
        guard.why = "this run only advises"

        refuse_nodes(world)
        await world.scale("web", 1)
        await world.after(minutes(10))
        memory = world.controller.state.memory.scale_down
        assert memory.last_failure is None
        assert world.controller.health.failures == 0
        advised = [name for name, one in memory.deletions.items() if one.phase == "advised"]
        assert len(advised) == 5
        said = explain_node(world.controller.state, advised[0], world.clock.now())
        assert (said.status, said.sentence.split(" since ")[0]) == ("unneeded", "Its removal is advised")
        # A pod that comes to such a node ends the advice about it.
        bound = builders.pod("late", extra={"spec": {"nodeName": advised[0]}})
        await world.cluster.create(PODS, bound, namespace="default")
        await world.after(seconds(20))
        assert advised[0] not in world.controller.state.memory.scale_down.deletions

    world = play(story, guard=guard, advises=True, **SHORT)
    reported = [one for one in world.recorder.reasons if one.code == "RemovalAdvised"]
    assert {one.subject for one in reported} == {one.subject for one in reported[:5]}
    assert len(reported) <= 6
    texts = [VOCABULARY.text(one) for one in reported]
    assert all(" would go: empty and unneeded for " in text for text in texts)
    assert not [one for one in world.recorder.reasons if one.code in {"EmptyNodeChosen", "NodeChosen"}]
    assert replayed(world) > 50


def test_a_taint_that_is_refused_is_reported_with_its_error():
    """A run that acts and lacks a right says which node it could not mark, and why."""

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))

        refuse_nodes(world)
        await world.scale("web", 1)
        await world.after(minutes(5))
        assert "could not be tainted for deletion" in world.controller.health.last_failure
        world.controller.health.failures = 0

    world = play(story, **SHORT)
    failed = next(one for one in world.recorder.reasons if one.code == "DeletionFailed")
    assert failed.fields["why"] == "NodeDeleteErrorFailedToMarkToBeDeleted"
    assert "is forbidden" in failed.fields["error"]
