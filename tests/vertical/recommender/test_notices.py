"""What the recommender tells a person: once at the beginning of a trouble, and not of what passes by itself."""

from __future__ import annotations

import pytest
from tests.vertical.custom_kinds import WHERE
from tests.vertical.recommender.live import story

from kubetide.objects.kinds import VPA_CHECKPOINTS
from kubetide.ports.errors import Unavailable
from kubetide.units.time import before, minutes, seconds
from kubetide.vertical.recommender.controller.controller import NO_NODE_LOOP


def test_usage_that_cannot_be_read_is_a_source_that_fails():
    """From the second pass in a row without any sample, with since when; until there are samples again."""

    async def main(world):
        seen = []
        await world.begin()
        [source] = world.controller.sources
        async with world.running():
            await world.clock.sleep(minutes(1.5))
            world.usage.error = "no metrics"
            for _ in range(3):
                await world.clock.sleep(minutes(1))
                seen.append(source.failing_since)
            assert (source.problem, source.last_error) == ("no metrics", "no metrics")
            began = before(world.clock.now(), minutes(2) + seconds(30))
            world.usage.error = ""
            await world.clock.sleep(minutes(1))
            assert source.failing_since is None
        assert seen == [None, began, began]

    story(main)


def test_checkpoints_that_cannot_be_loaded_are_named_once():
    """Their containers begin without history, which looks like a new workload."""

    async def main(world):
        await world.begin()
        body = {
            "metadata": {"name": "web-app"},
            "spec": {"vpaObjectName": "web", "containerName": "app"},
            "status": {"version": "v9"},
        }
        await world.cluster.create(VPA_CHECKPOINTS, body, **WHERE)
        await world.run_for(minutes(3.5))
        [said] = world.warnings
        assert said.startswith(
            "recommender: cannot load checkpoint for VPA default/web. Reason: unsupported checkpoint"
        )
        assert said.endswith(". Usage is counted from now on")

    story(main)


@pytest.mark.parametrize("has_node_loop", [False, True])
def test_targets_that_are_to_fit_nodes_which_no_loop_knows(has_node_loop):
    """Without the node loop in the same process the option changes nothing, and that is said once."""

    async def main(world):
        world.board.tells_sizes = has_node_loop
        await world.begin()
        await world.run_for(minutes(2.5))
        assert world.warnings == ([] if has_node_loop else [NO_NODE_LOOP])

    story(main, fit_node_groups=True)


class Refusing:
    """A cluster that refuses patches while ``why`` says so."""

    def __init__(self, cluster):
        self.cluster, self.why = cluster, ""

    def __getattr__(self, name):
        return getattr(self.cluster, name)

    async def patch(self, *where, **more):
        if self.why:
            raise Unavailable(self.why)
        return await self.cluster.patch(*where, **more)


def test_writes_that_fail_again_are_named_once():
    """The first failure may be over in the next pass; after a pass in which all went well they are named anew."""

    async def main(world):
        cluster = world.cluster = Refusing(world.cluster)
        world.controller = world.made()
        await world.begin()
        async with world.running():
            for why, passes in (("no quorum", 1), ("", 1), ("no quorum", 3), ("", 1), ("no quorum", 2)):
                cluster.why = why
                await world.clock.sleep(minutes(passes))
        said = "recommender: the checkpoint of default/web (and 1 more) failed in two passes: no quorum; it is tried again in each pass"
        assert world.warnings == [said, said]

    story(main)
