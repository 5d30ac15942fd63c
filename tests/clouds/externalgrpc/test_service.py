"""What answers the protocol's methods, without a server around it."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("google.protobuf", reason="protobuf is an extra")

from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS
from kubetide.clouds.externalgrpc.service import ProviderService
from kubetide.ports.cloud import Cloud, NodeGroup
from kubetide.ports.errors import CloudError


class Slow(Cloud):
    """One group, whose increases take until they are let go."""

    name, gpu_label = "slow", ""

    def __init__(self):
        self.size, self.may_end, self.error = 1, asyncio.Event(), None

    async def refresh(self):
        return [NodeGroup(id="g", max_size=9, target_size=self.size)]

    async def increase_size(self, group_id, delta):
        await self.may_end.wait()
        self.size += delta
        if self.error:
            raise self.error


@pytest.mark.parametrize("error", [None, CloudError("no answer", may_be_done=True)])
def test_a_size_that_is_asked_for_during_a_change_is_not_kept(error):
    """Orders come side by side; the size of before one would have been the answer until the next Refresh."""

    async def main():
        cloud = Slow()
        cloud.error = error
        methods = ProviderService(cloud).methods()

        async def ask(method, **fields):
            return await methods[method](MESSAGES[METHODS[method][0]](**fields))

        order = asyncio.create_task(ask("NodeGroupIncreaseSize", id="g", delta=2))
        await asyncio.sleep(0)
        assert (await ask("NodeGroupTargetSize", id="g")).targetSize == 1
        cloud.may_end.set()
        await asyncio.gather(order, return_exceptions=True)
        assert (await ask("NodeGroupTargetSize", id="g")).targetSize == 3

    asyncio.run(main())
