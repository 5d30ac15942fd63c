"""What is said of ProvisioningRequests and CapacityBuffers that wait for something other than capacity."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import group, template
from tests.nodes.requests import (
    ATOMIC,
    CHECK,
    TEMPLATES,
    buffer,
    consumer,
    pod_template,
    provisioned,
    quota,
    request,
    resource_quota,
    world,
)

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.buffers import explain_buffer
from kubetide.nodes.explain.overview import OVERVIEW
from kubetide.nodes.explain.requests import explain_request
from kubetide.units.time import minutes

ONLY_MINE = (
    'this loop serves only requests of class check-capacity.autoscaling.x-k8s.io with the parameter processorInstance: "mine", '
    "by --check-capacity-processor-instance"
)


def in_pool(name, pool):
    """Return a PodTemplate whose pods run in one pool of nodes."""
    made = pod_template(name, cpu="3")
    spec = replace(made.template.spec, node_selector={"pool": pool})
    return replace(made, template=replace(made.template, spec=spec))


def asked(*, pools=("a", "b"), **settings):
    """Return the answer about a request of two pod sets, where each pool is a group."""
    groups = [group(name, made=template(labels={"pool": name}), price_per_hour=0.1) for name in ("a", "b")]
    held = world(
        requests=[request("gang", ("first", 1), ("second", 1), kind=ATOMIC)],
        templates=[in_pool("first", pools[0]), in_pool("second", pools[1])],
        groups=groups,
        nodes=(),
        **settings,
    )
    return held, explain_request(held.state, ("default", "gang"), held.now)


def test_a_request_that_no_single_group_takes_says_so():
    """Each of its sets is taken by a group, and yet it finds no capacity, as all must be bought of one."""
    held, lines = asked()
    assert held.increases() == {}
    at = lines.index("all 2 pods that do not fit, which one group has to take:")
    assert [line.split(",")[0] for line in lines[at + 1 : at + 3]] == ["  group a: no", "  group b: no"]
    assert lines[-1] == (
        "would help: a request for each group, or --expander=least-cost, which buys of several"
    )
    held, lines = asked(pools=("a", "a"))
    assert held.increases() == {"a": 2}
    assert lines[-2:] == [
        "  group a: takes them",
        "  group b: no, node(s) didn't match Pod's node affinity/selector (pool=a is asked for, the node has 'b')",
    ]


def test_least_cost_buys_of_several_groups_for_a_request():
    """So its answer does not ask for one that takes all."""
    held, lines = asked(expander="least-cost")
    assert held.increases() == {"a": 1, "b": 1}
    assert not any("one group" in line for line in lines)


@pytest.mark.parametrize(
    ("kind", "named", "instance", "why"),
    [
        (
            CHECK,
            {"processorInstance": "other"},
            "",
            'its parameter processorInstance is "other", and --check-capacity-processor-instance is not set here',
        ),
        (
            ATOMIC,
            {},
            "mine",
            ONLY_MINE,
        ),
        ("other.example.com", {}, "", "class other.example.com is not served here"),
    ],
)
def test_a_request_for_another_program_names_what_says_so(kind, named, instance, why):
    """A class that is served here is not said to be unknown."""
    held = world(
        requests=[request("theirs", ("small", 1), kind=kind, **named)],
        templates=TEMPLATES,
        check_capacity_processor_instance=instance,
    )
    held.tick()
    assert explain_request(held.state, ("default", "theirs"), held.now) == [f"The request waits: {why}."]


def test_a_buffer_of_another_strategy_says_so():
    """Nothing is reserved for it, which is not that all of its none pods have capacity."""
    theirs = buffer(
        "theirs", podTemplateRef={"name": "small"}, replicas=2, provisioningStrategy="example.com/standby"
    )
    held = world(buffers=[theirs], templates=TEMPLATES)
    held.tick()
    assert explain_buffer(held.state, ("default", "theirs"), held.now) == [
        "It waits: its provisioningStrategy example.com/standby is not served here, only buffer.x-k8s.io/active-capacity is."
    ]


def test_a_booking_says_how_much_of_it_is_there():
    """Machines that were bought may never come, and the request stays provisioned: no more are bought for it."""
    booked = request("gang", ("big", 3), kind=ATOMIC, conditions=[provisioned(minutes(1))])
    held = world(requests=[booked], templates=TEMPLATES)
    held.tick()
    assert explain_request(held.state, ("default", "gang"), held.now)[-1] == (
        "pods: 3, 1 of them have capacity; for the others nothing more is bought: make a new request"
    )
    held = world(requests=[request("gang", ("big", 3), kind=ATOMIC)], templates=TEMPLATES)
    held.tick()
    assert explain_request(held.state, ("default", "gang"), held.now)[-1] == (
        "pods: 3, 3 of them have capacity, 2 of them on nodes that are on their way"
    )


@pytest.mark.parametrize(
    ("named", "age", "ending"),
    [
        (
            "gone",
            minutes(1),
            "there is no such request: make it, or take the annotation off the pod, so that it buys a node.",
        ),
        (
            "ours",
            minutes(11),
            "Make a new request, or take the annotation off the pod, so that it buys a node.",
        ),
        ("ours", minutes(1), "Where that is: kubetide explain provisioningrequest default/ours."),
    ],
)
def test_a_pod_that_no_request_helps_any_more_says_what_to_do(named, age, ending):
    """It buys no node itself, so it would wait for ever."""
    booked = request("ours", ("big", 1), conditions=[provisioned(age)])
    held = world(requests=[booked], templates=TEMPLATES, pods=[consumer("late", named, cpu="5")])
    held.tick()
    assert explain_pod(held.state, ("default", "late"), held.now).sentence.endswith(ending)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"quotas": [quota("few", {"nodes": "2"})]}, "would pass CapacityQuota/few on nodes"),
        ({"cores_total": "0:8"}, "would pass --cores-total"),
        (
            {"max_node_increases_per_hour": 2},
            "would pass --max-node-increases-per-hour=2, as 0 were bought within the last hour",
        ),
    ],
)
def test_a_limit_over_all_groups_that_leaves_a_part_is_named(limits, why):
    """A part of the nodes is not bought for a request: a group that may have two of its three does not take it."""
    held = world(requests=[request("gang", ("big", 3), kind=ATOMIC)], templates=TEMPLATES, nodes=(), **limits)
    assert held.increases() == {}
    lines = explain_request(held.state, ("default", "gang"), held.now)
    assert lines[-1] == f"  group g: no, its 3 new nodes {why}"


def test_a_buffer_that_quotas_cut_is_not_said_to_have_all():
    """It has what it may, which is less than it asks for: the pages name the quota."""
    spare = buffer("spare", podTemplateRef={"name": "small"}, replicas=5)
    team = resource_quota("team", {"requests.cpu": "2"})
    held = world(buffers=[spare], templates=TEMPLATES, resource_quotas=[team])
    held.tick()
    assert explain_buffer(held.state, ("default", "spare"), held.now)[0] == (
        "2 of the 2 pods that ResourceQuotas leave it have capacity."
    )
    (table,) = [one for one in OVERVIEW.tables(held, held.now) if one.title == "capacity buffers that wait"]
    assert [row[1:6] for row in table.rows] == [
        (2, 2, 0, 0, "Buffer replicas limited from 5 to 2 due to quotas: team")
    ]
