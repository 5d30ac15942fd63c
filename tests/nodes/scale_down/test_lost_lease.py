"""A lease that is lost in the middle of a drain: the node gets its taint and its cordon off once there is a lease again."""

from __future__ import annotations

from tests.nodes.live import SHORT, START, World, play, replayed

from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.units.time import Duration, after, minutes


class LostLease:
    """Refuses all writes for a quarter of an hour from the first taint for a deletion on."""

    def __init__(self):
        self.world, self.since = None, None

    def refusal(self):
        if self.world is None:
            return ""
        if self.since is None and any(map(is_tainted, self.world.informers["nodes"].objects.values())):
            self.since = self.world.clock.now()
        lost = self.since is not None and self.world.clock.now() < after(self.since, minutes(15))
        return "the lease was lost" if lost else ""


def is_tainted(node):
    return any(one.key == TO_BE_DELETED for one in node.spec.taints or ())


def test_a_lost_lease_leaves_no_taint():
    """The drain is given up while nothing may be written, and the node is given back when something may."""
    guard = LostLease()

    async def story(world):
        guard.world = world
        await world.deploy("web", replicas=2, cpu="800m")
        await world.after(minutes(10))
        [node] = [one for one in world.informers["nodes"].objects.values() if is_tainted(one)]
        assert node.spec.unschedulable
        # From now on its pod has no place elsewhere, so that nobody would drain it again.
        await world.scale("web", 4)
        await world.clock.sleep(Duration(after(guard.since, minutes(17)) - world.clock.now()))
        back = world.informers["nodes"].objects["", node.metadata.name]
        assert not is_tainted(back)
        assert not back.spec.unschedulable

    def world_of(clock, groups, **settings):
        return World(clock, groups, guard=guard, **settings)

    groups = (GroupSpec(name="g", instance_type="m5.large", min_size=1, max_size=3, initial=2),)
    world = play(story, groups, world_of=world_of, **SHORT)
    assert guard.since is not None
    assert guard.since > START
    failed = [one for one in world.recorder.reasons if one.code == "DeletionFailed"]
    assert "the lease was lost" in failed[0].fields["error"]
    replayed(world)
