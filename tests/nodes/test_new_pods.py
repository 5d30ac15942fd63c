"""Pods whose requests a VPA sets: a pod that is moved comes back with what new pods of its workload ask for."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START, World, daemon_set, deployment, group, node, pod, pods, replica_set

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.records.export import copy_state
from kubetide.plan.board import Intent, Workload
from kubetide.units.time import hours, minutes

SET_BY_VPA = {"annotations": {"vpaUpdates": "Pod resources updated by web: container 0: cpu request"}}
INTENTS = {"demand_sources": ("pending", "intents")}


def unneeded(world):
    return list(world.state.memory.scale_down.unneeded)


def boosted_world(metadata, **settings):
    """A pod of ``web`` that waited asked for 2 CPUs; started, it asks for 1, and 1.5 CPUs are free elsewhere."""
    waiting = pod("web-0", cpu="2", metadata=metadata)
    world = World(
        nodes=[node("n1"), node("n2")],
        pods=[waiting, pod("other", cpu="2500m", node="n2", of="other")],
        groups=[group("g", nodes=["n1", "n2"])],
        replica_sets=(replica_set("web", 1), replica_set("other", 1)),
        settings=settings,
    )
    world.tick()
    world.tick(at=minutes(1), pods=(pod("web-0", cpu="1", node="n1", metadata=metadata),))
    return world


@pytest.mark.parametrize(
    ("metadata", "settings", "gone"),
    [
        (SET_BY_VPA, INTENTS, []),
        (SET_BY_VPA, {"consolidation_enabled": True}, []),
        (SET_BY_VPA, {}, ["n1"]),
        ({}, INTENTS, ["n1"]),
    ],
    ids=["one plan", "consolidation", "as upstream", "no VPA"],
)
def test_a_node_stays_whose_pod_would_fit_nowhere_when_it_comes_back(metadata, settings, gone):
    """A start-up boost, or a higher recommendation, would buy a node again at once; that went on for ever."""
    world = boosted_world(metadata, **settings)
    world.tick(at=minutes(15))
    assert unneeded(world) == gone


def test_the_answer_says_what_the_new_pod_asks_for():
    """Both amounts are named: that of now alone would fit."""
    world = boosted_world(SET_BY_VPA, **INTENTS)
    world.tick(at=minutes(15))
    said = explain_node(world.state, "n1", world.now).sentence
    assert "as a new pod it asks for cpu 2 in place of 1, by its VPA" in said


def test_what_new_pods_ask_for_is_forgotten_after_a_day():
    """Recommendations change; a day later the node is tried with the requests of now."""
    world = boosted_world(SET_BY_VPA, **INTENTS)
    world.tick(at=hours(25))
    assert unneeded(world) == ["n1"]


def test_announced_replicas_ask_for_what_new_pods_do():
    """The nodes ordered for them are large enough for their start."""
    waiting = pod("web-0", cpu="3", of="web-rs", metadata=SET_BY_VPA)
    world = World(
        groups=[group("g", nodes=["n1"])],
        nodes=[node("n1")],
        pods=[waiting],
        deployments=(deployment("web", 1, cpu="1"),),
        replica_sets=(replica_set("web-rs", 1, of="web", cpu="1"),),
        settings=INTENTS,
    )
    world.tick()
    running = pod("web-0", cpu="1", node="n1", of="web-rs", metadata=SET_BY_VPA)
    world.tick(at=minutes(1), pods=(running,))
    due = START + minutes(3)
    intent = Intent(
        workload=Workload("default", "Deployment", "web"), replicas=3, due=due, source="schedules"
    )
    assert world.increases(at=minutes(2), intents=(intent,)) == {"g": 1}


@pytest.mark.parametrize(("settings", "asked"), [(INTENTS, 2), ({}, 1)], ids=["one plan", "as upstream"])
@pytest.mark.parametrize("nodes", [[], ["n1"]], ids=["from zero", "live node"])
def test_a_new_node_has_what_a_daemon_sets_new_pods_ask_for(nodes, settings, asked):
    """A VPA has made the agent larger than its template and its pods on older nodes say; new nodes are bought for that."""
    grown = pod("agent-0", cpu="2500m", of="agent", kind="DaemonSet", metadata=SET_BY_VPA)
    old = [pod("agent-1", cpu="100m", node=one, of="agent", kind="DaemonSet") for one in nodes]
    full = [pod("full", cpu="3800m", node=one, of="full") for one in nodes]
    world = World(
        groups=[group("g", nodes=nodes)],
        nodes=[node(one) for one in nodes],
        pods=[grown, *old, *full, *pods("web", 2, cpu="1500m")],
        daemon_sets=(daemon_set("agent", cpu="100m"),),
        settings=settings,
    )
    assert world.increases() == {"g": asked}


def announced_world(**settings):
    """A pod of ``web`` that asks for 1 CPU; 1.5 are free elsewhere, and its VPA gives 2 to new ones."""
    world = World(
        nodes=[node("n1"), node("n2")],
        pods=[pod("web-0", cpu="1", node="n1"), pod("other", cpu="2500m", node="n2", of="other")],
        groups=[group("g", nodes=["n1", "n2"])],
        replica_sets=(replica_set("web", 1), replica_set("other", 1)),
        settings=settings,
    )
    world.tick(new_pods={"uid-web": {"app": {"cpu": "2"}}})
    return world


@pytest.mark.parametrize(
    ("settings", "gone"),
    [(INTENTS, []), ({"consolidation_enabled": True}, []), ({}, ["n1"])],
    ids=["one plan", "consolidation", "as upstream"],
)
def test_what_new_pods_will_ask_for_is_announced(settings, gone):
    """No pod has to come back larger, and wait for a node, before it is known."""
    world = announced_world(**settings)
    world.tick(at=minutes(15))
    assert unneeded(world) == gone
    assert not world.increases()


def test_what_is_no_longer_announced_is_forgotten():
    """The VPA is gone: new pods ask for what their template says."""
    world = announced_world(**INTENTS)
    world.tick(at=minutes(1))
    world.tick(at=minutes(2), new_pods={})
    world.tick(at=minutes(15))
    assert unneeded(world) == ["n1"]


def test_a_state_from_a_full_record_knows_what_was_announced():
    """A replay that begins with it decides the same."""
    world = announced_world(**INTENTS)
    again = copy_state(world.state)
    assert again.announced_new_pods == {"uid-web": {"app": {"cpu": "2"}}}
    assert again.memory.new_pods == world.state.memory.new_pods
