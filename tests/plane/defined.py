"""Custom kinds of ours on a plane: defined, served, and taken away again."""

from __future__ import annotations

from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS
from kubetide.ports.errors import NotFound
from kubetide.runtime.install import put_definition
from kubetide.testing.cluster_cases.ground import goes


class Defined:
    """The definitions of kinds on a plane; ``bodies`` and ``kinds`` say which."""

    def __init__(self, place, bodies, kinds):
        self.place, self.cluster, self.home = place, place.cluster, place.home
        self.bodies, self.kinds = bodies, kinds

    async def define(self):
        for body in self.bodies:
            await put_definition(self.cluster, body)
        for kind in self.kinds:
            await self.waits(f"{kind.plural} are served", self._served, kind)

    async def _served(self, kind):
        try:
            await self.cluster.list(kind)
        except NotFound:
            return False
        return True

    async def forget(self):
        for body in self.bodies:
            name = body["metadata"]["name"]
            await self.cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
            await goes(self.cluster, self.place.clock, CUSTOM_RESOURCE_DEFINITIONS, name, "")

    async def waits(self, what, holds, *given):
        deadline = self.place.deadline()
        while not await holds(*given):
            assert self.place.clock.monotonic() < deadline, f"waited in vain: {what}\n{self.place}"
            await self.place.pause()
