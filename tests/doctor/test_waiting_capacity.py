"""What the doctor says of ProvisioningRequests and CapacityBuffers that wait."""

from __future__ import annotations

import msgspec
import pytest
from tests.doctor.findings import found
from tests.nodes.frozen import START, group, node
from tests.nodes.requests import ATOMIC, BIG, CHECK, buffer, request

from kubetide.doctor import GroupStatus
from kubetide.nodes.capacity.buffers import names
from kubetide.nodes.settings import Settings
from kubetide.units.time import before, format_rfc3339, minutes

SERVED = Settings(enable_provisioning_requests=True)
READY = tuple({"type": kind, "status": "True"} for kind in (names.READY, names.PROVISIONING))


def condition(kind, status, minutes_ago, message=""):
    return {
        "type": kind,
        "status": status,
        "message": message,
        "lastTransitionTime": format_rfc3339(before(START, minutes(minutes_ago))),
    }


def waiting(*, maximum=1, target=1, **objects):
    """Ask about a node of 4 cores in a group at its maximum."""
    groups = (group("g", nodes=["n1"], maximum=maximum, target=target),)
    return found(
        "waiting-capacity",
        **{"pod_templates": (BIG,), "nodes": (node("n1"),), "groups": groups, **objects},
    )


def asked(*conditions, minutes_ago=60, kind=ATOMIC, count=3):
    created = format_rfc3339(before(START, minutes(minutes_ago)))
    return request("train", ("big", count), kind=kind, created=created, conditions=conditions)


def test_a_request_that_finds_no_capacity_says_what_each_group_answers():
    """With how many of its pods fit; a request with conditions is served by a node loop, which knows when it tries again."""
    tried = condition("Provisioned", "False", 2)
    (one,) = waiting(requests=(asked(condition("Accepted", "True", 50), tried),))
    assert (one.severity, one.object) == ("warning", "ProvisioningRequest default/train")
    assert one.seen == (
        "The request found no capacity at 2026-03-02T07:58:00Z; the node loop tries it again. pods of "
        "big: 3, 1 of them fit now; group g: no, max node group size reached"
    )


def test_a_request_that_nobody_serves_says_so():
    """Without a condition on any request none is served, unless the settings say that they are."""
    (one,) = waiting(requests=(asked(),))
    assert "--enable-provisioning-requests turns them on" in one.seen
    assert one.fix.startswith("let a node loop serve it: --enable-provisioning-requests")
    (one,) = waiting(requests=(asked(),), settings=SERVED)
    assert one.seen.startswith("The request has not been looked at yet.")


def test_a_request_that_buys_no_node_is_not_to_have_a_larger_group():
    """Class check-capacity waits until its pods fit on nodes that are there."""
    tried = condition("Provisioned", "False", 2)
    (one,) = waiting(requests=(asked(tried, kind=CHECK),))
    assert one.fix.startswith("free capacity on the nodes for its 3 pods, or ask for less; no node is bought")
    (one,) = waiting(requests=(asked(tried, count=1),), nodes=())
    assert one.fix.startswith("let a group take its pod: ")


def test_a_request_that_failed_is_to_be_made_anew():
    """The node loop's own words are the reason."""
    (one,) = waiting(requests=(asked(condition("Failed", "True", 9, "no PodTemplate big")),))
    assert (one.seen, one.fix[:9]) == ("The request has failed: no PodTemplate big.", "delete it")


@pytest.mark.parametrize(
    "served",
    [
        asked(minutes_ago=5),
        asked(condition("Provisioned", "True", 1)),
        asked(condition("Provisioned", "True", 20), condition("BookingExpired", "True", 9)),
    ],
    ids=["new", "served", "over"],
)
def test_a_request_that_is_new_or_served_is_no_finding(served):
    """What has just been made waits for its first look."""
    assert waiting(requests=(served,), settings=SERVED) == []


def reserved(replicas, *conditions):
    made = buffer("room", podTemplateRef={"name": "big"}, replicas=replicas, conditions=conditions)
    status = {
        "podTemplateRef": {"name": "big"},
        "replicas": replicas,
        "provisioningStrategy": names.ACTIVE,
        "conditions": list(conditions),
    }
    return msgspec.structs.replace(made, status=msgspec.convert(status, type(made.status)))


def test_a_buffer_without_capacity_says_what_each_group_answers():
    """Without a cloud, while a group grows that may be its nodes; with one those on their way count, which needs only time."""
    (one,) = waiting(buffers=(reserved(3, *READY),))
    assert (one.severity, one.object) == ("warning", "CapacityBuffer default/room")
    assert one.seen == (
        "2 of its 3 pods have no capacity on nodes that are there or on their way. group g: no, max node group size reached"
    )
    assert waiting(buffers=(reserved(3, *READY),), maximum=9, target=3) == []
    grows = GroupStatus("g", scale_up="InProgress")
    (one,) = waiting(buffers=(reserved(3, *READY),), group_statuses=(grows,), groups=())
    assert one.seen == "2 of its 3 pods have no capacity on nodes that are there."
    assert (one.severity, one.fix) == ("info", "a group grows, so wait until its nodes are ready")
    assert waiting(buffers=(reserved(1, *READY),)) == []


def test_a_buffer_that_is_not_ready_or_not_served_says_why():
    """The condition's message, or the flag that is off."""
    lost = {"type": "ReadyForProvisioning", "status": "False", "message": "PodTemplate big is gone"}
    (one,) = waiting(buffers=(reserved(1, lost),))
    assert one.seen == "No capacity is reserved: PodTemplate big is gone."
    assert one.fix == "put right what its condition ReadyForProvisioning names: no node helps it"
    (one,) = waiting(buffers=(reserved(1),))
    assert one.seen == "no capacity is reserved: --capacity-buffer-pod-injection-enabled is off"
    assert one.fix == "set --capacity-buffer-pod-injection-enabled for the node loop"


def test_a_buffer_that_quotas_cut_says_so_unless_nodes_are_missing():
    """A quota may be meant so: it is told, and is no warning. Pods without capacity come first."""
    limited = condition(names.LIMITED, "True", 5, "Buffer replicas limited from 5 to 1 due to quotas: team")
    (one,) = waiting(buffers=(reserved(1, limited, *READY),))
    assert (one.severity, one.seen) == ("info", "Buffer replicas limited from 5 to 1 due to quotas: team")
    assert one.fix.startswith("raise what the ResourceQuotas allow")
    (one,) = waiting(buffers=(reserved(3, limited, *READY),))
    assert one.severity == "warning"
    assert one.seen.startswith("2 of its 3 pods have no capacity")
