"""ProvisioningRequests: answered, tried again, refused and ended as Cluster Autoscaler does (core of July 2026)."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from tests.nodes.frozen import START, convert
from tests.nodes.requests import (
    ATOMIC,
    TEMPLATES,
    conditions,
    pod_template,
    provisioned,
    request,
    world,
)

from kubetide.nodes.capacity.provisioning.queue import retry_time
from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import DeleteRequest, Outcomes, WriteStatus
from kubetide.nodes.explain.requests import explain_request
from kubetide.objects.pod import ContainerPort, ResourceRequirements
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
def test_an_impossible_number_of_pods_is_refused(sets, said):
    """A request for millions of pods, or for none, fails with a message that says so, and holds nobody up."""
    held = world(requests=[request("a", *sets), request("b", ("small", 1))], templates=TEMPLATES)
    held.tick()
    assert conditions(held, "a")["Failed"] == ("True", "FailedToCreatePods")
    assert said in held.state.capacity.requests[0].status.conditions[0].message
    assert conditions(held, "b")["Provisioned"][0] == "True"


def test_another_processor_s_requests_are_left_alone():
    """A request names the processor that is to answer it; others pass it over."""
    asked = [request("mine", ("small", 1), processorInstance="a"), request("other", ("small", 1))]
    held = world(requests=asked, templates=TEMPLATES, check_capacity_processor_instance="a")
    held.tick()
    assert conditions(held, "mine")
    assert not conditions(held, "other")


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


@pytest.mark.parametrize(
    ("on_host", "port", "fits"),
    [
        (True, ContainerPort(container_port=29500), False),
        (False, ContainerPort(container_port=29500), True),
        (True, None, True),
        (False, ContainerPort(container_port=29500, host_port=29500), False),
    ],
)
def test_pods_on_the_host_s_network_claim_their_ports_there(on_host, port, fits):
    """Of pods with hostNetwork the ports are host ports, though the PodTemplate says none: so the API server defaults pods."""
    template = pod_template("trainer")
    (one,) = template.template.spec.containers
    changed = msgspec.structs.replace(one, ports=None if port is None else (port,))
    spec = msgspec.structs.replace(template.template.spec, containers=(changed,), host_network=on_host)
    template = msgspec.structs.replace(
        template, template=msgspec.structs.replace(template.template, spec=spec)
    )
    held = world(requests=[request("two", ("trainer", 2))], templates=[template])
    assert conditions(held, "two") == {}
    held.tick()
    assert conditions(held, "two")["Provisioned"][0] == str(fits)


@pytest.mark.parametrize(("size", "waits"), [(1, [60, 120]), (2, [120, 120]), (0, [120, 120])])
def test_a_full_backoff_cache_forgets_the_oldest_wait(size, waits):
    """A full cache forgets the wait of the request that was tried longest ago; 0 is no limit, as upstream."""
    tried = provisioned(seconds(61), "False", "CapacityIsNotFound")
    asked = [request(name, ("big", 9), conditions=[tried]) for name in "ab"]
    held = world(requests=asked, templates=TEMPLATES, provisioning_request_max_backoff_cache_size=size)
    held.tick()
    held.tick(at=seconds(10))
    assert [retry_time(held.state, one) // seconds(1) for one in asked] == waits


def test_explain_shows_the_state_of_a_request():
    """Explain shows its conditions, when it is tried again, how many pods fit, and what each group answers."""
    held = world(requests=[request("gang", ("big", 30), kind=ATOMIC)], templates=TEMPLATES)
    held.tick()
    held.state.end_tick()
    lines = explain_request(held.state, ("default", "gang"), after(START, seconds(5)))
    assert lines[0] == (
        "The request found no capacity at 2026-03-02T08:00:00Z; it is tried again from 2026-03-02T08:01:00Z on."
    )
    assert "pods of big: 30, 1 of them fit now" in lines
    assert "  group g: no, its maximum of 10 leaves new nodes for 9 of the 29 pods" in lines


@pytest.mark.parametrize(
    ("settings", "limit", "pods"),
    [
        ({"max_nodes_per_scaleup": 4}, "--max-nodes-per-scaleup=4", 4),
        ({"max_nodes_total": 6}, "--max-nodes-total=6", 5),
    ],
)
def test_explain_names_the_limit_that_leaves_a_request_only_a_part(settings, limit, pods):
    """It is the limit that is reached first."""
    asked = request("gang", ("big", 30), kind=ATOMIC)
    held = world(requests=[asked], templates=TEMPLATES, **settings)
    held.tick()
    held.state.end_tick()
    lines = explain_request(held.state, ("default", "gang"), after(START, seconds(5)))
    assert f"  group g: no, {limit} leaves new nodes for {pods} of the 29 pods" in lines
    assert retry_time(held.state, held.state.capacity.requests[0]) == minutes(1)
