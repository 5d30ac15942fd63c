"""The node controller on a living embedded cluster, in virtual time."""

from __future__ import annotations

from tests.nodes.live import SHORT, play, replayed

from kubetide.units.time import minutes


def test_pending_pods_get_nodes():
    """Pods that fit nowhere lead to new nodes, on which they come to run."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(5))
        assert world.pending == []
        assert len(world.nodes) == 6
        assert any(
            "pod triggered scale-up: [{small 0->6 (max: 10)}]" in m
            for m in await world.events("TriggeredScaleUp")
        )

    play(story)


def test_idle_nodes_go():
    """Nodes that are not needed any more are drained and deleted, and their machines end."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(5))
        await world.scale("web", 1)
        await world.after(minutes(12))
        assert len(world.nodes) == 1
        assert world.pending == []

    world = play(story, **SHORT)
    assert replayed(world) > 50
