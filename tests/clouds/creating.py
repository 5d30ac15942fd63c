"""The node loop creates a group like a pattern, fills it, empties it and deletes it: one story for all providers."""

from __future__ import annotations

from tests.clouds.fakes.fleet import Fleet
from tests.clouds.joining import JoiningWorld
from tests.nodes.live import play, replayed

from kubetide.units.time import minutes

PATTERN_CPU, CREATED_CPU = "2", "16"


class FleetWorld(JoiningWorld):
    """A world whose machines are a fleet's.

    Args:
        connect: Makes the provider of a fleet and a clock.
        node_id: Makes the provider id of a group's machine.
    """

    def __init__(self, clock, groups, *, connect, node_id, **settings):
        self.fleet, self.node_id = Fleet(clock, boot_s=60, shown_s=0), node_id
        for name in groups:
            self.fleet.add(name)
        super().__init__(clock, groups, provider=lambda clock: connect(self.fleet, clock), **settings)

    async def machines(self):
        return {
            one.name: (group, self.node_id(group, one.name))
            for group in self.fleet.groups
            for one in self.fleet.machines(group)
            if self.fleet.state(one) != "Creating"
        }

    def cpu(self, group):
        return PATTERN_CPU if group in self.names else CREATED_CPU

    def sizes(self):
        return {
            name: (group.target, len(self.fleet.machines(name))) for name, group in self.fleet.groups.items()
        }


def create_fill_empty_and_delete(pattern, world_of, *, begins):
    """Play the story of a pattern of machines of 2 CPU that others of 16 CPU may be like.

    ``begins`` is how the name of what is created begins.
    """

    async def story(world):
        await world.deploy(replicas=1, cpu="1500m")
        await world.after(minutes(4))
        assert world.sizes() == {pattern: (1, 1)}, "no group is created while one there is will do"
        await world.deploy("large", replicas=2, cpu="10")
        await world.after(minutes(8))
        assert world.pending == []
        [created] = world.sizes().keys() - {pattern}
        assert created.startswith(begins), created
        assert world.sizes() == {pattern: (1, 1), created: (2, 2)}
        await world.scale("large", 0)
        await world.after(minutes(30))
        assert world.sizes() == {pattern: (1, 1)}

    settings = {"node_autoprovisioning_enabled": True, "expander": "least-waste"}
    world = play(story, (pattern,), world_of=world_of, **settings)
    assert replayed(world) > 30
