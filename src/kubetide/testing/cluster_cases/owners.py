"""Owners and what becomes of what they own. ConfigMaps own ConfigMaps here, so that no controller joins in."""

from __future__ import annotations

from typing import Any

from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.testing.builders import owner_reference
from kubetide.testing.cluster_cases.ground import Case, config_map, eventually, exists, goes, scratch


async def dependents_follow(cluster: Cluster, clock: Clock) -> None:
    """Background deletion removes the owner at once and its dependents, and theirs, after it."""
    async with scratch(cluster) as namespace:
        owner = await config_map(cluster, namespace, "owner")
        child = await config_map(cluster, namespace, "child", owners=[owner_reference(owner)])
        await config_map(cluster, namespace, "grandchild", owners=[owner_reference(child)])
        await config_map(cluster, namespace, "stranger")
        await cluster.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Background")
        assert not await exists(cluster, CONFIG_MAPS, "owner", namespace)
        await goes(cluster, clock, CONFIG_MAPS, "grandchild", namespace)
        assert not await exists(cluster, CONFIG_MAPS, "child", namespace)
        assert await exists(cluster, CONFIG_MAPS, "stranger", namespace)


async def orphans_stay(cluster: Cluster, clock: Clock) -> None:
    """Orphan deletion leaves the dependents, without the owner."""
    async with scratch(cluster) as namespace:
        owner = await config_map(cluster, namespace, "owner")
        await config_map(cluster, namespace, "child", owners=[owner_reference(owner)])
        await cluster.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Orphan")
        await goes(cluster, clock, CONFIG_MAPS, "owner", namespace)
        child = await cluster.get(CONFIG_MAPS, "child", namespace=namespace)
        assert not child.metadata.owner_references


async def foreground_waits(cluster: Cluster, clock: Clock) -> None:
    """Foreground deletion keeps the owner, marked, until its blocking dependents have gone."""
    async with scratch(cluster) as namespace:
        owner = await config_map(cluster, namespace, "owner")
        held = {"metadata": {"finalizers": ["test/hold"]}}
        await config_map(cluster, namespace, "child", owners=[owner_reference(owner)], extra=held)
        await cluster.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Foreground")

        async def child_is_marked() -> bool:
            return bool(
                (await cluster.get(CONFIG_MAPS, "child", namespace=namespace)).metadata.deletion_timestamp
            )

        await eventually(clock, "the dependent is being deleted", child_is_marked)
        waiting = await cluster.get(CONFIG_MAPS, "owner", namespace=namespace)
        assert waiting.metadata.deletion_timestamp
        assert waiting.metadata.finalizers == ("foregroundDeletion",)
        await cluster.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": None}}, namespace=namespace)
        await goes(cluster, clock, CONFIG_MAPS, "owner", namespace)
        assert not await exists(cluster, CONFIG_MAPS, "child", namespace)


async def foreground_waits_for_blockers_only(cluster: Cluster, clock: Clock) -> None:
    """A dependent without blockOwnerDeletion does not hold its owner up."""
    async with scratch(cluster) as namespace:
        owner = await config_map(cluster, namespace, "owner")
        held = {"metadata": {"finalizers": ["test/hold"]}}
        reference = owner_reference(owner, block=False)
        await config_map(cluster, namespace, "child", owners=[reference], extra=held)
        await cluster.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Foreground")
        await goes(cluster, clock, CONFIG_MAPS, "owner", namespace)

        async def child_is_marked() -> bool:
            return bool(
                (await cluster.get(CONFIG_MAPS, "child", namespace=namespace)).metadata.deletion_timestamp
            )

        await eventually(clock, "the dependent is being deleted", child_is_marked)
        await cluster.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": None}}, namespace=namespace)


async def foreground_goes_down_the_tree(cluster: Cluster, clock: Clock) -> None:
    """Foreground deletion removes the leaves first."""
    async with scratch(cluster) as namespace:
        owner = await config_map(cluster, namespace, "owner")
        child = await config_map(cluster, namespace, "child", owners=[owner_reference(owner)])
        await config_map(cluster, namespace, "grandchild", owners=[owner_reference(child)])
        await cluster.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Foreground")
        await goes(cluster, clock, CONFIG_MAPS, "owner", namespace)
        assert not await exists(cluster, CONFIG_MAPS, "child", namespace)
        assert not await exists(cluster, CONFIG_MAPS, "grandchild", namespace)


async def another_owner_keeps(cluster: Cluster, clock: Clock) -> None:
    """A dependent of two owners stays when one goes, and forgets it."""
    async with scratch(cluster) as namespace:
        one = await config_map(cluster, namespace, "one")
        two = await config_map(cluster, namespace, "two")
        await config_map(cluster, namespace, "child", owners=[owner_reference(one), owner_reference(two)])
        await cluster.delete(CONFIG_MAPS, "one", namespace=namespace)

        async def has_one_owner() -> bool:
            child = await cluster.get(CONFIG_MAPS, "child", namespace=namespace)
            return [owner.name for owner in child.metadata.owner_references or ()] == ["two"]

        await eventually(clock, "the dependent has one owner left", has_one_owner)
        await cluster.delete(CONFIG_MAPS, "two", namespace=namespace)
        await goes(cluster, clock, CONFIG_MAPS, "child", namespace)


async def a_dependent_of_nobody_goes(cluster: Cluster, clock: Clock) -> None:
    """An object whose owner does not exist is removed; the uid counts, not the name."""
    async with scratch(cluster) as namespace:
        owner = await config_map(cluster, namespace, "owner")
        await cluster.delete(CONFIG_MAPS, "owner", namespace=namespace)
        await config_map(cluster, namespace, "owner")
        await config_map(cluster, namespace, "late", owners=[owner_reference(owner)])
        await goes(cluster, clock, CONFIG_MAPS, "late", namespace)
        assert await exists(cluster, CONFIG_MAPS, "owner", namespace)


async def a_circle_in_the_background(cluster: Cluster, clock: Clock) -> None:
    """Objects that own one another go together in the background."""
    async with scratch(cluster) as namespace:
        await _circle(cluster, namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace, propagation="Background")
        for name in "abc":
            await goes(cluster, clock, CONFIG_MAPS, name, namespace)


async def a_circle_in_the_foreground(cluster: Cluster, clock: Clock) -> None:
    """Objects that own one another do not hang in the foreground."""
    async with scratch(cluster) as namespace:
        await _circle(cluster, namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace, propagation="Foreground")
        for name in "abc":
            await goes(cluster, clock, CONFIG_MAPS, name, namespace)


async def _circle(cluster: Cluster, namespace: str) -> None:
    made: dict[str, Any] = {name: await config_map(cluster, namespace, name) for name in "abc"}
    for name, owner in (("a", "b"), ("b", "c"), ("c", "a")):
        patch = {"metadata": {"ownerReferences": [owner_reference(made[owner])]}}
        await cluster.patch(CONFIG_MAPS, name, patch, namespace=namespace)


CASES: list[Case] = [
    dependents_follow,
    orphans_stay,
    foreground_waits,
    foreground_waits_for_blockers_only,
    foreground_goes_down_the_tree,
    another_owner_keeps,
    a_dependent_of_nobody_goes,
    a_circle_in_the_background,
    a_circle_in_the_foreground,
]
