"""Claims for devices on a real control plane: nodes are bought for them, drained and given back, by ``kubetide run --act``.

Kubernetes' own scheduler gives the devices; its own controllers make claims from templates and take devices back.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import yaml
from click.testing import CliRunner
from tests.plane.gpu_driver import DEVICES, DRIVER, GROUP, RESOURCE, gpu_driver, promised
from tests.plane.towns import ACCOUNT, MEDIUM, SOON, kubetide_run, requests_of, together, town

from kubetide.cli.main import cli
from kubetide.embedded.cloud import GroupSpec
from kubetide.embedded.cloud.groups import GROUP_LABEL
from kubetide.embedded.draws import Between, fixed
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import milliseconds, seconds
from kubetide.watching import Informer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("roles_of_the_chart")]

GPUS = GroupSpec(
    name=GROUP,
    instance_type="m5.xlarge",
    max_size=4,
    boot=Between(seconds(1), seconds(2)),
    ready=fixed(milliseconds(500)),
    shutdown=fixed(milliseconds(500)),
)
FLAGS = ("--act", "--controllers=nodes", *SOON)


def wanting(count):
    """The spec of a claim for that many devices."""
    return {
        "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}]}
    }


def using(**source):
    """The part of a pod's spec by which it uses a claim."""
    return {"spec": {"resourceClaims": [{"name": "gpu", **source}]}}


class Site:
    """A town with claims; its group of nodes with devices is empty at first.

    Attributes:
        driver: Publishes the devices of its nodes.
        claims, slices: Up-to-date caches of all of them.
    """

    def __init__(self, place, driver, claims, slices):
        self.place, self.driver, self.claims, self.slices = place, driver, claims, slices

    async def create(self, kind, body):
        await self.place.cluster.create(kind, body, namespace=self.place.home)

    async def claim(self, name, count):
        await self.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": wanting(count)})

    async def deploy(self, name, replicas, **source):
        template = {"spec": {"template": using(**source)}}
        await self.create(DEPLOYMENTS, builders.deployment(name, replicas=replicas, extra=template))

    async def scale(self, name, replicas):
        await self.place.cluster.replace_scale(DEPLOYMENTS, name, replicas, namespace=self.place.home)

    def given(self):
        """Node and device of each claim that has some, the last one of several."""
        return dict(self._results())

    def taken(self):
        """Nodes and devices of all claims."""
        return [one for _, one in self._results()]

    def _results(self):
        for (_, name), claim in self.claims.objects.items():
            given = claim.status.allocation
            for one in () if given is None else given.devices.results or ():
                yield name, (one.pool, one.device)

    def nodes(self):
        """Those with devices, in order of name."""
        nodes = self.place.nodes.objects.values()
        return sorted(
            one.metadata.name for one in nodes if (one.metadata.labels or {}).get(GROUP_LABEL) == GROUP
        )

    def settled(self, *, own, pair, nodes):
        """Whether that many pods run, on that many nodes with devices, and no machine comes or goes."""
        counts = self.place.cloud.counts()[GROUP]
        there = len(self.place.running("own")), len(self.place.running("pair")), len(self.nodes())
        return there == (own, pair, nodes) and (counts.creating, counts.deleting) == (0, 0)

    async def looks(self, more):
        """Wait until the loop has read the cloud that many times more."""
        ledger = self.place.ledger
        enough = ledger.looks + more
        await self.place.until("the loop has gone on", lambda: ledger.looks >= enough)

    async def awaited(self):
        """How many nodes have registered and are not ready for the loop; Kubernetes says that all are Ready."""
        try:
            found = await self.place.cluster.get(
                CONFIG_MAPS, "cluster-autoscaler-status", namespace="kube-system"
            )
        except NotFound:
            return 0
        groups = yaml.safe_load(found.data["status"])["nodeGroups"]
        counts = {one["name"]: one["health"]["nodeCounts"]["registered"] for one in groups}
        return counts[GROUP]["notStarted"]

    async def until_awaited(self, count):
        deadline = self.place.deadline()
        while (found := await self.awaited()) != count:
            assert self.place.clock.monotonic() < deadline, f"{found} nodes are awaited\n{self.place}"
            await self.place.pause()

    async def reported(self, pod):
        """Why no node is bought for a pod."""
        events = (await self.place.cluster.list(EVENTS, namespace=self.place.home)).items
        of_pod = [one for one in events if one.involved_object.name == pod]
        return {one.message for one in of_pod if one.reason == "NotTriggerScaleUp"}


@asynccontextmanager
async def site(plane, clock, folder):
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(town(plane, clock, folder, MEDIUM, GPUS, reported=promised))
        driver = await stack.enter_async_context(gpu_driver(place))
        claims, slices = (Informer(place.cluster, kind, clock) for kind in (RESOURCE_CLAIMS, RESOURCE_SLICES))
        await together(stack, [claims.run(), slices.run()])
        await claims.synced()
        await slices.synced()
        here = Site(place, driver, claims, slices)
        template = {"metadata": {"name": "one"}, "spec": {"spec": wanting(1)}}
        await here.create(RESOURCE_CLAIM_TEMPLATES, template)
        yield here


async def come(here):
    """Seven devices are requested and a node has four, but late, and one after the other: two nodes are bought, and no more."""
    place = here.place
    await here.claim("shared", 1)
    await here.claim("too-many", DEVICES + 1)
    await here.deploy("own", 6, resourceClaimTemplateName="one")
    await here.deploy("pair", 2, resourceClaimName="shared")
    await here.create(PODS, builders.pod("greedy", extra=using(resourceClaimName="too-many")))
    await place.until("the driver runs on two", lambda: len(place.running("gpu-driver")) == 2)
    await here.until_awaited(2)
    await here.looks(3)
    here.driver.may_begin.set()
    most = 2 * (DEVICES - 1)
    await place.until("most devices are there", lambda: len(here.slices.objects) == most)
    await here.looks(3)
    assert await here.awaited() == 2
    here.driver.may_end.set()
    await place.until("all pods run", lambda: here.settled(own=6, pair=2, nodes=2))
    await here.until_awaited(0)
    assert (place.ledger.increased(GROUP), place.ledger.increased("medium")) == (2, 0)
    given = here.given()
    assert len(given) == len(set(given.values())) == 7
    shared = here.claims.objects[place.home, "shared"]
    pair = {pod.metadata.name for pod in place.running("pair")}
    assert {one.name for one in shared.status.reserved_for} == pair
    (reported,) = await here.reported("greedy")
    assert reported == "pod didn't trigger scale-up: 2 cannot allocate all claims"


async def move(here):
    """Half of the devices of both nodes are in use, and one may go: a pod with its own claim moves, and two that share one."""
    place = here.place
    (going,) = {pod.spec.node_name for pod in place.running("pair")}
    (staying,) = {*here.nodes()} - {going}
    own = {
        node: [pod.metadata.name for pod in place.running("own") if pod.spec.node_name == node]
        for node in here.nodes()
    }
    costly = {"controller.kubernetes.io/pod-deletion-cost": "1000"}
    unsafe = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    for name, marks in (
        (own[going][0], costly),
        (own[staying][0], costly | unsafe),
        (own[staying][1], costly | unsafe),
    ):
        patch = {"metadata": {"annotations": marks}}
        await place.cluster.patch(PODS, name, patch, namespace=place.home)
    # Who deletes pods receives the marks apart from the number.
    await here.looks(2)
    await here.scale("own", 3)
    await place.until("one node will do", lambda: here.settled(own=3, pair=2, nodes=1))
    assert here.nodes() == [staying]
    assert {node for node, _ in here.given().values()} == {staying}
    assert place.ledger.increased(GROUP) == 2
    await place.until("slices go with their node", lambda: len(here.slices.objects) == DEVICES)


async def go(here):
    """The last pods go; a claim that nobody uses has a device of the last node, and does not hold it."""
    place = here.place
    await here.scale("own", 0)
    await place.until("a device is free", lambda: set(here.given()) == {"shared"})
    (node,) = here.nodes()
    device = "gpu-0" if here.given()["shared"][1] != "gpu-0" else "gpu-1"
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    await here.claim("kept", 1)
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [only]}}
    status = {"status": {"allocation": allocation}}
    await place.cluster.patch(RESOURCE_CLAIMS, "kept", status, namespace=place.home, subresource="status")
    await here.scale("pair", 0)
    await place.until("no node is left", lambda: here.settled(own=0, pair=0, nodes=0))
    assert set(here.given()) == {"kept"}
    await place.until("no slice is left", lambda: not here.slices.objects)


async def come_back(here):
    """The device of a claim is deleted with its node: the scheduler deallocates it, and a node is bought for the claim.

    Beside it a pod requests the class as an extended resource of the node.
    """
    place = here.place
    asks = {"requests": {RESOURCE: "2"}, "limits": {RESOURCE: "2"}}
    plain = {"spec": {"containers": [{"name": "app", "image": "registry.test/app:1", "resources": asks}]}}
    await here.create(
        PODS, builders.pod("late", labels={"app": "late"}, extra=using(resourceClaimName="kept"))
    )
    await here.create(PODS, builders.pod("plain", labels={"app": "plain"}, extra=plain))
    await place.until("both run", lambda: len(place.running("late") + place.running("plain")) == 2)
    assert place.ledger.increased(GROUP) == 3
    (node,) = here.nodes()
    assert [where for where, _ in here.taken()] == [node] * 3
    for name in ("late", "plain"):
        await place.cluster.delete(PODS, name, namespace=place.home)
    await place.until("no node is left", lambda: here.settled(own=0, pair=0, nodes=0))
    await place.until("no device is taken", lambda: not here.taken())


def test_nodes_come_and_go_with_claims(audited, tmp_path):
    """As many nodes as the requested devices take, and no longer than they are requested; with the shipped roles.

    One test, as each of its steps begins with what the one before has left.
    """
    before = len(requests_of(audited, ACCOUNT))

    async def run(clock):
        async with site(audited, clock, tmp_path) as here:
            async with kubetide_run(here.place, ACCOUNT, *FLAGS):
                for step in (come, move, go, come_back):
                    await step(here)
            assert here.place.ledger.refused == []
            assert here.place.ledger.deleted("medium") == []
            assert len(set(here.place.ledger.deleted(GROUP))) == 3
            return here.place.home

    home = run_real(run)
    made = requests_of(audited, ACCOUNT)[before:]
    assert [one for one in made if one.code in {403, 422}] == []
    writes = {(one.verb, one.resource) for one in made if one.verb not in {"get", "list", "watch"}}
    # An event that comes again after five minutes is patched.
    assert writes - {("patch", "events")} == WRITES
    evicted = [one.name for one in made if one.resource == "pods/eviction" and one.code < 300]
    assert sorted(name.rpartition("-")[0].partition("-")[0] for name in evicted) == [
        "gpu",
        "own",
        "pair",
        "pair",
    ]
    folder = str(tmp_path / "kubetide")
    reported = kubetide("explain", "pod", "greedy", "--namespace", home, "--out", folder)
    assert f"{home}/too-many, request gpu: wants 5 devices, 4 match, 4 of them free" in reported
    assert "decided again, all bytes equal" in kubetide("replay", folder)


WRITES = {
    ("create", "configmaps"),
    ("create", "events"),
    ("create", "leases"),
    ("create", "pods/eviction"),
    ("delete", "configmaps"),
    ("update", "configmaps"),
    ("update", "leases"),
    ("update", "nodes"),
}


def kubetide(*arguments):
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    return done.output
