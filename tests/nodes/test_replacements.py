"""Larger pods that are to take the place of running ones: the node loop says what they would wait for, and buys."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nodes import frozen
from tests.nodes.frozen import group, node, pod, replica_set

from kubetide.nodes.records.export import copy_state
from kubetide.nodes.registry.quiet import is_quiet
from kubetide.nodes.scale_up.reporting.answers import replacement_waits
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.plan.board import Replacement
from kubetide.testing import builders
from kubetide.units.time import minutes


class World(frozen.World):
    """Keeps what the loop answers about replacements."""

    waits = None

    def after_step(self, commands, outcomes):
        if commands.answers is not None:
            self.waits = replacement_waits(self.state)


def budget(name, *, allowed):
    extra = {"status": {"disruptionsAllowed": allowed}}
    return msgspec.convert(
        builders.pdb(name, {"app": "web"}, namespace="default", extra=extra), PodDisruptionBudget
    )


def larger(name, cpu="2", uid=""):
    return Replacement(("default", name), uid or f"uid-{name}", {"app": {"cpu": cpu}})


def world_of(*running, nodes=("n1",), maximum=5, **objects):
    return World(
        nodes=[node(one) for one in nodes],
        pods=running,
        groups=[group("g", nodes=list(nodes), maximum=maximum)],
        replica_sets=(replica_set("web", 1),),
        **objects,
    )


def test_a_pod_that_grows_where_it_is_waits_for_nothing():
    """Of 4 CPUs 3 are taken; without the running pod there are 2."""
    world = world_of(pod("web-0", cpu="1", node="n1"), pod("zebra", cpu="2", node="n1"))
    before = world.state.snapshot.pods_on("n1")
    assert not world.increases(replacements=(larger("web-0"),))
    assert world.waits == {"uid-web-0": ""}
    assert world.state.snapshot.pods_on("n1") == before


def test_capacity_elsewhere_counts_too():
    """Its node is full, another one is not."""
    world = world_of(pod("web-0", cpu="1", node="n1"), pod("other", cpu="3", node="n1"), nodes=("n1", "n2"))
    assert not world.increases(replacements=(larger("web-0"),))
    assert world.waits == {"uid-web-0": ""}


def test_several_pods_of_a_node_share_what_it_has():
    """The first may grow in its place; for the second a node is bought, and said to be on its way until it is there."""
    world = world_of(pod("web-0", cpu="1", node="n1"), pod("web-1", cpu="1", node="n1"))
    both = (larger("web-0", "3"), larger("web-1", "3"))
    assert world.increases(replacements=both) == {"g": 1}
    assert world.waits == {"uid-web-0": "", "uid-web-1": "group g is asked for nodes"}
    assert world.reasons[-1].code != "IntentDemand"
    demanded = [one for one in world.reasons if one.code == "ReplacementDemand"]
    assert [(one.subject, one.fields["pods"]) for one in demanded] == [("ReplicaSet/default/web", 1)]
    assert world.events == [] or all("replacement" not in one.message for one in world.events)
    assert not world.increases(at=minutes(1))
    assert world.waits["uid-web-1"] == "nodes of group g are on their way"
    world.change("g", instances=group("g", nodes=["n1", "n2"]).instances)
    assert not world.increases(at=minutes(2), nodes=(node("n2"),))
    assert world.waits == {"uid-web-0": "", "uid-web-1": ""}
    # The node is kept for it, however long it takes until the pod is evicted.
    world.tick(at=minutes(30))
    assert list(world.state.memory.scale_down.unneeded) == []


def test_pods_that_wait_come_first():
    """The capacity beside the running pod is that of a pod that is waiting for the scheduler."""
    running = pod("web-0", cpu="2", node="n1")
    world = world_of(running, pod("waits", cpu="2", of="other"))
    assert not world.increases(replacements=(larger("web-0", "3"),))
    assert world.waits == {"uid-web-0": "its node has not the capacity"}


def test_what_no_group_takes_is_said():
    """The group is at its maximum, or no machine is so large."""
    running = pod("web-0", cpu="1", node="n1"), pod("other", cpu="3", node="n1")
    full = world_of(*running, maximum=1)
    assert not full.increases(replacements=(larger("web-0"),))
    assert full.waits["uid-web-0"] == "no node group takes it now: 1 max node group size reached"
    huge = world_of(*running)
    assert not huge.increases(replacements=(larger("web-0", "64"),))
    assert huge.waits["uid-web-0"] == "no node group takes it now: 1 Insufficient cpu"


def test_a_daemon_sets_pod_may_run_on_its_node_only():
    """Nothing is bought for it."""
    agent = pod("agent", cpu="1", node="n1", of="agent", kind="DaemonSet")
    world = world_of(agent, pod("other", cpu="3", node="n1"))
    assert not world.increases(replacements=(larger("agent"),))
    assert world.waits == {"uid-agent": "its node has not the capacity"}


def test_a_pod_for_which_no_node_is_ever_bought_waits_for_none():
    """It is evicted as if nobody asked, and takes what others leave."""
    low = pod("web-0", cpu="1", node="n1", spec={"priority": -20})
    world = world_of(low, pod("other", cpu="3", node="n1"))
    assert not world.increases(replacements=(larger("web-0"),))
    assert world.waits == {"uid-web-0": ""}


def test_nothing_is_held_for_a_pod_that_may_not_be_evicted():
    """Of two pods the budget allows one to go: for that a node is bought, the other one waits for the budget."""
    running = pod("web-0", cpu="2", node="n1"), pod("web-1", cpu="2", node="n1")
    world = world_of(*running, pdbs=(budget("web", allowed=1),))
    both = (larger("web-0", "3"), larger("web-1", "3"))
    assert world.increases(replacements=both) == {"g": 1}
    assert world.waits["uid-web-1"] == "PodDisruptionBudget default/web allows no eviction of it now"
    held = world_of(*running, pdbs=(budget("web", allowed=0),))
    assert not held.increases(replacements=both)


@pytest.mark.parametrize(
    "running",
    [
        [],
        [pod("web-0", cpu="1", node="n1", metadata={"uid": "another"})],
        [pod("web-0", cpu="1", node="n1", metadata={"deletionTimestamp": frozen.LONG_AGO})],
    ],
    ids=["gone", "another one of its name", "being deleted"],
)
def test_a_pod_that_runs_no_longer_is_not_replaced(running):
    """Its successor counts by itself."""
    world = world_of(*running, pod("other", cpu="4", node="n1"))
    assert not world.increases(replacements=(larger("web-0"),))
    assert world.waits == {}


def test_a_full_record_holds_them_and_the_loop_looks_again_in_each_tick():
    """A replay that begins with it decides the same; what is free may change by time alone."""
    world = world_of(pod("web-0", cpu="1", node="n1"))
    world.tick(replacements=(larger("web-0"),))
    assert copy_state(world.state).replacements == world.state.replacements != ()
    assert not is_quiet(world.state, world.now)
    world.tick(at=minutes(1), replacements=())
    assert world.waits == {}
    assert is_quiet(world.state, world.now)


@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    growth=st.lists(st.integers(0, 4), min_size=6, max_size=6),
)
def test_pods_that_wait_for_nothing_fit_together(sizes, growth):
    """All of them may be evicted at once, in any order: no node is overcommitted, and none is bought in vain."""
    nodes = ["n1", "n2", "n3"]
    used = dict.fromkeys(nodes, 0)
    running = []
    for number, size in enumerate(sizes):
        where = min(nodes, key=used.__getitem__)
        if used[where] + size <= 4:
            used[where] += size
            running.append((f"web-{number}", size, where))
    world = world_of(*(pod(name, cpu=str(size), node=where) for name, size, where in running), nodes=nodes)
    wanted = {name: size + more for (name, size, _), more in zip(running, growth, strict=False)}
    world.tick(replacements=tuple(larger(name, str(cpu)) for name, cpu in wanted.items()))
    ready = {name for name in wanted if world.waits[f"uid-{name}"] == ""}
    stay = sum(size for name, size, _ in running if name not in ready)
    assert stay + sum(wanted[name] for name in ready) <= 4 * len(nodes)
    if all(cpu <= size for (name, size, _), cpu in zip(running, wanted.values(), strict=True)):
        assert ready == set(wanted)
