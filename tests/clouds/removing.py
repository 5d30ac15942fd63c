"""Machines that are removed: a story that holds for providers that lower the size once a machine is gone."""

from __future__ import annotations

from tests.clouds.vendors.vendor import group_in

from kubetide.units.time import minutes


async def a_removal_that_comes_to_nothing_is_asked_for_again(here, answer):
    """A machine that is still there after a quarter of an hour is not going: the next deletion is sent.

    ``answer`` is what the API says to a removal that it then does not do.
    """
    cloud = here.connect()
    await cloud.increase_size("asg-web", 1)
    await here.clock.sleep(minutes(1))
    [machine] = (await group_in(cloud, "asg-web")).instances
    here.fake.answers["RemoveInstances"] = answer
    for minute, sent in ((0, 1), (14, 1), (1, 2)):
        await here.clock.sleep(minutes(minute))
        await cloud.refresh()
        await cloud.delete_nodes("asg-web", [machine.provider_id])
        assert here.fake.calls.count("RemoveInstances") == sent
