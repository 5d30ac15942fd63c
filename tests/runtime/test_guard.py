"""Nothing is written past a guard that says no."""

from __future__ import annotations

import inspect

import pytest
from tests.nodes.live import SHORT, play, replayed

from kubetide.objects.kinds import CONFIG_MAPS, EVENTS, NODES
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import CloudWithheld, Withheld
from kubetide.runtime.clock import run_virtual
from kubetide.runtime.guard import Advice, guarded_cloud, guarded_cluster
from kubetide.units.time import Instant, minutes

READS = {"get", "list", "watch", "get_scale", "kinds", "name", "gpu_label", "refresh"}


class Switch:
    """A guard that can be told to refuse."""

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
