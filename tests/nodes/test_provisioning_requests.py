"""ProvisioningRequests: answered, bought, booked and ended as Cluster Autoscaler does (core of July 2026)."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from tests.nodes.frozen import START, convert, pod, pods, replica_set
from tests.nodes.requests import (
    ATOMIC,
    CHECK,
    SMALL,
    TEMPLATES,
    conditions,
    consumer,
    pod_template,
    provisioned,
    request,
    world,
)

from kubetide.nodes.capacity.provisioning.queue import retry_time
from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import DeleteRequest, Outcomes, WriteStatus
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.requests import explain_request
from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.objects.pod import ResourceRequirements
from kubetide.units.time import after, before, format_rfc3339, hours, minutes, parse_rfc3339, seconds


def test_free_capacity_is_found():
    """A check-capacity request whose pods fit is provisioned, and buys nothing; no detail is written."""
    held = world(requests=[request("fits", ("small", 4))], templates=TEMPLATES)
    assert held.increases() == {}
    assert conditions(held, "fits") == {
        "Accepted": ("True", "Accepted"),
        "Provisioned": ("True", "CapacityIsFound"),
    }
    assert held.state.capacity.requests[0].status.provisioning_class_details is None


def test_missing_capacity_is_requested_again_with_longer_and_longer_waits():
    """Without capacity: Provisioned=False, tried again after more than 1, 2, 4, 8 and then 10 minutes."""
    held = world(requests=[request("large", ("big", 9))], templates=TEMPLATES)
    tried = []
    for tick in range(200):
        held.tick(at=seconds(10 * tick))
        found = held.state.capacity.requests[0].status.conditions[1]
        assert (found.type, found.status, found.reason) == ("Provisioned", "False", "CapacityIsNotFound")
        tried += [found.last_transition_time] if found.last_transition_time not in tried else []
    times = [parse_rfc3339(one) for one in tried]
    waits = [(b - a) // seconds(1) for a, b in itertools.pairwise(times)]
    assert waits == [70, 130, 250, 490, 610]
    assert held.increases() == {}


def test_a_request_with_an_unknown_answer_is_left_alone():
    """Only Provisioned=False is tried again; Unknown is another controller's answer, and no capacity is booked for it."""
    held = world(
        requests=[request("other", ("small", 1), conditions=[provisioned(hours(1), "Unknown", "Wait")])],
        templates=TEMPLATES,
    )
    held.tick()
    assert conditions(held, "other") == {"Provisioned": ("Unknown", "Wait")}
    assert held.writes == []


def test_a_request_without_retry_fails():
    """With noRetry the answer is Failed, and it is not asked again."""
    held = world(requests=[request("once", ("big", 9), noRetry="true")], templates=TEMPLATES)
    held.tick()
    assert conditions(held, "once")["Failed"] == ("True", "CapacityIsNotFound")
    held.tick(at=hours(1))
    assert "Provisioned" not in conditions(held, "once")


@pytest.mark.parametrize(("mode", "status"), [("bookPartial", "True"), ("checkOnly", "False")])
def test_a_part_of_the_pod_sets(mode, status):
    """Partial checks say which pod sets fit; only bookPartial counts as provisioned."""
    asked = request("part", ("small", 2), ("big", 5), partialCapacityCheck=mode)
    held = world(requests=[asked], templates=TEMPLATES)
    held.tick()
    assert conditions(held, "part")["Provisioned"] == (status, "PartialCapacityIsFound")
    found = held.state.capacity.requests[0].status
    assert found.provisioning_class_details == {"schedulablePodSets": '["small"]'}
    assert (
        found.conditions[1].message == "Partial capacity is found in the cluster.. Schedulable podsets: small"
    )


def test_all_nodes_that_are_lacking_are_bought_at_once():
    """A best-effort-atomic request buys what its pods lack; where pods wait as well the two take turns."""
    held = world(
        requests=[request("gang", ("big", 3), kind=ATOMIC)], templates=TEMPLATES, pods=pods("p", 2, cpu="4")
    )
    assert held.increases() == {"g": 1}
    assert conditions(held, "gang") == {"Accepted": ("True", "Accepted")}
    assert held.increases(at=seconds(10)) == {"g": 3}
    assert conditions(held, "gang")["Provisioned"] == ("True", "CapacityIsProvisioned")


def test_a_request_is_picked_in_the_turn_of_pods():
    """In the pods' turn, too, a request that is due is accepted, and its wait doubles: it is tried later. As upstream."""
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


def test_a_request_of_a_batch_is_accepted_when_it_is_answered():
    """With batches a check-capacity request is not accepted in the turn of pods."""
    held = world(
        requests=[request("fits", ("small", 1))],
        templates=TEMPLATES,
        pods=pods("p", 2, cpu="4"),
        check_capacity_batch_processing=True,
    )
    assert held.increases() == {"g": 1}
    assert conditions(held, "fits") == {}


def test_a_request_forces_scale_up_for_new_pods():
    """Pods that are all younger than 2 s wait for more, but not beside a request, which is older; the turn stays theirs."""
    new = pods("p", 2, cpu="4", created=format_rfc3339(before(START, seconds(1))))
    asked = [request("gang", ("big", 3), kind=ATOMIC)]
    assert world(pods=new).increases() == {}
    assert world(requests=asked, templates=TEMPLATES, pods=new).increases() == {"g": 1}


def test_the_turn_stays_where_nothing_was_looked_for():
    """A tick that waits for more pods takes no turn."""
    held = world(requests=[request("fits", ("small", 1))], templates=TEMPLATES)
    held.tick()
    new = pod("p", cpu="5", created=format_rfc3339(after(START, seconds(9))))
    held.tick(at=seconds(10), pods=(new,))
    assert held.state.tick.result == "ScaleUpInCooldown"
    assert not held.state.memory.requests.turn


def test_new_pods_of_a_request_hold_scale_down():
    """Where the only pods in the list are younger than 2 s nothing is removed in that tick, though they are served."""
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
    """The pods that fit without new nodes do not hold these nodes, in the tick of a try as in any other: nothing is booked."""
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
    """A request forces scale-up for pods as well, which the limit ends later, with another result."""
    held = world(
        requests=[request("gang", ("big", 3), kind=ATOMIC)],
        templates=TEMPLATES,
        pods=pods("p", 2, cpu="4"),
        max_nodes_total=1,
    )
    assert held.increases() == {}
    assert held.state.tick.result not in {"ScaleUpNotTried", "ScaleUpLimitedByMaxNodesTotal"}


def test_requests_end_after_a_week():
    """One that found no capacity for 7 days has failed; one that ended 7 days ago is deleted."""
    week = hours(24 * 7 + 1)
    old = format_rfc3339(before(START, week))
    held = world(
        requests=[
            request("late", ("big", 9), created=old),
            request("done", ("small", 1), created=old, conditions=[provisioned(week)]),
        ],
        templates=TEMPLATES,
    )
    commands = decide(held.state, START)
    writes = absorb(held.state, commands, Outcomes(), START).writes
    assert conditions(held, "late")["Failed"] == ("True", "Expired")
    assert [type(one) for one in writes] == [WriteStatus, DeleteRequest]
    status = msgspec.json.decode(writes[0].status)
    assert status["conditions"][0]["message"] == "ProvisioningRequest is expired"
    assert status["provisioningClassDetails"] is None
    assert writes[0].version == "7"


def test_a_template_that_is_missing_fails_the_request():
    """The message names what is missing, in upstream's words; other requests are served."""
    held = world(
        requests=[request("a", ("none", 1), ("small", 1)), request("b", ("small", 1))], templates=TEMPLATES
    )
    held.tick()
    assert conditions(held, "a")["Failed"] == ("True", "FailedToCreatePods")
    said = held.state.capacity.requests[0].status.conditions[0].message
    assert said == "missing pod templates, 2 pod templates were referenced, 1 templates were missing: none"
    assert conditions(held, "b")["Provisioned"][0] == "True"


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ([("small", 2_000_000_000)], "2000000000 pods are asked for, and at most 100000 can be planned for"),
        ([("small", 0)], "no pods are asked for"),
        ([], "no pods are asked for"),
    ],
)
def test_a_number_of_pods_that_nobody_has_is_refused(sets, said):
    """A request for millions of pods, or for none, fails with a message that says so, and holds nobody up."""
    held = world(requests=[request("a", *sets), request("b", ("small", 1))], templates=TEMPLATES)
    held.tick()
    assert conditions(held, "a")["Failed"] == ("True", "FailedToCreatePods")
    assert said in held.state.capacity.requests[0].status.conditions[0].message
    assert conditions(held, "b")["Provisioned"][0] == "True"


@pytest.mark.parametrize("kind", [CHECK, ATOMIC])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_request_that_cannot_be_written_holds_nobody_up(kind, size):
    """Where the API server refuses a request's status (a webhook, say), others are served, until its acceptance is written."""
    made = [format_rfc3339(before(START, hours(at))) for at in (2, 1)]
    refused, other = (
        request(name, ("small", 1), kind=kind, created=at) for name, at in zip("ab", made, strict=True)
    )
    held = world(
        requests=[refused],
        templates=TEMPLATES,
        check_capacity_batch_processing=bool(size),
        check_capacity_provisioning_request_max_batch_size=size,
    )
    held.tick()
    assert conditions(held, "a")["Provisioned"][0] == "True"
    # It is read anew from the cache, as its write failed.
    held.tick(at=seconds(10), capacity=CapacityChanges(provisioning_requests=(refused, other)))
    assert conditions(held, "b")["Provisioned"][0] == "True"
    assert conditions(held, "a") == {"Accepted": ("True", "Accepted")}
    held.tick(at=seconds(20))
    assert conditions(held, "a")["Provisioned"][0] == "True"
    held.tick(at=minutes(11))
    assert held.state.memory.requests.written == {}


def test_a_batch_is_answered_in_one_tick():
    """With batch processing up to the maximum of check-capacity requests are answered together, and share the capacity."""
    asked = [request(f"r{at}", ("small", 2)) for at in range(4)]
    one = world(requests=asked, templates=TEMPLATES)
    one.tick()
    assert [bool(conditions(one, f"r{at}")) for at in range(4)] == [True, False, False, False]
    several = world(
        requests=asked,
        templates=TEMPLATES,
        check_capacity_batch_processing=True,
        check_capacity_provisioning_request_max_batch_size=3,
    )
    several.tick()
    found = [conditions(several, f"r{at}").get("Provisioned", ("", ""))[0] for at in range(4)]
    assert found == ["True", "True", "False", ""]


def test_a_batch_goes_first():
    """With batches requests of class check-capacity are answered before an older one of the other class."""
    made = [format_rfc3339(before(START, hours(at))) for at in (3, 2, 1)]
    asked = [
        request("gang", ("big", 3), kind=ATOMIC, created=made[0]),
        *(request(f"r{at}", ("small", 1), created=made[at]) for at in (1, 2)),
    ]
    held = world(requests=asked, templates=TEMPLATES, check_capacity_batch_processing=True)
    assert held.increases() == {}
    assert [conditions(held, f"r{at}")["Provisioned"][0] for at in (1, 2)] == ["True", "True"]
    assert conditions(held, "gang") == {"Accepted": ("True", "Accepted")}
    assert sum(held.increases(at=seconds(10)).values()) > 0


def test_another_processor_s_requests_are_left_alone():
    """A request names the processor that is to answer it; others pass it over."""
    asked = [request("mine", ("small", 1), processorInstance="a"), request("other", ("small", 1))]
    held = world(requests=asked, templates=TEMPLATES, check_capacity_processor_instance="a")
    held.tick()
    assert conditions(held, "mine")
    assert not conditions(held, "other")


def test_pods_of_a_request_say_so():
    """A pod that consumes a request buys nothing and gets upstream's event; explain names the annotation."""
    held = world(
        requests=[request("gang", ("big", 9), created="2026-03-02T07:59:00Z")],
        pods=[consumer("c", "gang", cpu="5")],
    )
    assert held.increases() == {}
    (event,) = [one for one in held.events if one.kind == "Pod"]
    assert event.reason == ""
    assert event.message == (
        "Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest default/gang"
    )
    reported = explain_pod(held.state, ("default", "c"), START).sentence
    assert "annotation" in reported
    assert "default/gang" in reported


def test_a_second_plan_in_the_tick_reports_pods_of_a_request_once():
    """Where an increase fails and the tick plans anew, a pod that consumes a request gets its event once."""
    held = world(
        requests=[request("gang", ("big", 9))],
        pods=[consumer("c", "gang", cpu="5"), *pods("p", 2, cpu="4")],
        stock_out_memory=minutes(30),
    )
    held.refused["g"] = "out of stock"
    held.tick()
    assert sum(one.next_step == "scale_down" for one in held.commands) == 2
    assert [one.name for one in held.events if one.kind == "Pod" and not one.reason] == ["c"]


@pytest.mark.parametrize("prefix", ["autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"])
def test_without_the_flag_the_annotation_means_nothing(prefix):
    """As upstream, pods that name a request buy nodes like others where requests are not served; so do their copies."""
    note = {"metadata": {"annotations": {f"{prefix}/consume-provisioning-request": "gang"}}}
    held = world(
        pods=[pod("c", cpu="3", **note), pod("r", cpu="3", node="n1")],
        replica_sets=(replica_set("web", 4),),
        enable_proactive_scaleup=True,
    )
    assert explain_pod(held.state, ("default", "c"), START).status == "helped"
    assert held.increases() == {"g": 3}


def with_resources(template, *, container, whole=None):
    """Return the PodTemplate with these resources of its one container, and of the pod itself."""
    spec = template.template.spec
    (one,) = spec.containers
    changed = msgspec.structs.replace(one, resources=convert(container, ResourceRequirements))
    level = None if whole is None else convert(whole, ResourceRequirements)
    spec = msgspec.structs.replace(spec, containers=(changed,), resources=level)
    return msgspec.structs.replace(template, template=msgspec.structs.replace(template.template, spec=spec))


@pytest.mark.parametrize(
    ("container", "whole", "fits"),
    [
        ({"limits": {"cpu": "3"}}, None, False),
        ({}, {"limits": {"cpu": "3"}}, False),
        ({}, {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}, True),
        ({"requests": {"cpu": "1"}}, {"limits": {"cpu": "3"}}, True),
    ],
)
def test_limits_count_as_requests(container, whole, fits):
    """Limits alone in a PodTemplate are also its requests, of the pod as of containers: so the API server defaults pods."""
    limited = with_resources(pod_template("limited"), container=container, whole=whole)
    held = world(requests=[request("two", ("limited", 2))], templates=[limited])
    held.tick()
    assert conditions(held, "two")["Provisioned"][0] == str(fits)


@pytest.mark.parametrize(("size", "waits"), [(1, [60, 120]), (2, [120, 120]), (0, [120, 120])])
def test_so_many_requests_have_a_wait_of_their_own(size, waits):
    """A full cache forgets the wait of the request that was tried longest ago; 0 is no limit, as upstream."""
    tried = provisioned(seconds(61), "False", "CapacityIsNotFound")
    asked = [request(name, ("big", 9), conditions=[tried]) for name in "ab"]
    held = world(requests=asked, templates=TEMPLATES, provisioning_request_max_backoff_cache_size=size)
    held.tick()
    held.tick(at=seconds(10))
    assert [retry_time(held.state, one) // seconds(1) for one in asked] == waits


def test_explain_says_the_state_of_a_request():
    """Conditions, when it is tried again, how many pods fit, and what each group answers."""
    held = world(requests=[request("gang", ("big", 30), kind=ATOMIC)], templates=TEMPLATES)
    held.tick()
    held.state.end_tick()
    lines = explain_request(held.state, ("default", "gang"), after(START, seconds(5)))
    assert lines[0] == (
        "The request found no capacity at 2026-03-02T08:00:00Z; it is tried again from 2026-03-02T08:01:00Z on."
    )
    assert "pods of big: 30, 1 of them fit now" in lines
    assert "  group g: no, its limits leave new nodes for 9 of the 29 pods" in lines
    assert retry_time(held.state, held.state.capacity.requests[0]) == minutes(1)
