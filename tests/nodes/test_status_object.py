"""The status ConfigMap of the node controller: when it is written, and when it is left alone."""

from __future__ import annotations

import yaml
from tests.nodes.live import play

from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.units.time import minutes, seconds


def test_status_object_is_written():
    """The status ConfigMap says how many nodes are ready."""

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))
        assert "        ready: 2\n" in await world.status()
        await world.controller.close()

    play(story)


def test_until_the_first_tick_the_status_is_initializing():
    """So the status that an earlier process left is not read as current while the cloud does not answer."""
    left = {
        "metadata": {"name": "cluster-autoscaler-status"},
        "data": {"status": "autoscalerStatus: Running\n"},
    }

    async def story(world):
        body = yaml.safe_load(await world.status())
        assert body["autoscalerStatus"] == "Running"
        await world.cluster.patch(CONFIG_MAPS, "cluster-autoscaler-status", left, namespace="kube-system")
        await world.controller.synced()
        body = yaml.safe_load(await world.status())
        assert (body["autoscalerStatus"], body["clusterWide"]["health"]["lastProbeTime"]) == (
            "Initializing",
            None,
        )
        assert "message" not in body
        assert body["time"] == "2026-03-02 08:00:05 +0000 UTC"
        await world.after(minutes(1))
        assert yaml.safe_load(await world.status())["autoscalerStatus"] == "Running"

    async def begun(world):
        await world.after(seconds(5))
        await story(world)

    play(begun)


def test_a_status_object_that_others_write_is_left_alone():
    """Without --write-status-configmap the object is neither written nor deleted at the end: another autoscaler may own it."""
    body = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": "theirs"}}

    async def story(world):
        await world.cluster.create(CONFIG_MAPS, body, namespace="kube-system")
        await world.after(minutes(1))
        await world.controller.close()
        assert await world.status() == "theirs"

    play(story, write_status_configmap=False)
