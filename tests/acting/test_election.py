"""One leader at a time among our own electors: release, death, outages and wrong clocks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.acting.electing import START, TIMES, Outage, elector, lease, run, running
from tests.cluster.answering import Skewed

from kubetide.acting import LeaseLost
from kubetide.objects.kinds import EVENTS
from kubetide.units.time import Duration, minutes, seconds


def test_the_first_leads_and_says_so():
    """A missing Lease is created; it is renewed every two seconds, and an event names the leader."""

    async def main(cluster, clock):
        one = elector(cluster, clock, "one")
        assert one.fence.refusal() == "this process does not hold the lease kube-system/cluster-autoscaler"
        async with running(one):
            await one.leading()
            assert (one.fence.still_leading(), one.fence.refusal(), one.holder) == (True, "", "one")
            await clock.sleep(seconds(60.5))
            spec = await lease(cluster)
            assert spec.acquire_time == "2026-03-02T00:00:00.123456Z"
            assert spec.renew_time == "2026-03-02T00:01:00.123456Z"
            assert (spec.lease_transitions, one.last_error) == (0, "")
        [event] = (await cluster.list(EVENTS)).items
        assert (event.reason, event.message, event.count) == ("LeaderElection", "one became leader", 1)
        assert (event.involved_object.kind, event.involved_object.name) == ("Lease", "cluster-autoscaler")

    run(main)


def test_a_released_lease_is_taken_at_once():
    """A cancelled elector releases the Lease; the next one leads within a few tries, not after the whole duration."""

    async def main(cluster, clock):
        one, two = elector(cluster, clock, "one"), elector(cluster, clock, "two")
        async with AsyncExitStack() as stack:
            async with running(one):
                await one.leading()
                await stack.enter_async_context(running(two))
                await clock.sleep(minutes(1))
                assert (one.fence.still_leading(), two.fence.still_leading()) == (True, False)
            ended = clock.now()
            spec = await lease(cluster)
            assert (spec.holder_identity, spec.lease_duration_seconds) == ("", 1)
            assert not one.fence.still_leading()
            await two.leading()
            assert clock.now() - ended <= seconds(4.4)
            assert (await lease(cluster)).lease_transitions == 1

    run(main)


class Deaf:
    """A cluster whose answers to writes are lost while ``deaf``; they are written all the same."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.deaf = False

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def replace(self, *args, **more):
        answer = await self._cluster.replace(*args, **more)
        if self.deaf:
            self.deaf = False
            await asyncio.Event().wait()
        return answer


def test_an_elector_cancelled_in_a_renewal_still_releases():
    """The Lease is released although the renewal was written after the Lease was last seen."""

    async def main(cluster, clock):
        deaf = Deaf(cluster)
        first = elector(deaf, clock, "first")
        async with running(first):
            await first.leading()
            deaf.deaf = True
            await clock.sleep(Duration(2 * TIMES.retry_period))
            assert not deaf.deaf
        assert (await lease(cluster)).holder_identity == ""

    run(main)


async def replace_dead_leader(cluster, clock, *, clock_of_leader, dies_after):
    """Run two electors, let the leader die, and assert that the other leads once the Lease has run out."""
    outage = Outage()
    one, two = elector(cluster.client(faults=outage), clock_of_leader, "one"), elector(cluster, clock, "two")
    async with running(one):
        await one.leading()
        async with running(two):
            await clock.sleep(dies_after)
            assert (one.fence.still_leading(), two.fence.still_leading()) == (True, False)
            outage.mode = "hangs"
            died = clock.now()
            await two.leading()
            assert seconds(13) <= clock.now() - died <= seconds(15 + 4.4)


def test_a_dead_leader_is_followed_after_the_lease_has_run_out():
    """The next elector leads once the Lease of a leader that died has run out, at most one try later."""

    async def main(cluster, clock):
        await replace_dead_leader(cluster, clock, clock_of_leader=clock, dies_after=seconds(30))

    run(main)


@pytest.mark.parametrize("mode", ["fails", "hangs"])
def test_a_leader_that_cannot_renew_stops_before_others_may_begin(mode):
    """The fence shuts when the renew deadline has passed, and the run ends, before the Lease runs out."""

    async def main(cluster, clock):
        outage = Outage()
        one = elector(cluster.client(faults=outage), clock, "one")
        async with running(one) as task:
            await one.leading()
            await clock.sleep(seconds(20.5))
            outage.mode = mode
            await clock.sleep(seconds(9))
            assert one.fence.still_leading(), "the last renewal was sent half a second before"
            await clock.sleep(seconds(0.51))
            assert not one.fence.still_leading()
            with pytest.raises(LeaseLost, match="kube-system/cluster-autoscaler was lost"):
                await task
            assert clock.now() - START <= seconds(20 + 15), "nobody else can lead yet"
            outage.mode = ""
            assert (await lease(cluster)).holder_identity == "one", "it runs out by itself"

    run(main)


def test_a_short_outage_is_lived_through():
    """Failures that are shorter than the renew deadline end no leadership."""

    async def main(cluster, clock):
        outage = Outage()
        one = elector(cluster.client(faults=outage), clock, "one")
        async with running(one) as task:
            await one.leading()
            for mode in ("fails", "", "fails", "", "fails", ""):
                outage.mode = mode
                await clock.sleep(seconds(5.5))
                assert one.fence.still_leading()
            assert not task.done()

    run(main)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["", "fails", "hangs"]), st.floats(0.1, 20)), max_size=20
    )
)
def test_there_is_never_more_than_one_leader(steps):
    """Whatever fails for whom and whatever their wall clocks show, at no instant do two processes pass their fences."""

    async def main(cluster, clock):
        outages = [Outage() for _ in range(3)]
        clocks = [Skewed(clock, minutes(by)) for by in (-600, 0, 600)]
        ours = [
            elector(cluster.client(faults=outage), clocks[n], f"e{n}", seed=n)
            for n, outage in enumerate(outages)
        ]
        most = 0

        async def run_again(one, outage):
            nonlocal most
            while True:  # a process that has lost its lease ends, and is started again
                with suppress(LeaseLost):
                    await one.run()
                one = elector(cluster.client(faults=outage), one._clock, one._identity)
                ours.append(one)

        async def look():
            nonlocal most
            while True:
                most = max(most, sum(one.fence.still_leading() for one in ours))
                await clock.sleep(seconds(0.1))

        tasks = [
            asyncio.ensure_future(run_again(one, outage))
            for one, outage in zip(ours[:], outages, strict=True)
        ]
        tasks.append(asyncio.ensure_future(look()))
        for who, mode, pause in steps:
            outages[who].mode = mode
            await clock.sleep(seconds(pause))
        for outage in outages:
            outage.mode = ""
        await clock.sleep(minutes(1))
        leaders = sum(one.fence.still_leading() for one in ours)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return most, leaders

    assert run(main) == (1, 1)


@pytest.mark.parametrize("skew", [-minutes(10), minutes(10)])
def test_a_wrong_wall_clock_costs_no_time(skew):
    """An elector with a wrong clock leads, and is replaced after its death, as if the clock were right."""

    async def main(cluster, clock):
        wrong = Skewed(clock, skew)
        await replace_dead_leader(cluster, clock, clock_of_leader=wrong, dies_after=minutes(5))

    run(main)
