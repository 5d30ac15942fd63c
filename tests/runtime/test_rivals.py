"""HPAs that another controller works on are found, named and left alone."""

from __future__ import annotations

import pytest
from tests.cluster.answering import Skewed
from tests.horizontal.running import START, World

from kubetide.embedded.store.request import Options, Request
from kubetide.objects.kinds import HPAS
from kubetide.runtime.clock import run_virtual
from kubetide.runtime.rivals import QUIET, Entry, Rivals, rival_of
from kubetide.units.time import ZERO, after, before, format_rfc3339, minutes, seconds

UPSTREAM = "kube-controller-manager"


def entry(manager=UPSTREAM, *, ago=ZERO, subresource="status"):
    return Entry(manager, "Update", subresource, format_rfc3339(before(START, ago)))


@pytest.mark.parametrize(
    ("entries", "rival"),
    [
        ([], ""),
        ([entry()], UPSTREAM),
        ([entry(ago=QUIET)], UPSTREAM),
        ([entry(ago=QUIET + seconds(1))], ""),
        ([entry("kubetide")], ""),
        ([entry("kubectl", subresource="")], ""),
        ([entry("kubetide"), entry("keda", ago=minutes(1))], "keda"),
        ([Entry("odd", "Update", "status", "yesterday")], ""),
    ],
)
def test_who_else_has_written_the_status_of_late(entries, rival):
    assert rival_of(entries, START) == rival


def write_status(world, manager):
    """Writes an HPA's status under a manager's name, as the API server notes it."""
    options = Options(patch_type="merge", field_manager=manager)
    body = {
        "status": {
            "currentReplicas": 2,
            "desiredReplicas": 3 if manager == UPSTREAM else 4,
            "observedGeneration": world.clock.now(),
        }
    }
    world.cluster.rest.handle(Request("patch", HPAS, "default", "web", "status", options, body))


def test_an_hpa_is_left_alone_as_long_as_the_other_writes_and_taken_on_after():
    """While upstream writes nothing is decided; ten minutes after its last write the loop takes the HPA on."""

    async def story(clock):
        said = []
        world = World(clock, left_alone=lambda: rivals.found)
        # What a client in this process writes without a name is noted so.
        rivals = Rivals(world.cluster, clock, said.append, own="unknown")
        world.usage.milli = 200
        await world.add()
        write_status(world, UPSTREAM)
        await rivals.known()
        assert rivals.found == {("default", "web"): UPSTREAM}
        assert UPSTREAM in said[-1]
        async with world.running():
            await clock.sleep(minutes(2))
            assert await world.replicas() == 2
            assert await world.events() == []
            await clock.sleep(after(QUIET, seconds(1)))
            await rivals.known()
            assert rivals.found == {}
            await clock.sleep(seconds(16))
            assert await world.replicas() == 4
            # And back: the other begins again, and nothing more is decided.
            write_status(world, UPSTREAM)
            await rivals.known()
            world.usage.milli = 400
            await clock.sleep(minutes(2))
            assert await world.replicas() == 4
        assert len(said) == 3

    run_virtual(story, start=START)


@pytest.mark.parametrize("ahead", [minutes(-90), minutes(90)])
def test_a_wrong_clock_hides_no_rival_and_makes_none(ahead):
    """What the API server has stamped is compared with the API server's clock."""

    async def story(clock):
        skewed = Skewed(clock, ahead)
        world = World(clock)
        rivals = Rivals(world.cluster, skewed, [].append, own="unknown", server_now=clock.now)
        await world.add()
        write_status(world, UPSTREAM)
        await rivals.look()
        assert rivals.found == {("default", "web"): UPSTREAM}
        await clock.sleep(after(QUIET, seconds(1)))
        await rivals.look()
        assert rivals.found == {}

    run_virtual(story, start=START)
