"""Pods that consume a ProvisioningRequest: they buy nothing, and events and explain say so."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START, pod, pods, replica_set
from tests.nodes.requests import (
    consumer,
    request,
    world,
)

from kubetide.nodes.explain.answers import explain_pod
from kubetide.units.time import minutes


def test_a_pod_that_consumes_a_request_buys_nothing():
    """It gets upstream's event, and explain names the annotation."""
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
