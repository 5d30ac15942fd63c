"""ProvisioningRequests and scale-up: whose turn a tick is, what is bought, and what holds it back."""

from __future__ import annotations

import msgspec
from tests.nodes.frozen import START, pod, pods
from tests.nodes.requests import (
    ATOMIC,
    SMALL,
    TEMPLATES,
    conditions,
    provisioned,
    request,
    world,
)

from kubetide.nodes.capacity.provisioning.queue import retry_time
from kubetide.nodes.explain.requests import explain_request
from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.units.time import after, before, format_rfc3339, minutes, seconds


def test_all_nodes_that_are_lacking_are_bought_at_once():
    """A best-effort-atomic request buys what its pods lack; where pods wait as well the two take turns."""
    held = world(
        requests=[request("gang", ("big", 3), kind=ATOMIC)], templates=TEMPLATES, pods=pods("p", 2, cpu="4")
    )
    assert held.increases() == {"g": 1}
    assert conditions(held, "gang") == {"Accepted": ("True", "Accepted")}
    assert held.increases(at=seconds(10)) == {"g": 3}
    assert conditions(held, "gang")["Provisioned"] == ("True", "CapacityIsProvisioned")


def test_what_lacks_nodes_is_answered_in_the_turn_of_pods():
    """In a request's turn nobody looks at the pods, so the answer of before stands."""
    held = world(
        requests=[request("gang", ("big", 3), kind=ATOMIC)],
        templates=TEMPLATES,
        pods=pods("p", 2, cpu="400"),
        demand_sources=("pending", "intents"),
    )
    held.tick()
    assert [(one.missing, one.refused) for one in held.commands[0].answers] == [(2, 2)]
    held.tick(at=seconds(10))
    assert held.commands[0].answers is None


def test_a_request_that_is_due_is_accepted_in_the_turn_of_pods():
    """As upstream, it is accepted and its wait doubles, though only the pods are tried in that tick."""
    tried = provisioned(seconds(61), "False", "CapacityIsNotFound")
    held = world(
        requests=[request("gang", ("big", 3), kind=ATOMIC, conditions=[tried])],
        templates=TEMPLATES,
        pods=pods("p", 2, cpu="4"),
    )
    assert held.increases() == {"g": 1}
    assert conditions(held, "gang")["Accepted"] == ("True", "Accepted")
    assert retry_time(held.state, held.state.capacity.requests[0]) == minutes(2)
    assert held.increases(at=seconds(10)) == {}
    assert held.increases(at=seconds(60)) == {"g": 3}


def test_a_request_forces_scale_up_for_new_pods():
    """Pods that are all younger than 2 s wait for more; beside an older request they are tried at once, in their turn."""
    new = pods("p", 2, cpu="4", created=format_rfc3339(before(START, seconds(1))))
    asked = [request("gang", ("big", 3), kind=ATOMIC)]
    assert world(pods=new).increases() == {}
    assert world(requests=asked, templates=TEMPLATES, pods=new).increases() == {"g": 1}


def test_a_tick_that_waits_for_more_pods_takes_no_turn():
    """After a scale-up in cooldown the turn is the same as before."""
    held = world(requests=[request("fits", ("small", 1))], templates=TEMPLATES)
    held.tick()
    new = pod("p", cpu="5", created=format_rfc3339(after(START, seconds(9))))
    held.tick(at=seconds(10), pods=(new,))
    assert held.state.tick.result == "ScaleUpInCooldown"
    assert not held.state.memory.requests.turn


def test_new_pods_of_a_request_hold_scale_down():
    """Where all listed pods are younger than 2 s no node is removed in that tick, though the request is answered."""
    waiting = [provisioned(seconds(1), "False", "CapacityIsNotFound")]
    held = world(
        requests=[request("old", ("small", 99), conditions=waiting)],
        templates=TEMPLATES,
        nodes=("n1", "n2"),
        scale_down_unneeded_time=seconds(15),
    )
    held.tick()
    new = request("new", ("small", 99), created=format_rfc3339(after(START, seconds(19))))
    held.tick(at=seconds(20), capacity=CapacityChanges(provisioning_requests=(new,)))
    assert conditions(held, "new")["Provisioned"][0] == "False"
    assert held.state.memory.scale_down.status.result == "ScaleDownInCooldown"
    held.tick(at=seconds(30))
    assert held.state.memory.scale_down.status.result == "ScaleDownNodeDeleteStarted"


def test_pods_of_a_request_obey_the_scale_up_delay():
    """Until its pods are older than --new-pod-scale-up-delay, or their own delay, a request is accepted, but not answered."""
    made = format_rfc3339(before(START, seconds(10)))
    held = world(
        requests=[request("fits", ("small", 1), created=made)],
        templates=TEMPLATES,
        new_pod_scale_up_delay=seconds(60),
    )
    held.tick()
    assert conditions(held, "fits") == {"Accepted": ("True", "Accepted")}
    lines = explain_request(held.state, ("default", "fits"), START)
    assert "accepted; it is answered once" in lines[0]
    held.tick(at=seconds(51))
    assert conditions(held, "fits")["Provisioned"][0] == "True"
    note = {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "60s"}
    inner = msgspec.structs.replace(SMALL.template.metadata, annotations=note)
    delayed = msgspec.structs.replace(SMALL, template=msgspec.structs.replace(SMALL.template, metadata=inner))
    held = world(requests=[request("fits", ("small", 1), created=made)], templates=[delayed])
    held.tick()
    assert "Provisioned" not in conditions(held, "fits")


def test_nothing_is_bought_in_part():
    """A request that the group's maximum does not allow buys no node."""
    held = world(requests=[request("gang", ("big", 30), kind=ATOMIC)], templates=TEMPLATES)
    assert held.increases() == {}
    assert conditions(held, "gang")["Provisioned"] == ("False", "CapacityIsNotFound")
    assert any(one.code == "RequestNotBuyable" for one in held.reasons)


def test_a_request_that_is_not_bought_keeps_no_node():
    """Nothing is booked for it: the nodes on which some of its pods fit may go, also in the tick of a try."""
    held = world(
        requests=[request("gang", ("big", 30), kind=ATOMIC)],
        templates=TEMPLATES,
        nodes=("n1", "n2"),
        scale_down_unneeded_time=seconds(65),
    )
    for tick in range(7):
        held.tick(at=seconds(10 * tick))
        assert set(held.state.memory.scale_down.unneeded) == {"n1", "n2"}
    held.tick(at=seconds(70))  # tried again
    assert held.state.capacity.requests[0].status.conditions[1].last_transition_time == "2026-03-02T08:01:10Z"
    assert held.state.memory.scale_down.status.result == "ScaleDownNodeDeleteStarted"


def test_a_purchase_that_fails_is_not_provisioned():
    """Where the cloud refuses the increase, the request waits for its next try."""
    held = world(requests=[request("gang", ("big", 3), kind=ATOMIC)], templates=TEMPLATES)
    held.refused["g"] = "out of stock"
    held.tick()
    assert conditions(held, "gang")["Provisioned"] == ("False", "CapacityIsNotFound")


def test_a_second_plan_in_the_tick_answers_no_request():
    """Where the pods' increase fails and the tick plans anew, the turn stays theirs."""
    held = world(
        requests=[request("gang", ("big", 3), kind=ATOMIC)],
        templates=TEMPLATES,
        pods=pods("p", 2, cpu="4"),
        stock_out_memory=minutes(30),
    )
    held.refused["g"] = "out of stock"
    held.tick()
    assert sum(one.next_step == "scale_down" for one in held.commands) == 2
    assert conditions(held, "gang") == {"Accepted": ("True", "Accepted")}
    assert held.state.memory.requests.turn


def test_a_request_is_answered_at_the_limit_of_nodes():
    """As in upstream, a request is evaluated although the cluster has its maximum of nodes; it buys none."""
    held = world(
        requests=[request("fits", ("small", 2)), request("gang", ("big", 9), kind=ATOMIC)],
        templates=TEMPLATES,
        max_nodes_total=1,
    )
    held.tick()
    assert conditions(held, "fits")["Provisioned"][0] == "True"
    assert held.messages("MaxNodesTotalReached") == ["Max total nodes in cluster reached: 1"]
    assert held.increases(at=seconds(10)) == {}
    assert conditions(held, "gang")["Provisioned"][0] == "False"


def test_pods_are_tried_at_the_limit_of_nodes_beside_a_request():
    """Beside a request pods are tried although the cluster has its maximum of nodes; the result is not that of the limit."""
    held = world(
        requests=[request("gang", ("big", 3), kind=ATOMIC)],
        templates=TEMPLATES,
        pods=pods("p", 2, cpu="4"),
        max_nodes_total=1,
    )
    assert held.increases() == {}
    assert held.state.tick.result not in {"ScaleUpNotTried", "ScaleUpLimitedByMaxNodesTotal"}
