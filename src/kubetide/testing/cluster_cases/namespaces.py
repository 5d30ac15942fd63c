"""Namespaces and their end."""

from __future__ import annotations

from kubetide.objects.kinds import CONFIG_MAPS, NAMESPACES, PODS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Forbidden
from kubetide.testing.cluster_cases.ground import (
    Case,
    config_map,
    eventually,
    exists,
    goes,
    own_pod,
    refused,
    scratch,
)


async def the_first_namespaces_exist(cluster: Cluster, _clock: Clock) -> None:
    """default, kube-system and kube-public are there and active."""
    for name in ("default", "kube-system", "kube-public"):
        assert (await cluster.get(NAMESPACES, name)).status.phase == "Active"


async def a_namespace_is_labelled_with_its_name(cluster: Cluster, _clock: Clock) -> None:
    """A namespace carries its name as a label, for selectors."""
    async with scratch(cluster) as namespace:
        labels = (await cluster.get(NAMESPACES, namespace)).metadata.labels or {}
        assert labels["kubernetes.io/metadata.name"] == namespace


async def a_namespace_takes_its_contents_along(cluster: Cluster, clock: Clock) -> None:
    """Deleting a namespace removes what is in it, and then the namespace."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        await cluster.create(PODS, own_pod("p"), namespace=namespace)
        await cluster.delete(NAMESPACES, namespace)
        await goes(cluster, clock, NAMESPACES, namespace, "")
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)
        assert not await exists(cluster, PODS, "p", namespace)


async def a_terminating_namespace_takes_nothing(cluster: Cluster, clock: Clock) -> None:
    """A namespace that waits for its contents refuses creates, and says why in a cause."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "held", extra={"metadata": {"finalizers": ["test/hold"]}})
        await cluster.delete(NAMESPACES, namespace)

        async def is_terminating() -> bool:
            return (await cluster.get(NAMESPACES, namespace)).status.phase == "Terminating"

        await eventually(clock, "the namespace is terminating", is_terminating)
        with refused(Forbidden) as refusal:
            await config_map(cluster, namespace, "late")
        assert f"in namespace {namespace} because it is being terminated" in str(refusal.error)
        assert any(cause["reason"] == "NamespaceTerminating" for cause in refusal.error.causes)
        # The namespace controller may be about to delete what is left.
        await cluster.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, namespace=namespace)
        await goes(cluster, clock, NAMESPACES, namespace, "")


async def default_must_stay(cluster: Cluster, _clock: Clock) -> None:
    """The namespaces that every cluster needs cannot be deleted."""
    with refused(Forbidden) as refusal:
        await cluster.delete(NAMESPACES, "default")
    assert str(refusal.error) == 'namespaces "default" is forbidden: this namespace may not be deleted'


CASES: list[Case] = [
    the_first_namespaces_exist,
    a_namespace_is_labelled_with_its_name,
    a_namespace_takes_its_contents_along,
    a_terminating_namespace_takes_nothing,
    default_must_stay,
]
