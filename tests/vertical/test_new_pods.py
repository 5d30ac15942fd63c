"""What new pods of a workload will ask for is what the webhook then gives them."""

from __future__ import annotations

import base64
from functools import partial

import msgspec
import pytest
from tests.vertical.making import vpa

from kubetide.objects.kinds import DEPLOYMENTS, REPLICA_SETS
from kubetide.objects.limit_range import LimitRange
from kubetide.testing import builders
from kubetide.units.patch import json_patch
from kubetide.vertical.admission.controller.state_keeper import template_of
from kubetide.vertical.admission.decide import admit, response_of
from kubetide.vertical.admission.new_pods import NewPods
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.admission.state import State
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.workloads import view_of

BOOST = {"startupBoost": {"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 60}}}
OFF = {"resourcePolicy": {"containerPolicies": [{"containerName": "main", "mode": "Off"}]}}
BOOSTS = Settings(gates=FeatureGates(cpu_startup_boost=True))


def web_state(*vpas, settings=None, replicas=2, limits=None):
    """A Deployment ``web`` with one ReplicaSet, whose pods have the containers ``main`` and ``side``."""
    state = State(settings or Settings())
    resources = {"requests": {"cpu": "100m", "memory": "100Mi"}, **({"limits": limits} if limits else {})}
    containers = [{"name": "main", "resources": resources}, {"name": "side", "resources": {}}]
    deployment = builders.deployment("web", replicas=replicas)
    deployment["metadata"] |= {"namespace": "default", "uid": "uid-web"}
    replica_set = builders.replica_set("web-1", replicas=replicas)
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": "uid-web",
        "controller": True,
    }
    replica_set["metadata"] |= {"namespace": "default", "uid": "uid-web-1", "ownerReferences": [reference]}
    template = replica_set["spec"]["template"]
    template["metadata"]["labels"], template["spec"]["containers"] = {"app": "web"}, containers
    for kind, body in ((DEPLOYMENTS, deployment), (REPLICA_SETS, replica_set)):
        put(state, kind, body)
    for one in vpas:
        state.put_vpa(("default", one.metadata.name), one)
    return state


def put(state, kind, body):
    one = msgspec.convert(body, kind.model)
    key = kind.kind, one.metadata.namespace, one.metadata.name
    state.put_workload(key, view_of(kind.kind, one), template_of(kind, one))


def looked(state):
    found = NewPods(state)
    found.update()
    return found.requests


def given(state):
    """The requests that a real new pod has after the webhook, by container; of those that it changes."""
    made = state.templates["ReplicaSet", "default", "web-1"]
    pod = msgspec.json.decode(msgspec.json.encode(made.template))
    pod["metadata"] |= {"generateName": "web-1-", "ownerReferences": [msgspec.to_builtins(made.owner)]}
    request = {"uid": "1", "namespace": "default", "operation": "CREATE", "object": pod}
    request["resource"] = {"group": "", "version": "v1", "resource": "pods"}
    response = response_of(admit(state, msgspec.json.encode({"request": request})))["response"]
    patch = msgspec.json.decode(base64.b64decode(response.get("patch", "W10=")))
    after = json_patch(pod, patch)
    requests = partial(map, lambda one: (one["name"], one["resources"].get("requests")))
    before = dict(requests(pod["spec"]["containers"]))
    return {
        name: amounts for name, amounts in requests(after["spec"]["containers"]) if amounts != before[name]
    }


def assert_as_given(state):
    announced, there = looked(state).get("uid-web-1", {}), {"main": {"cpu": "100m", "memory": "100Mi"}}
    now = {name: there.get(name, {}) | amounts for name, amounts in announced.items()}
    assert now == given(state)


@pytest.mark.parametrize(
    ("one", "settings", "limits", "cpu"),
    [
        (vpa("Initial"), None, None, "500m"),
        (vpa("Recreate", **BOOST), BOOSTS, {"cpu": "200m"}, "1500m"),
        (vpa("Off", **BOOST), BOOSTS, None, "300m"),
        (vpa("Off"), None, None, None),
        (vpa("Initial", **OFF), None, None, "500m"),
        (vpa("Initial", **OFF), BOOSTS, None, None),
    ],
    ids=[
        "recommended",
        "boosted",
        "boost alone",
        "off",
        "without boosts also a container that is off",
        "container off",
    ],
)
def test_it_is_what_the_webhook_gives(one, settings, limits, cpu):
    """Recommendation, boost, mode and policy of the VPA count as in the review of a pod."""
    state = web_state(one, settings=settings, limits=limits)
    assert looked(state).get("uid-web-1", {}).get("main", {}).get("cpu") == cpu
    assert_as_given(state)


def test_a_limit_range_counts():
    """The namespace's least request is what new pods get at least."""
    state = web_state(vpa("Initial"))
    bounds = {"limits": [{"type": "Container", "min": {"cpu": "600m"}}]}
    body = {"metadata": {"name": "small", "namespace": "default"}, "spec": bounds}
    state.put_limit_range(("default", "small"), msgspec.convert(body, LimitRange))
    assert looked(state) == {"uid-web-1": {"main": {"cpu": "600m", "memory": "500Mi"}}}
    assert_as_given(state)


def test_a_set_of_former_days_makes_no_pods():
    """A ReplicaSet of an earlier roll-out is not asked about."""
    assert looked(web_state(vpa("Initial"), replicas=0)) == {}


def test_a_recommendation_that_cannot_be_followed_changes_nothing():
    """The webhook lets such a pod in as it is; nothing is announced for it."""
    state = web_state(vpa("Initial", cpu="much"))
    assert looked(state) == {}


def test_it_changes_with_the_recommendation_and_is_the_same_mapping_else():
    """Who compares it can see at once that nothing has changed."""
    state = web_state(vpa("Initial"))
    found = NewPods(state)
    found.update()
    first = found.requests
    found.update()
    assert found.requests is first
    state.put_vpa(("default", "web"), vpa("Initial", cpu="700m"))
    found.update()
    assert found.requests == {"uid-web-1": {"main": {"cpu": "700m", "memory": "500Mi"}}}
    state.put_vpa(("default", "web"), None)
    found.update()
    assert found.requests == {}
