"""Replacing and patching."""

from __future__ import annotations

import asyncio

from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, LEASES, PODS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict, Invalid, NotFound
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import Case, config_map, own_pod, refused, scratch

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


async def replace_at_the_version_read(cluster: Cluster, _clock: Clock) -> None:
    """A replace at the version that was read succeeds and gives a new version."""
    async with scratch(cluster) as namespace:
        read = await config_map(cluster, namespace, "a", data={"k": "1", "gone": "x"})
        body = _at(builders.config_map("a", data={"k": "2"}), read.metadata.resource_version)
        written = await cluster.replace(CONFIG_MAPS, body, namespace=namespace)
        assert written.data == {"k": "2"}
        assert written.metadata.resource_version != read.metadata.resource_version
        assert written.metadata.uid == read.metadata.uid


async def replace_at_an_old_version_conflicts(cluster: Cluster, _clock: Clock) -> None:
    """A replace at an old version is a Conflict, in the words that clients look for."""
    async with scratch(cluster) as namespace:
        read = await config_map(cluster, namespace, "a")
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}}, namespace=namespace)
        with refused(Conflict) as refusal:
            body = _at(builders.config_map("a"), read.metadata.resource_version)
            await cluster.replace(CONFIG_MAPS, body, namespace=namespace)
        assert str(refusal.error) == f'Operation cannot be fulfilled on configmaps "a": {_MODIFIED}'
        assert (await cluster.get(CONFIG_MAPS, "a", namespace=namespace)).data == {"k": "2"}


async def replace_without_version_is_unconditional(cluster: Cluster, _clock: Clock) -> None:
    """A replace that names no version writes over whatever is there."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}}, namespace=namespace)
        written = await cluster.replace(
            CONFIG_MAPS, builders.config_map("a", data={"k": "3"}), namespace=namespace
        )
        assert written.data == {"k": "3"}


async def replace_of_nothing_is_not_found(cluster: Cluster, _clock: Clock) -> None:
    """A replace of what is not there is NotFound."""
    async with scratch(cluster) as namespace:
        with refused(NotFound):
            await cluster.replace(CONFIG_MAPS, builders.config_map("none"), namespace=namespace)


async def merge_patch_merges(cluster: Cluster, _clock: Clock) -> None:
    """A merge patch changes what it names, null removes, lists are replaced whole."""
    async with scratch(cluster) as namespace:
        await config_map(
            cluster,
            namespace,
            "a",
            data={"a": "1", "b": "2"},
            extra={"metadata": {"finalizers": ["test/x", "test/y"]}},
        )
        patch: Json = {"data": {"b": None, "c": "3"}, "metadata": {"finalizers": ["test/z"]}}
        written = await cluster.patch(CONFIG_MAPS, "a", patch, namespace=namespace)
        assert written.data == {"a": "1", "c": "3"}
        assert written.metadata.finalizers == ("test/z",)
        cleared = await cluster.patch(
            CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace=namespace
        )
        assert not cleared.metadata.finalizers


async def merge_patch_with_old_version_conflicts(cluster: Cluster, _clock: Clock) -> None:
    """A version in a merge patch is a precondition: the same patch succeeds once and then conflicts."""
    async with scratch(cluster) as namespace:
        read = await config_map(cluster, namespace, "a")
        patch = {"metadata": {"resourceVersion": read.metadata.resource_version}, "data": {"k": "1"}}
        await cluster.patch(CONFIG_MAPS, "a", patch, namespace=namespace)
        with refused(Conflict):
            await cluster.patch(CONFIG_MAPS, "a", {**patch, "data": {"k": "2"}}, namespace=namespace)


async def merge_patch_of_another_uid_conflicts(cluster: Cluster, _clock: Clock) -> None:
    """A uid in a merge patch is a precondition too."""
    async with scratch(cluster) as namespace:
        read = await config_map(cluster, namespace, "a")
        good = {"metadata": {"uid": read.metadata.uid}, "data": {"k": "1"}}
        assert (await cluster.patch(CONFIG_MAPS, "a", good, namespace=namespace)).data == {"k": "1"}
        with refused(Conflict, Invalid):
            bad = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}, "data": {"k": "2"}}
            await cluster.patch(CONFIG_MAPS, "a", bad, namespace=namespace)


async def json_patch_applies_in_order(cluster: Cluster, _clock: Clock) -> None:
    """A JSON patch applies its operations in order."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", data={"a": "1"})
        ops: list[Json] = [
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "replace", "path": "/data/a", "value": "2"},
            {"op": "copy", "from": "/data/a", "path": "/data/d"},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/b~1c", "value": "3"},
        ]
        written = await cluster.patch(CONFIG_MAPS, "a", ops, namespace=namespace, patch_type="json")
        assert written.data == {"a": "2", "d": "2"}
        assert written.metadata.annotations == {"b/c": "3"}


async def json_patch_applies_whole_or_not(cluster: Cluster, _clock: Clock) -> None:
    """A JSON patch whose test fails is refused and changes nothing."""
    async with scratch(cluster) as namespace:
        read = await config_map(cluster, namespace, "a", data={"a": "1"})
        ops: list[Json] = [
            {"op": "replace", "path": "/data/a", "value": "2"},
            {"op": "test", "path": "/data/a", "value": "1"},
        ]
        with refused(Invalid):
            await cluster.patch(CONFIG_MAPS, "a", ops, namespace=namespace, patch_type="json")
        assert await cluster.get(CONFIG_MAPS, "a", namespace=namespace) == read


async def patch_of_nothing_is_not_found(cluster: Cluster, _clock: Clock) -> None:
    """A patch of what is not there is NotFound."""
    async with scratch(cluster) as namespace:
        with refused(NotFound):
            await cluster.patch(CONFIG_MAPS, "none", {"data": {}}, namespace=namespace)


async def a_patch_is_neither_kept_nor_changed(cluster: Cluster, _clock: Clock) -> None:
    """A patch is the caller's: later changes to it do not reach the object."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        patch = {"data": {"k": "v"}}
        await cluster.patch(CONFIG_MAPS, "a", patch, namespace=namespace)
        assert patch == {"data": {"k": "v"}}
        patch["data"]["k"] = "changed"
        assert (await cluster.get(CONFIG_MAPS, "a", namespace=namespace)).data == {"k": "v"}


async def a_write_of_nothing_moves_no_version(cluster: Cluster, _clock: Clock) -> None:
    """A patch or a replace that changes nothing gives the same version."""
    async with scratch(cluster) as namespace:
        body = builders.config_map("a", data={"k": "v"}, labels={"l": "1"})
        read = await cluster.create(CONFIG_MAPS, body, namespace=namespace)
        patched = await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace=namespace)
        replaced = await cluster.replace(CONFIG_MAPS, body, namespace=namespace)
        assert patched.metadata.resource_version == read.metadata.resource_version
        assert replaced.metadata.resource_version == read.metadata.resource_version


async def versions_and_reads_move_together(cluster: Cluster, _clock: Clock) -> None:
    """Every change gives a version that no earlier change had, and a read gives the newest."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        versions = []
        for value in map(str, range(5)):
            written = await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": value}}, namespace=namespace)
            versions.append(written.metadata.resource_version)
            assert await cluster.get(CONFIG_MAPS, "a", namespace=namespace) == written
        assert len(set(versions)) == 5


async def server_owned_metadata_stays(cluster: Cluster, _clock: Clock) -> None:
    """A replace that leaves uid and creation time out keeps them, and cannot ask for deletion."""
    async with scratch(cluster) as namespace:
        read = await config_map(cluster, namespace, "a")
        body = builders.config_map("a", labels={"new": "label"})
        written = await cluster.replace(CONFIG_MAPS, body, namespace=namespace)
        assert written.metadata.uid == read.metadata.uid
        assert written.metadata.creation_timestamp == read.metadata.creation_timestamp
        assert written.metadata.deletion_timestamp is None
        assert written.metadata.labels == {"new": "label"}


async def generation_counts_changes_of_spec(cluster: Cluster, _clock: Clock) -> None:
    """The generation starts at 1 and counts changes of the spec, not of labels."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(DEPLOYMENTS, builders.deployment("a", replicas=0), namespace=namespace)
        assert made.metadata.generation == 1
        labels = {"metadata": {"labels": {"l": "1"}}}
        assert (await cluster.patch(DEPLOYMENTS, "a", labels, namespace=namespace)).metadata.generation == 1
        spec = {"spec": {"minReadySeconds": 5}}
        assert (await cluster.patch(DEPLOYMENTS, "a", spec, namespace=namespace)).metadata.generation == 2
        assert (await cluster.patch(DEPLOYMENTS, "a", spec, namespace=namespace)).metadata.generation == 2


async def status_is_written_apart(cluster: Cluster, _clock: Clock) -> None:
    """A write to ``status`` changes only the status, any other write everything but the status."""
    async with scratch(cluster) as namespace:
        await cluster.create(PODS, own_pod("a"), namespace=namespace)
        both: Json = {"spec": {"activeDeadlineSeconds": 100}, "status": {"phase": "Running"}}
        after_status = await cluster.patch(PODS.untyped, "a", both, namespace=namespace, subresource="status")
        assert after_status["status"]["phase"] == "Running"
        assert "activeDeadlineSeconds" not in after_status["spec"]
        both["status"]["phase"] = "Failed"
        after_main = await cluster.patch(PODS.untyped, "a", both, namespace=namespace)
        assert after_main["spec"]["activeDeadlineSeconds"] == 100
        assert after_main["status"]["phase"] == "Running"


async def status_can_be_replaced(cluster: Cluster, _clock: Clock) -> None:
    """A PUT of ``status`` is conditional like any other, and takes the body's status."""
    async with scratch(cluster) as namespace:
        await cluster.create(PODS, own_pod("a"), namespace=namespace)
        body = await cluster.get(PODS.untyped, "a", namespace=namespace)
        new = {**body, "status": {**body["status"], "phase": "Running"}}
        written = await cluster.replace(PODS, new, namespace=namespace, subresource="status")
        assert written.status.phase == "Running"
        with refused(Conflict):
            await cluster.replace(
                PODS, {**new, "status": {"phase": "Failed"}}, namespace=namespace, subresource="status"
            )


async def status_does_not_count_as_generation(cluster: Cluster, _clock: Clock) -> None:
    """A change of the status leaves the generation."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(PODS, own_pod("a"), namespace=namespace)
        written = await cluster.patch(
            PODS, "a", {"status": {"phase": "Running"}}, namespace=namespace, subresource="status"
        )
        assert written.metadata.generation == made.metadata.generation


async def a_selector_cannot_change(cluster: Cluster, _clock: Clock) -> None:
    """The selector of a Deployment is immutable."""
    async with scratch(cluster) as namespace:
        await cluster.create(DEPLOYMENTS, builders.deployment("a", replicas=0), namespace=namespace)
        labels = {"app": "b"}
        patch = {
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
        }
        with refused(Invalid) as refusal:
            await cluster.patch(DEPLOYMENTS, "a", patch, namespace=namespace)
        assert "field is immutable" in str(refusal.error)


async def a_pod_cannot_be_bound_by_patch(cluster: Cluster, _clock: Clock) -> None:
    """The node of a pod cannot be set by an ordinary write."""
    async with scratch(cluster) as namespace:
        await cluster.create(PODS, own_pod("a"), namespace=namespace)
        with refused(Invalid):
            await cluster.patch(PODS, "a", {"spec": {"nodeName": "x"}}, namespace=namespace)


async def a_lease_is_held_by_version(cluster: Cluster, _clock: Clock) -> None:
    """Of two holders that replace a lease at the version both read, one wins."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(LEASES, builders.lease("l", holder="a"), namespace=namespace)
        version = made.metadata.resource_version
        won = await cluster.replace(
            LEASES, _at(builders.lease("l", holder="b"), version), namespace=namespace
        )
        assert won.spec.holder_identity == "b"
        with refused(Conflict):
            await cluster.replace(LEASES, _at(builders.lease("l", holder="c"), version), namespace=namespace)


async def optimistic_writers_lose_nothing(cluster: Cluster, _clock: Clock) -> None:
    """Writers that read, add one and retry on Conflict add up."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", data={"n": "0"})

        async def add_one() -> None:
            while True:
                read = await cluster.get(CONFIG_MAPS, "a", namespace=namespace)
                number = int((read.data or {})["n"]) + 1
                body = builders.config_map("a", data={"n": str(number)})
                try:
                    await cluster.replace(
                        CONFIG_MAPS, _at(body, read.metadata.resource_version), namespace=namespace
                    )
                except Conflict:
                    continue
                return

        await asyncio.gather(*(add_one() for _ in range(10)))
        assert (await cluster.get(CONFIG_MAPS, "a", namespace=namespace)).data == {"n": "10"}


def _at(body: Json, version: str) -> Json:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}


CASES: list[Case] = [
    replace_at_the_version_read,
    replace_at_an_old_version_conflicts,
    replace_without_version_is_unconditional,
    replace_of_nothing_is_not_found,
    merge_patch_merges,
    merge_patch_with_old_version_conflicts,
    merge_patch_of_another_uid_conflicts,
    json_patch_applies_in_order,
    json_patch_applies_whole_or_not,
    patch_of_nothing_is_not_found,
    a_patch_is_neither_kept_nor_changed,
    a_write_of_nothing_moves_no_version,
    versions_and_reads_move_together,
    server_owned_metadata_stays,
    generation_counts_changes_of_spec,
    status_is_written_apart,
    status_can_be_replaced,
    status_does_not_count_as_generation,
    a_selector_cannot_change,
    a_pod_cannot_be_bound_by_patch,
    a_lease_is_held_by_version,
    optimistic_writers_lose_nothing,
]
