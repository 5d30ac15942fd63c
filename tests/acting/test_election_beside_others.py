"""An elector beside programs that write as client-go does, and beside Leases that others hold."""

from __future__ import annotations

import pytest
from tests.acting.electing import NAME, START, elector, go_spec, lease, run, running, write

from kubetide.acting import LeaseLost
from kubetide.objects.kinds import EVENTS, LEASES
from kubetide.units.time import format_rfc3339_micro, minutes, seconds


@pytest.mark.parametrize("skew", [-minutes(600), 0, minutes(600)])
def test_a_leader_of_client_go_is_waited_for_whatever_its_clock_says(skew):
    """While client-go renews, it leads; when it stops, its Lease runs out by our clock."""

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


def test_a_leader_that_sees_another_holder_stops_at_once():
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
            # The holder of the first lives on, that of the second does not.
            await write(cluster, go_spec(clock))
            await clock.sleep(seconds(10))
            assert [one.holder for one in (first, second, third)] == ["host_go", "host_go", ""]
            assert not any(one.fence.still_leading() for one in (first, second, third))
            await third.leading()
            # 15 s after the renewal, and one try for each of the leases.
            assert clock.now() - START <= seconds(10 + 15 + 3 * 4.4)
            assert all(one.fence.still_leading() for one in (first, second, third))

    run(main)
