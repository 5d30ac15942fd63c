"""What a service tells people: missing rights, what fails for a while, and its end, each once."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.horizontal.running import START, World
from tests.runtime.services import service_of
from tests.tasks import stop
from tests.vertical.custom_kinds import definition

from kubetide.elastic.definitions import definitions
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.nodes.capacity.definitions import definitions as capacity_definitions
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    ELASTIC_WORKLOADS,
    EVENTS,
    NODES,
    STORED_KINDS,
    VPA_CHECKPOINTS,
    VPAS,
)
from kubetide.ports.cloud import Cloud, NodeGroup
from kubetide.ports.errors import CloudError, Forbidden, NotFound, Unavailable
from kubetide.runtime.needed_kinds import DEFINED_GROUPS
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing.builders import node
from kubetide.units.time import minutes, seconds
from kubetide.vertical.definitions import definitions as vpa_definitions


class Unwritable(EmbeddedCluster):
    """Lets nobody write a scale while ``refuses``."""

    refuses = True

    async def replace_scale(self, kind, name, replicas, **more):
        if not self.refuses:
            return await super().replace_scale(kind, name, replicas, **more)
        raise Forbidden(
            f'{kind.resource} "{name}" is forbidden: User "u" cannot update resource "{kind.plural}/scale" '
            f'in API group "{kind.group}" in the namespace "default"'
        )


def test_a_refused_write_is_told_once_with_who_grants_it():
    """Two workloads that cannot be scaled for an hour are one line: the right is the same. A right that is lost again is a new one."""

    async def main(clock):
        world, said = World(clock), []
        cluster = world.cluster = Unwritable(world.cluster.rest.store, clock, seed=1)
        await world.add(replicas=2)
        await world.add("other", replicas=2)
        world.usage.milli = 400
        task = asyncio.create_task(service_of(clock, cluster, said, world.usage).run())
        await clock.sleep(minutes(60))
        cluster.refuses = False
        await clock.sleep(minutes(90))
        assert len(said) == 1
        cluster.refuses = True
        world.usage.milli = 20
        await clock.sleep(minutes(30))
        await stop(task)
        return said

    said = run_virtual(main, start=START)
    assert len(said) == 2
    for sentence in said:
        assert sentence.startswith('a request was refused: deployments.apps "')
        assert sentence.endswith('"default"; ClusterRole kubetide-horizontal of deploy/ grants it')


class NoAnswer(EmbeddedCluster):
    """An API server that fails what it is asked about one ConfigMap, for a reason that no right mends."""

    stuck, refused = "", frozenset()

    def _ask(self, name, verb):
        if name == self.stuck and verb in self.refused:
            raise Unavailable("etcdserver: request timed out")

    async def get(self, kind, name, **where):
        self._ask(name, "get")
        return await super().get(kind, name, **where)

    async def create(self, kind, body, **where):
        self._ask(body["metadata"].get("name"), "create")
        return await super().create(kind, body, **where)


@pytest.mark.parametrize(
    ("stuck", "refused", "problem"),
    [
        (
            "cluster-autoscaler-status",
            "create",
            "cannot be written: etcdserver: request timed out; the status in it is",
        ),
        (
            "kubetide-node-templates",
            "create",
            "cannot be written: etcdserver: request timed out; what was learned",
        ),
        (
            "kubetide-node-templates",
            "get",
            "cannot be read: etcdserver: request timed out; what earlier processes",
        ),
        (
            "cluster-autoscaler-priority-expander",
            "get",
            "cannot be read: etcdserver: request timed out; the priorities",
        ),
    ],
)
def test_a_config_map_that_fails_is_told_once_and_so_is_its_end(stuck, refused, problem):
    """An old status, facts that a restart loses, priorities that do not follow: nobody would know; the loop itself goes on."""

    class Full(Cloud):
        name, gpu_label = "full", ""

        async def refresh(self):
            return [NodeGroup(id="g", min_size=0, max_size=3, target_size=0, template_error="not known")]

    async def main(clock):
        world, said = World(clock), []
        cluster = world.cluster = NoAnswer(world.cluster.rest.store, clock, seed=1)
        cluster.stuck, cluster.refused = stuck, {refused}
        await cluster.create(
            NODES.untyped, node("n1", labels={"node.kubernetes.io/instance-type": "m5.xlarge"})
        )
        flags = {"controllers": "nodes", "cloud-provider": "full:cloud", "expander": "priority", "act": True}
        service = service_of(clock, cluster, said, world.usage, cloud=Full(), **flags)
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(5))
        cluster.stuck = ""
        await clock.sleep(minutes(1))
        await stop(task)
        return said

    failed, end = run_virtual(main, start=START)
    assert failed.startswith(f"ConfigMap kube-system/{stuck} {problem}")
    assert end == f"ConfigMap {stuck} can be read and written again"


class Undefined(EmbeddedCluster):
    """Serves no watch for long; kinds in ``gone`` are served no more."""

    gone: tuple = ()

    async def watch(self, kind, **where):
        if kind in self.gone:
            raise NotFound("the server could not find the requested resource")
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                async for batch in super().watch(kind, **where):
                    yield batch


def test_a_kind_that_is_not_served_is_said_with_who_needs_it():
    """Before and after it is there; only a loop that cannot do without it makes the process not ready."""

    async def main(clock):
        said, ready = [], []
        cluster = Undefined(Store((*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS)), clock, seed=1)
        service = service_of(clock, cluster, said, controllers="recommender,elastic")
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(3))
        ready.append(service.not_ready())
        for body in (definition(VPAS), definition(VPA_CHECKPOINTS), *definitions()):
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        await clock.sleep(minutes(3))
        for gone in (ELASTIC_WORKLOADS, VPAS):
            cluster.gone = (*cluster.gone, gone)
            await clock.sleep(minutes(3))
            ready.append(service.not_ready())
        await stop(task)
        return said, ready

    said, ready = run_virtual(main, start=START)
    workloads, vpas, checkpoints = ELASTIC_WORKLOADS.resource, VPAS.resource, VPA_CHECKPOINTS.resource
    why = "the server could not find the requested resource"
    goes_by = "by what was last read of them"
    fix = "`kubetide install crds --apply` installs their definitions"
    without = f"the recommender loop cannot work without them; {fix}"
    assert f"cannot read {vpas} and {checkpoints}: {why}; {without}" in said
    assert f"cannot read {workloads}: {why}; the elastic loop goes on without them" in said
    assert said[-2:] == [
        f"cannot read {workloads}: {why}; until then the elastic loop goes {goes_by}",
        f"cannot read {vpas}: {why}; until then the loops recommender and elastic go {goes_by}",
    ]
    assert ready == [f"no first list yet of {checkpoints}, {vpas}", "", f"cannot read {vpas}: {why}"]


class Failing(Cloud):
    """Has a group of no machines, and refuses to say so while ``error`` is set; ``%`` in it is another number each time."""

    name, gpu_label = "failing", ""

    def __init__(self):
        self.error, self.calls = "", 0

    async def refresh(self):
        self.calls += 1
        if self.error:
            raise CloudError(self.error.replace("%", f"{self.calls:012d}"))
        return [NodeGroup(id="g", min_size=0, max_size=3, target_size=0, template_error="not known")]


def test_each_time_that_ticks_fail_is_said_once_and_so_is_its_end():
    """Also the second time by the same error; ids of requests make no cause another one, nor does a good tick in between."""

    async def main(clock):
        world, said, cloud = World(clock), [], Failing()
        flags = {"controllers": "nodes", "cloud-provider": "failing:cloud"}
        service = service_of(clock, world.cluster, said, world.usage, cloud=cloud, **flags)
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(1))
        for errors in (("away",), ("away", "", "away"), ("refused; request id %", "quota")):
            for error in errors:
                cloud.error = error
                await clock.sleep(seconds(30) if not error else minutes(5))
            cloud.error = ""
            await clock.sleep(minutes(5))
        await stop(task)
        return said

    failed, well = "a tick of the nodes loop failed:", "ticks of the nodes loop end well again"
    first, *others = run_virtual(main, start=START)
    assert first == f"{failed} away"
    assert others[:3] == [well, f"{failed} away", well]
    assert others[3].startswith(f"{failed} refused; request id 0")
    assert others[4:] == [f"{failed} quota", well]


def test_the_end_waits_for_no_server_that_says_nothing():
    """The status ConfigMap is deleted at the end: where that is not answered, the process must not be killed."""

    class Silent(EmbeddedCluster):
        async def delete(self, kind, name, **where):
            del kind, name, where
            await asyncio.Event().wait()

    async def main(clock):
        world, said = World(clock), []
        cluster = Silent(world.cluster.rest.store, clock, seed=1)
        flags = {"controllers": "nodes", "cloud-provider": "failing:cloud"}
        service = service_of(clock, cluster, said, world.usage, cloud=Failing(), **flags)
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(1))
        begun = clock.monotonic()
        await stop(task)
        return clock.monotonic() - begun

    assert run_virtual(main, start=START) <= seconds(10)


def test_a_cloud_without_groups_is_named_once_and_so_is_its_end():
    """A wrong tag looks like a cluster that needs no nodes: nothing comes, and nothing fails."""

    class Bare(Cloud):
        name, gpu_label, groups = "bare", "", ()

        async def refresh(self):
            return self.groups

    async def main(clock):
        world, said, cloud = World(clock), [], Bare()
        flags = {"controllers": "nodes", "cloud-provider": "bare:cloud"}
        service = service_of(clock, world.cluster, said, world.usage, cloud=cloud, **flags)
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(5))
        cloud.groups = [NodeGroup(id="g", min_size=0, max_size=3, target_size=0, template_error="not known")]
        await clock.sleep(minutes(1))
        await stop(task)
        return said

    missing, end = run_virtual(main, start=START)
    assert missing.startswith("the cloud has no node groups; check what names or finds them, such as --nodes")
    assert end == "there are node groups now"


def test_events_name_the_program_that_wrote_them():
    """Source and component are upstream's, for scripts that look for them; the instance says that it was ours."""

    async def main(clock):
        world = World(clock)
        await world.add(replicas=2)
        world.usage.milli = 400
        async with world.running():
            await clock.sleep(seconds(20))
        return (await world.cluster.list(EVENTS.untyped)).items

    (event,) = run_virtual(main, start=START)
    assert event["source"] == {"component": "horizontal-pod-autoscaler"}
    assert (event["reportingComponent"], event["reportingInstance"]) == (
        "horizontal-pod-autoscaler",
        "kubetide",
    )


def test_an_object_that_cannot_be_read_is_named():
    """Which VPA, which field, what to do; nothing else stops, and the end is said too."""

    async def main(clock):
        said = []
        cluster = EmbeddedCluster(Store((*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS)), clock, seed=1)
        for kind in (VPAS, VPA_CHECKPOINTS):
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(kind))
        body = {"metadata": {"name": "shop"}, "spec": {"updatePolicy": {"minReplicas": "two"}}}
        await cluster.create(VPAS.untyped, body, namespace="default")
        service = service_of(clock, cluster, said, controllers="recommender")
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(3))
        assert (service.not_ready(), service.not_alive(), service.health_check()) == ("", "", "")
        patch = {"spec": {"updatePolicy": {"minReplicas": 2}}}
        await cluster.patch(VPAS.untyped, "shop", patch, namespace="default")
        await clock.sleep(minutes(3))
        await stop(task)
        return [one for one in said if "VerticalPodAutoscaler" in one]

    assert run_virtual(main, start=START) == [
        (
            "VerticalPodAutoscaler default/shop cannot be read: spec.updatePolicy.minReplicas: expected int | null, "
            "got str; mend the field: until then what was last read of it holds, if anything was"
        ),
        "VerticalPodAutoscaler default/shop can be read again, or is gone",
    ]


def test_the_kinds_that_can_be_installed_are_those_with_a_definition_here():
    """The hint names a command that helps."""
    every = (*vpa_definitions(), *capacity_definitions(), *definitions())
    assert {one["spec"]["group"] for one in every} == DEFINED_GROUPS
