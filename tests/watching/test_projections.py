"""Informers that cache only projections of objects, one for each reader."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.watching.informing import START, informing, put, run, take_step

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.cluster import ConfigMap
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.cluster import Listing
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes, seconds
from kubetide.watching import Caches, Informer


class Remote(EmbeddedCluster):
    """The embedded cluster as if it were behind a network: it sends projections."""

    async def watch(self, kind, *, keep=None, **where):
        keep = keep or (lambda item: item)
        async with aclosing(super().watch(kind, **where)) as batches:
            async for batch in batches:
                yield [event._replace(object=event.object and keep(event.object)) for event in batch]

    async def list_and_watch(self, kind, *, keep=None, **where):
        listing = await self.list(kind, **where)
        version = listing.resource_version
        yield Listing(tuple(map(keep or (lambda item: item), listing.items)), version)
        async with aclosing(self.watch(kind, resource_version=version, keep=keep, **where)) as batches:
            async for batch in batches:
                yield batch

    def spread(self, pause):
        return pause


class Valued(NamedTuple):
    """The projection of a ConfigMap to its value."""

    namespace: str
    name: str
    value: str


def valued(item):
    return Valued(item.metadata.namespace, item.metadata.name, item.data["k"])


def run_remote(main):
    return run_virtual(lambda clock: main(Remote(Store(), clock, seed=1), clock), start=START)


def test_only_projections_are_cached():
    """The cache and its feeds have the projections of the list and of every event; a relist compares by them."""

    async def main(cluster, clock):
        await put(cluster, "a")
        async with informing(cluster, clock, keep=valued) as informer:
            await informer.synced()
            feed = informer.feed()
            assert feed.drain() == {("default", "a"): ("default", "a", "1")}
            await put(cluster, "b", "2")
            await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "3"}}, namespace="default")
            await cluster.delete(CONFIG_MAPS, "b", namespace="default")
            await clock.sleep(seconds(1))
            assert feed.drain() == {("default", "a"): ("default", "a", "3"), ("default", "b"): None}
            await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace="default")
            cluster.expire_watches()
            await clock.sleep(seconds(10))
            assert dict(informer.objects) == {("default", "a"): ("default", "a", "3")}

    run_remote(main)


def test_objects_of_a_cluster_in_the_same_process_are_cached_whole():
    """Such a cluster holds the objects in memory anyway, so a projection would save nothing."""

    async def main(cluster, clock):
        await put(cluster, "a")
        async with informing(cluster, clock, keep=valued) as informer:
            await informer.synced()
            assert informer.objects["default", "a"].data == {"k": "1"}

    run(main)


class Marked(NamedTuple):
    """The projection of a ConfigMap to its mark, of another reader."""

    namespace: str
    name: str
    mark: str


def marked(item):
    return Marked(item.metadata.namespace, item.metadata.name, (item.metadata.labels or {}).get("mark", ""))


def test_each_reader_has_its_projection():
    """Of one list and one watch each reader receives only changes of its projection; equal ones keep the cached object."""

    async def main(cluster, clock):
        await put(cluster, "a")
        async with informing(cluster, clock, keep=valued) as informer:
            other = Informer(cluster, CONFIG_MAPS, clock, keep=marked, beside=informer)
            feeds = informer.feed(), other.feed()
            await other.synced()
            key = "default", "a"
            assert [feed.drain() for feed in feeds] == [
                {key: Valued("default", "a", "1")},
                {key: Marked("default", "a", "")},
            ]
            assert (other.last_received, other.failures, other.last_relist) == (START, 0, None)
            value = informer.objects[key]
            for patch in ({"metadata": {"labels": {"mark": "x"}}}, {"metadata": {"labels": {"y": "z"}}}):
                await cluster.patch(CONFIG_MAPS, "a", patch, namespace="default")
                await clock.sleep(seconds(1))
            assert informer.objects[key] is value
            assert [feed.drain() for feed in feeds] == [{}, {key: Marked("default", "a", "x")}]
            await cluster.delete(CONFIG_MAPS, "a", namespace="default")
            await clock.sleep(seconds(1))
            assert [feed.drain() for feed in feeds] == [{key: None}] * 2

    run_remote(main)


changes = st.one_of(
    st.tuples(st.sampled_from(["put", "change", "mark", "delete"]), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["pause", "drop", "expire"]), st.just("")),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=40))
def test_the_projection_of_each_reader_converges(ops):
    """Through drops and expiries each reader ends at its projection of the cluster's objects."""

    async def main(cluster, clock):
        async with informing(cluster, clock, keep=valued) as informer:
            readers = [informer, Informer(cluster, CONFIG_MAPS, clock, keep=marked, beside=informer)]
            reported = [{}, {}]

            def record(at, key, old, new):
                assert reported[at].get(key) is old, "handlers receive every change in turn"
                assert old != new
                reported[at][key] = new

            for at, reader in enumerate(readers):
                reader.on_change(partial(record, at))
            for count, (op, name) in enumerate(ops):
                await take_step(cluster, clock, op, name, str(count))
            await clock.sleep(minutes(2))
            items = (await cluster.list(CONFIG_MAPS)).items
            for keep, reader, seen in zip((valued, marked), readers, reported, strict=True):
                held = {(item.metadata.namespace, item.metadata.name): keep(item) for item in items}
                assert dict(reader.objects) == held
                assert {key: item for key, item in seen.items() if item is not None} == held

    run_remote(main)


def test_a_cache_holds_no_more_than_its_readers_need():
    """Readers with one projection share it; as soon as one reader needs whole objects, the cache holds those."""

    async def main(cluster, clock):
        await put(cluster, "a")
        asked = ((valued, valued), (valued, marked), (valued, None), (None, valued), (valued, marked, None))
        caches = [Caches(cluster, clock) for _ in asked]
        readers = [
            [each.of(CONFIG_MAPS, keep=keep) for keep in keeps]
            for keeps, each in zip(asked, caches, strict=True)
        ]
        tasks = [asyncio.ensure_future(each.run()) for each in caches]
        held = []
        for several in readers:
            for one in several:
                await one.synced()
            held.append([one.objects["default", "a"] for one in several])
        whole = ConfigMap
        assert [[type(one) for one in several] for several in held] == [
            [Valued, Valued],
            [Valued, Marked],
            [whole, whole],
            [whole, whole],
            [whole, whole, whole],
        ]
        assert all(len({id(one) for one in several}) == len({*map(type, several)}) for several in held)
        assert [len(each.all) for each in caches] == [1] * 5
        for keep in (None, marked):
            with pytest.raises(RuntimeError, match="the cache of configmaps holds only parts of them"):
                caches[0].of(CONFIG_MAPS, keep=keep)
        for keep in (None, valued):
            assert caches[2].of(CONFIG_MAPS, keep=keep).objects["default", "a"] is held[2][0]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run_remote(main)
