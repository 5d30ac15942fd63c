"""Rules of the admission core: bad input, proportions, owners, flags."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.vertical import making

from kubetide.objects.limit_range import LimitRange
from kubetide.objects.vpa import PodRecommendation
from kubetide.units.quantity import Quantity
from kubetide.vertical.admission.decide import MAX_BODY, admit, reply
from kubetide.vertical.admission.registration import read_labels, webhook_configuration
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.admission.state import State
from kubetide.vertical.flags import read_flags, read_gates
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.matching import VpaIndex
from kubetide.vertical.resources.amounts import MAX_INT64, scaled
from kubetide.vertical.resources.capping import Running, capped_recommendation
from kubetide.vertical.resources.limit_ranges import merged
from kubetide.vertical.updater.settings import Settings as UpdaterSettings
from kubetide.vertical.workloads import OwnerProblem, WorkloadView, topmost

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


def known(**settings):
    state = State(Settings(**settings))
    for view in making.workloads(2):
        state.put_workload(view.key, view)
    state.put_vpa(("default", "web"), making.vpa())
    return state


def review(spec, *, resource=("", "v1", "pods"), metadata=None, **more):
    group, version, plural = resource
    meta = {
        "namespace": "default",
        "name": "web-0",
        "labels": {"app": "web"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": True}],
    }
    request = {
        "uid": "u",
        "resource": {"group": group, "version": version, "resource": plural},
        "operation": "CREATE",
        "object": {"metadata": meta if metadata is None else metadata, "spec": spec},
        **more,
    }
    return json.dumps({"request": request}).encode()


@given(st.binary(max_size=60))
def test_bytes_that_are_no_review_are_allowed(body):
    """Whatever they are; the problem is named."""
    answer = admit(known(), body)
    assert answer.refusal is None
    assert (answer.status, bool(answer.problem)) == ("error", True)


@settings(max_examples=50)
@given(JSON)
def test_a_pod_of_any_shape_is_allowed(spec):
    """The patch is empty, or the pod is one that can be read."""
    answer = admit(known(), review(spec))
    assert answer.refusal is None
    assert answer.problem or answer.patch


@settings(max_examples=50)
@given(JSON)
def test_a_vpa_object_of_any_shape_is_answered(spec):
    """It is refused with causes, or allowed; nothing is raised."""
    resource = ("autoscaling.k8s.io", "v1", "verticalpodautoscalers")
    answer = admit(known(), review(spec, resource=resource))
    assert answer.refusal is None or answer.refusal["details"]["causes"]


def test_a_pod_with_an_amount_that_cannot_be_read_goes_in_as_it_is():
    """And the answer says which amount."""
    container = {"name": "main", "resources": {"requests": {"cpu": "a lot"}}}
    answer = admit(known(), review({"containers": [container]}))
    assert (answer.patch, answer.refusal) == ((), None)
    assert '"a lot" is not a quantity' in answer.problem


def test_too_large_a_body_is_refused():
    """413, and nothing of it is read; one of another type gets the empty answer that any such gets."""
    body = b" " * (MAX_BODY + 1)
    found = reply(known(), "application/json", body)
    assert (found.status, found.body) == (413, b"request payload too large\n")
    assert reply(known(), "text/plain", body).status == 200


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"updatePolicy": {"minReplicas": 1 << 40}},
            "number 1099511627776 into Go struct field PodUpdatePolicy.spec.updatePolicy.minReplicas of type int32",
        ),
        (
            {"updatePolicy": {"minReplicas": 1.5}},
            "number 1.5 into Go struct field PodUpdatePolicy.spec.updatePolicy.minReplicas of type int32",
        ),
        (
            {"updatePolicy": "x"},
            "string into Go struct field VerticalPodAutoscalerSpec.spec.updatePolicy of type v1.PodUpdatePolicy",
        ),
        (
            {"resourcePolicy": {"containerPolicies": [{"mode": 3}]}},
            "number into Go struct field ContainerResourcePolicy.spec.resourcePolicy.containerPolicies.mode of type v1.ContainerScalingMode",
        ),
        ({"resourcePolicy": {"containerPolicies": [{"maxAllowed": {"cpu": "1x"}}]}}, "quantities must match"),
        ({"startupBoost": {"cpu": {"quantity": True}}}, "quantities must match"),
    ],
)
def test_what_is_of_the_wrong_type_is_refused_in_upstreams_words(spec, words):
    """One cause at the root, with the path of the field in it."""
    resource = ("autoscaling.k8s.io", "v1", "verticalpodautoscalers")
    answer = admit(known(), review(spec, resource=resource, name="web"))
    [cause] = answer.refusal["details"]["causes"]
    assert (cause["field"], cause["reason"]) == (".", "InternalError")
    assert words in cause["message"]


VPA = ("autoscaling.k8s.io", "v1", "verticalpodautoscalers")


@pytest.mark.parametrize(("ratio", "shown"), [("0.9999", None), ("1", None), ("0.9981", "0.999"), ("0", "0")])
def test_a_ratio_is_read_in_thousandths(ratio, shown):
    """Rounded up, as upstream compares and prints it."""
    policies = [{"containerName": "main", "oomBumpUpRatio": ratio}]
    state = known(gates=FeatureGates(per_vpa_config=True))
    answer = admit(state, review({"resourcePolicy": {"containerPolicies": policies}}, resource=VPA))
    if shown is None:
        assert answer.refusal is None
    else:
        assert f"Invalid value: {shown}: must be greater" in answer.refusal["message"]


@pytest.mark.parametrize(
    "more", [{"object": None}, {"operation": "UPDATE"}, {"operation": "UPDATE", "oldObject": None}]
)
def test_a_vpa_object_that_is_not_there_is_refused(more):
    """Also the old one of an update; under the name that the request has."""
    refusal = admit(known(), review({}, resource=VPA, name="web", **more)).refusal
    assert refusal["message"].startswith('VerticalPodAutoscaler.autoscaling.k8s.io "web" is invalid')
    [cause] = refusal["details"]["causes"]
    assert (cause["field"], cause["message"]) == (".", "Internal error: unexpected end of JSON input")


def test_members_that_are_null_are_as_if_absent():
    """Of whatever type: a container policy without a name is refused for that."""
    spec = {
        "targetRef": None,
        "resourcePolicy": {"containerPolicies": [{"containerName": None, "mode": None}]},
    }
    [cause] = admit(known(), review(spec, resource=VPA)).refusal["details"]["causes"]
    assert cause["field"] == "spec.resourcePolicy.containerPolicies[0].containerName"
    assert cause["message"] == "Required value"


@pytest.mark.parametrize(
    ("bounds", "memory", "other"),
    [({"max": {"memory": "1Gi"}}, None, "1Gi"), ({"min": {"memory": "4Gi"}}, "0", "4Gi")],
)
def test_memory_that_is_not_recommended_under_a_limit_range_of_pods(bounds, memory, other):
    """A maximum leaves it as it is; a minimum scales it with the others, as upstream does."""
    targets = {"cpu-only": {"cpu": "1"}, "both": {"cpu": "1", "memory": "2Gi"}}
    given = [{"containerName": name, "target": target} for name, target in targets.items()]
    recommendation = msgspec.convert({"containerRecommendations": given}, PodRecommendation)
    own = {"memory": Quantity.parse("2Gi")}
    containers = [Running(name, own, own) for name in targets]
    limits = [{"type": "Pod", **bounds}]
    ranges = merged([msgspec.convert({"metadata": {"name": "a"}, "spec": {"limits": limits}}, LimitRange)])
    first, second = capped_recommendation(recommendation, None, containers, ranges)
    assert (str(first.target["memory"]) if "memory" in first.target else None) == memory
    assert str(second.target["memory"]) == other


def test_a_limit_range_with_empty_bounds_is_one():
    """Containers without a recommendation count with what they request, as with any LimitRange of pods."""
    limits = [{"type": "Pod", "max": {}}, {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}]
    found = merged([msgspec.convert({"metadata": {"name": "a"}, "spec": {"limits": limits}}, LimitRange)])
    assert (found.pod is None, found.container is None) == (False, True)


def test_a_refusal_has_the_name_of_the_request():
    """The object's own may not be known yet (``generateName``)."""
    refusal = admit(known(), review({"updatePolicy": {}}, resource=VPA)).refusal
    assert refusal["message"].startswith('VerticalPodAutoscaler.autoscaling.k8s.io "" is invalid')


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        ({"startupBoost": {}}, False),
        ({"startupBoost": {"cpu": {"type": "Factor", "factor": 2}}}, True),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "a", "startupBoost": {}}]}}, True),
    ],
)
def test_a_boost_stays_allowed_where_one_was_in_use(before, allowed):
    """Without the gate: of the whole pod one with CPU, of a container any."""
    spec = {"startupBoost": {"cpu": {"type": "Factor", "factor": 3}}}
    body = review(spec, resource=VPA, operation="UPDATE", oldObject={"spec": before})
    assert (admit(known(), body).refusal is None) is allowed


@pytest.mark.parametrize(
    ("limit", "request_"), [("2", "1"), ("600m", "599m"), ("1m", "1m"), ("1500u", "500u"), ("0", "0")]
)
def test_a_boosted_request_stays_below_a_limit_that_is_not_scaled(limit, request_):
    """One thousandth, and at it where that leaves nothing."""
    boost = {"cpu": {"type": "Factor", "factor": 2}}
    state = known(gates=FeatureGates(cpu_startup_boost=True))
    policies = {"containerPolicies": [{"containerName": "*", "controlledValues": "RequestsOnly"}]}
    # No recommendation for this container, so that the boost is of its own request.
    state.put_vpa(("default", "web"), making.vpa("Initial", startupBoost=boost, resourcePolicy=policies))
    container = {"name": "other", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": limit}}}
    answer = admit(state, review({"containers": [container]}))
    values = {patch["path"]: patch["value"] for patch in answer.patch}
    assert values["/spec/containers/0/resources/requests/cpu"] == request_


def test_vpa_objects_of_other_namespaces_do_not_count():
    """With vpa-object-namespace, or among the ignored ones."""
    spec = {"containers": [{"name": "main", "resources": {}}]}
    assert admit(known(), review(spec)).vpa == ("default", "web")
    assert admit(known(vpa_object_namespace="other"), review(spec)).vpa is None
    assert admit(known(ignored_vpa_object_namespaces=("default",)), review(spec)).vpa is None


@given(amount=st.integers(1, 1 << 50), base=st.integers(1, 1 << 50), result=st.integers(0, 1 << 50))
def test_proportions_are_exact_and_end_at_int64(amount, base, result):
    """No float takes part, and what is too much is capped."""
    exact = amount * result // base
    found, capped = scaled("memory", Quantity(amount), Quantity(base), Quantity(result))
    assert (found.value(), capped) == (min(exact, MAX_INT64), exact > MAX_INT64)


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_the_oldest_vpa_wins_in_whatever_order_they_come(order, removed):
    """An index that VPA objects are put into and taken from is that of those that are left."""
    vpas = [making.vpa(name=f"v{number}") for number in range(6)]
    index = VpaIndex()
    for number in order:
        index.put(vpas[number])
        index.put(vpas[number])
    for number in removed:
        index.remove(("default", f"v{number}"))
    views = {view.key: view for view in making.workloads(2)}
    left = sorted(set(range(6)) - removed)
    winner = index.of_pod(making.pod().metadata, views).vpa
    assert (winner.metadata.name if winner else None) == (f"v{left[0]}" if left else None)
    assert len(index) == len(left)


def test_the_topmost_owner_is_the_last_that_scales():
    """A custom owner with a scale counts, one without does not; a Node and a missing owner end the search."""

    def view(kind, name, owner=None, **more):
        return WorkloadView(kind, "ns", name, owner=owner, **more)

    known_views = [
        view("ReplicaSet", "r", ("Rollout", "x")),
        view("Rollout", "x", scalable=True),
        view("ReplicaSet", "s", ("App", "y")),
        view("App", "y"),
        view("ReplicaSet", "n", ("Node", "n1")),
        view("ReplicaSet", "m", ("Deployment", "gone")),
    ]
    views = {one.key: one for one in known_views}
    assert topmost(views, "ns", "ReplicaSet", "r") == ("Rollout", "x")
    assert topmost(views, "ns", "ReplicaSet", "s") == ("ReplicaSet", "s")
    for name, words in (("n", "Node n1"), ("m", "Deployment ns/gone does not exist")):
        with pytest.raises(OwnerProblem, match=words):
            topmost(views, "ns", "ReplicaSet", name)


def test_the_pods_of_a_kubelet_are_no_problem():
    """A pod that a Node owns goes in without a word; an owner that does not exist is named."""
    for owner, problem in (("Node", ""), ("ReplicaSet", "ReplicaSet default/n1 does not exist")):
        owners = [{"kind": owner, "name": "n1", "controller": True}]
        metadata = {"namespace": "default", "name": "proxy-n1", "ownerReferences": owners}
        answer = admit(known(), review({"containers": [{"name": "main"}]}, metadata=metadata))
        assert (answer.status, answer.patch, answer.problem) == ("skipped", (), problem)


def test_flags_are_read_as_upstreams_parser_does():
    """Durations, switches, lists, gates; an unknown flag is named with those there are."""
    found = read_flags(
        UpdaterSettings,
        {
            "updater_interval": "90s",
            "eviction-rate-limit": "0.5",
            "min-replicas": "3",
            "use-admission-controller-status": "f",
            "ignored-vpa-object-namespaces": "a, b,",
            "feature-gates": "AllAlpha=true,InPlace=false",
        },
    )
    assert found.updater_interval == 90_000_000_000
    assert (found.eviction_rate_limit, found.min_replicas) == (0.5, 3)
    assert found.use_admission_controller_status is False
    assert found.ignored_vpa_object_namespaces == ("a", "b")
    assert (found.gates.cpu_startup_boost, found.gates.in_place) == (True, False)
    with pytest.raises(ValueError, match=r"--min-replica: unknown flag; known are .*min-replicas"):
        read_flags(UpdaterSettings, {"min-replica": "3"})
    with pytest.raises(ValueError, match="--min-replicas=x"):
        read_flags(UpdaterSettings, {"min-replicas": "x"})
    with pytest.raises(ValueError, match="unknown gate 'Nope'"):
        read_gates("Nope=true")


def test_the_webhook_is_that_of_upstream():
    """Name, rules, failure policy, time-out and selector are what dashboards and policies look for."""
    settings = Settings(webhook_port="8443")
    found = webhook_configuration(settings, b"PEM", "vpa", 8000, read_labels('"a:b"'))
    [hook] = found["webhooks"]
    assert found["metadata"] == {"name": "vpa-webhook-config", "labels": {"a": "b"}}
    assert hook["name"] == "vpa.k8s.io"
    assert hook["clientConfig"] == {
        "service": {"name": "vpa-webhook", "namespace": "vpa"},
        "caBundle": "UEVN",
    }
    assert (hook["failurePolicy"], hook["timeoutSeconds"], hook["sideEffects"]) == ("Ignore", 30, "None")
    assert [rule["resources"] for rule in hook["rules"]] == [["pods"], ["verticalpodautoscalers"]]
    assert hook["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [""]}
    ]
    by_url = Settings(register_by_url=True, webhook_address="https://10.0.0.1", webhook_port="8443")
    [hook] = webhook_configuration(by_url, b"", "vpa", 8000, {})["webhooks"]
    assert hook["clientConfig"]["url"] == "https://10.0.0.1:8443"
