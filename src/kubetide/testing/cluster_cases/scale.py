"""The ``scale`` subresource."""

from __future__ import annotations

from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, REPLICA_SETS, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict, Invalid, NotFound
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import Case, config_map, refused, scratch


async def scale_says_replicas_and_selector(cluster: Cluster, _clock: Clock) -> None:
    """The Scale of a workload has its replicas, its selector as text, and its version."""
    async with scratch(cluster) as namespace:
        made: tuple[tuple[Kind[Any], Json], ...] = (
            (DEPLOYMENTS, builders.deployment("a", replicas=2)),
            (REPLICA_SETS, builders.replica_set("b", replicas=2)),
        )
        for kind, body in made:
            name = body["metadata"]["name"]
            await cluster.create(kind, body, namespace=namespace)
            scale = await cluster.get_scale(kind, name, namespace=namespace)
            assert (scale.api_version, scale.kind) == ("autoscaling/v1", "Scale")
            assert (scale.spec.replicas, scale.status.selector) == (2, f"app={name}")
            assert (scale.metadata.namespace, scale.metadata.name) == (namespace, name)
            assert scale.metadata.resource_version


async def scale_prints_expressions(cluster: Cluster, _clock: Clock) -> None:
    """A selector of expressions is printed as upstream prints it, sorted by key."""
    async with scratch(cluster) as namespace:
        expression = {"key": "tier", "operator": "In", "values": ["x", "b"]}
        extra = {
            "spec": {
                "selector": {"matchExpressions": [expression]},
                "template": {"metadata": {"labels": {"tier": "b"}}},
            }
        }
        await cluster.create(
            DEPLOYMENTS, builders.deployment("a", replicas=0, extra=extra), namespace=namespace
        )
        scale = await cluster.get_scale(DEPLOYMENTS, "a", namespace=namespace)
        assert scale.status.selector == "app=a,tier in (b,x)"


async def scale_writes_replicas(cluster: Cluster, _clock: Clock) -> None:
    """Writing the Scale sets spec.replicas, and counts as a change of the spec."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(DEPLOYMENTS, builders.deployment("a", replicas=0), namespace=namespace)
        written = await cluster.replace_scale(DEPLOYMENTS, "a", 3, namespace=namespace)
        assert written.spec.replicas == 3
        read = await cluster.get(DEPLOYMENTS, "a", namespace=namespace)
        assert read.spec.replicas == 3
        assert read.metadata.generation == made.metadata.generation + 1


async def scale_at_an_old_version_conflicts(cluster: Cluster, _clock: Clock) -> None:
    """A Scale written at an old version is a Conflict that names the workload, and changes nothing."""
    async with scratch(cluster) as namespace:
        await cluster.create(DEPLOYMENTS, builders.deployment("a", replicas=0), namespace=namespace)
        old = await cluster.get_scale(DEPLOYMENTS, "a", namespace=namespace)
        await cluster.patch(DEPLOYMENTS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace=namespace)
        with refused(Conflict) as refusal:
            version = old.metadata.resource_version
            await cluster.replace_scale(DEPLOYMENTS, "a", 3, namespace=namespace, resource_version=version)
        assert str(refusal.error).startswith('Operation cannot be fulfilled on deployments.apps "a"')
        assert (await cluster.get_scale(DEPLOYMENTS, "a", namespace=namespace)).spec.replicas == 0


async def scale_is_not_negative(cluster: Cluster, _clock: Clock) -> None:
    """Replicas below 0 are Invalid."""
    async with scratch(cluster) as namespace:
        await cluster.create(DEPLOYMENTS, builders.deployment("a", replicas=0), namespace=namespace)
        with refused(Invalid) as refusal:
            await cluster.replace_scale(DEPLOYMENTS, "a", -1, namespace=namespace)
        assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in str(refusal.error)


async def scale_of_nothing_is_not_found(cluster: Cluster, _clock: Clock) -> None:
    """The Scale of a workload that is not there is NotFound and names it."""
    async with scratch(cluster) as namespace:
        with refused(NotFound) as refusal:
            await cluster.get_scale(DEPLOYMENTS, "none", namespace=namespace)
        assert str(refusal.error) == 'deployments.apps "none" not found'
        with refused(NotFound):
            await cluster.replace_scale(DEPLOYMENTS, "none", 1, namespace=namespace)


async def a_kind_without_scale_has_none(cluster: Cluster, _clock: Clock) -> None:
    """Asking a kind that cannot be scaled for its Scale is NotFound."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        with refused(NotFound) as refusal:
            await cluster.get_scale(CONFIG_MAPS, "a", namespace=namespace)
        assert str(refusal.error) == "the server could not find the requested resource"


CASES: list[Case] = [
    scale_says_replicas_and_selector,
    scale_prints_expressions,
    scale_writes_replicas,
    scale_at_an_old_version_conflicts,
    scale_is_not_negative,
    scale_of_nothing_is_not_found,
    a_kind_without_scale_has_none,
]
