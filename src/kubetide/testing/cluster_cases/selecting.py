"""Lists and their selectors."""

from __future__ import annotations

from kubetide.objects.kinds import CONFIG_MAPS, NODES, PODS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import BadRequest
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import NO_NODE, Case, config_map, own_pod, refused, scratch


async def list_is_in_order(cluster: Cluster, _clock: Clock) -> None:
    """A list is ordered by namespace and name, whatever the order of creation."""
    async with scratch(cluster) as one, scratch(cluster) as other:
        for name in ("b", "c", "a"):
            await config_map(cluster, other, name, labels={"battery": one})
            await config_map(cluster, one, name, labels={"battery": one})
        found = await cluster.list(CONFIG_MAPS, labels=f"battery={one}")
        places = [(item.metadata.namespace, item.metadata.name) for item in found.items]
        assert places == sorted(places)
        assert len(places) == 6


async def list_of_one_namespace(cluster: Cluster, _clock: Clock) -> None:
    """A list of a namespace has nothing of another."""
    async with scratch(cluster) as one, scratch(cluster) as other:
        await config_map(cluster, one, "a", labels={"battery": one})
        await config_map(cluster, other, "b", labels={"battery": one})
        assert await _names(cluster, one, f"battery={one}") == ["a"]
        assert sorted(await _names(cluster, "", f"battery={one}")) == ["a", "b"]
        assert await _names(cluster, other, "battery=other") == []


async def list_by_labels(cluster: Cluster, _clock: Clock) -> None:
    """Label selectors select by equality, sets and existence."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", labels={"app": "web", "tier": "1"})
        await config_map(cluster, namespace, "b", labels={"app": "web", "tier": "2"})
        await config_map(cluster, namespace, "c", labels={"app": "db"})
        for selector, expected in {
            "app=web,tier": ["a", "b"],
            "app==web,tier!=1": ["b"],
            "app in (web, db),!tier": ["c"],
            "tier notin (2),app": ["a", "c"],
            "tier>1": ["b"],
            "app=none": [],
        }.items():
            assert await _names(cluster, namespace, selector) == expected, selector


async def list_by_name_field(cluster: Cluster, _clock: Clock) -> None:
    """Every kind can be selected by metadata.name and metadata.namespace."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a")
        await config_map(cluster, namespace, "b")
        fields = f"metadata.name=a,metadata.namespace={namespace}"
        found = await cluster.list(CONFIG_MAPS, namespace=namespace, fields=fields)
        assert [item.metadata.name for item in found.items] == ["a"]


async def list_pods_by_node_and_phase(cluster: Cluster, _clock: Clock) -> None:
    """Pods can be selected by node and phase, also by inequality."""
    async with scratch(cluster) as namespace:
        for name in ("a", "b", "c"):
            await cluster.create(PODS, own_pod(name), namespace=namespace)
        await cluster.bind(namespace=namespace, pod="b", node=NO_NODE)
        await cluster.patch(
            PODS, "c", {"status": {"phase": "Failed"}}, namespace=namespace, subresource="status"
        )
        for fields, expected in {
            f"spec.nodeName={NO_NODE}": ["b"],
            "spec.nodeName=": ["a", "c"],
            "status.phase!=Failed": ["a", "b"],
            f"spec.nodeName={NO_NODE},status.phase=Failed": [],
        }.items():
            found = await cluster.list(PODS, namespace=namespace, fields=fields)
            assert [item.metadata.name for item in found.items] == expected, fields


async def list_nodes_by_cordon(cluster: Cluster, _clock: Clock) -> None:
    """Nodes can be selected by whether they are cordoned; unset counts as false."""
    made = await cluster.create(NODES, builders.node("battery-node-"))
    name = made.metadata.name
    try:

        async def found(flag: str) -> bool:
            listing = await cluster.list(NODES, fields=f"spec.unschedulable={flag},metadata.name={name}")
            return bool(listing.items)

        assert await found("false")
        await cluster.patch(NODES, name, {"spec": {"unschedulable": True}})
        assert await found("true")
        assert not await found("false")
    finally:
        await cluster.delete(NODES, name)


async def bad_selectors_are_refused(cluster: Cluster, _clock: Clock) -> None:
    """A selector that cannot be read, or by a field the kind does not offer, is a BadRequest."""
    async with scratch(cluster) as namespace:
        with refused(BadRequest):
            await cluster.list(PODS, namespace=namespace, labels="a in (")
        with refused(BadRequest) as refusal:
            await cluster.list(PODS, namespace=namespace, fields="spec.hostname=x")
        assert "field label not supported: spec.hostname" in str(refusal.error)


async def list_follows_label_changes(cluster: Cluster, _clock: Clock) -> None:
    """A list selects by the labels as they are now."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", labels={"on": "no"})
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"on": "yes"}}}, namespace=namespace)
        assert await _names(cluster, namespace, "on=yes") == ["a"]
        assert await _names(cluster, namespace, "on=no") == []


async def _names(cluster: Cluster, namespace: str, labels: str) -> list[str]:
    listing = await cluster.list(CONFIG_MAPS, namespace=namespace, labels=labels)
    return [item.metadata.name for item in listing.items]


CASES: list[Case] = [
    list_is_in_order,
    list_of_one_namespace,
    list_by_labels,
    list_by_name_field,
    list_pods_by_node_and_phase,
    list_nodes_by_cordon,
    bad_selectors_are_refused,
    list_follows_label_changes,
]
