"""The official Python client, unchanged, sees the same through its kubeconfig at both servers."""

from __future__ import annotations

import json
import threading
import time
from queue import Queue

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

pytestmark = pytest.mark.slow

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"

GADGETS = {"group": "test.example.com", "version": "v1", "plural": "gadgets"}


@pytest.fixture(autouse=True)
def _configured(kubeconfig_path):
    config.load_kube_config(str(kubeconfig_path))
    with client.ApiClient() as shared:
        client.ApiClient.set_default(shared)
        yield
        client.ApiClient.set_default(None)


@pytest.fixture
def namespace():
    """A new namespace, deleted at the end (a server without controllers only marks it)."""
    core = client.CoreV1Api()
    made = core.create_namespace(client.V1Namespace(metadata={"generateName": "python-"}))
    yield made.metadata.name
    core.delete_namespace(made.metadata.name)


def config_map(name, labels=None, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


def deployment(name, replicas=1):
    labels = {"app": name}
    container = client.V1Container(
        name="main", image="nginx:1.27", env=[client.V1EnvVar(name="A", value="1")]
    )
    return client.V1Deployment(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1DeploymentSpec(
            replicas=replicas,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
            ),
        ),
    )


def pod(name, labels):
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        spec=client.V1PodSpec(
            scheduler_name="nobody", containers=[client.V1Container(name="main", image="nginx:1.27")]
        ),
    )


def refusal(call, *args, **kwargs):
    """Return code, reason and message of the refusal of a call."""
    with pytest.raises(ApiException) as caught:
        call(*args, **kwargs)
    status = json.loads(caught.value.body)
    assert (status["kind"], status["code"]) == ("Status", caught.value.status)
    return status["code"], status["reason"], status["message"]


def test_discovery():
    """Version, groups and resources are found."""
    assert client.VersionApi().get_code().major == "1"
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    assert {"apps", "autoscaling", "batch", "policy", "coordination.k8s.io"} <= groups
    found = {resource.name: resource for resource in client.AppsV1Api().get_api_resources().resources}
    assert found["deployments"].short_names == ["deploy"]
    assert found["deployments/scale"].kind == "Scale"
    review = client.V1SelfSubjectAccessReview(
        spec={"resourceAttributes": {"verb": "create", "resource": "pods"}}
    )
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed


def test_create_replace_delete(namespace):
    """An object goes through its life; an old version and a missing object are refused in the usual words."""
    core = client.CoreV1Api()
    made = core.create_namespaced_config_map(namespace, config_map("a", k="1"))
    assert made.metadata.creation_timestamp.tzinfo is not None
    again = refusal(core.create_namespaced_config_map, namespace, config_map("a"))
    assert again == (409, "AlreadyExists", 'configmaps "a" already exists')
    made.data = {"k": "2"}
    written = core.replace_namespaced_config_map("a", namespace, made)
    assert written.data == {"k": "2"}
    code, reason, message = refusal(core.replace_namespaced_config_map, "a", namespace, made)
    assert (code, reason) == (409, "Conflict")
    assert message.startswith('Operation cannot be fulfilled on configmaps "a": the object has been modified')
    assert core.read_namespaced_config_map("a", namespace) == written
    core.delete_namespaced_config_map("a", namespace)
    missing = refusal(core.read_namespaced_config_map, "a", namespace)
    assert missing == (404, "NotFound", 'configmaps "a" not found')


def test_lists(namespace):
    """Selectors choose, parts of a list add up, and a collection is deleted by its labels."""
    core = client.CoreV1Api()
    for number in range(5):
        labels = {"parity": "odd" if number % 2 else "even"}
        core.create_namespaced_config_map(namespace, config_map(f"c{number}", labels))

    def names(**query):
        return [item.metadata.name for item in core.list_namespaced_config_map(namespace, **query).items]

    assert names(label_selector="parity=odd") == ["c1", "c3"]
    assert names(field_selector="metadata.name=c2") == ["c2"]
    first = core.list_namespaced_config_map(namespace, limit=2)
    assert first.metadata.remaining_item_count == 3
    assert len(first.items) == 2
    found, token = first.items, first.metadata._continue
    while token:
        part = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        found, token = found + part.items, part.metadata._continue
    assert [item.metadata.name for item in found] == [f"c{number}" for number in range(5)]
    core.delete_collection_namespaced_config_map(namespace, label_selector="parity in (even)")
    assert names() == ["c1", "c3"]


def test_watch(namespace):
    """A watch goes on after a list, reports each change once, and ends at its time."""
    core = client.CoreV1Api()
    core.create_namespaced_config_map(namespace, config_map("old"))
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a", k="1"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "2"}})
    core.delete_namespaced_config_map("a", namespace)
    seen = [
        (event["type"], event["object"].metadata.name, event["object"].data)
        for event in watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=start, timeout_seconds=1
        )
    ]
    assert seen == [
        ("ADDED", "a", {"k": "1"}),
        ("MODIFIED", "a", {"k": "2"}),
        ("DELETED", "a", {"k": "2"}),
    ]


def test_an_informer(namespace):
    """The client's informer lists, follows changes, and keeps its cache."""
    core = client.CoreV1Api()
    core.create_namespaced_config_map(namespace, config_map("old", k="1"))
    events: Queue[tuple[str, str]] = Queue()
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace)
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda item, kind=kind: events.put((kind, item.metadata.name)))
    informer.start()
    try:
        assert events.get(timeout=300) == ("ADDED", "old")
        core.create_namespaced_config_map(namespace, config_map("new"))
        assert events.get(timeout=300) == ("ADDED", "new")
        core.patch_namespaced_config_map("new", namespace, {"data": {"k": "2"}})
        assert events.get(timeout=300) == ("MODIFIED", "new")
        core.delete_namespaced_config_map("old", namespace)
        assert events.get(timeout=300) == ("DELETED", "old")
        assert informer.cache.list_keys() == [f"{namespace}/new"]
        assert informer.cache.get_by_key(f"{namespace}/new").data == {"k": "2"}
    finally:
        informer.stop()


def test_patches(namespace):
    """Strategic merge, merge, JSON patch and apply change what each of them is meant to change."""
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(namespace, deployment("web"))

    def patched(body, content_type=None, **query):
        written = apps.patch_namespaced_deployment(
            "web", namespace, body, _content_type=content_type, **query
        )
        return written.spec

    containers = {
        "template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}}
    }
    spec = patched({"spec": containers}, "application/strategic-merge-patch+json")
    (main,) = spec.template.spec.containers
    assert main.image == "nginx:1.27"
    assert {item.name: item.value for item in main.env} == {"A": "1", "B": "2"}

    assert patched({"spec": {"replicas": 3, "minReadySeconds": 5}}, MERGE).replicas == 3
    spec = patched(
        [
            {"op": "test", "path": "/spec/replicas", "value": 3},
            {"op": "remove", "path": "/spec/minReadySeconds"},
        ],
        JSON_PATCH,
    )
    assert spec.min_ready_seconds is None
    failed = [{"op": "test", "path": "/spec/replicas", "value": 9}]
    code, reason, _ = refusal(patched, failed, JSON_PATCH)
    assert (code, reason) == (422, "Invalid")

    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 4}}
    code, reason, message = refusal(patched, applied, APPLY, field_manager="tests")
    assert (code, reason) == (409, "Conflict")
    assert ".spec.replicas" in message
    assert patched(applied, APPLY, field_manager="tests", force=True).replicas == 4
    assert patched({"spec": {"replicas": 7}}, MERGE, dry_run="All").replicas == 7
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 4


def test_unknown_fields(namespace):
    """Strict validation refuses a field that nobody knows."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    create = DynamicClient(client.ApiClient.get_default()).request
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    code, reason, message = refusal(
        create, "post", path, body={**body, "colour": "red"}, query_params=[("fieldValidation", "Strict")]
    )
    assert (code, reason) == (400, "BadRequest")
    assert message.endswith('strict decoding error: unknown field "colour"')


def test_scale(namespace):
    """The scale subresource reads and writes the count alone."""
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(namespace, deployment("web", replicas=2))
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 0, "app=web")
    scale.spec.replicas = 5
    written = apps.replace_namespaced_deployment_scale("web", namespace, scale)
    assert written.spec.replicas == 5
    assert refusal(apps.replace_namespaced_deployment_scale, "web", namespace, scale)[:2] == (409, "Conflict")
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 6}})
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 6
    assert refusal(apps.patch_namespaced_deployment_scale, "web", namespace, {"spec": {"replicas": -1}})[
        :2
    ] == (422, "Invalid")


def test_eviction(namespace):
    """An eviction is refused while the budget allows none, and deletes the pod once it does."""
    core, policy = client.CoreV1Api(), client.PolicyV1Api()
    core.create_namespaced_pod(namespace, pod("web-1", {"app": "web"}))
    core.create_namespaced_binding(
        namespace,
        client.V1Binding(metadata={"name": "web-1"}, target={"kind": "Node", "name": "nowhere"}),
        _preload_content=False,
    )
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    core.patch_namespaced_pod_status("web-1", namespace, {"status": ready})
    budget = client.V1PodDisruptionBudget(
        metadata={"name": "web"},
        spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    )
    policy.create_namespaced_pod_disruption_budget(namespace, budget)

    def allow(count, healthy):
        counts = {
            "disruptionsAllowed": count,
            "expectedPods": 1,
            "currentHealthy": healthy,
            "desiredHealthy": 1,
        }
        status = {"status": {"observedGeneration": 1, **counts}}
        policy.patch_namespaced_pod_disruption_budget_status("web", namespace, status)

    def evict():
        body = client.V1Eviction(metadata={"name": "web-1"}, delete_options={"gracePeriodSeconds": 0})
        return core.create_namespaced_pod_eviction("web-1", namespace, body)

    words = "Cannot evict pod as it would violate the pod's disruption budget."
    assert refusal(evict) == (429, "TooManyRequests", words)
    allow(0, 1)
    assert refusal(evict) == (429, "TooManyRequests", words)
    allow(1, 2)
    evict()
    assert refusal(core.read_namespaced_pod, "web-1", namespace)[1] == "NotFound"
    assert refusal(evict)[:2] == (404, "NotFound")


@pytest.fixture
def gadgets():
    """A custom kind with the subresources status and scale."""
    extensions = client.ApiextensionsV1Api()
    name = f"{GADGETS['plural']}.{GADGETS['group']}"
    number = {"type": "integer"}
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": number, "colour": {"type": "string", "default": "red"}},
            },
            "status": {"type": "object", "properties": {"size": number, "selector": {"type": "string"}}},
        },
    }
    body = {
        "metadata": {"name": name},
        "spec": {
            "group": GADGETS["group"],
            "scope": "Namespaced",
            "names": {"plural": GADGETS["plural"], "singular": "gadget", "kind": "Gadget"},
            "versions": [
                {
                    "name": GADGETS["version"],
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.size",
                            "statusReplicasPath": ".status.size",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                }
            ],
        },
    }
    extensions.create_custom_resource_definition(body)
    for event in watch.Watch().stream(
        extensions.list_custom_resource_definition, field_selector=f"metadata.name={name}", timeout_seconds=20
    ):
        conditions = event["object"].status.conditions or []
        if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
            break
    yield
    extensions.delete_custom_resource_definition(name)
    # The next test defines it again.
    deadline = time.monotonic() + 60
    while extensions.list_custom_resource_definition(field_selector=f"metadata.name={name}").items:
        assert time.monotonic() < deadline, f"{name} does not go"
        time.sleep(0.05)


def test_custom_objects(namespace, gadgets):
    """Objects of a custom kind are written, patched, scaled and found, and other fields are dropped."""
    custom = client.CustomObjectsApi()
    where = {**GADGETS, "namespace": namespace}
    body = {"apiVersion": "test.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    made = custom.create_namespaced_custom_object(**where, body={**body, "spec": {"size": 1, "weight": 3}})
    assert made["spec"] == {"size": 1, "colour": "red"}
    named = {**where, "name": "g"}
    written = custom.patch_namespaced_custom_object(**named, body={"spec": {"size": 2}}, _content_type=MERGE)
    assert written["spec"]["size"] == 2
    written = custom.patch_namespaced_custom_object_status(
        **named, body={"status": {"size": 2, "selector": "a=b"}, "spec": {"size": 9}}, _content_type=MERGE
    )
    assert (written["status"]["size"], written["spec"]["size"]) == (2, 2)
    scale = custom.get_namespaced_custom_object_scale(**named)
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 2, "selector": "a=b"})
    custom.patch_namespaced_custom_object_scale(**named, body={"spec": {"replicas": 4}}, _content_type=MERGE)
    (found,) = custom.list_namespaced_custom_object(**where)["items"]
    assert found["spec"]["size"] == 4
    wrong = {"spec": {"colour": 3}}
    code, reason, message = refusal(
        custom.patch_namespaced_custom_object, **named, body=wrong, _content_type=MERGE
    )
    assert (code, reason) == (422, "Invalid")
    assert message == (
        'Gadget.test.example.com "g" is invalid: spec.colour: Invalid value: "integer": '
        'spec.colour in body must be of type string: "integer"'
    )
    custom.delete_namespaced_custom_object(**named)
    assert custom.list_namespaced_custom_object(**where)["items"] == []


def test_the_dynamic_client(namespace, gadgets, tmp_path):
    """Resources are found by discovery, built-in and custom ones."""
    dynamic = DynamicClient(client.ApiClient.get_default(), cache_file=str(tmp_path / "discovery"))
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(namespace=namespace, body={"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert maps.get(namespace=namespace, name="a").data.k == "v"
    kind = dynamic.resources.get(api_version="test.example.com/v1", kind="Gadget")
    body = {
        "apiVersion": "test.example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "g"},
        "spec": {"size": 1},
    }
    kind.create(namespace=namespace, body=body)
    body["spec"]["size"] = 3
    written = kind.server_side_apply(
        namespace=namespace, body=body, field_manager="tests", force_conflicts=True
    )
    assert written.spec.size == 3
    assert [item.metadata.name for item in kind.get(namespace=namespace).items] == ["g"]


def test_leader_election(namespace):
    """One of two candidates leads; when it gives up, the other takes the Lease over."""
    events: Queue[str] = Queue()
    give_up = threading.Event()

    def lead_first():
        events.put("first leads")
        give_up.wait(60)
        raise RuntimeError("the first gives up")

    def run(name, lead):
        LeaderElection(
            Config(
                LeaseLock("leader", namespace, name),
                lease_duration=3,
                renew_deadline=2,
                retry_period=1,
                onstarted_leading=lead,
                onstopped_leading=lambda: events.put(f"{name} stops"),
            )
        ).run()

    leases = client.CoordinationV1Api()
    first = threading.Thread(target=run, args=("first", lead_first), daemon=True)
    first.start()
    assert events.get(timeout=300) == "first leads"
    assert leases.read_namespaced_lease("leader", namespace).spec.holder_identity == "first"
    second_stops = threading.Event()

    def lead_second():
        events.put("second leads")
        second_stops.wait(60)
        raise RuntimeError("the second gives up")

    second = threading.Thread(target=run, args=("second", lead_second), daemon=True)
    second.start()
    give_up.set()
    assert events.get(timeout=300) == "first stops"
    assert events.get(timeout=300) == "second leads"
    assert leases.read_namespaced_lease("leader", namespace).spec.holder_identity == "second"
    second_stops.set()
    assert events.get(timeout=300) == "second stops"
    first.join(60)
    second.join(60)
