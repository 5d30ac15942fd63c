from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objects import samples

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.validation import validate
from kubetide.objects.kinds import HPAS, KINDS, NODES, PODS
from kubetide.testing import builders
from kubetide.units.quantity import Quantity


def kind_of(obj):
    return KINDS[obj["apiVersion"], obj["kind"]]


def filled(obj):
    return defaults(kind_of(obj), obj)


@st.composite
def thinned(draw):
    """Draw a sample object with some members of its spec left out or null."""
    obj = copy.deepcopy(draw(st.sampled_from(samples.ALL)))
    spec = obj.get("spec") or {}
    for name in list(spec):
        fate = draw(st.sampled_from(["keep", "keep", "drop", "null"]))
        if fate == "drop":
            del spec[name]
        elif fate == "null":
            spec[name] = None
    return obj


@given(thinned())
@settings(max_examples=100)
def test_filling_in_twice_is_filling_in_once(obj):
    """Defaulting is idempotent, changes no input, and overwrites nothing that was given."""
    before = copy.deepcopy(obj)
    once = filled(obj)
    assert obj == before
    assert filled(once) == once
    assert_unchanged(before, once)


def assert_unchanged(given_value, result):
    if isinstance(given_value, dict):
        for name, value in given_value.items():
            if value is not None:
                assert_unchanged(value, result[name])
    elif isinstance(given_value, list):
        for value, filled_in in zip(given_value, result, strict=True):
            assert_unchanged(value, filled_in)
    elif isinstance(result, str) and isinstance(given_value, int):
        assert Quantity.parse(result) == Quantity.parse(given_value)
    else:
        assert result == given_value


@pytest.mark.parametrize("obj", samples.ALL, ids=lambda obj: obj["kind"])
def test_ordinary_objects_are_fine_after_defaulting(obj):
    """A manifest as people write it is accepted once defaults are filled in."""
    assert validate(kind_of(obj), filled(obj)) == []


def test_a_deployment_gets_its_rollout():
    """A Deployment gets one replica, a quarter of surge, ten revisions and ten minutes."""
    spec = filled(samples.workload())["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"


def test_recreate_has_no_rolling_update():
    """The strategy Recreate is left without rolling parameters, and zero replicas stay zero."""
    spec = filled(samples.workload(strategy={"type": "Recreate"}, replicas=0))["spec"]
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["replicas"] == 0


def test_a_daemon_set_updates_one_by_one():
    """A DaemonSet replaces one pod at a time, without surge."""
    spec = filled(samples.workload("DaemonSet"))["spec"]
    assert spec["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }
    assert "replicas" not in spec


def test_limits_become_requests_in_pods_only():
    """A pod's missing requests are its limits; a template stays as it was written."""
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
    container = {"name": "web", "image": "nginx", "resources": resources}
    pod = filled(samples.pod(containers=[container]))
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "1Gi"}
    workload = filled(samples.workload(template=samples.template(containers=[container])))
    assert workload["spec"]["template"]["spec"]["containers"][0]["resources"] == resources


def test_amounts_become_texts():
    """Quantities that were sent as numbers are given as texts, in pods and in templates."""
    resources = {"limits": {"cpu": 1.5, "memory": 1073741824}, "requests": {"cpu": 1}}
    container = {"name": "web", "image": "nginx", "resources": resources}
    read = {"limits": {"cpu": "1500m", "memory": "1073741824"}, "requests": {"cpu": "1"}}
    workload = filled(samples.workload(template=samples.template(containers=[container])))
    assert workload["spec"]["template"]["spec"]["containers"][0]["resources"] == read
    pod = filled(samples.pod(containers=[container]))
    in_pod = {**read, "requests": {"cpu": "1", "memory": "1073741824"}}
    assert pod["spec"]["containers"][0]["resources"] == in_pod


def test_pod_level_requests_come_from_containers_then_limits():
    """A pod with limits of its own requests what its containers request, else those limits."""
    container = {"name": "web", "image": "x", "resources": {"requests": {"cpu": "300m"}}}
    sidecar = {**container, "name": "proxy", "restartPolicy": "Always"}
    init = {"name": "init", "image": "x", "resources": {"requests": {"cpu": "500m"}}}
    spec = filled(
        samples.pod(
            containers=[container, {**container, "name": "b"}],
            initContainers=[sidecar, init],
            resources={"limits": {"cpu": "2", "memory": "1Gi"}},
        )
    )["spec"]
    # Together 3 x 300m; the init phase needs 300m + 500m.
    assert spec["resources"]["requests"] == {"cpu": "900m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry:5000/team/app", "Always"),
        ("registry:5000/team/app:v1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image, policy):
    """An image without a tag, or tagged latest, is always pulled."""
    pod = filled(samples.pod(containers=[{"name": "web", "image": image}]))
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_ports_speak_tcp_and_take_the_hosts_port_on_its_network():
    """A port is TCP, and on the host's network also the host's port."""
    container = {"name": "web", "image": "x", "ports": [{"containerPort": 80}]}
    inside = filled(samples.pod(containers=[container]))
    assert inside["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    outside = filled(samples.pod(containers=[container], hostNetwork=True))
    assert outside["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_an_hpa_gets_one_replica_and_80_percent_cpu():
    """Without metrics an HPA follows CPU at 80 % of requests; without behavior it gets none."""
    spec = defaults(HPAS, samples.hpa())["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }
    ]
    assert "behavior" not in spec


def test_a_behavior_is_written_out_in_both_directions():
    """One given direction fills both; the window down stays unset, as it is the controller's flag."""
    behavior = defaults(HPAS, samples.hpa(behavior={"scaleUp": {"selectPolicy": "Min"}}))["spec"]["behavior"]
    assert behavior["scaleUp"] == {
        "selectPolicy": "Min",
        "stabilizationWindowSeconds": 0,
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    }
    assert behavior["scaleDown"] == {
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    }


def test_a_namespace_is_labelled_with_its_name():
    """Namespace selectors can count on the name's label, whatever was written there."""
    obj = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"kubernetes.io/metadata.name": "other", "a": "b"}},
    }
    assert filled(obj)["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop", "a": "b"}


def test_a_nodes_allocatable_defaults_to_its_capacity():
    """A node that reserves nothing offers all it has."""
    assert defaults(NODES, samples.node(capacity={"cpu": "4"}))["status"]["allocatable"] == {"cpu": "4"}
    assert defaults(NODES, samples.node())["status"] == {}


def test_a_bad_quantity_does_not_stop_defaulting():
    """Defaulting leaves an unreadable quantity to validation, which names it."""
    container = {"name": "web", "image": "x", "resources": {"requests": {"cpu": "many"}}}
    pod = defaults(PODS, samples.pod(containers=[container], resources={"limits": {"cpu": "1"}}))
    fields = [error.field for error in validate(PODS, pod)]
    assert fields == ["spec.containers[0].resources.requests[cpu]"]


def test_probes_are_filled_in():
    """A probe says how often and how long, and where an HTTP probe asks."""
    probe = {"httpGet": {"port": 80}, "periodSeconds": 3}
    obj = builders.pod(
        "p", extra={"spec": {"containers": [{"name": "c", "image": "c", "livenessProbe": probe}]}}
    )
    assert filled(obj)["spec"]["containers"][0]["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "periodSeconds": 3,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
