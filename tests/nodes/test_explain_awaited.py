"""What a pod waits for that has a node in prospect: since when that is on its way, until when, and what is still missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, World, group, node, pod
from tests.nodes.requests import TEMPLATES, request, world

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.ports.cloud import Instance
from kubetide.units.time import after, before, format_rfc3339, minutes, seconds

NOT_READY = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}


def explained(world, name="a"):
    found = explain_pod(world.state, ("default", name), world.now)
    return found.status, found.sentence


def nominated(name, to, **fields):
    made = pod(name, **fields)
    return replace(made, status=replace(made.status, nominated_node_name=to))


def joined(world, name, **fields):
    """Let the group's machine register as a node."""
    known = world.groups["g"]
    machine = Instance(provider_id=f"cloud:///{name}")
    world.groups["g"] = replace(known, instances=(*(known.instances or ()), machine))
    return node(name, created=format_rfc3339(world.now), **fields)


def test_a_pod_whose_node_is_on_its_way_says_since_when_and_until_when():
    """First nobody knows how long a node takes; then it is the slowest of the last ones, and later than that, until it is given up."""
    world = World(pods=[pod("a", cpu="3")], groups=[group("g")])
    world.tick()
    world.now = after(START, minutes(1))
    start = "It waits for a node of group g that is on its way: "
    end = (
        "; asked for at 2026-03-02T08:00:00Z; given up at 2026-03-02T08:15:00Z if it has not joined by then."
    )
    assert explained(world) == ("waits", f"{start}how long its nodes take was not seen yet{end}")
    world.state.memory.join_times["g"] = (seconds(90), seconds(80))
    assert (
        explained(world)[1]
        == f"{start}expected by 2026-03-02T08:01:30Z, as the slowest of the last 2 took 1m30s{end}"
    )
    world.now = after(START, minutes(2))
    assert explained(world)[1] == f"{start}late, as the slowest of the last 2 took 1m30s{end}"


def test_a_group_whose_machines_did_not_come_before_says_so():
    """A second attempt is no news to hope for: the answer has when the first failed, and why, until a node comes."""
    world = World(pods=[pod("a", cpu="3")], groups=[group("g")])
    world.tick()
    for minute in (15.5, 21):
        world.tick(at=minutes(minute))
    status, sentence = explained(world)
    assert status == "waits"
    assert sentence.endswith(
        "; asked for at 2026-03-02T08:21:00Z; given up at 2026-03-02T08:36:00Z if it has not joined by then; the attempt "
        "before failed at 2026-03-02T08:15:30Z: Scale-up timed out for node group g after 15m30s."
    )
    world.tick(at=minutes(23), nodes=(joined(world, "n1", ready=False),))
    world.tick(at=minutes(24), nodes=(node("n1"),), pods=(pod("b", cpu="3"),))
    world.tick(at=minutes(25))
    assert "the attempt before" not in explained(world, "b")[1]


def test_a_node_that_has_joined_and_is_not_ready_is_named():
    """The pod and the group name the node, since when it is there, and what keeps pods away from it."""
    world = World(pods=[pod("a", cpu="3")], groups=[group("g")])
    world.tick()
    world.now = after(START, minutes(1))
    world.tick(at=minutes(1), nodes=(joined(world, "n1", ready=False, spec=NOT_READY),))
    said = "node n1 joined at 2026-03-02T08:01:00Z and is not ready, with taint node.kubernetes.io/not-ready"
    status, sentence = explained(world)
    assert status == "waits"
    assert sentence.endswith(f"given up at 2026-03-02T08:15:00Z if it has not joined by then; {said}.")
    assert explain_group(world.state, "g", world.now).arrival.endswith(said)
    world.tick(at=minutes(2), nodes=(node("n1"),))
    assert explain_group(world.state, "g", world.now).arrival == ""
    assert explained(world) == (
        "fits",
        "It fits on node n1: the scheduler binds it there when it looks at the pod again.",
    )


def test_a_nominated_pod_says_onto_which_node_and_what_it_waits_for():
    """The node takes it, is not ready, has pods that must leave first, has no capacity, or is gone."""
    leaving = pod("z", cpu="4", node="full", metadata={"deletionTimestamp": "2026-03-02T08:00:00Z"})
    there = [
        node("free"),
        node("young", ready=False, created="2026-03-02T07:59:00Z", spec=NOT_READY),
        node("full"),
        node("small", cpu="1"),
    ]
    world = World(
        pods=[
            leaving,
            *(nominated(f"to-{name}", name, cpu="3") for name in ("free", "young", "full", "small", "gone")),
        ],
        nodes=there,
        groups=[group("g", nodes=[one.metadata.name for one in there])],
    )
    assert world.increases() == {}
    said = {name: explained(world, f"to-{name}") for name in ("free", "young", "full", "small", "gone")}
    assert {status for status, _ in said.values()} == {"nominated"}
    assert {name: sentence for name, (_, sentence) in said.items()} == {
        "free": "It is nominated to node free of group g, which takes it: the scheduler binds it there when it looks at "
        "the pod again.",
        "young": "It is nominated to node young of group g, and waits until it is ready: node young joined at "
        "2026-03-02T07:59:00Z and is not ready, with taint node.kubernetes.io/not-ready.",
        "full": "It is nominated to node full of group g, and waits until pods that leave it have gone: default/z.",
        "small": "It is nominated to node small of group g, which does not take it now: Insufficient cpu (cpu: 3 "
        "requested, 1 free of 1 allocatable). No other node is sought for it meanwhile.",
        "gone": "It is nominated to node gone, which is not there any more, so no other node is sought for it. The "
        "scheduler drops the nomination when it looks at the pod again.",
    }


def test_a_nominated_pod_that_is_deleted_says_that():
    """What is being deleted waits for nothing any more."""
    gone = nominated("a", "n1", metadata={"deletionTimestamp": "2026-03-02T08:00:00Z"})
    assert explained(World(pods=[gone], nodes=[node("n1")]))[1].startswith("It is being deleted")


def test_a_pod_of_a_request_that_has_its_place_says_which():
    """That it buys no node itself is said only of a pod of a request that fits nowhere."""
    consumes = {"annotations": {"autoscaling.x-k8s.io/consume-provisioning-request": "ours"}}
    held = world(
        requests=[request("ours", ("big", 1))],
        templates=TEMPLATES,
        pods=[pod("a", cpu="3", metadata=consumes), pod("large", cpu="9", metadata=consumes)],
    )
    held.tick()
    assert explained(held)[0] == "fits"
    assert "so it buys no node itself" in explained(held, "large")[1]


@pytest.mark.parametrize(
    ("age", "settings", "said"),
    [
        (
            seconds(10),
            {"new_pod_scale_up_delay": minutes(1)},
            "so it is looked at after 2026-03-02T08:00:50Z.",
        ),
        (seconds(1), {}, "so new that more may come, so they are looked at from 2026-03-02T08:00:01Z on."),
        (
            minutes(-10),
            {},
            "created at 2026-03-02T08:10:00Z, which is 10m0s later than the clock of the node loop",
        ),
    ],
    ids=["its delay", "just created", "created in the future"],
)
def test_a_pod_that_is_too_new_says_until_when(age, settings, said):
    """Also where it was created later than the loop's clock shows: then one of the clocks is to be set right."""
    made = pod("a", cpu="3", created=format_rfc3339(before(START, age)))
    world = World(pods=[made], groups=[group("g")], settings=settings)
    world.tick()
    status, sentence = explained(world)
    assert status == "ignored"
    assert said in sentence
