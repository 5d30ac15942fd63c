"""The informer's promise: synced, forward only, every change to every feed, through every fault."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.cluster import ConfigMap
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.ports.cluster import Listing
from kubetide.ports.errors import ApiError, Expired, InternalError, TooManyRequests, Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import Instant, after, between, milliseconds, minutes, parse_rfc3339, seconds
from kubetide.watching import Caches, Informer

START = parse_rfc3339("2026-03-02T08:00:00Z")


class Outage:
    """Fails every request while it lasts, counting them."""

    def __init__(self):
        self.error = None
        self.refused = []
        self.clock = None

    async def before(self, request):
        if self.error is not None:
            self.refused.append((request.verb, self.clock.now()))
            raise self.error


@asynccontextmanager
async def informing(cluster, clock, kind=CONFIG_MAPS, **where):
    """Run an informer beside the block."""
    informer = Informer(cluster, kind, clock, **where)
    task = asyncio.ensure_future(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        ended = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended[0], asyncio.CancelledError), ended[0]


def run(main, **store):
    """Run main(cluster, clock) in virtual time."""
    return run_virtual(lambda clock: main(EmbeddedCluster(Store(**store), clock, seed=1), clock), start=START)


async def put(cluster, name, value="1"):
    body = builders.config_map(name, data={"k": value})
    return await cluster.create(CONFIG_MAPS, body, namespace="default")


def values(changed):
    """The values of a drained feed, by name."""
    return {key[1]: None if item is None else item.data["k"] for key, item in changed.items()}


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
    """Waiting on a feed returns when something is there; changes that came close are drained as one."""

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
    """With selectors only what matches is held; what ceases to match leaves."""

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


def test_a_dropped_watch_is_taken_up():
    """A watch that ends is taken up from the last version: nothing is missed, nothing is listed again."""

    async def main(cluster, clock):
        async with informing(cluster, clock) as informer:
            await informer.synced()
            for index in range(5):
                await put(cluster, f"n{index}")
                cluster.drop_watches()
                await clock.sleep(seconds(2))
            assert len(informer.objects) == 5
            assert informer.last_relist is None

    run(main)


def test_an_expired_watch_lists_again_and_says_what_was_lost():
    """After an expiry the list's losses are reported: how many objects were cached, and how many are missing."""

    async def main(cluster, clock):
        outage = Outage()
        outage.clock = clock
        for index in range(5):
            await put(cluster, f"n{index}")
        async with informing(cluster.client(faults=outage), clock) as informer:
            await informer.synced()
            feed = informer.feed()
            feed.drain()
            outage.error = Unavailable("down")
            cluster.expire_watches()
            for index in range(2):
                await cluster.delete(CONFIG_MAPS, f"n{index}", namespace="default")
            await put(cluster, "new")
            await clock.sleep(seconds(10))
            assert len(informer.objects) == 5, "known objects stay cached through an outage"
            outage.error = None
            await clock.sleep(minutes(1))
            assert sorted(name for _, name in informer.objects) == ["n2", "n3", "n4", "new"]
            assert (informer.last_relist.before, informer.last_relist.lost) == (5, 2)
            assert values(feed.drain()) == {"n0": None, "n1": None, "new": "1"}

    run(main)


@pytest.mark.parametrize("error", [Unavailable("down"), InternalError("boom"), TooManyRequests("slow down")])
def test_a_failing_server_is_asked_again_after_growing_pauses(error):
    """A server that fails is asked after 1, 2, 4 ... at most 30 seconds; failures are counted and forgotten."""

    async def main(cluster, clock):
        outage = Outage()
        outage.clock = clock
        outage.error = error
        async with informing(cluster.client(faults=outage), clock) as informer:
            await clock.sleep(minutes(3))
            assert not informer.has_synced
            assert informer.failures == len(outage.refused)
            assert informer.last_error == str(error)
            times = [at for _, at in outage.refused]
            pauses = [between(Instant(first), Instant(then)) for first, then in pairwise(times)]
            assert pauses[:7] == [seconds(s) for s in (1, 2, 4, 8, 16, 30, 30)]
            outage.error = None
            await informer.synced()
            assert (informer.failures, informer.last_error) == (0, "")

    run(main)


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("error", [None, Expired("too old")])
def test_a_server_that_hangs_up_is_not_asked_in_a_tight_loop(error, opens):
    """A server that ends every watch at once, or calls every version too old, is asked about once a second."""

    class HangsUp:
        """A cluster whose watches end at once."""

        def __init__(self, cluster):
            self.cluster, self.watches = cluster, 0

        async def list(self, kind, **where):
            return await self.cluster.list(kind, **where)

        async def watch(self, _kind, **_where):
            self.watches += 1
            if opens:
                yield ()
            if error is not None:
                raise error
            for never in ():
                yield never

    async def main(cluster, clock):
        rude = HangsUp(cluster)
        async with informing(rude, clock):
            await clock.sleep(seconds(60))
        assert 30 <= rude.watches <= 62

    run(main)


def test_an_accepted_watch_is_no_failure_and_no_change():
    """Behind an outage a quiet watch says nothing for long: it does not fail any more, and the cache is as old as it is."""

    class Flapping:
        """A cluster whose second watch fails, and whose third is silent."""

        def __init__(self, cluster):
            self.cluster, self.watches = cluster, 0

        async def list(self, kind, **where):
            return await self.cluster.list(kind, **where)

        async def watch(self, _kind, **_where):
            self.watches += 1
            if self.watches == 2:
                raise Unavailable("down")
            yield ()
            if self.watches > 2:
                await asyncio.Event().wait()

    async def main(cluster, clock):
        async with informing(Flapping(cluster), clock) as informer:
            await clock.sleep(seconds(1.5))
            assert (informer.failures, informer.last_error) == (1, "down")
            await clock.sleep(minutes(5))
            assert (informer.failures, informer.last_error) == (0, "")
            assert informer.last_received == after(START, seconds(1)), (
                "when the first watch was known to fail"
            )

    run(main)


def test_a_quiet_informer_of_the_same_process_is_as_old_as_the_failure_of_its_watch():
    """There are no bookmarks: until its watch fails nothing was missed, and from then on the cache ages."""

    async def main(cluster, clock):
        outage = Outage()
        outage.clock = clock
        async with informing(cluster.client(faults=outage), clock) as informer:
            await clock.sleep(minutes(30))
            assert (informer.last_received, informer.failures) == (START, 0)
            outage.error = Unavailable("down")
            cluster.expire_watches()
            await clock.sleep(minutes(10))
            assert informer.failures > 1
            assert informer.last_received == after(after(START, minutes(30)), seconds(1)), (
                "the first refused list"
            )

    run(main)


steps = st.one_of(
    st.tuples(st.sampled_from(["put", "change", "delete"]), st.sampled_from("abcd")),
    st.tuples(st.sampled_from(["pause", "drop", "expire", "outage", "restore"]), st.just("")),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=50))
def test_the_cache_converges(ops):
    """Through drops, expiries and outages, cache, feed and handlers all end at what the cluster holds."""

    async def main(cluster, clock):
        outage = Outage()
        outage.clock = clock
        reported, fed = {}, {}
        async with informing(cluster.client(faults=outage), clock) as informer:

            def record(key, old, new):
                assert reported.get(key) is old, "handlers receive every change in turn"
                assert new is None or old != new
                reported[key] = new

            informer.on_change(record)
            feed = informer.feed()
            for count, (op, name) in enumerate(ops):
                with suppress(ApiError):
                    if op == "put":
                        await put(cluster, name, str(count))
                    elif op == "change":
                        patch = {"data": {"k": str(count)}}
                        await cluster.patch(CONFIG_MAPS, name, patch, namespace="default")
                    elif op == "delete":
                        await cluster.delete(CONFIG_MAPS, name, namespace="default")
                    elif op == "pause":
                        await clock.sleep(seconds(3))
                        fed.update(feed.drain())
                    elif op == "drop":
                        cluster.drop_watches()
                    elif op == "expire":
                        cluster.expire_watches()
                    else:
                        outage.error = Unavailable("down") if op == "outage" else None
            outage.error = None
            await clock.sleep(minutes(2))
            fed.update(feed.drain())
            listing = await cluster.list(CONFIG_MAPS)
            held = {(item.metadata.namespace, item.metadata.name): item for item in listing.items}
            assert dict(informer.objects) == held
            assert {key: item for key, item in reported.items() if item is not None} == held
            assert {key: item for key, item in fed.items() if item is not None} == held

    run(main, history=8)


class Rewinding:
    """A cluster whose first watch repeats an old event behind a newer one."""

    def __init__(self, inner):
        self.inner, self.rewound = inner, False

    def __getattr__(self, name):
        return getattr(self.inner, name)

    async def watch(self, kind, **where):
        seen = []
        async for batch in self.inner.watch(kind, **where):
            yield batch
            seen += batch
            if not self.rewound and len(seen) == 3:
                self.rewound = True
                yield seen[:1]


def test_a_watch_that_goes_back_is_not_believed():
    """A deleted object does not come back by a repeated event: the cache lists anew."""

    async def main(cluster, clock):
        async with informing(Rewinding(cluster), clock) as informer:
            await informer.synced()
            await put(cluster, "a")
            await put(cluster, "b")
            await cluster.delete(CONFIG_MAPS, "a", namespace="default")
            await clock.sleep(milliseconds(500))
            assert "went back from version" in informer.last_error
            await clock.sleep(seconds(5))
            assert [key[1] for key in informer.objects] == ["b"]
            assert (informer.failures, informer.last_relist.lost) == (0, 0)

    run(main)


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


def test_a_cluster_of_the_same_process_is_held_as_it_is():
    """It has the objects anyway."""

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
    """From one list and one watch each reader receives changes of its projection only, and equal ones stay one object."""

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
                with suppress(ApiError):
                    if op == "put":
                        await put(cluster, name, str(count))
                    elif op == "change":
                        patch = {"data": {"k": str(count)}}
                        await cluster.patch(CONFIG_MAPS, name, patch, namespace="default")
                    elif op == "mark":
                        patch = {"metadata": {"labels": {"mark": str(count)}}}
                        await cluster.patch(CONFIG_MAPS, name, patch, namespace="default")
                    elif op == "delete":
                        await cluster.delete(CONFIG_MAPS, name, namespace="default")
                    elif op == "pause":
                        await clock.sleep(seconds(3))
                    elif op == "drop":
                        cluster.drop_watches()
                    else:
                        cluster.expire_watches()
            await clock.sleep(minutes(2))
            items = (await cluster.list(CONFIG_MAPS)).items
            for keep, reader, seen in zip((valued, marked), readers, reported, strict=True):
                held = {(item.metadata.namespace, item.metadata.name): keep(item) for item in items}
                assert dict(reader.objects) == held
                assert {key: item for key, item in seen.items() if item is not None} == held

    run_remote(main)


def test_a_cache_holds_no_more_than_its_readers_need():
    """A cache holds each reader's projection, one for all readers with the same, and whole objects as soon as one reader needs them."""

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
