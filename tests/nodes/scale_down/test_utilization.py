"""How much of a node is in use."""

from __future__ import annotations

import pytest

from kubetide.nodes.scale_down.unneeded.utilization import (
    Utilization,
    UtilizationError,
    go_float,
    requests_of,
    utilization_of,
)
from kubetide.units.time import after, parse_rfc3339, seconds

NOW = parse_rfc3339("2026-01-01T00:30:00Z")
GPU = {"status": {"allocatable": {"nvidia.com/gpu": "4"}}}


@pytest.mark.parametrize(
    ("cpu", "memory", "resource", "value"),
    [("1", "1Gi", "cpu", 0.25), ("2001m", "1Gi", "cpu", 0.50025), ("100m", "8Gi", "memory", 0.5), ("0", "0", "memory", 0.0)],
)  # fmt: skip
def test_the_larger_share_counts(cpu, memory, resource, value, pod, node):
    """Utilization is the larger of CPU and memory requests over allocatable; memory when equal."""
    found = utilization_of(node("n"), [pod("x", "n", cpu=cpu, memory=memory)], NOW)
    assert (found.resource, found.value) == (resource, value)


def test_ignored_pods_are_taken_off_both_sides(pod, node):
    """The requests of DaemonSet and mirror pods are neither used nor offered when they are ignored."""
    pods = [
        pod("x", "n", cpu="1"),
        pod("d", "n", cpu="1", kind="DaemonSet"),
        pod("m", "n", cpu="1", kind=None, metadata={"annotations": {"kubernetes.io/config.mirror": "y"}}),
    ]
    assert utilization_of(node("n"), pods, NOW).value == 0.75
    assert utilization_of(node("n"), pods, NOW, ignore_daemon_sets=True).value == 2 / 3
    assert utilization_of(node("n"), pods, NOW, ignore_daemon_sets=True, ignore_mirror_pods=True).value == 0.5


def test_pods_whose_end_is_overdue_use_nothing(pod, node):
    """A pod whose end is overdue by 30 s is left out."""
    dying = pod(
        "x",
        "n",
        cpu="1",
        metadata={"deletionTimestamp": "2026-01-01T00:30:00Z"},
        spec={"terminationGracePeriodSeconds": 0},
    )
    assert utilization_of(node("n"), [dying], after(NOW, seconds(30))).value == 0.25
    assert utilization_of(node("n"), [dying], after(NOW, seconds(31))).value == 0.0


def test_gpu_nodes_count_gpus_alone(pod, node):
    """On a GPU node CPU and memory do not matter; a GPU not yet allocatable is not used."""
    user = pod("x", "n", cpu="4")
    gpus = {"requests": {"nvidia.com/gpu": "1"}}
    claimed = pod("y", "n", spec={"containers": [{"name": "c", "resources": gpus}]})
    assert utilization_of(node("n", **GPU), [user, claimed], NOW).value == 0.25
    starting = node("n", metadata={"labels": {"gpu": "big"}})
    assert utilization_of(starting, [user], NOW, gpu_label="gpu") == Utilization(resource="nvidia.com/gpu")


def test_a_node_that_offers_nothing_is_an_error_that_names_it(node):
    """Without allocatable CPU nothing can be said, and the message names node and field."""
    with pytest.raises(UtilizationError, match=r"node n: status\.allocatable offers no cpu"):
        utilization_of(node("n", cpu="0"), [], NOW)


def test_the_event_prints_it_as_go_prints_the_struct():
    """Dashboards match on the event's text, so floats are printed in Go's shortest form."""
    assert (
        str(Utilization(cpu=0.075, memory=0.015625, resource="cpu", value=0.075))
        == "{0.075 0.015625 0 0 cpu 0.075}"
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0"), (1.0, "1"), (0.1, "0.1"), (0.0001, "0.0001"), (0.00001, "1e-05"), (2 / 3, "0.6666666666666666"), (1.5e22, "1.5e+22"), (float("inf"), "+Inf")],
)  # fmt: skip
def test_floats_print_as_in_go(number, text):
    """Go and Python agree on the digits and on when the exponent is used."""
    assert go_float(number) == text


def test_ignored_pods_are_taken_off_both_sides_of_gpus_too(pod, node):
    """GPUs of a DaemonSet's or the kubelet's own pod are neither used nor offered when it is ignored."""
    one = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}
    mirror = {"annotations": {"kubernetes.io/config.mirror": "y"}}
    pods = [
        pod("x", "n", **one),
        pod("d", "n", kind="DaemonSet", **one),
        pod("m", "n", kind=None, metadata=mirror, **one),
    ]
    assert utilization_of(node("n", **GPU), pods, NOW).value == 0.75
    assert utilization_of(node("n", **GPU), pods, NOW, ignore_daemon_sets=True).value == 2 / 3
    both = utilization_of(node("n", **GPU), pods, NOW, ignore_daemon_sets=True, ignore_mirror_pods=True)
    assert both.value == 0.5


def test_a_pod_that_is_being_resized_counts_with_the_larger_amount(pod, node):
    """Until the kubelet has made it smaller it holds what it has, as the scheduler counts it."""
    was = {"cpu": "3", "memory": "1Gi"}
    found = {"name": "c", "resources": {"requests": was}, "allocatedResources": was}
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    shrinking = pod("x", "n", spec=spec, status={"containerStatuses": [found]})
    assert utilization_of(node("n"), [shrinking], NOW).value == 0.75
    assert utilization_of(node("n"), [shrinking], NOW, requests=[requests_of(shrinking, 36)]).value == 0.75
