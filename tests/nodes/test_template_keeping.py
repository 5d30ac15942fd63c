"""Learned facts about machines outlive the process, in a ConfigMap of their own."""

from __future__ import annotations

import json
import re

import pytest
from tests.nodes.live import START, World, play, replayed

from kubetide.embedded.cloud import GroupSpec, InstanceType
from kubetide.nodes.templates.keeping import CONFIG_MAP, DATA_KEY, read_learned
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.errors import NotFound, Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes

WRONG = InstanceType(
    name="c5d.large",
    cpu_milli=2000,
    memory_bytes=16 << 30,
    catalogue_memory_bytes=4 << 30,
    price_per_hour=0.096,
)
CATALOGUE = {"c5d.large": WRONG}
GROUPS = tuple(GroupSpec(name=name, instance_type="c5d.large", max_size=5) for name in ("a", "b"))


async def stored(world):
    found = await world.cluster.get(CONFIG_MAPS, CONFIG_MAP, namespace="kube-system")
    return found.data[DATA_KEY]


def learned_document():
    """Return what a run leaves in which one machine of the type came up."""
    found = []

    async def story(world):
        await world.deploy("little", replicas=1, cpu="1500m")
        await world.after(minutes(8))
        found.append(await stored(world))

    world = play(story, GROUPS, catalogue=CATALOGUE)
    assert replayed(world) > 10
    return found[0]


def begun_with(text, story, **settings):
    """Run a story in a cluster where an earlier process has left a document."""

    async def main(clock):
        world = World(clock, GROUPS, catalogue=CATALOGUE, **settings)
        body = {"metadata": {"name": CONFIG_MAP, "namespace": "kube-system"}, "data": {DATA_KEY: text}}
        await world.cluster.create(CONFIG_MAPS, body, namespace="kube-system")
        async with world.running():
            await story(world)
        return world

    return run_virtual(main, start=START)


def test_a_new_process_knows_the_machines_of_the_last_one():
    """Both groups of the type at zero take what only the real machines hold, and the records replay."""
    text = learned_document()
    assert list(read_learned(text).types) == ["c5d.large"]

    async def story(world):
        await world.deploy("big", replicas=1, memory="8Gi")
        await world.after(minutes(8))
        assert world.pending == []
        assert await world.events("NotTriggerScaleUp") == []

    assert replayed(begun_with(text, story)) > 10


@pytest.mark.parametrize("text", ["{", '{"types": []}', pytest.param('{"x": ' + "[" * 100_000, id="nested")])
def test_a_broken_document_is_said_once_and_written_anew(text):
    """A document that cannot be read leads to one event that names the object, and newly learned facts are stored."""

    async def story(world):
        await world.deploy("little", replicas=1, cpu="1500m")
        await world.after(minutes(8))
        (said,) = await world.events("LearnedTemplatesUnreadable")
        assert f"ConfigMap kube-system/{CONFIG_MAP}, data.{DATA_KEY} cannot be read" in said
        assert list(read_learned(await stored(world)).types) == ["c5d.large"]

    begun_with(text, story)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"seen_at": 10**25}, "instance type m5: 10000000000000000000000000 ns is no time"),
        ({"seen_at": -1}, "instance type m5: -1 ns is no time"),
        ({"capacity": {"cpu": "-4"}}, "cpu of instance type m5: it is less than 0"),
        ({"capacity": {"cpu": "1e300"}}, "cpu of instance type m5: 1e300 is more than any machine has"),
        ({"capacity": {"memory": 10**400}}, "is more than any machine has"),
        ({"allocatable": {"memory": "2Pi"}}, "memory of instance type m5: 2Pi is more than any machine has"),
        ({"capacity": {"cpu": "0"}}, "cpu of instance type m5: every machine has some"),
        ({"allocatable": {"memory": "much"}}, 'memory of instance type m5: "much" is not a quantity'),
    ],
)
def test_amounts_and_times_that_no_machine_has_make_a_document_unreadable(changes, why):
    """A document edited by hand or damaged is learned anew: it must not fail a later tick, or promise nothing for ever."""
    entry = {"instance_type": "m5", "capacity": {"cpu": "4"}, "seen_at": 1, **changes}
    for whole in ({"types": {"m5": [entry]}}, {"groups": {"a": {"amounts": [entry]}}}):
        with pytest.raises(ValueError, match=re.escape(why)):
            read_learned(json.dumps(whole))


@pytest.mark.parametrize(
    "changes", [{"at": 10**25}, {"took": -1}, {"real": {"cpu": "x"}}, {"errors": {"cpu": 0.5}}]
)
def test_a_join_that_was_never_written_makes_a_document_unreadable(changes):
    """Explanations and series read the last join of a group."""
    join = {"node": "n", "at": 1, "took": 1, **changes}
    with pytest.raises(ValueError, match="node n"):
        read_learned(json.dumps({"groups": {"a": {"joins": 1, "last_join": join}}}))


def test_without_the_flag_nothing_is_persisted():
    """With --templates-by-instance-type=false no object is written."""

    async def story(world):
        await world.deploy("little", replicas=1, cpu="1500m")
        await world.after(minutes(8))
        with pytest.raises(NotFound):
            await stored(world)

    play(story, GROUPS, catalogue=CATALOGUE, templates_by_instance_type=False)


def test_who_only_advises_persists_nothing():
    """A guard that withholds writes leaves no object, and the run goes on."""

    class Closed:
        def refusal(self):
            return "advice only"

    async def story(world):
        await world.after(minutes(3))
        with pytest.raises(NotFound):
            await stored(world)

    small = GroupSpec(name="a", instance_type="c5d.large", min_size=1, max_size=5)
    play(story, (small,), catalogue=CATALOGUE, guard=Closed())


def test_nothing_is_written_before_the_earlier_document_was_read():
    """While the API server does not give out the ConfigMap it is not written over; afterwards both are one."""
    text = learned_document().replace('"c5d.large"', '"m9.huge"')

    class Silent:
        """Does not answer for the ConfigMap for ten minutes."""

        def __init__(self, cluster):
            self._cluster, self.silent = cluster, True

        def __getattr__(self, name):
            return getattr(self._cluster, name)

        async def get(self, kind, name, **where):
            if self.silent and name == CONFIG_MAP:
                raise Unavailable("etcd is slow")
            return await self._cluster.get(kind, name, **where)

    found = []

    def wrap(cluster):
        found.append(Silent(cluster))
        return found[0]

    async def story(world):
        await world.deploy("little", replicas=1, cpu="1500m")
        await world.after(minutes(8))
        assert await stored(world) == text
        found[0].silent = False
        await world.after(minutes(1))
        assert sorted(read_learned(await stored(world)).types) == ["c5d.large", "m9.huge"]

    begun_with(text, story, wrap=wrap)
