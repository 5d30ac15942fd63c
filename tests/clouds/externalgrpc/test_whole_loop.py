"""The node loop over a provider of the protocol that protects machines which its list names."""

from __future__ import annotations

import pytest

pytest.importorskip("google.protobuf", reason="protobuf is an extra")

from tests.nodes.live import SHORT, SMALL, World, play, replayed

from kubetide.clouds.externalgrpc.cloud import ExternalGrpcCloud
from kubetide.clouds.externalgrpc.joined_nodes import WatchedNodes
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS, encode
from kubetide.clouds.externalgrpc.service import ProviderService
from kubetide.objects.kinds import NODES
from kubetide.units.time import minutes

PROTECTED = "example.com/protected"


class BehindProtocol(World):
    """A world whose cloud is behind the protocol; its server knows protected nodes by a label."""

    def begin_process(self, guard):
        here = self.cloud
        methods = ProviderService(here).methods()

        async def call(method, request):
            sent, received = (MESSAGES[name] for name in METHODS[method])
            if method == "NodeGroupForNode" and PROTECTED in request.node.labels:
                return received()
            return received.FromString(encode(await methods[method](sent.FromString(encode(request)))))

        nodes = WatchedNodes(self.informers["nodes"])
        self.cloud = ExternalGrpcCloud(call, address="here", nodes=nodes, now=self.clock.now)
        super().begin_process(guard)
        self.cloud = here

    async def label(self, node, value):
        await self.cluster.patch(NODES, node, {"metadata": {"labels": {PROTECTED: value}}})


def test_a_protected_node_stays_until_it_is_given_free():
    """Nodes come and go around it, no scale-up times out for it, and the records say the same again."""

    async def story(world):
        await world.deploy(replicas=3, cpu="1500m")
        await world.after(minutes(5))
        assert len(world.nodes) == 3
        protected = world.nodes[1]
        await world.label(protected, "yes")
        await world.scale("web", 0)
        await world.after(minutes(20))
        assert world.nodes == [protected]
        assert world.controller.state.group_of(protected) is None
        await world.scale("web", 4)
        await world.after(minutes(20))
        assert len(world.nodes) == 4
        assert not world.pending
        assert not await world.events("ScaleUpTimedOut")
        assert "minSize: 0" in await world.status()
        await world.label(protected, None)
        await world.scale("web", 0)
        await world.after(minutes(20))
        assert world.nodes == []
        assert not await world.events("ScaleDownFailed")

    world = play(story, (SMALL,), world_of=BehindProtocol, **SHORT)
    assert replayed(world) > 100
