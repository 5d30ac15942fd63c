"""Strategic merge patches of stored objects."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.store import Options, Request, Rest, Store
from kubetide.objects.kinds import DEPLOYMENTS, PODS, REPLICATION_CONTROLLERS, STORED_KINDS
from kubetide.ports.errors import Conflict, Unclassified
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339

STRATEGIC = Options(patch_type="strategic")


class FixedClock:
    def now(self):
        return parse_rfc3339("2026-03-02T08:00:00Z")


@pytest.fixture
def rest():
    return Rest(Store(), FixedClock(), seed=1)


def patch(rest, kind, name, body, subresource=""):
    return rest.handle(Request("patch", kind, "default", name, subresource, STRATEGIC, body)).object.json


def test_a_container_is_patched_by_its_name(rest):
    """One container's image changes, the rest of the template stays."""
    rest.handle(Request("create", DEPLOYMENTS, "default", body=builders.deployment("web")))
    before = rest.handle(Request("get", DEPLOYMENTS, "default", "web")).object.json
    container = before["spec"]["template"]["spec"]["containers"][0]
    change = {"name": container["name"], "image": "new:1", "env": [{"name": "A", "value": "1"}]}
    after = patch(rest, DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": [change]}}}})
    [patched] = after["spec"]["template"]["spec"]["containers"]
    assert patched == {**container, **change}
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1


def test_a_strategy_is_changed_as_kubectl_does(rest):
    """``$retainKeys`` takes the members of the other strategy away."""
    rest.handle(Request("create", DEPLOYMENTS, "default", body=builders.deployment("web")))
    body = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patch(rest, DEPLOYMENTS, "web", body)["spec"]["strategy"] == {"type": "Recreate"}


def test_conditions_are_patched_by_type(rest):
    """A status patch of one condition leaves the others."""
    rest.handle(Request("create", PODS, "default", body=builders.pod("a")))
    for name, status in (("Ready", "False"), ("Other", "True"), ("Ready", "True")):
        after = patch(
            rest, PODS, "a", {"status": {"conditions": [{"type": name, "status": status}]}}, "status"
        )
    assert {entry["type"]: entry["status"] for entry in after["status"]["conditions"]} == {
        "Ready": "True",
        "Other": "True",
    }


def test_the_scale_is_patched_too(rest):
    """A strategic patch of the scale sets replicas."""
    rest.handle(Request("create", DEPLOYMENTS, "default", body=builders.deployment("web")))
    assert patch(rest, DEPLOYMENTS, "web", {"spec": {"replicas": 7}}, "scale")["spec"]["replicas"] == 7


def test_the_scale_of_a_replication_controller_has_its_labels_as_selector():
    """Its selector is a plain map; none selects everything, as upstream prints it. Source: Kubernetes ScaleREST."""
    rest = Rest(Store((*STORED_KINDS, REPLICATION_CONTROLLERS)), FixedClock(), seed=1)
    for name, selector, text in (("a", {"tier": "x", "app": "web"}, "app=web,tier=x"), ("b", None, "")):
        spec = {"replicas": 2, "selector": selector}
        body = {"metadata": {"name": name}, "spec": spec}
        rest.handle(Request("create", REPLICATION_CONTROLLERS, "default", body=body))
        scale = patch(rest, REPLICATION_CONTROLLERS, name, {"spec": {"replicas": 3}}, "scale")
        assert (scale["spec"]["replicas"], scale["status"]["selector"]) == (3, text)


def test_preconditions_and_faults_are_refused(rest):
    """An old version is a Conflict, a patch that makes no sense answered as upstream does."""
    rest.handle(Request("create", PODS, "default", body=builders.pod("a")))
    with pytest.raises(Conflict):
        patch(rest, PODS, "a", {"metadata": {"resourceVersion": "1"}})
    with pytest.raises(Unclassified, match="does not contain declared merge key: name"):
        patch(rest, PODS, "a", {"spec": {"containers": [{"image": "x"}]}})
