"""Our node loop and upstream's autoscaler never act both: client-go's leader election holds the Lease, then ours, then it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest
from tests.plane.remote_cloud import serving
from tests.plane.towns import MEDIUM, kubetide_run
from tools.plane.build import find

from kubetide.cluster import HttpCluster
from kubetide.embedded.cloud import EmbeddedCloud
from kubetide.objects.kinds import LEASES
from kubetide.runtime.timing.clock import run_real
from kubetide.testing.cluster_cases.ground import eventually

pytestmark = pytest.mark.slow

LEASE = "cluster-autoscaler"
IN_TIME_S = 180


class Holder:
    """A Go program that takes the Lease as upstream's autoscaler does, and holds it until its input ends."""

    def __init__(self, process):
        self._process = process
        self.said = []

    async def says(self, line):
        """Wait for a line; remember it and all before it."""
        while line not in self.said:
            read = await asyncio.wait_for(self._process.stdout.readline(), IN_TIME_S)
            assert read, f"ended after {self.said}"
            self.said.append(read.decode().strip())

    async def release(self):
        self._process.stdin.close()
        await self.says("released")


@asynccontextmanager
async def holder(plane, identity):
    process = await asyncio.create_subprocess_exec(
        find("holder"),
        plane.kubeconfig,
        f"kube-system/{LEASE}",
        identity,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Holder(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_one_holds_and_the_other_waits(quiet_plane, tmp_path):
    """Ours waits and says for whom, leads once the lease is released, and is waited for in turn."""
    if find("holder") is None:
        pytest.skip("not built: holder (python -m tools.plane build clients)")

    async def run(clock):
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(HttpCluster(quiet_plane.connection, clock))
            socket = str(tmp_path / "cloud.sock")
            cloud = EmbeddedCloud(client, clock, seed=1, groups=[MEDIUM])
            await stack.enter_async_context(serving(cloud, socket))
            place = SimpleNamespace(plane=quiet_plane, folder=tmp_path, socket=socket)

            async def lease():
                return (await client.get(LEASES, LEASE, namespace="kube-system")).spec

            first = await stack.enter_async_context(holder(quiet_plane, "upstream-1"))
            await first.says("leading")
            flags = ("--act", "--controllers=nodes", "--scan-interval=1s")
            async with kubetide_run(place, "excluded", *flags) as ours:

                async def said(text):
                    async def found():
                        return ours.said(text)

                    await eventually(clock, text, found)

                await said(f"waiting for lease {LEASE}, which upstream-1 holds")
                assert (await lease()).holder_identity == "upstream-1"
                await first.release()
                await said(f"leading by lease {LEASE}")
                taken = await lease()
                assert (taken.lease_transitions, taken.lease_duration_seconds) == (1, 15)

                second = await stack.enter_async_context(holder(quiet_plane, "upstream-2"))
                await second.says(f"new leader {taken.holder_identity}")
                for _ in range(2):
                    before = await lease()

                    async def renewed(before=before):
                        return (await lease()).renew_time != before.renew_time

                    await eventually(clock, "ours renews", renewed)
                assert second.said == [f"new leader {taken.holder_identity}"]
            await second.says("leading")
            assert ((await lease()).holder_identity, (await lease()).lease_transitions) == ("upstream-2", 2)
            await client.delete(LEASES, LEASE, namespace="kube-system")

    run_real(run)
