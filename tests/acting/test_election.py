"""One leader at a time: ours among themselves, and beside programs that write as client-go does."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.answering import Skewed

from kubetide.acting import Elector, LeaseLost, LeaseTimes
from kubetide.acting.lease import Seen, claim, is_held, release, seen_again
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.cluster import LeaseSpec
from kubetide.objects.kinds import EVENTS, LEASES
from kubetide.ports.errors import Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import Duration, Instant, format_rfc3339_micro, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00.123456Z")
NAME = {"namespace": "kube-system", "name": "cluster-autoscaler"}
TIMES = LeaseTimes()


class Outage:
    """Fails or swallows every request while it lasts."""

    def __init__(self):
        self.mode = ""

    async def before(self, _request):
        if self.mode == "fails":
            raise Unavailable("down")
        if self.mode == "hangs":
            await asyncio.Event().wait()


def elector(cluster, clock, identity, **more):
    return Elector(cluster, clock, identity=identity, component="tester", **{**NAME, **more})


@asynccontextmanager
async def running(one):
    """Run an elector beside the block; return its task."""
    task = asyncio.ensure_future(one.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LeaseLost):
            await task


def run(main):
    async def inside(clock):
        return await main(EmbeddedCluster(Store(), clock, 1), clock)

    return run_virtual(inside, start=START)


async def lease(cluster):
    return (await cluster.get(LEASES, NAME["name"], namespace=NAME["namespace"])).spec


async def write(cluster, spec):
    """Write the whole Lease, as client-go does, over whatever is there."""
    body = {"metadata": NAME, "spec": spec}
    found = [one for one in (await cluster.list(LEASES)).items if one.metadata.name == NAME["name"]]
    if not found:
        await cluster.create(LEASES, body, namespace=NAME["namespace"])
        return
    body["metadata"] = {**NAME, "resourceVersion": found[0].metadata.resource_version}
    await cluster.replace(LEASES, body, namespace=NAME["namespace"])


def go_spec(clock, identity="host_go", *, transitions=0, skew=0, duration=15):
    """A spec in client-go's form, by a clock that may be wrong."""
    stamp = format_rfc3339_micro(Instant(clock.now() + skew))
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": duration,
        "acquireTime": stamp,
        "renewTime": stamp,
        "leaseTransitions": transitions,
    }


# ── the rules ───────────────────────────────────────────────────────────────────────────────────


def test_a_claim_is_written_as_upstream_writes_it():
    """The first holder counts no transition; a renewal moves renewTime only; a new holder counts one."""
    first = claim("a", None, TIMES, START)
    assert first == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-03-02T00:00:00.123456Z",
        "renewTime": "2026-03-02T00:00:00.123456Z",
        "leaseTransitions": 0,
    }
    spec = LeaseSpec(
        holder_identity="a",
        lease_duration_seconds=15,
        acquire_time=first["acquireTime"],
        renew_time=first["renewTime"],
        lease_transitions=0,
    )
    seen, later = Seen(spec, Duration(0)), Instant(START + seconds(2))
    assert claim("a", seen, TIMES, later) == {**first, "renewTime": "2026-03-02T00:00:02.123456Z"}
    stamp = "2026-03-02T00:00:02.123456Z"
    other = {**first, "holderIdentity": "b", "acquireTime": stamp, "renewTime": stamp, "leaseTransitions": 1}
    assert claim("b", seen, TIMES, later) == other
    assert release(seen, later) == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": stamp,
        "renewTime": stamp,
        "leaseTransitions": 0,
    }


def test_only_a_lease_that_changes_is_alive():
    """The wait counts from when the Lease was first seen with its content, whatever times its fields hold."""
    old = LeaseSpec(holder_identity="a", lease_duration_seconds=15, renew_time="2030-01-01T00:00:00.000000Z")
    seen = seen_again(None, old, seconds(100))
    seen = seen_again(seen, old, seconds(110))
    assert seen.since == seconds(100)
    assert is_held(seen, Duration(seconds(115) - 1), TIMES)
    assert not is_held(seen, seconds(115), TIMES)
    renewed = LeaseSpec(
        holder_identity="a", lease_duration_seconds=60, renew_time="2020-01-01T00:00:00.000000Z"
    )
    seen = seen_again(seen, renewed, seconds(112))
    assert is_held(seen, Duration(seconds(172) - 1), TIMES), "the lease's own duration holds"
    assert not is_held(Seen(LeaseSpec(), Duration(0)), Duration(0), TIMES)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"lease_duration": seconds(10)}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": seconds(9)}, r"renewDeadline must be greater than retryPeriod\*JitterFactor"),
        ({"retry_period": seconds(0)}, "retryPeriod must be greater than zero"),
        ({"lease_duration": seconds(0.5)}, "leaseDuration must be at least 1 s"),
    ],
)
def test_times_that_cannot_work_are_refused(times, said):
    """The rules of upstream, in its words."""
    with pytest.raises(ValueError, match=said):
        LeaseTimes(**times)


# ── among ourselves ─────────────────────────────────────────────────────────────────────────────


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


def test_a_dead_leader_is_followed_after_the_lease_has_run_out():
    """The next elector leads once the Lease of a leader that died has run out, at most one try later."""

    async def main(cluster, clock):
        outage, two = Outage(), None
        one = elector(cluster.client(faults=outage), clock, "one")
        async with running(one):
            await one.leading()
            two = elector(cluster, clock, "two")
            async with running(two):
                await clock.sleep(seconds(30))
                assert not two.fence.still_leading()
                outage.mode = "hangs"
                died = clock.now()
                await two.leading()
                assert seconds(13) <= clock.now() - died <= seconds(15 + 4.4)

    run(main)


@pytest.mark.parametrize("mode", ["fails", "hangs"])
def test_who_cannot_renew_stops_before_others_may_begin(mode):
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
    """Failures within the deadline cost nothing."""

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


# ── beside client-go ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("skew", [-minutes(600), 0, minutes(600)])
def test_a_leader_of_client_go_is_waited_for_whatever_its_clock_says(skew):
    """While it renews it leads; when it stops, its Lease runs out by our clock."""

    async def main(cluster, clock):
        await write(cluster, go_spec(clock, transitions=3, skew=skew))
        ours = elector(cluster, clock, "ours")
        async with running(ours):
            for _ in range(30):
                await clock.sleep(seconds(2))
                await write(cluster, go_spec(clock, transitions=3, skew=skew))
                assert (ours.fence.still_leading(), ours.holder) == (False, "host_go" if ours.holder else "")
            stopped = clock.now()
            await ours.leading()
            assert seconds(15) <= clock.now() - stopped <= seconds(15 + 2 * 4.4)
            spec = await lease(cluster)
            assert (spec.holder_identity, spec.lease_transitions) == ("ours", 4)
            assert spec.acquire_time == format_rfc3339_micro(clock.now())

    run(main)


@pytest.mark.parametrize("holder", ["", None])
def test_a_lease_that_client_go_released_is_free(holder):
    """An empty or missing holder means that nobody holds the Lease."""

    async def main(cluster, clock):
        await write(cluster, {**go_spec(clock, holder, transitions=2, duration=1), "holderIdentity": holder})
        ours = elector(cluster, clock, "ours")
        async with running(ours):
            await ours.leading()
            assert clock.now() == START
            assert (await lease(cluster)).lease_transitions == 3

    run(main)


def test_who_sees_another_holder_stops_at_once():
    """A Lease that was taken away by force is not taken back."""

    async def main(cluster, clock):
        ours = elector(cluster, clock, "ours")
        async with running(ours) as task:
            await ours.leading()
            await clock.sleep(seconds(5))
            await write(cluster, go_spec(clock, transitions=1))
            with pytest.raises(LeaseLost, match="is held by host_go"):
                await task
            assert clock.now() - START <= seconds(6)
            assert not ours.fence.still_leading()
            assert (await lease(cluster)).holder_identity == "host_go"
            messages = sorted(event.message for event in (await cluster.list(EVENTS)).items)
            assert messages == ["ours became leader", "ours stopped leading"]

    run(main)


@pytest.mark.parametrize("skew", [-minutes(10), minutes(10)])
def test_a_wrong_wall_clock_costs_no_time(skew):
    """One whose clock is wrong leads, and another follows after its death, as if it were right."""

    async def main(cluster, clock):
        outage = Outage()
        one = elector(cluster.client(faults=outage), Skewed(clock, skew), "one")
        async with running(one):
            await one.leading()
            two = elector(cluster, clock, "two")
            async with running(two):
                await clock.sleep(minutes(5))
                assert (one.fence.still_leading(), two.fence.still_leading()) == (True, False)
                outage.mode = "hangs"
                died = clock.now()
                await two.leading()
                assert seconds(13) <= clock.now() - died <= seconds(15 + 4.4)

    run(main)


def test_fields_of_others_in_the_lease_stay():
    """A renewal leaves labels and fields that others wrote."""

    async def main(cluster, clock):
        ours = elector(cluster, clock, "ours")
        async with running(ours):
            await ours.leading()
            patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"strategy": "OldestEmulationVersion"}}
            await cluster.patch(LEASES, NAME["name"], patch, namespace=NAME["namespace"])
            await clock.sleep(seconds(20))
            assert ours.fence.still_leading()
            found = await cluster.get(LEASES.untyped, NAME["name"], namespace=NAME["namespace"])
            assert found["metadata"]["labels"] == {"a": "b"}
            assert found["spec"]["strategy"] == "OldestEmulationVersion"

    run(main)


def test_several_leases_are_taken_in_one_order():
    """A lease that comes second is not taken before the first, and does not make the wait any longer."""

    async def main(cluster, clock):
        await write(cluster, go_spec(clock))
        await cluster.create(
            LEASES, {"metadata": {"name": "second"}, "spec": go_spec(clock)}, namespace=NAME["namespace"]
        )
        first = elector(cluster, clock, "ours")
        second = elector(cluster, clock, "ours", name="second", after=first.fence)
        third = elector(cluster, clock, "ours", name="third", after=second.fence)
        async with running(first), running(second), running(third):
            await clock.sleep(seconds(10))
            await write(
                cluster, go_spec(clock)
            )  # the holder of the first lives on, that of the second does not
            await clock.sleep(seconds(10))
            assert [one.holder for one in (first, second, third)] == ["host_go", "host_go", ""]
            assert not any(one.fence.still_leading() for one in (first, second, third))
            await third.leading()
            # 15 s after the renewal, and one try for each of the leases.
            assert clock.now() - START <= seconds(10 + 15 + 3 * 4.4)
            assert all(one.fence.still_leading() for one in (first, second, third))

    run(main)
