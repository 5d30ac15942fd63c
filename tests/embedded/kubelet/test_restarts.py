"""Containers that are killed or crash, and when their kubelet starts them again."""

from __future__ import annotations

from tests.embedded.kubelet.pool_world import play

from kubetide.objects.kinds import PODS


def test_an_oom_kill_restarts_the_container():
    """The first restart follows at once, the second after 10 s; the pod stays Running and is not ready meanwhile."""

    async def body(world):
        async def status():
            raw = await world.cluster.get(PODS.untyped, "p", namespace="default")
            assert raw["status"]["phase"] == "Running"
            return raw["status"]["containerStatuses"][0]

        await world.add_node()
        await world.add_pod()
        await world.at(20)
        world.pool.oom_kill(("default", "p"))
        world.pool.oom_kill(("default", "p"))
        await world.at(20.5)
        killed = await status()
        assert (killed["restartCount"], killed["ready"], killed["lastState"]) == (0, False, {})
        ended = killed["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
        assert ended["startedAt"] < ended["finishedAt"] == "2026-03-02T00:00:20Z"
        assert await world.ready() == "False"
        await world.at(27.5)
        assert await world.ready() == "True"
        again = await status()
        assert (again["restartCount"], again["ready"], again["lastState"]) == (1, True, {"terminated": ended})
        assert again["state"]["running"]["startedAt"] > ended["finishedAt"]
        world.pool.crash(("default", "p"))
        await world.at(30)
        waits = await status()
        assert waits["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
        assert waits["lastState"]["terminated"]["reason"] == "Error"
        await world.at(44)
        assert await world.ready() == "False"
        await world.at(45)
        assert await world.ready() == "True"
        assert (await status())["restartCount"] == 2

    play(body)


def test_a_container_that_ran_for_long_is_started_again_at_once():
    """The back-off begins anew once the container has run for ten minutes."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        for second in (20, 700, 1400):
            await world.at(second)
            world.pool.oom_kill(("default", "p"))
            await world.at(second + 7.5)
            assert await world.ready() == "True"
        assert (await world.pod()).status.container_statuses[0].restart_count == 3

    play(body)


def test_a_pod_that_crashes_before_it_is_ready_waits_for_its_restart():
    """A crash while the pod becomes ready cancels that; it is ready only after the restart."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(16)
        world.pool.crash(("default", "p"))
        await world.at(17.5)
        assert await world.ready() == "False"
        await world.at(23.5)
        assert await world.ready() == "True"

    play(body)
