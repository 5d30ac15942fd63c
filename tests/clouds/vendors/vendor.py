"""What the tests of all vendors do alike: groups on a vendor's fake, a server of it, and providers over that."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from tests.clouds.fakes.direct import Direct
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.server import served

from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.testing.cloud_battery import CloudUnderTest
from kubetide.testing.cloud_faults_battery import FailingCloud
from kubetide.units.time import minutes


async def token():
    return "a-token"


class Vendor:
    """A fake, and providers over it; it is also what makes the fake fail.

    Those that derive from it make the fake and the provider, and say what the vendor calls things:

    Attributes:
        web, system, workers, plain: Names of groups: two that run, a pattern and a group beside it.
        shown_s: Seconds until a new machine is in a list.
        patience: As of the batteries.
        refused_as: How the fake refuses all calls, by cause.
        order: The call that asks for more machines.
        refused_orders: Codes of refused orders, and their causes.
        at_rest: The calls of a refresh a minute after another, of the two groups that run.
        types: The instance types that the pattern names.
        large: How the ids of groups of the first of them begin.
        candidates: The ids of the groups that could be created like it.
        meant, meant_zone: One of them, and where its machines would be.
        called: A group, in messages.
        mark: What marks a pattern, in messages.
        has_source_of_its_own: Whether a group that was created has the template of something else than its pattern.
        begins: How the fleet's names of created groups begin.
        obstacles: Parts of a pattern, and words of why no group can be like it; without words one can.
        useless: Types that are of no use to the pattern, and why.
        pattern_at_rest: The calls of a refresh and of a look for candidates a minute after others.
        parts_for_the_loop: Parts of a pattern whose machines take every pod.
    """

    web, system, workers, plain = "web", "system", "workers", "plain"
    shown_s = 1
    patience = minutes(10)
    parts_for_the_loop = ()
    discovery = ()

    def __init__(self, *, fleet=None, boot_s=5, page=1, **how):
        self.fleet = fleet or Fleet(Clock(), boot_s=boot_s, shown_s=self.shown_s)
        self.clock = self.fleet.clock
        self.fake = self.make_fake(page, **how)
        self.send, self.address = Direct(self.fake), "http://cloud"

    def id_of(self, name):
        """Return the id of a group that the fleet calls so."""
        return name

    def connect(self, *more, **settings):
        """Return a provider that knows nothing yet; ``--nodes`` names ``more`` besides."""
        return self.provider(
            Rest(self.send, self.clock, self.refusal), self.address, (*self.nodes, *more), **settings
        )

    def with_groups(self, *more):
        """Return this with two groups, one of a running machine; ``--nodes`` names both, and ``more``."""
        self.fleet.add(self.web)
        self.fleet.add(self.system, running=1)
        return self.named((self.web, 0, 3), (self.system, 1, 2), *more)

    def with_pattern(self, types=None, *, most=3, **parts):
        """Return this with a pattern and a group beside it; ``parts`` of the pattern are not like the usual one's."""
        self.make_pattern(types or self.types, **parts)
        for name in (self.workers, self.plain):
            self.fleet.add(name)
        return self.named((self.workers, 0, most))

    def named(self, *specs):
        """Return this with groups that ``--nodes`` names; where discovery finds them there are none."""
        self.nodes = [NodeSpec(self.id_of(name), *bounds) for name, *bounds in specs if not self.discovery]
        return self

    @asynccontextmanager
    async def served(self):
        """Serve the fake on loopback while the context is open."""
        async with served(self.fake) as self.address, HttpSender() as self.send:
            yield self

    def play(self, story, *given):
        """Return the result of a story over the served fake; the story gets this and what is given."""

        async def main():
            async with self.served():
                return await story(self, *given)

        return asyncio.run(main())

    def under_test(self, group, kept):
        """Return a provider for a battery."""
        ids = {"group": self.id_of(group), "kept": self.id_of(kept)}
        return CloudUnderTest(self.connect(), self.clock, **ids, patience=self.patience)

    def failing(self):
        """Return a provider for the battery of faults."""
        ids = {"group": self.id_of(self.web), "kept": self.id_of(self.system)}
        return FailingCloud(self.connect(), self.clock, **ids, patience=minutes(15), faults=self)

    async def run_out(self, group):
        self.fleet.sold_out.add(group)

    async def refuse(self, cause):
        self.fake.refused = dict(self.refused_as)[cause]

    async def heal(self):
        self.fake.refused = None


async def group_in(cloud, group_id):
    """Return one of the groups as it is now."""
    [found] = [one for one in await cloud.refresh() if one.id == group_id]
    return found


async def first_of(cloud):
    """Return what to ask for to get the first of the groups that could be created."""
    return (await cloud.group_candidates())[0].new
