"""The store below the REST semantics: sharing, history, watches that fall behind, bookmarks."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import CONFIG_MAPS, NODES, PODS
from kubetide.objects.pod import Pod
from kubetide.ports.errors import Expired
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")


def run(main, **store):
    """Run main(cluster, clock) in virtual time."""
    return run_virtual(lambda clock: main(EmbeddedCluster(Store(**store), clock, seed=1), clock), start=START)


async def put(cluster, name, value="1"):
    await cluster.create(CONFIG_MAPS, builders.config_map(name, data={"k": value}), namespace="default")


async def opened(cluster, version, kind=CONFIG_MAPS):
    """Return a watch that has said that it is open."""
    stream = cluster.watch(kind, resource_version=version)
    assert await anext(stream) == ()
    return stream


async def collect(cluster, into, **where):
    """Read a watch of ConfigMaps until it ends, noting what comes."""
    async for batch in cluster.watch(CONFIG_MAPS, **where):
        into.extend((event.type, event.name) for event in batch)


def test_readers_share_one_struct():
    """All typed reads of a revision are one object, and a status patch shares the spec with its predecessor."""

    async def main(cluster, clock):
        await cluster.create(PODS, builders.pod("a"), namespace="default")
        before = await cluster.get(PODS.untyped, "a", namespace="default")
        assert await cluster.get(PODS, "a", namespace="default") is (await cluster.list(PODS)).items[0]
        await cluster.patch(
            PODS, "a", {"status": {"phase": "Running"}}, namespace="default", subresource="status"
        )
        after = await cluster.get(PODS.untyped, "a", namespace="default")
        assert after["spec"] is before["spec"]
        assert before["status"]["phase"] == "Pending"

    run(main)


def test_a_write_of_the_status_reads_the_spec_no_second_time():
    async def main(cluster, clock):
        before = await cluster.create(PODS, builders.pod("x"), namespace="default")
        patch = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}
        after = await cluster.patch(PODS, "x", patch, namespace="default", subresource="status")
        whole = await cluster.get(PODS.untyped, "x", namespace="default")
        assert after.spec is before.spec
        assert after == msgspec.convert(whole, Pod)
        assert after.status.phase == "Running"
        changed = {"spec": {"priority": 0, "activeDeadlineSeconds": 7}}
        again = await cluster.patch(PODS, "x", changed, namespace="default")
        assert again == msgspec.convert(await cluster.get(PODS.untyped, "x", namespace="default"), Pod)

    run(main)


def test_an_unknown_member_that_is_named_spec_is_stored():
    async def main(cluster, clock):
        body = {"metadata": {"name": "x"}, "data": {"a": "1"}, "spec": {"b": 2}}
        await cluster.create(CONFIG_MAPS, body, namespace="default")
        await cluster.patch(CONFIG_MAPS, "x", {"data": {"a": "2"}}, namespace="default")
        found = await cluster.get(CONFIG_MAPS.untyped, "x", namespace="default")
        assert (found["data"], found["spec"]) == ({"a": "2"}, {"b": 2})

    run(main)


def test_a_watch_older_than_the_history_expires():
    """A watch from a version that the history has dropped is Expired; from the oldest stored one it is not."""

    async def main(cluster, clock):
        first = (await cluster.list(CONFIG_MAPS)).resource_version
        versions = [first]
        for name in "abcd":
            await put(cluster, name)
            versions.append((await cluster.list(CONFIG_MAPS)).resource_version)
        with pytest.raises(Expired, match="too old resource version"):
            await anext(cluster.watch(CONFIG_MAPS, resource_version=versions[0]))
        stream = await opened(cluster, versions[1])
        assert [event.name for event in await anext(stream)] == ["b", "c", "d"]
        await stream.aclose()

    run(main, history=3)


def test_history_is_stored_kind_by_kind():
    """A kind that is written rarely can be watched from far back however busy another is."""

    async def main(cluster, clock):
        start = (await cluster.list(NODES)).resource_version
        await cluster.create(NODES, builders.node("n"))
        for name in "abcdefgh":
            await put(cluster, name)
        stream = await opened(cluster, start, NODES)
        assert [event.name for event in await anext(stream)] == ["n"]
        await stream.aclose()

    run(main, history=3)


def test_a_version_never_given_is_expired():
    """A version from the future, of another cluster, cannot be watched from."""

    async def main(cluster, clock):
        with pytest.raises(Expired):
            await anext(cluster.watch(CONFIG_MAPS, resource_version="999999"))

    run(main)


def test_a_watch_that_is_not_read_is_closed():
    """A watch whose backlog passes the bound ends as Expired; one that is read goes on."""

    async def main(cluster, clock):
        start = (await cluster.list(CONFIG_MAPS)).resource_version
        idle = await opened(cluster, start)
        await put(cluster, "first")
        await anext(idle)
        seen = []
        reader = asyncio.ensure_future(collect(cluster, seen, resource_version=start))
        for index in range(8):
            await put(cluster, f"n{index}")
            await clock.sleep(seconds(1))
        with pytest.raises(Expired, match="more than 5 events behind"):
            await anext(idle)
        reader.cancel()
        assert len(seen) == 9

    run(main, backlog=5)


def test_what_a_watch_begins_with_may_be_long():
    """Replayed history and existing objects do not count against the backlog's bound."""

    async def main(cluster, clock):
        start = (await cluster.list(CONFIG_MAPS)).resource_version
        for index in range(20):
            await put(cluster, f"n{index:02}")
        for version, expected in ((start, 20), ("", 21)):
            stream = await opened(cluster, version)
            assert len(await anext(stream)) == expected
            await put(cluster, f"later{expected}")
            assert len(await anext(stream)) == 1
            await stream.aclose()

    run(main, backlog=5)


def test_dropped_watches_end_and_can_be_taken_up():
    """A dropped watch ends without an error, after handing over what it had, and goes on from there."""

    async def main(cluster, clock):
        start = (await cluster.list(CONFIG_MAPS)).resource_version
        seen = []
        reader = asyncio.ensure_future(collect(cluster, seen, resource_version=start))
        await clock.sleep(seconds(1))
        await put(cluster, "a")
        cluster.drop_watches()
        await put(cluster, "b")
        await reader
        assert seen == [("ADDED", "a")]
        version = (await cluster.get(CONFIG_MAPS, "a", namespace="default")).metadata.resource_version
        stream = await opened(cluster, version)
        assert [event.name for event in await anext(stream)] == ["b"]
        await stream.aclose()

    run(main)


def test_expired_watches_must_list_again():
    """After an expiry every open watch is Expired, and so is any watch from a version seen before."""

    async def main(cluster, clock):
        await put(cluster, "a")
        start = (await cluster.list(CONFIG_MAPS)).resource_version
        reader = asyncio.ensure_future(collect(cluster, [], resource_version=start))
        await clock.sleep(seconds(1))
        cluster.expire_watches()
        with pytest.raises(Expired):
            await reader
        with pytest.raises(Expired):
            await anext(cluster.watch(CONFIG_MAPS, resource_version=start))
        fresh = (await cluster.list(CONFIG_MAPS)).resource_version
        stream = await opened(cluster, fresh)
        await put(cluster, "b")
        assert [event.name for event in await anext(stream)] == ["b"]
        await stream.aclose()

    run(main)


def test_a_closed_watch_leaves_nothing_behind():
    """Closing or cancelling a watch takes it out of the store."""

    async def main(cluster, clock):
        stream = await opened(cluster, "")
        await put(cluster, "a")
        await anext(stream)
        await stream.aclose()
        reader = asyncio.ensure_future(collect(cluster, [], resource_version=""))
        await clock.sleep(seconds(1))
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        assert all(not table.watchers for table in cluster.rest.store._tables.values())

    run(main)


def test_a_busy_writer_gives_others_a_turn():
    """A task that writes without ever waiting does not block watchers from reading."""

    async def main(cluster, clock):
        seen = []
        reader = asyncio.ensure_future(collect(cluster, seen, resource_version=""))
        await clock.sleep(seconds(1))
        for index in range(200):
            await put(cluster, f"n{index:03}")
        assert len(seen) > 150
        reader.cancel()

    run(main, backlog=64)
