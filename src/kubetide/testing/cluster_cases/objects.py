"""Creating and reading."""

from __future__ import annotations

import asyncio

from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, HPAS, NODES, PODS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, BadRequest, Invalid, NotFound
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import Case, config_map, own_pod, refused, scratch
from kubetide.units.time import parse_rfc3339


async def create_sets_identity(cluster: Cluster, _clock: Clock) -> None:
    """A created object has a uid, a creation time, a version, its name and its namespace."""
    async with scratch(cluster) as namespace:
        meta = (await config_map(cluster, namespace, "a")).metadata
        assert meta.uid
        assert meta.resource_version
        assert parse_rfc3339(meta.creation_timestamp)
        assert (meta.namespace, meta.name) == (namespace, "a")


async def get_gives_what_was_created(cluster: Cluster, _clock: Clock) -> None:
    """A read gives the object that the create gave."""
    async with scratch(cluster) as namespace:
        created = await config_map(cluster, namespace, "a", data={"k": "v"})
        assert await cluster.get(CONFIG_MAPS, "a", namespace=namespace) == created
        assert created.data == {"k": "v"}


async def get_of_nothing_is_not_found(cluster: Cluster, _clock: Clock) -> None:
    """Reading what is not there is NotFound and names resource and object."""
    async with scratch(cluster) as namespace:
        with refused(NotFound) as refusal:
            await cluster.get(PODS, "none", namespace=namespace)
        assert str(refusal.error) == 'pods "none" not found'
        with refused(NotFound) as refusal:
            await cluster.get(DEPLOYMENTS, "none", namespace=namespace)
        assert str(refusal.error) == 'deployments.apps "none" not found'


async def create_twice_already_exists(cluster: Cluster, _clock: Clock) -> None:
    """A second object of the same name is refused with AlreadyExists."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        with refused(AlreadyExists) as refusal:
            await config_map(cluster, namespace, "a")
        assert str(refusal.error) == 'configmaps "a" already exists'


async def create_as_a_dry_run(cluster: Cluster, _clock: Clock) -> None:
    """A dry run answers with the object as it would be, and stores nothing; what would be refused is refused."""
    async with scratch(cluster) as namespace:
        body = builders.pod("", cpu="100m")
        body["metadata"] = {"generateName": "dry-"}
        made = await cluster.create(PODS, body, namespace=namespace, dry_run=True)
        assert made.metadata.name.startswith("dry-")
        assert made.spec.scheduler_name == "default-scheduler"
        assert not (await cluster.list(PODS, namespace=namespace)).items
        with refused(Invalid):
            await cluster.create(PODS, own_pod("A_b"), namespace=namespace, dry_run=True)
        await config_map(cluster, namespace, "a")
        with refused(AlreadyExists):
            await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace=namespace, dry_run=True)


async def create_needs_its_namespace(cluster: Cluster, _clock: Clock) -> None:
    """A create in a namespace that does not exist is NotFound and names the namespace."""
    with refused(NotFound) as refusal:
        await config_map(cluster, "battery-no-such-namespace", "a")
    assert str(refusal.error) == 'namespaces "battery-no-such-namespace" not found'


async def namespace_may_stand_in_the_body(cluster: Cluster, _clock: Clock) -> None:
    """The namespace of the body counts where the call names none, and must agree where it does."""
    async with scratch(cluster) as namespace:
        created = await cluster.create(CONFIG_MAPS, builders.config_map("a", namespace=namespace))
        assert created.metadata.namespace == namespace
        with refused(BadRequest):
            await cluster.create(
                CONFIG_MAPS, builders.config_map("b", namespace="other"), namespace=namespace
            )


async def generate_name_gives_new_names(cluster: Cluster, _clock: Clock) -> None:
    """GenerateName gives a different name with that prefix each time."""
    async with scratch(cluster) as namespace:
        names = [(await config_map(cluster, namespace, "a-")).metadata.name for _ in range(20)]
        assert len(set(names)) == 20
        assert all(name.startswith("a-") and len(name) == 7 for name in names), names


async def one_of_many_equal_creates_wins(cluster: Cluster, _clock: Clock) -> None:
    """Of creates of one name at the same time exactly one succeeds."""
    async with scratch(cluster) as namespace:
        results = await asyncio.gather(
            *(config_map(cluster, namespace, "a") for _ in range(8)), return_exceptions=True
        )
        errors = [result for result in results if isinstance(result, BaseException)]
        assert len(errors) == 7
        assert all(isinstance(error, AlreadyExists) for error in errors), errors


async def same_name_in_two_namespaces(cluster: Cluster, _clock: Clock) -> None:
    """Objects of one name in two namespaces are two objects."""
    async with scratch(cluster) as one, scratch(cluster) as other:
        first = await config_map(cluster, one, "a", data={"k": "1"})
        second = await config_map(cluster, other, "a", data={"k": "2"})
        assert first.metadata.uid != second.metadata.uid
        assert (await cluster.get(CONFIG_MAPS, "a", namespace=one)).data == {"k": "1"}


async def untyped_read_has_every_field(cluster: Cluster, _clock: Clock) -> None:
    """An untyped read gives fields that the typed one does not know."""
    async with scratch(cluster) as namespace:
        body = own_pod("a")
        body["spec"]["containers"][0]["env"] = [{"name": "X", "value": "1"}]
        await cluster.create(PODS, body, namespace=namespace)
        json = await cluster.get(PODS.untyped, "a", namespace=namespace)
        assert json["spec"]["containers"][0]["env"] == [{"name": "X", "value": "1"}]
        assert (json["apiVersion"], json["kind"]) == ("v1", "Pod")


async def typed_and_untyped_agree(cluster: Cluster, _clock: Clock) -> None:
    """The typed and the untyped read of an object say the same."""
    async with scratch(cluster) as namespace:
        await cluster.create(DEPLOYMENTS, builders.deployment("a", replicas=0), namespace=namespace)
        json = (await cluster.list(DEPLOYMENTS.untyped, namespace=namespace)).items[0]
        typed = (await cluster.list(DEPLOYMENTS, namespace=namespace)).items[0]
        assert json["metadata"]["uid"] == typed.metadata.uid
        assert json["spec"]["replicas"] == typed.spec.replicas == 0


async def body_is_neither_kept_nor_changed(cluster: Cluster, _clock: Clock) -> None:
    """A body is the caller's: the callee does not change it, and later changes do not reach the object."""
    async with scratch(cluster) as namespace:
        body = builders.config_map("a", data={"k": "v"}, labels={"l": "1"})
        sent: Json = {
            **body,
            "data": dict(body["data"]),
            "metadata": {**body["metadata"], "labels": {"l": "1"}},
        }
        await cluster.create(CONFIG_MAPS, body, namespace=namespace)
        assert body == sent
        body["data"]["k"] = body["metadata"]["labels"]["l"] = "changed"
        stored = await cluster.get(CONFIG_MAPS, "a", namespace=namespace)
        assert (stored.data, stored.metadata.labels) == ({"k": "v"}, {"l": "1"})


async def defaults_are_filled_in(cluster: Cluster, _clock: Clock) -> None:
    """A Deployment without replicas has 1, a pod 30 s to end and the default scheduler."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(DEPLOYMENTS, builders.deployment("a"), namespace=namespace)
        assert made.spec.replicas == 1
        assert made.spec.strategy.type == "RollingUpdate"
        template = made.spec.template.spec
        assert (template.termination_grace_period_seconds, template.scheduler_name) == (
            30,
            "default-scheduler",
        )


async def status_of_a_new_object_is_not_taken(cluster: Cluster, _clock: Clock) -> None:
    """A create ignores the status in its body: a new pod is Pending."""
    async with scratch(cluster) as namespace:
        body = own_pod("a", extra={"status": {"phase": "Running"}})
        assert (await cluster.create(PODS, body, namespace=namespace)).status.phase == "Pending"


async def a_node_brings_its_status(cluster: Cluster, _clock: Clock) -> None:
    """A node keeps the status that it registers with."""
    made = await cluster.create(NODES, builders.node("battery-node-", cpu="3", ready=False))
    try:
        assert (made.status.allocatable or {})["cpu"] == "3"
    finally:
        await cluster.delete(NODES, made.metadata.name)


async def a_bad_name_is_invalid(cluster: Cluster, _clock: Clock) -> None:
    """A name that is no DNS name is Invalid, with a cause that names the field."""
    async with scratch(cluster) as namespace:
        with refused(Invalid) as refusal:
            await config_map(cluster, namespace, "Not_A_Name")
        assert 'ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value' in str(refusal.error)
        cause = refusal.error.causes[0]
        assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "metadata.name")


async def a_pod_needs_containers(cluster: Cluster, _clock: Clock) -> None:
    """A pod without containers is Invalid."""
    async with scratch(cluster) as namespace:
        with refused(Invalid) as refusal:
            await cluster.create(
                PODS, {"metadata": {"name": "a"}, "spec": {"containers": []}}, namespace=namespace
            )
        assert any(cause["field"] == "spec.containers" for cause in refusal.error.causes)


async def an_impossible_hpa_is_invalid(cluster: Cluster, _clock: Clock) -> None:
    """An HPA that may have no replicas is Invalid, with the upstream's sentence."""
    async with scratch(cluster) as namespace:
        with refused(Invalid) as refusal:
            await cluster.create(HPAS, builders.hpa("a", "web", max_replicas=0), namespace=namespace)
        assert "spec.maxReplicas: Required value: must be set and greater than 0" in str(refusal.error)


async def a_wrong_type_is_refused(cluster: Cluster, _clock: Clock) -> None:
    """A text where a number belongs is refused, and nothing is created."""
    async with scratch(cluster) as namespace:
        body = builders.deployment("a", extra={"spec": {"replicas": "three"}})
        with refused(BadRequest, Invalid):
            await cluster.create(DEPLOYMENTS, body, namespace=namespace)
        with refused(NotFound):
            await cluster.get(DEPLOYMENTS, "a", namespace=namespace)


async def a_body_of_another_type_is_refused(cluster: Cluster, _clock: Clock) -> None:
    """A body whose kind is not that of the request is a BadRequest."""
    async with scratch(cluster) as namespace:
        with refused(BadRequest):
            await cluster.create(CONFIG_MAPS, own_pod("a"), namespace=namespace)


async def a_version_on_create_is_refused(cluster: Cluster, _clock: Clock) -> None:
    """An object that was read cannot be created again as it stands: it names a version."""
    async with scratch(cluster) as namespace:
        body = builders.config_map("a", extra={"metadata": {"resourceVersion": "12"}})
        with refused(ApiError):
            await cluster.create(CONFIG_MAPS, body, namespace=namespace)
        with refused(NotFound):
            await cluster.get(CONFIG_MAPS, "a", namespace=namespace)


CASES: list[Case] = [
    create_sets_identity,
    get_gives_what_was_created,
    get_of_nothing_is_not_found,
    create_twice_already_exists,
    create_as_a_dry_run,
    create_needs_its_namespace,
    namespace_may_stand_in_the_body,
    generate_name_gives_new_names,
    one_of_many_equal_creates_wins,
    same_name_in_two_namespaces,
    untyped_read_has_every_field,
    typed_and_untyped_agree,
    body_is_neither_kept_nor_changed,
    defaults_are_filled_in,
    status_of_a_new_object_is_not_taken,
    a_node_brings_its_status,
    a_bad_name_is_invalid,
    a_pod_needs_containers,
    an_impossible_hpa_is_invalid,
    a_wrong_type_is_refused,
    a_body_of_another_type_is_refused,
    a_version_on_create_is_refused,
]
