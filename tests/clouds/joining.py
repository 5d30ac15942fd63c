"""The node loop on an embedded cluster whose machines are a provider's: each joins as a node once it is up."""

from __future__ import annotations

from contextlib import suppress

from tests.nodes.live import FREE, World

from kubetide.nodes.controller import NodesController
from kubetide.nodes.settings import Settings
from kubetide.objects.kinds import NODES
from kubetide.ports.errors import NotFound
from kubetide.runtime.guard import guarded_cloud, guarded_cluster
from kubetide.testing import builders
from kubetide.units.time import seconds


class JoiningWorld(World):
    """A world whose node loop scales groups of a provider, which ``provider`` makes.

    Those that derive from it have a method ``machines``, which returns group and provider id of each machine that is
    up, by the name of its node.
    """

    def __init__(self, clock, groups, *, provider, **settings):
        super().__init__(clock, ())
        self.names = groups
        self.provider = provider(clock)
        self.controller = NodesController(
            guarded_cluster(self.cluster, FREE),
            guarded_cloud(self.provider, FREE),
            clock,
            self.recorder,
            self.board,
            Settings(**settings),
            seed=1,
            caches=self.caches,
        )
        self.cloud.run = self.join_and_leave

    def cpu(self, group):
        return "2"

    async def join_and_leave(self):
        """Create and delete nodes to match the groups' machines, as kubelets and the cloud's controller do."""
        here = set()
        while True:
            seen = await self.machines()
            for name in sorted(seen.keys() - here):
                group, provider_id = seen[name]
                extra = {"spec": {"providerID": provider_id}}
                await self.cluster.create(
                    NODES, builders.node(name, cpu=self.cpu(group), memory="7Gi", extra=extra)
                )
            for name in sorted(here - seen.keys()):
                with suppress(NotFound):
                    await self.cluster.delete(NODES, name)
            here = set(seen)
            await self.clock.sleep(seconds(10))
