"""Watches."""

from __future__ import annotations

from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.testing.cluster_cases.ground import (
    NO_NODE,
    Case,
    config_map,
    own_pod,
    scratch,
    watching,
)


async def changes_come_in_order(cluster: Cluster, _clock: Clock) -> None:
    """A watch gives creation, change and removal in order, each with the object as it then was."""
    async with scratch(cluster) as namespace:
        start = await _version(cluster, namespace)
        async with watching(cluster, CONFIG_MAPS, start, namespace=namespace) as reader:
            await config_map(cluster, namespace, "a", data={"k": "1"})
            await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}}, namespace=namespace)
            await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
            seen = [await reader.next() for _ in range(3)]
        assert [event.type for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
        assert [event.object.data for event in seen] == [{"k": "1"}, {"k": "2"}, {"k": "2"}]
        assert {(event.namespace, event.name) for event in seen} == {(namespace, "a")}


async def each_event_has_its_version(cluster: Cluster, _clock: Clock) -> None:
    """An event's version is that of its object, and all differ; a removal has one of its own."""
    async with scratch(cluster) as namespace:
        start = await _version(cluster, namespace)
        async with watching(cluster, CONFIG_MAPS, start, namespace=namespace) as reader:
            await config_map(cluster, namespace, "a")
            await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
            seen = [await reader.next() for _ in range(2)]
        assert len({start, *(event.resource_version for event in seen)}) == 3
        for event in seen:
            assert event.object.metadata.resource_version == event.resource_version


async def a_watch_begins_after_the_list(cluster: Cluster, _clock: Clock) -> None:
    """A watch from a list's version gives what came after it, and nothing twice."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "before")
        start = await _version(cluster, namespace)
        await config_map(cluster, namespace, "after")
        async with watching(cluster, CONFIG_MAPS, start, namespace=namespace) as reader:
            await config_map(cluster, namespace, "later")
            assert await reader.take(2) == [("ADDED", "after"), ("ADDED", "later")]


async def a_watch_goes_on_from_an_event(cluster: Cluster, _clock: Clock) -> None:
    """A watch taken up from the version of the last event misses nothing and repeats nothing."""
    async with scratch(cluster) as namespace:
        start = await _version(cluster, namespace)
        async with watching(cluster, CONFIG_MAPS, start, namespace=namespace) as reader:
            await config_map(cluster, namespace, "a")
            await config_map(cluster, namespace, "b")
            version = (await reader.next()).resource_version
        await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
        async with watching(cluster, CONFIG_MAPS, version, namespace=namespace) as reader:
            assert await reader.take(2) == [("ADDED", "b"), ("DELETED", "a")]


async def a_watch_without_version_begins_with_what_is_there(cluster: Cluster, _clock: Clock) -> None:
    """A watch from no version gives the objects that are there as ADDED, then the changes."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", labels={"app": "x"})
        await config_map(cluster, namespace, "b", labels={"app": "x"})
        async with watching(cluster, CONFIG_MAPS, "", namespace=namespace, labels="app=x") as reader:
            assert sorted(await reader.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
            await cluster.delete(CONFIG_MAPS, "b", namespace=namespace)
            assert await reader.take(1) == [("DELETED", "b")]


async def a_label_selector_turns_changes_around(cluster: Cluster, _clock: Clock) -> None:
    """An object that starts to match comes as ADDED, one that ceases to as DELETED."""
    async with scratch(cluster) as namespace:
        start = await _version(cluster, namespace)
        async with watching(cluster, CONFIG_MAPS, start, namespace=namespace, labels="on=yes") as reader:
            await config_map(cluster, namespace, "a", labels={"on": "no"})
            for value, data in (("yes", "1"), ("yes", "2"), ("no", "3"), ("no", "4")):
                patch = {"metadata": {"labels": {"on": value}}, "data": {"k": data}}
                await cluster.patch(CONFIG_MAPS, "a", patch, namespace=namespace)
            await cluster.delete(CONFIG_MAPS, "a", namespace=namespace)
            await config_map(cluster, namespace, "z", labels={"on": "yes"})
            assert await reader.take(4) == [
                ("ADDED", "a"),
                ("MODIFIED", "a"),
                ("DELETED", "a"),
                ("ADDED", "z"),
            ]


async def a_node_selector_sees_a_binding(cluster: Cluster, _clock: Clock) -> None:
    """A watch of one node's pods sees a pod when it is bound."""
    async with scratch(cluster) as namespace:
        start = (await cluster.list(PODS, namespace=namespace)).resource_version
        fields = f"spec.nodeName={NO_NODE}"
        async with watching(cluster, PODS, start, namespace=namespace, fields=fields) as reader:
            await cluster.create(PODS, own_pod("a"), namespace=namespace)
            await cluster.bind(namespace=namespace, pod="a", node=NO_NODE)
            event = await reader.next()
            assert (event.type, event.object.spec.node_name) == ("ADDED", NO_NODE)


async def a_phase_selector_sees_the_end(cluster: Cluster, _clock: Clock) -> None:
    """A watch of pods that have not ended sees one that ends as DELETED."""
    async with scratch(cluster) as namespace:
        start = (await cluster.list(PODS, namespace=namespace)).resource_version
        fields = "status.phase!=Succeeded,status.phase!=Failed"
        async with watching(cluster, PODS, start, namespace=namespace, fields=fields) as reader:
            await cluster.create(PODS, own_pod("a"), namespace=namespace)
            await cluster.patch(
                PODS, "a", {"status": {"phase": "Failed"}}, namespace=namespace, subresource="status"
            )
            assert await reader.take(2) == [("ADDED", "a"), ("DELETED", "a")]


async def a_watch_of_a_namespace_sees_no_other(cluster: Cluster, _clock: Clock) -> None:
    """A watch of one namespace gives nothing of another."""
    async with scratch(cluster) as one, scratch(cluster) as other:
        start = await _version(cluster, one)
        async with watching(cluster, CONFIG_MAPS, start, namespace=one) as reader:
            await config_map(cluster, other, "a")
            await config_map(cluster, one, "b")
            assert (await reader.next()).name == "b"


async def watchers_see_the_same(cluster: Cluster, _clock: Clock) -> None:
    """Two watches, one typed and one not, see the same changes in the same order."""
    async with scratch(cluster) as namespace:
        start = await _version(cluster, namespace)
        async with (
            watching(cluster, CONFIG_MAPS, start, namespace=namespace) as typed,
            watching(cluster, CONFIG_MAPS.untyped, start, namespace=namespace) as untyped,
        ):
            for name in ("a", "b", "c"):
                await config_map(cluster, namespace, name)
            for _ in range(3):
                one, other = await typed.next(), await untyped.next()
                assert one.resource_version == other.resource_version
                assert one.object.metadata.name == other.object["metadata"]["name"]


async def a_write_of_nothing_makes_no_event(cluster: Cluster, _clock: Clock) -> None:
    """A patch that changes nothing is not seen by a watch."""
    async with scratch(cluster) as namespace:
        await config_map(cluster, namespace, "a", data={"k": "v"})
        start = await _version(cluster, namespace)
        async with watching(cluster, CONFIG_MAPS, start, namespace=namespace) as reader:
            await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace=namespace)
            await config_map(cluster, namespace, "b")
            assert await reader.take(1) == [("ADDED", "b")]


async def list_and_watch_meet(cluster: Cluster, _clock: Clock) -> None:
    """A list plus the watch's events up to a later list's version is that later list."""
    async with scratch(cluster) as namespace:
        for name in ("a", "b", "c"):
            await config_map(cluster, namespace, name, labels={"app": "x"})
        first = await cluster.list(CONFIG_MAPS, namespace=namespace, labels="app=x")
        cache = {item.metadata.name: item for item in first.items}
        await cluster.delete(CONFIG_MAPS, "b", namespace=namespace)
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace=namespace)
        await config_map(cluster, namespace, "d", labels={"app": "x"})
        last = await cluster.list(CONFIG_MAPS, namespace=namespace, labels="app=x")
        async with watching(
            cluster, CONFIG_MAPS, first.resource_version, namespace=namespace, labels="app=x"
        ) as reader:
            for _ in range(3):
                event = await reader.next()
                if event.type == "DELETED":
                    del cache[event.name]
                else:
                    cache[event.name] = event.object
        assert [cache[name] for name in sorted(cache)] == list(last.items)


async def _version(cluster: Cluster, namespace: str) -> str:
    return (await cluster.list(CONFIG_MAPS, namespace=namespace)).resource_version


CASES: list[Case] = [
    changes_come_in_order,
    each_event_has_its_version,
    a_watch_begins_after_the_list,
    a_watch_goes_on_from_an_event,
    a_watch_without_version_begins_with_what_is_there,
    a_label_selector_turns_changes_around,
    a_node_selector_sees_a_binding,
    a_phase_selector_sees_the_end,
    a_watch_of_a_namespace_sees_no_other,
    watchers_see_the_same,
    a_write_of_nothing_makes_no_event,
    list_and_watch_meet,
]
