"""ProvisioningRequests that are answered in batches, and one that holds up the others."""

from __future__ import annotations

import msgspec
import pytest
from tests.nodes.frozen import START, node, pods
from tests.nodes.requests import (
    ATOMIC,
    CHECK,
    TEMPLATES,
    conditions,
    pod_template,
    request,
    world,
)

from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.units.time import before, format_rfc3339, hours, minutes, seconds

THREE_MINUTES = {
    "provisioning_request_initial_backoff_time": minutes(3),
    "provisioning_request_max_backoff_time": minutes(3),
}


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


@pytest.mark.parametrize("kind", [CHECK, ATOMIC])
def test_requests_that_are_never_met_use_up_no_turn_of_others(kind):
    """Of twenty, one is due in each tick for ever; a request that was never tried goes before those that failed."""
    made = [format_rfc3339(before(START, minutes(100 - at))) for at in range(20)]
    asked = [request(f"r{at}", ("big", 90), kind=kind, created=made[at]) for at in range(20)]
    held = world(requests=asked, templates=TEMPLATES, **THREE_MINUTES)
    for tick in range(40):
        held.tick(at=seconds(10 * tick))
    new = request("new", ("small", 1), kind=kind, created=format_rfc3339(held.now))
    held.tick(at=seconds(400), capacity=CapacityChanges(provisioning_requests=(new,)))
    assert conditions(held, "new")["Provisioned"][0] == "True"


def test_a_request_whose_capacity_comes_has_its_turn():
    """Those that failed are tried in the order of their last try, also behind older ones that are due again by then."""
    asked = [request(f"r{at:02}", ("big", 90 if at < 20 else 2)) for at in range(21)]
    held = world(requests=asked, templates=TEMPLATES, **THREE_MINUTES)
    for tick in range(30):
        held.tick(at=seconds(10 * tick))
    assert conditions(held, "r20")["Provisioned"][0] == "False"
    held.tick(at=seconds(300), nodes=(node("n2"),))
    for tick in range(31, 31 + 22):
        held.tick(at=seconds(10 * tick))
    assert conditions(held, "r20")["Provisioned"][0] == "True"


def test_a_request_whose_pods_are_too_young_holds_nobody_up():
    """It is accepted, once; the next one is answered meanwhile."""
    made = [format_rfc3339(before(START, seconds(at))) for at in (20, 10)]
    template = pod_template("slow")
    note = {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "1h"}
    inner = msgspec.structs.replace(template.template.metadata, annotations=note)
    slow = msgspec.structs.replace(
        template, template=msgspec.structs.replace(template.template, metadata=inner)
    )
    asked = [request("slow", ("slow", 1), created=made[0]), request("new", ("small", 1), created=made[1])]
    held = world(requests=asked, templates=(*TEMPLATES, slow))
    held.tick()
    assert conditions(held, "slow") == {"Accepted": ("True", "Accepted")}
    assert conditions(held, "new")["Provisioned"][0] == "True"
    held.tick(at=seconds(10))
    assert held.writes == []
    held.tick(at=hours(1))
    assert conditions(held, "slow")["Provisioned"][0] == "True"


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
