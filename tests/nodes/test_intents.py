"""Intents on the board: nodes for replicas that other loops announce, ahead of their pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import (
    START,
    World,
    convert,
    deployment,
    group,
    node,
    pod,
    pods,
    replica_set,
    template,
)

from kubetide.nodes.scale_up.pending.demand import expected_boot, lead_of
from kubetide.objects.pod import PodSpec
from kubetide.plan.board import Capacity, Intent, Workload
from kubetide.units.time import after, format_rfc3339, minutes, seconds

WEB = Workload("default", "Deployment", "web")


def test_hidden_demand_is_bought_before_its_pods_exist():
    """Announced replicas get nodes from the next tick on, without waiting for their pods, and no events."""
    world = World(
        groups=[group("g")],
        deployments=(deployment("web", 2, cpu="3"),),
        settings={"demand_sources": ("pending", "intents")},
    )
    intent = Intent(workload=WEB, replicas=3, due=START, source="horizontal")
    assert world.increases(intents=(intent,)) == {}, "due already: their pods are made meanwhile"
    assert world.increases(at=seconds(10)) == {"g": 3}
    assert world.messages("TriggeredScaleUp") == []


@pytest.mark.parametrize(
    "body",
    [
        {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"cpu": "3"}}}]},
        {
            "containers": [{"name": "main", "image": "x", "ports": [{"containerPort": 9100}]}],
            "hostNetwork": True,
        },
    ],
    ids=["limits", "ports of the host"],
)
def test_a_replica_is_what_the_api_server_makes_of_the_template(body):
    """Limits alone are its requests, and on the host's network its ports are the host's, as of a pod that exists."""
    web = deployment("web", 2)
    spec = convert(body, PodSpec)
    web = replace(web, spec=replace(web.spec, template=replace(web.spec.template, spec=spec)))
    world = World(
        groups=[group("g")], deployments=(web,), settings={"demand_sources": ("pending", "intents")}
    )
    intent = Intent(workload=WEB, replicas=3, due=START, source="horizontal")
    world.tick(intents=(intent,))
    assert world.increases(at=seconds(10)) == {"g": 3}


def test_intents_buy_nothing_where_they_are_not_a_source():
    """Strict drop-in settings do not look at the board."""
    world = World(groups=[group("g")], deployments=(deployment("web", 2),))
    intent = Intent(workload=WEB, replicas=3, due=START, source="horizontal")
    assert world.increases(intents=(intent,)) == {}


def test_existing_pods_do_not_count_twice():
    """A pod that exists, pending or not, is not demanded by the intent as well."""
    sets = (replica_set("web", 3, of="web"),)
    world = World(
        pods=pods("a", 3, cpu="3"),
        groups=[group("g")],
        replica_sets=sets,
        deployments=(deployment("web", 3),),
        settings={"demand_sources": ("pending", "intents")},
    )
    intent = Intent(workload=WEB, replicas=4, due=START, source="horizontal")
    assert world.increases(intents=(intent,)) == {"g": 3}
    assert world.increases(at=seconds(10)) == {"g": 1}


@pytest.mark.parametrize("kind", ["StatefulSet", "CronTab"])
def test_a_workload_that_controls_its_pods_itself(kind):
    """The missing replicas of a StatefulSet or a custom kind look like its existing pods."""
    workload = Workload("default", kind, "db")
    intent = Intent(workload=workload, replicas=5, due=START, source="horizontal")
    settings = {"demand_sources": ("pending", "intents")}
    own = pods("db", 2, cpu="3", kind=kind, of="db")
    others = pods("other", 1, cpu="3", kind=kind, of="other")
    world = World(pods=[*own, *others], groups=[group("g")], settings=settings)
    assert world.increases(intents=(intent,)) == {"g": 3}, "the pods that are pending"
    assert world.increases(at=seconds(10)) == {"g": 3}
    assert World(groups=[group("g")], settings=settings).increases(intents=(intent,)) == {}


def test_announced_replicas_that_never_appear_are_given_up():
    """Requested replicas that do not exist after 10 minutes buy nothing."""
    world = World(
        groups=[group("g", maximum=99)],
        deployments=(deployment("web", 2, cpu="3"),),
        settings={"demand_sources": ("pending", "intents")},
    )
    world.refused["g"] = "no"
    world.tick(intents=(Intent(workload=WEB, replicas=2, due=START, source="horizontal"),))
    world.refused.clear()
    assert world.increases(at=minutes(11)) == {}


def test_nodes_are_requested_ahead_of_a_due_time():
    """Nothing is bought until the due time is as near as boot and start of a pod take; 4 minutes before anything was seen."""
    world = World(
        groups=[group("g")],
        deployments=(deployment("web", 0, cpu="3"),),
        settings={"demand_sources": ("pending", "intents")},
    )
    intent = Intent(workload=WEB, replicas=2, due=after(START, minutes(10)), source="schedules")
    assert world.increases(intents=(intent,)) == {}
    assert world.increases(at=minutes(5)) == {}
    assert world.increases(at=minutes(6.5)) == {"g": 2}


def test_the_lead_is_learned_from_boots_and_pod_starts():
    """It is the 95th percentile of the joins of the slowest group, and of the pods' own starts."""
    state = World(groups=[group("g")]).state
    intent = Intent(workload=WEB, replicas=2, due=START, source="forecast", start=seconds(20))
    assert lead_of(intent, expected_boot(state)) == minutes(3) + seconds(20)
    state.memory.join_times = {"g": tuple(map(seconds, range(61, 101))), "h": (seconds(30),)}
    assert lead_of(intent, expected_boot(state)) == seconds(98 + 20)


def test_an_intent_that_has_ended_buys_nothing():
    """Placeholders for pods that did not come are given up at the end of their time."""
    world = World(
        groups=[group("g")],
        deployments=(deployment("web", 0, cpu="3"),),
        settings={"demand_sources": ("pending", "intents")},
    )
    ended = Intent(workload=WEB, replicas=2, due=START, source="forecast", until=after(START, minutes(1)))
    assert world.increases(at=minutes(2), intents=(ended,)) == {}


def test_capacity_is_answered_on_the_board():
    """The board answers how many pods of a workload have no place, and when nodes are expected if joins were seen."""
    world = World(
        pods=pods("a", 2, cpu="3"),
        groups=[group("g")],
        replica_sets=(replica_set("web", 2, of="web"),),
        deployments=(deployment("web", 2),),
        settings={"demand_sources": ("pending", "intents")},
    )
    world.tick()
    assert world.commands[0].answers == (Capacity(WEB, 2, None, "group g is asked for nodes"),)
    world.state.memory.join_times["g"] = (minutes(2),)
    world.tick(at=seconds(10))
    assert world.commands[0].answers == (
        Capacity(WEB, 2, after(START, minutes(2)), "nodes of group g are on their way"),
    )


@pytest.mark.parametrize(
    ("settings", "groups", "why"),
    [
        ({}, [group("g", maximum=1, nodes=("n1",))], "1 max node group size reached"),
        ({}, [group("g", made=template(cpu="2"))], "1 Insufficient cpu"),
        ({}, [], "there are no node groups"),
        ({"max_nodes_total": 1}, [group("g")], "max total nodes in cluster reached"),
    ],
    ids=["full", "too small", "none", "nodes in total"],
)
def test_replicas_that_no_group_takes_are_answered_with_the_reason(settings, groups, why):
    """The workload is told how many of its replicas cannot run now, and why: those that wait, and those to come."""
    world = World(
        nodes=[node("n1", cpu="1")],
        pods=pods("a", 2, cpu="3"),
        groups=groups,
        replica_sets=(replica_set("web", 2, of="web"),),
        deployments=(deployment("web", 2, cpu="3"),),
        settings={"demand_sources": ("pending", "intents"), **settings},
    )
    intent = Intent(workload=WEB, replicas=3, due=START, source="horizontal")
    world.tick(intents=(intent,))
    world.tick(at=seconds(10))
    (answer,) = world.commands[0].answers
    assert (answer.missing, answer.refused, answer.expected, answer.detail) == (3, 3, None, why)


def test_pods_that_are_too_new_are_refused_by_nobody():
    """No group was asked yet."""
    world = World(
        pods=[pod("a", cpu="3", created=format_rfc3339(START))],
        groups=[group("g")],
        replica_sets=(replica_set("web", 1, of="web"),),
        deployments=(deployment("web", 1),),
        settings={"demand_sources": ("pending", "intents"), "new_pod_scale_up_delay": minutes(1)},
    )
    world.tick()
    assert world.commands[0].answers == (Capacity(WEB, 1, None, "its pods are too new to be looked at"),)


def test_without_intents_nothing_is_answered():
    """As in upstream's programs, the loops know nothing of each other."""
    world = World(pods=pods("a", 2, cpu="3"), deployments=(deployment("web", 2),))
    world.tick()
    assert world.commands[0].answers == ()


def test_holds_stop_removal_but_not_buying():
    """When the caches cannot be trusted nothing is deleted, though pods still get nodes."""
    world = World(
        nodes=[node("n1"), node("n2")],
        pods=[pod("a", cpu="5")],
        groups=[group("g", nodes=["n1", "n2"]), group("big", made=template(cpu="8"))],
    )
    assert world.increases(holds=("nothing was heard",)) == {"big": 1}
    actions = world.tick(at=minutes(30), holds=("nothing was heard",))
    assert not any(getattr(one, "key", "").startswith("ToBeDeleted") for one in actions)
    assert world.state.memory.scale_down.status.result == "ScaleDownInCooldown"
