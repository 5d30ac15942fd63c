"""Deletion: preconditions, finalizers, grace."""

from __future__ import annotations

from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict, Forbidden, Invalid, NotFound
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import (
    NO_NODE,
    Case,
    config_map,
    exists,
    own_pod,
    refused,
    scratch,
    watching,
)
from kubetide.units.time import Instant, between, parse_rfc3339, to_seconds


async def delete_removes(cluster: Cluster, _clock: Clock) -> None:
    """A deleted object is not there, and deleting it again is NotFound."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)
        with refused(NotFound) as refusal:
            await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
        assert str(refusal.error) == 'configmaps "a" not found'


async def delete_by_uid(cluster: Cluster, _clock: Clock) -> None:
    """A delete that requires another uid is a Conflict and deletes nothing."""
    async with scratch(cluster) as namespace:
        made = await config_map(cluster, namespace, "a")
        with refused(Conflict):
            await cluster.delete(
                CONFIG_MAPS, "a", namespace=namespace, uid="00000000-0000-4000-8000-000000000000"
            )
        assert await exists(cluster, CONFIG_MAPS, "a", namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace, uid=made.metadata.uid)
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)


async def delete_by_version(cluster: Cluster, _clock: Clock) -> None:
    """A delete that requires an old version is a Conflict and deletes nothing."""
    async with scratch(cluster) as namespace:
        made = await config_map(cluster, namespace, "a")
        new = await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace=namespace)
        with refused(Conflict):
            await cluster.delete(
                CONFIG_MAPS, "a", namespace=namespace, resource_version=made.metadata.resource_version
            )
        version = new.metadata.resource_version
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace, resource_version=version)
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)


async def a_name_used_again_has_a_new_uid(cluster: Cluster, _clock: Clock) -> None:
    """An object created under a name that was used before is another one."""
    async with scratch(cluster) as namespace:
        uids = set()
        for _ in range(3):
            uids.add((await config_map(cluster, namespace, "a")).metadata.uid)
            await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
        assert len(uids) == 3


async def a_finalizer_holds(cluster: Cluster, _clock: Clock) -> None:
    """An object with a finalizer is marked by a delete and goes when the finalizer is taken away."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", extra={"metadata": {"finalizers": ["test/hold"]}})
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
        held = await cluster.get(CONFIG_MAPS, "a", namespace=namespace)
        assert held.metadata.deletion_timestamp
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
        again = await cluster.get(CONFIG_MAPS, "a", namespace=namespace)
        assert again.metadata.deletion_timestamp == held.metadata.deletion_timestamp
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace=namespace)
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)


async def no_finalizer_comes_late(cluster: Cluster, _clock: Clock) -> None:
    """An object that is being deleted takes no new finalizer."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", extra={"metadata": {"finalizers": ["test/hold"]}})
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
        with refused(Invalid, Forbidden) as refusal:
            patch = {"metadata": {"finalizers": ["test/hold", "test/late"]}}
            await cluster.patch(CONFIG_MAPS, "a", patch, namespace=namespace)
        assert "no new finalizers can be added if the object is being deleted" in str(refusal.error)
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": []}}, namespace=namespace)


async def marking_counts_as_generation(cluster: Cluster, _clock: Clock) -> None:
    """Setting deletionTimestamp counts as a change of the desired state."""
    async with scratch(cluster) as namespace:
        body = builders.deployment("a", replicas=0, extra={"metadata": {"finalizers": ["test/hold"]}})
        made = await cluster.create(DEPLOYMENTS, body, namespace=namespace)
        await cluster.delete(DEPLOYMENTS, "a", namespace=namespace)
        held = await cluster.get(DEPLOYMENTS, "a", namespace=namespace)
        assert held.metadata.generation == made.metadata.generation + 1
        await cluster.patch(DEPLOYMENTS, "a", {"metadata": {"finalizers": None}}, namespace=namespace)


async def an_unbound_pod_goes_at_once(cluster: Cluster, _clock: Clock) -> None:
    """A pod that is bound to no node is removed at once."""
    async with scratch(cluster) as namespace:
        await cluster.create(PODS, own_pod("a"), namespace=namespace)
        await cluster.delete(PODS, "a", namespace=namespace)
        assert not await exists(cluster, PODS, "a", namespace)


async def a_bound_pod_gets_its_grace(cluster: Cluster, clock: Clock) -> None:
    """A bound pod is marked with the time at which its grace ends, by default 30 s from now."""
    async with scratch(cluster) as namespace:
        await _bound(cluster, namespace)
        asked = clock.now()
        await cluster.delete(PODS, "a", namespace=namespace)
        pod = await cluster.get(PODS, "a", namespace=namespace)
        assert pod.metadata.deletion_grace_period_seconds == 30
        # The server's clock is another one, and times are cut to whole seconds.
        assert 27 <= _seconds_until_end(pod, asked) <= 33


async def grace_zero_removes(cluster: Cluster, _clock: Clock) -> None:
    """A delete with grace 0 removes a bound pod, as the kubelet does when it has ended."""
    async with scratch(cluster) as namespace:
        await _bound(cluster, namespace)
        await cluster.delete(PODS, "a", namespace=namespace)
        await cluster.delete(PODS, "a", namespace=namespace, grace_period_s=0)
        assert not await exists(cluster, PODS, "a", namespace)


async def grace_can_be_shortened_only(cluster: Cluster, _clock: Clock) -> None:
    """A second delete may shorten the grace, not lengthen it, and without a grace changes nothing."""
    async with scratch(cluster) as namespace:
        await _bound(cluster, namespace)
        for asked, expected in ((20, 20), (60, 20), (None, 20), (5, 5)):
            await cluster.delete(PODS, "a", namespace=namespace, grace_period_s=asked)
            pod = await cluster.get(PODS, "a", namespace=namespace)
            assert pod.metadata.deletion_grace_period_seconds == expected, asked
        await cluster.delete(PODS, "a", namespace=namespace, grace_period_s=0)


async def the_pod_says_its_grace(cluster: Cluster, _clock: Clock) -> None:
    """Without a grace in the delete, the pod's own terminationGracePeriodSeconds holds."""
    async with scratch(cluster) as namespace:
        await _bound(cluster, namespace, grace_s=7)
        await cluster.delete(PODS, "a", namespace=namespace)
        pod = await cluster.get(PODS, "a", namespace=namespace)
        assert pod.metadata.deletion_grace_period_seconds == 7
        await cluster.delete(PODS, "a", namespace=namespace, grace_period_s=0)


async def an_ended_pod_goes_at_once(cluster: Cluster, _clock: Clock) -> None:
    """A bound pod that has ended is removed at once."""
    async with scratch(cluster) as namespace:
        await _bound(cluster, namespace)
        await cluster.patch(
            PODS, "a", {"status": {"phase": "Succeeded"}}, namespace=namespace, subresource="status"
        )
        await cluster.delete(PODS, "a", namespace=namespace)
        assert not await exists(cluster, PODS, "a", namespace)


async def a_pod_s_finalizer_outlasts_its_grace(cluster: Cluster, _clock: Clock) -> None:
    """A pod with a finalizer stays, marked with grace 0, until the finalizer goes."""
    async with scratch(cluster) as namespace:
        await _bound(cluster, namespace, finalizers=["test/hold"])
        await cluster.delete(PODS, "a", namespace=namespace, grace_period_s=0)
        held = await cluster.get(PODS, "a", namespace=namespace)
        assert held.metadata.deletion_timestamp
        assert held.metadata.deletion_grace_period_seconds == 0
        await cluster.patch(PODS, "a", {"metadata": {"finalizers": None}}, namespace=namespace)
        assert not await exists(cluster, PODS, "a", namespace)


async def a_watch_sees_mark_and_end(cluster: Cluster, _clock: Clock) -> None:
    """A watch sees a graceful deletion as MODIFIED and then DELETED."""
    async with scratch(cluster) as namespace:
        await _bound(cluster, namespace)
        start = (await cluster.list(PODS, namespace=namespace)).resource_version
        async with watching(cluster, PODS, start, namespace=namespace) as reader:
            await cluster.delete(PODS, "a", namespace=namespace)
            marked = await reader.next()
            await cluster.delete(PODS, "a", namespace=namespace, grace_period_s=0)
            ended = await reader.next()
            while ended.type == "MODIFIED":
                # Some servers write the shortened grace before they remove.
                ended = await reader.next()
        assert marked.type == "MODIFIED"
        assert marked.object.metadata.deletion_timestamp
        assert ended.type == "DELETED"


async def _bound(
    cluster: Cluster, namespace: str, *, grace_s: int | None = None, finalizers: list[str] | None = None
) -> None:
    body = own_pod("a", extra={"spec": {"terminationGracePeriodSeconds": grace_s}} if grace_s else None)
    if finalizers:
        body["metadata"]["finalizers"] = finalizers
    await cluster.create(PODS, body, namespace=namespace)
    await cluster.bind(namespace=namespace, pod="a", node=NO_NODE)


def _seconds_until_end(pod: Pod, asked: Instant) -> float:
    assert pod.metadata.deletion_timestamp
    return to_seconds(between(asked, parse_rfc3339(pod.metadata.deletion_timestamp)))


CASES: list[Case] = [
    delete_removes,
    delete_by_uid,
    delete_by_version,
    a_name_used_again_has_a_new_uid,
    a_finalizer_holds,
    no_finalizer_comes_late,
    marking_counts_as_generation,
    an_unbound_pod_goes_at_once,
    a_bound_pod_gets_its_grace,
    grace_zero_removes,
    grace_can_be_shortened_only,
    the_pod_says_its_grace,
    an_ended_pod_goes_at_once,
    a_pod_s_finalizer_outlasts_its_grace,
    a_watch_sees_mark_and_end,
]
