"""The node loop's part of the page of ``kubetide status``."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import World, group, node, pod
from tests.nodes.requests import TEMPLATES, buffer, pod_template, provisioned, request, world

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.explain.overview import OVERVIEW
from kubetide.units.time import minutes, seconds


def tables(world):
    return {table.title: table.rows for table in OVERVIEW.tables(world, world.now)}


def sentences(world):
    return [table.sentence for table in OVERVIEW.tables(world, world.now) if table.sentence]


def test_an_unneeded_node_is_listed_with_the_time_from_which_it_may_go():
    """A node that waits for its time to be over is on the page, though the loop counts it as one that stays."""
    world = World(nodes=[node("n1"), node("n2")], groups=[group("g", nodes=["n1", "n2"])])
    world.tick()
    world.tick(at=seconds(10))
    rows = tables(world)["nodes that go or are blocked"]
    assert [row[:4] for row in rows] == [
        (name, "g", "unneeded", "may go from 2026-03-02T08:10:00Z on") for name in ("n1", "n2")
    ]


def test_an_unneeded_node_does_not_go_before_the_delay_after_a_scale_up_is_over():
    """The time on the page, and of the explanation, is the later one: nobody waits for a node that may not go yet."""
    settings = {"scale_down_delay_after_add": minutes(20)}
    world = World(nodes=[node("n1")], groups=[group("g", nodes=["n1"])], settings=settings)
    world.tick()
    world.state.memory.last_scale_up = world.now
    world.tick(at=seconds(10))
    ((_, _, _, why, _),) = tables(world)["nodes that go or are blocked"]
    assert why == "may go from 2026-03-02T08:20:00Z on"
    assert explain_node(world.state, "n1", world.now).goes.startswith("from 2026-03-02T08:20:00Z on, ")


def test_an_unneeded_node_of_the_minimum_does_not_go_by_time():
    """A node that only the group's minimum keeps names that, and what to do, in place of a time."""
    world = World(nodes=[node("n1")], groups=[group("g", minimum=1, nodes=["n1"])])
    world.tick()
    world.tick(at=seconds(700))
    assert tables(world)["nodes that go or are blocked"] == ()
    found = explain_node(world.state, "n1", world.now)
    assert (found.way_out, found.goes) == ("lower the group's minimum at the cloud", "")


@pytest.mark.parametrize(("others", "explained"), [(0, 5), (2_000, 3)], ids=["small", "large"])
def test_pods_beyond_the_explained_ones_name_the_question(others, explained):
    """In a large cluster the page explains three workloads; of the others it says so, and has the command that answers."""
    world = World(
        pods=[
            *(pod(f"p{at}", cpu="64", of=f"w{at}") for at in range(5)),
            *(pod(f"q{at}", node="n1", cpu="1m") for at in range(others)),
        ],
        groups=[group("g")],
    )
    world.tick()
    rows = tables(world)["waiting pods"]
    assert all(row[2].startswith("No group takes it.") for row in rows[:explained])
    why = "not asked, as each answer takes decisions of its own: this page has the first 3"
    assert [row[2:] for row in rows[explained:]] == [
        (why, f"ask: kubetide explain pod default/p{at}") for at in range(explained, 5)
    ]


def test_requests_that_failed_or_wait_are_listed():
    """Failed ones come first; served ones and those that are over are left out; each names the question."""
    failed = {"type": "Failed", "status": "True", "reason": "NoPods", "message": "no template"}
    expired = {"type": "BookingExpired", "status": "True", "reason": "BookingExpired", "message": "over"}
    held = world(
        requests=[
            request("waits", ("big", 9)),
            request("broken", ("big", 1), ("small", 2), conditions=[failed]),
            request("served", ("small", 1), conditions=[provisioned(minutes(1))]),
            request("over", ("small", 1), conditions=[provisioned(minutes(20)), expired]),
        ],
        templates=TEMPLATES,
    )
    rows = tables(held)["provisioning requests that wait or failed"]
    assert [row[:4] for row in rows] == [
        ("default/broken", "check-capacity", 3, "The request has failed: no template."),
        ("default/waits", "check-capacity", 9, "The request has not been looked at yet."),
    ]
    assert rows[1][4] == "ask: kubetide explain provisioningrequest default/waits"
    assert sentences(held) == ["ProvisioningRequests: 1 failed and 1 waiting."]


def test_buffers_that_wait_say_how_much_they_have():
    """What is on nodes, on the way and missing; a buffer that has all of its capacity is left out."""
    huge = pod_template("huge", cpu="64")
    held = world(
        buffers=[
            buffer("room", podTemplateRef={"name": "big"}, replicas=3),
            buffer("fine", podTemplateRef={"name": "small"}, replicas=1),
            buffer("never", podTemplateRef={"name": "huge"}, replicas=2),
            buffer("lost", podTemplateRef={"name": "nobody"}, replicas=2),
        ],
        templates=[*TEMPLATES, huge],
    )
    held.tick()
    rows = {row[0]: row[1:6] for row in tables(held)["capacity buffers that wait"]}
    assert sorted(rows) == ["default/lost", "default/never", "default/room"]
    assert rows["default/room"][0] == 3
    assert sum(rows["default/room"][1:4]) == 3
    assert rows["default/room"][2] > 0
    assert rows["default/never"] == (
        *(2, 0, 0, 2),
        "group g: no, Insufficient cpu (cpu: 64 requested, 4 free of 4 allocatable)",
    )
    assert rows["default/lost"][4].startswith("No capacity is reserved: ")
    assert "CapacityBuffers without all of their capacity: 3." in sentences(held)
    held.state.settings = replace(held.state.settings, capacity_buffer_pod_injection_enabled=False)
    whys = {row[0]: row[5] for row in tables(held)["capacity buffers that wait"]}
    assert whys["default/fine"] == "no capacity is reserved: --capacity-buffer-pod-injection-enabled is off"


def test_capacity_that_nobody_may_ask_for_has_no_table():
    """Where the kinds are not served the page is silent about them."""
    assert list(tables(World(groups=[group("g")]))) == [
        "node groups",
        "waiting pods",
        "nodes that go or are blocked",
    ]
