"""What the recommender reads from pods, and from Prometheus."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.objects.pod import Pod
from kubetide.ports.metrics import TimeSeries
from kubetide.vertical.recommender.facts.history import HistorySettings, read_history
from kubetide.vertical.recommender.facts.ooms import ooms_of_update

MIB = 1 << 20
KILLED = {
    "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-03-02T08:01:40Z"}}
}
RUNNING = {"state": {"running": {"startedAt": "2026-03-02T08:00:00Z"}}}


def pod(status, phase="Running"):
    spec = {"containers": [{"name": "app", "resources": {"requests": {"memory": "200Mi"}}}]}
    body = {
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": spec,
        "status": {"phase": phase, "containerStatuses": [{"name": "app", **status}]},
    }
    return msgspec.convert(body, Pod)


@pytest.mark.parametrize(
    ("resources", "memory"),
    [
        ({}, 200 * MIB),
        ({"resources": {"requests": {"memory": "300Mi"}}}, 300 * MIB),
        ({"resources": {"limits": {"memory": "400Mi"}}}, 0),
    ],
    ids=["none", "requests", "no requests"],
)
def test_what_a_status_says_of_resources_is_the_request_of_a_kill(resources, memory):
    """The resources of a container's status count instead of the spec's, also where they have no request."""
    [found] = ooms_of_update(pod(RUNNING), pod(KILLED | resources))
    assert found.memory == memory


@pytest.mark.parametrize(("before", "after"), [("Pending", "Running"), ("Pending", "Pending")])
def test_a_kill_in_a_pending_pod_does_not_count(before, after):
    """A pod that was pending is new to the recommender, and no update shows a kill."""
    assert list(ooms_of_update(pod(RUNNING, before), pod(KILLED, after))) == []
    assert list(ooms_of_update(pod(RUNNING), pod(KILLED)))


@pytest.mark.parametrize(
    ("prefix", "labels"),
    [("pod_label_", {"app": "web", "": "odd"}), ("", {}), ("pod_", {"label_app": "web", "label_": "odd"})],
)
def test_labels_of_pods_begin_with_a_prefix(prefix, labels):
    """What follows the prefix is the pod's label; without a prefix no label is one of the pod."""
    metric = {
        "kubernetes_namespace": "shop",
        "kubernetes_pod_name": "web-0",
        "pod_label_app": "web",
        "pod_label_": "odd",
    }
    settings = HistorySettings(pod_label_prefix=prefix)
    [found] = read_history(settings, (), (), [TimeSeries(metric, ((1.0, "1"),))])
    assert found.labels == labels
