"""The informer through dropped watches, expiries, outages and servers that misbehave."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.watching.informing import START, Outage, informing, put, run, take_step, values

from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.errors import Expired, InternalError, TooManyRequests, Unavailable
from kubetide.units.time import Instant, after, between, milliseconds, minutes, seconds


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
        outage = Outage(clock)
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
        outage = Outage(clock, error)
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


class Watched:
    """A cluster that counts its watches; what these send is the test's to say."""

    def __init__(self, cluster):
        self.cluster, self.watches = cluster, 0

    async def list(self, kind, **where):
        return await self.cluster.list(kind, **where)


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("error", [None, Expired("too old")])
def test_a_server_that_hangs_up_is_not_asked_in_a_tight_loop(error, opens):
    """A server that ends every watch at once, or calls every version too old, is asked about once a second."""

    class HangsUp(Watched):
        """A cluster whose watches end at once."""

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
    """A watch that is accepted after an outage ends the failure; as it sends nothing, the cache stays as old as it was."""

    class Flapping(Watched):
        """A cluster whose second watch fails, and whose third is silent."""

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


def test_a_quiet_cache_of_a_cluster_in_the_same_process_ages_from_the_failure_of_its_watch():
    """Without bookmarks the cache of such a cluster is fresh until its watch fails, and ages from then on."""

    async def main(cluster, clock):
        outage = Outage(clock)
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
        outage = Outage(clock)
        reported, fed = {}, {}
        async with informing(cluster.client(faults=outage), clock) as informer:

            def record(key, old, new):
                assert reported.get(key) is old, "handlers receive every change in turn"
                assert new is None or old != new
                reported[key] = new

            informer.on_change(record)
            feed = informer.feed()
            for count, (op, name) in enumerate(ops):
                if op in {"outage", "restore"}:
                    outage.error = Unavailable("down") if op == "outage" else None
                    continue
                await take_step(cluster, clock, op, name, str(count))
                if op == "pause":
                    fed.update(feed.drain())
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


def test_a_watch_that_goes_back_to_an_old_version_is_not_believed():
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
