"""A real API server takes our Leases as client-go writes them, to the last: one that was let go of."""

from __future__ import annotations

import asyncio

import pytest

from kubetide.acting import Elector
from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import LEASES
from kubetide.runtime.clock import run_real
from kubetide.units.time import seconds

pytestmark = pytest.mark.slow


def test_a_lease_from_its_making_to_its_end(quiet_plane):
    """It is made, renewed, let go of, and taken by the next."""

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
