"""``kubetide handover`` shows who serves what, and moves HPAs only when the other controller does not answer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.horizontal.running import START, World
from tests.runtime.handover.test_tracker import OWN, write, write_status
from tests.tasks import stop

from kubetide.objects.kinds import HPAS, LEASES
from kubetide.ports.errors import Forbidden
from kubetide.runtime.handover.move import Handover, HandoverError
from kubetide.runtime.handover.ownership import ANNOTATION, CLUSTER_WIDE
from kubetide.runtime.handover.probe import MESSAGE, probe
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import ZERO, format_rfc3339, minutes, seconds

CONDITION = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "fine"}


def set_conditions(world, manager, message, name="web"):
    status = {"conditions": [{**CONDITION, "message": message}]}
    write(world, HPAS, manager, {"status": status}, name, "status")


async def condition_of(world, name="web"):
    return (await world.hpa(name)).status.conditions[0].message


@asynccontextmanager
async def serving(world, manager, period=15):
    """A controller that puts the conditions right every period, and writes nothing else."""

    async def serve():
        while True:
            await world.clock.sleep(seconds(period))
            if await condition_of(world) != "fine":
                set_conditions(world, manager, "fine")

    task = asyncio.create_task(serve())
    yield
    await stop(task)


async def lead(world):
    """A run that acts holds its Lease."""
    spec = {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "renewTime": format_rfc3339(world.clock.now()),
    }
    await world.cluster.create(LEASES, {"metadata": {"name": "kubetide"}, "spec": spec}, namespace="default")


def play(story):
    async def reported(clock):
        world, said = World(clock), []
        await world.add()
        write_status(world, CLUSTER_WIDE)
        set_conditions(world, CLUSTER_WIDE, "fine")
        moving = Handover(
            world.cluster,
            clock,
            said.append,
            server_now=clock.now,
            namespace="default",
            sync_period=seconds(15),
            own=OWN,
        )
        await story(world, moving, said)

    run_virtual(reported, start=START)


async def annotation(world):
    return ((await world.hpa()).metadata.annotations or {}).get(ANNOTATION)


def test_who_puts_a_condition_right_is_found_and_nothing_stays_changed():
    """The answer is the manager's name; where nobody answers the condition is as it was."""

    async def story(world, _moving, _said):
        key = ("default", "web")
        async with serving(world, CLUSTER_WIDE):
            assert await probe(world.cluster, world.clock, [key], seconds(30)) == {key: CLUSTER_WIDE}
        assert await probe(world.cluster, world.clock, [key], seconds(30)) == {}
        assert await condition_of(world) == "fine"

    play(story)


def test_a_probe_that_is_broken_off_leaves_nothing_changed():
    """Ctrl-C, or an HPA that may not be read: the conditions of all are as they were. One that is gone is left out."""

    class Refusing:
        async def before(self, request):
            if request.name == "secret":
                raise Forbidden("no")

    async def story(world, _moving, _said):
        key = ("default", "web")
        asking = asyncio.create_task(probe(world.cluster, world.clock, [key], seconds(30)))
        await world.clock.sleep(seconds(5))
        assert await condition_of(world) == MESSAGE
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await condition_of(world) == "fine"
        assert await probe(world.cluster, world.clock, [("default", "gone")], seconds(30)) == {}
        world.cluster.faults = Refusing()
        with pytest.raises(Forbidden):
            await probe(world.cluster, world.clock, [key, ("default", "secret")], seconds(30))
        assert await condition_of(world) == "fine"

    play(story)


def test_nothing_is_moved_while_the_other_answers_or_while_nobody_acts():
    """Both would end in HPAs with two controllers, or with none."""

    async def story(world, moving, _said):
        with pytest.raises(HandoverError, match="no `kubetide run --act` holds the Lease default/kubetide"):
            await moving.to_kubetide((), wait=ZERO, force=False)
        await lead(world)
        async with serving(world, CLUSTER_WIDE):
            with pytest.raises(
                HandoverError, match="kube-controller-manager serves them: it put default/web right"
            ):
                await moving.to_kubetide((), wait=ZERO, force=False)
        assert await annotation(world) is None
        with pytest.raises(HandoverError, match="there is no HPA 'default/wob'"):
            await moving.to_kubetide(("default/wob",), wait=ZERO, force=True)

    play(story)


def test_with_a_wait_they_are_moved_as_soon_as_the_other_has_stopped():
    """The command is given first, then the other is switched off: within two periods the HPAs are kubetide's."""

    async def story(world, moving, said):
        await lead(world)
        async with serving(world, CLUSTER_WIDE):
            task = asyncio.create_task(moving.to_kubetide((), wait=minutes(10), force=False))
            await world.clock.sleep(minutes(2))
            assert await annotation(world) is None
            assert any("waiting for it to go" in text for text in said)
        await world.clock.sleep(seconds(46))
        assert (await annotation(world)).startswith("kubetide@2026-03-02T08:02:")
        assert await condition_of(world) == "fine"
        await task
        assert said[-1] == "1 HPAs are handed over to kubetide: default/web"
        (row,) = await moving.rows(asks=False)
        assert row[:2] == ("default/web", "nobody")
        await moving.to_kubetide((), wait=ZERO, force=True)
        assert said[-1] == "nothing to move: all 1 HPAs are kubetide's"

    play(story)


def test_only_those_that_are_named_are_shown_and_asked():
    """A name that is not there is an error, not an empty table; no other HPA's condition is touched."""

    async def story(world, moving, said):
        await world.add("cart")
        write_status(world, CLUSTER_WIDE, "cart")
        set_conditions(world, CLUSTER_WIDE, "fine", "cart")
        with pytest.raises(HandoverError, match="there is no HPA 'web'; name them as NAMESPACE/NAME"):
            await moving.rows(("web",), asks=False)
        (row,) = await moving.rows(("default/cart", "default/cart"), asks=True)
        assert row.hpa == "default/cart"
        assert said == ["asking who serves default/cart (up to 30s)"]

    play(story)


def test_they_are_given_to_others_when_one_has_come():
    """Until then nothing changes; a controller that finds all in order is made to write."""

    async def story(world, moving, said):
        with pytest.raises(HandoverError, match=r"no other controller has come within 1m0s"):
            await moving.to_others((), wait=minutes(1))
        assert await annotation(world) is None
        task = asyncio.create_task(moving.to_others((), wait=minutes(10)))
        await world.clock.sleep(minutes(2))
        assert await annotation(world) is None
        async with serving(world, CLUSTER_WIDE):
            await task
        assert await annotation(world) == "others"
        assert said[-1] == "1 HPAs are given to others: default/web"
        assert await condition_of(world) != MESSAGE

    play(story)


def test_the_table_distinguishes_a_running_controller_from_a_stopped_one():
    async def story(world, moving, _said):
        (row,) = await moving.rows(asks=False)
        assert row.served_by == CLUSTER_WIDE
        assert row.note == "whether it runs is not known; --probe asks"
        async with serving(world, CLUSTER_WIDE):
            (row,) = await moving.rows(asks=True)
            assert (row.served_by, row.note) == (CLUSTER_WIDE, "it runs")
        (row,) = await moving.rows(asks=True)
        assert (row.served_by, row.note) == ("nobody", "it does not answer")

    play(story)
