"""The informer on a healthy cluster: synced, and every change reaches the cache, handlers and feeds."""

from __future__ import annotations

import asyncio

import pytest
from tests.watching.informing import START, informing, put, run, values

from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.testing import builders
from kubetide.units.time import seconds


def test_synced_means_that_everything_is_there():
    """Before the first list an informer holds nothing; once synced, all there is."""

    async def main(cluster, clock):
        await put(cluster, "a")
        await put(cluster, "b")
        async with informing(cluster, clock) as informer:
            assert (informer.has_synced, informer.last_received, len(informer.objects)) == (False, None, 0)
            await informer.synced()
            assert sorted(informer.objects) == [("default", "a"), ("default", "b")]
            assert informer.last_received == START

    run(main)


def test_objects_are_the_cluster_s_own_and_read_only():
    """The cache shares the struct that every reader gets, and cannot be written to."""

    async def main(cluster, clock):
        await put(cluster, "a")
        async with informing(cluster, clock) as informer:
            await informer.synced()
            read = await cluster.get(CONFIG_MAPS, "a", namespace="default")
            assert informer.objects["default", "a"] is read
            with pytest.raises(TypeError):
                informer.objects["default", "a"] = read

    run(main)


def test_changes_arrive():
    """Creation, change and removal reach the cache, handlers and feeds."""

    async def main(cluster, clock):
        observed = []
        async with informing(cluster, clock) as informer:
            informer.on_change(
                lambda key, old, new: observed.append((key[1], old and old.data["k"], new and new.data["k"]))
            )
            feed = informer.feed()
            await informer.synced()
            await put(cluster, "a")
            await clock.sleep(seconds(1))
            assert values(feed.drain()) == {"a": "1"}
            await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}}, namespace="default")
            await clock.sleep(seconds(1))
            assert informer.objects["default", "a"].data == {"k": "2"}
            await cluster.delete(CONFIG_MAPS, "a", namespace="default")
            await clock.sleep(seconds(1))
            assert not informer.objects
            assert values(feed.drain()) == {"a": None}
            assert observed == [("a", None, "1"), ("a", "1", "2"), ("a", "2", None)]

    run(main)


def test_a_feed_starts_with_what_is_there():
    """A feed that is opened late begins with all objects; each feed is drained for itself."""

    async def main(cluster, clock):
        await put(cluster, "a")
        async with informing(cluster, clock) as informer:
            await informer.synced()
            early, late = informer.feed(), informer.feed()
            assert values(early.drain()) == {"a": "1"}
            await put(cluster, "b", "2")
            await clock.sleep(seconds(1))
            assert values(early.drain()) == {"b": "2"}
            assert values(late.drain()) == {"a": "1", "b": "2"}
            informer.close_feed(early)
            await put(cluster, "c", "3")
            await clock.sleep(seconds(1))
            assert not early.drain()

    run(main)


def test_a_feed_wakes_its_reader_once_for_what_came_together():
    """A wait on a feed ends at the first change; changes that come close together are drained as one."""

    async def main(cluster, clock):
        async with informing(cluster, clock) as informer:
            await informer.synced()
            feed = informer.feed()
            waiting = asyncio.ensure_future(feed.wait())
            await clock.sleep(seconds(1))
            assert not waiting.done()
            await put(cluster, "a", "1")
            for value in ("2", "3"):
                await cluster.patch(CONFIG_MAPS, "a", {"data": {"k": value}}, namespace="default")
            await waiting
            await clock.sleep(seconds(1))
            assert values(feed.drain()) == {"a": "3"}
            await cluster.delete(CONFIG_MAPS, "a", namespace="default")
            await feed.wait()
            assert values(feed.drain()) == {"a": None}

    run(main)


def test_selectors_narrow_the_cache():
    """With selectors the cache holds only objects that match; one that no longer matches leaves it."""

    async def main(cluster, clock):
        for name, app in (("a", "x"), ("b", "y")):
            await cluster.create(PODS, builders.pod(name, labels={"app": app}), namespace="default")
        where = {"namespace": "default", "labels": "app=x", "fields": "status.phase!=Failed"}
        async with informing(cluster, clock, PODS, **where) as informer:
            await informer.synced()
            assert list(informer.objects) == [("default", "a")]
            await cluster.patch(PODS, "b", {"metadata": {"labels": {"app": "x"}}}, namespace="default")
            await cluster.patch(
                PODS, "a", {"status": {"phase": "Failed"}}, namespace="default", subresource="status"
            )
            await clock.sleep(seconds(1))
            assert list(informer.objects) == [("default", "b")]

    run(main)


def test_untyped_objects_are_keyed_too():
    """An informer of plain JSON caches it by namespace and name."""

    async def main(cluster, clock):
        await put(cluster, "a")
        async with informing(cluster, clock, CONFIG_MAPS.untyped) as informer:
            await informer.synced()
            assert informer.objects["default", "a"]["data"] == {"k": "1"}

    run(main)
