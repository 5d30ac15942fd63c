"""A real API server accepts our Leases as client-go writes them, up to the release."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from tests.plane.running import Programs

from kubetide.acting import Elector, LeaseTimes
from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import LEASES
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import seconds

pytestmark = pytest.mark.slow


def test_a_lease_from_its_making_to_its_end(quiet_plane):
    """It is made, renewed, released, and taken by the next."""

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:

            def elector(identity):
                where = {"namespace": "kube-system", "name": "kubetide-test"}
                return Elector(client, clock, identity=identity, component="tester", **where)

            for transitions, identity in enumerate(("one", "two")):
                ours = elector(identity)
                task = asyncio.ensure_future(ours.run())
                await ours.leading()
                begun = await client.get(LEASES, "kubetide-test", namespace="kube-system")
                assert begun.spec.holder_identity == identity
                assert begun.spec.lease_transitions == transitions
                while (await client.get(LEASES, "kubetide-test", namespace="kube-system")) == begun:
                    await clock.sleep(seconds(0.2))
                assert (ours.fence.still_leading(), ours.last_error) == (True, "")
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                ended = await client.get(LEASES, "kubetide-test", namespace="kube-system")
                assert (ours.last_error, ended.spec.lease_duration_seconds) == ("", 1)
                assert not ended.spec.holder_identity

    run_real(run)


def test_beside_a_program_of_upstream(quiet_plane, tmp_path):
    """kube-scheduler waits for our Lease, takes it when we release it, and is followed when it has died."""
    where = {"namespace": "kube-system", "name": "kubetide-shared"}
    flags = (
        f"--kubeconfig={quiet_plane.kubeconfig}",
        "--secure-port=0",
        "--leader-elect=true",
        f"--leader-elect-resource-namespace={where['namespace']}",
        f"--leader-elect-resource-name={where['name']}",
        "--leader-elect-lease-duration=4s",
        "--leader-elect-renew-deadline=3s",
        "--leader-elect-retry-period=1s",
        "-v=4",
    )
    times = LeaseTimes(seconds(4), seconds(3), seconds(1))

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:

            async def until(holds):
                deadline = clock.monotonic() + seconds(300)
                while not await holds():
                    assert clock.monotonic() < deadline, (tmp_path / "kube-scheduler.log").read_text()[-2000:]
                    await clock.sleep(seconds(0.1))

            async def spec():
                return (await client.get(LEASES, where["name"], namespace=where["namespace"])).spec

            async def scheduler_waits():
                return 'holder="one"' in (tmp_path / "kube-scheduler.log").read_text()

            async def scheduler_leads():
                return (await spec()).holder_identity not in {"", None, "one", "two"}

            with ExitStack() as stack:
                one = Elector(client, clock, identity="one", component="tester", times=times, **where)
                task = asyncio.ensure_future(one.run())
                await one.leading()
                programs = Programs(stack, tmp_path)
                programs.start("kube-scheduler", flags)
                await until(scheduler_waits)
                assert one.fence.still_leading()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await until(scheduler_leads)
                assert (await spec()).lease_transitions == 1

                two = Elector(client, clock, identity="two", component="tester", times=times, **where)
                task = asyncio.ensure_future(two.run())
                seen = set()

                async def renewed_often():
                    seen.add((await spec()).renew_time)
                    return len(seen) >= 6

                await until(renewed_often)
                assert not two.fence.still_leading()
                died = clock.monotonic()
                programs._running[0][1].kill()
                async with asyncio.timeout(300):
                    await two.leading()
                assert clock.monotonic() - died >= seconds(2.9), (
                    "its last renewal was at most a second before"
                )
                assert (await spec()).lease_transitions == 2
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    run_real(run)
