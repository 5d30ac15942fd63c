"""Bookings of ProvisioningRequests: what they hold, where, and until when, as in Cluster Autoscaler (core of July 2026)."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import group, node, pod
from tests.nodes.requests import TEMPLATES, conditions, conditions_of, consumer, provisioned, request, world

from kubetide.units.time import minutes, seconds


def test_capacity_is_booked_for_ten_minutes():
    """Another request does not get booked capacity, its node is not removed, and after more than 10 minutes it is over."""
    booked = request("kept", ("big", 1), conditions=[provisioned(minutes(9))])
    asked = request("next", ("small", 2))
    held = world(requests=[booked, asked], templates=TEMPLATES)
    held.tick()
    assert conditions(held, "next")["Provisioned"] == ("False", "CapacityIsNotFound")
    assert held.state.memory.scale_down.unneeded == {}
    held.tick(at=seconds(61))
    assert conditions(held, "kept")["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    assert conditions(held, "next")["Provisioned"] == ("True", "CapacityIsFound")


@pytest.mark.parametrize("at", ["2026-03-02T10:00:00", "yesterday", None])
def test_a_booking_without_a_time_that_can_be_read_is_over(at):
    """A definition lets a time without its zone through; it ended every tick, and must not hold capacity for ever."""
    odd = request("odd", ("small", 1), conditions=[{**provisioned(minutes(0)), "lastTransitionTime": at}])
    asked = request("next", ("small", 2))
    held = world(requests=[odd, asked], templates=TEMPLATES)
    held.tick()
    held.tick(at=seconds(61))
    assert conditions(held, "odd")["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    assert conditions(held, "next")["Provisioned"] == ("True", "CapacityIsFound")


def test_a_clock_that_was_ahead_books_nothing_for_longer():
    """Times an hour ahead come of an earlier process: the booking is over, and what it refused is tried again at once."""
    ahead = minutes(-60)
    booked = request("kept", ("small", 1), conditions=[provisioned(ahead)])
    refused = request("next", ("small", 2), conditions=[provisioned(ahead, "False", "CapacityIsNotFound")])
    held = world(requests=[booked, refused], templates=TEMPLATES)
    held.tick()
    assert conditions(held, "kept")["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    assert conditions(held, "next")["Provisioned"] == ("True", "CapacityIsFound")


def test_a_node_with_booked_capacity_stays():
    """Small bookings hold their node as well: no controller would make booked pods again."""
    booked = request("kept", ("small", 1), conditions=[provisioned(minutes(5))])
    held = world(requests=[booked], templates=TEMPLATES, nodes=("n1", "n2"))
    held.tick()
    assert list(held.state.memory.scale_down.unneeded) == ["n1"]
    (blocked,) = [one for one in held.reasons if one.code == "NodeBlockedByPod"]
    assert (blocked.subject, blocked.fields["pod"]) == ("n2", "default/kept-0-0")


def test_a_booking_that_is_used_up_is_over():
    """Once as many of its pods fit as it requested, no more capacity is reserved for it."""
    booked = request("used", ("small", 2), conditions=[provisioned(minutes(1))])
    there = [consumer(f"c{at}", "used", cpu="1", node="n1") for at in range(2)]
    held = world(requests=[booked], templates=TEMPLATES, pods=there)
    held.tick()
    (used,) = held.state.capacity.requests
    assert conditions_of(used.status)["BookingExpired"] == (
        "True",
        "CapacityBookingConsumed",
        "Capacity booking consumed: all pods scheduled",
    )


@pytest.mark.parametrize(
    ("node_of", "spec", "used"),
    [("n1", {}, True), ("n1", {"priority": -100}, False), ("gone", {}, False)],
)
def test_pods_outside_of_the_snapshot_use_no_booking_up(node_of, spec, used):
    """Expendable pods and those on unknown nodes take no capacity, so the booking goes on. As upstream."""
    booked = request("kept", ("small", 1), conditions=[provisioned(minutes(1))])
    held = world(
        requests=[booked], templates=TEMPLATES, pods=[consumer("c", "kept", node=node_of, spec=spec)]
    )
    held.tick()
    assert ("BookingExpired" in conditions(held, "kept")) == used


def test_bookings_end_in_loops_that_end_early():
    """A booking is over after 10 minutes also in a loop that goes no further, as the cluster is unhealthy."""
    booked = request("kept", ("big", 1), conditions=[provisioned(minutes(11))])
    held = world(requests=[booked], templates=TEMPLATES, nodes=())
    names = [f"n{at}" for at in range(5)]
    held.groups = {"g": group("g", nodes=names)}
    held.tick(nodes=tuple(node(name, ready=False) for name in names))
    assert "ClusterUnhealthy" in {event.reason for event in held.events}
    assert conditions(held, "kept")["BookingExpired"] == ("True", "CapacityReservationTimeExpired")


def test_a_booking_stays_on_its_node():
    """Searches for other pods move on to further nodes; a booked pod stays, so the other nodes' unneeded time goes on."""
    booked = request("kept", ("small", 1), conditions=[provisioned(seconds(1))])
    held = world(requests=[booked], templates=TEMPLATES, nodes=("n1", "n2", "n3", "n4"))
    held.tick()
    assert held.state.memory.requests.booked == {"default/kept-0-0": "n2"}
    for tick in range(1, 4):
        held.tick(at=seconds(10 * tick), pods=[pod(f"p{tick}")])
        held.tick(at=seconds(10 * tick + 5), deleted_pods=[("default", f"p{tick}")])
        assert held.state.memory.requests.booked == {"default/kept-0-0": "n2"}
        assert "n2" not in held.state.memory.scale_down.unneeded
    held.tick(at=seconds(40), gone_nodes=["n2"])
    assert held.state.memory.requests.booked["default/kept-0-0"] != "n2"
    held.tick(at=minutes(10))
    assert held.state.memory.requests.booked == {}


def test_bookings_go_round_in_name_order():
    """The search for a booking is one of the loop's searches, which share an index over the names of nodes."""
    booked = request("kept", ("small", 1), conditions=[provisioned(seconds(1))])
    held = world(requests=[booked], templates=TEMPLATES, nodes=("n3", "n2", "n1"))
    held.tick()
    assert held.state.memory.requests.booked == {"default/kept-0-0": "n2"}
    assert held.state.memory.rotation == 2
