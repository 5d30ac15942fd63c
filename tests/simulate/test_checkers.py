"""The checkers of a run: each finds a planted violation and is silent on the right thing."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.objects.kinds import DAEMON_SETS, DEPLOYMENTS, NODES, PDBS, PODS, PRIORITY_CLASSES, REPLICA_SETS
from kubetide.ports.cloud import NodeGroup
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.outcome.checkers import Checkers, unsettled
from kubetide.units.time import minutes, parse_rfc3339, seconds
from kubetide.watching import Informer

OWNER = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web"}]},
        },
    },
}

START = parse_rfc3339("2026-03-02T00:00:00Z")


GROUP = NodeGroup(id="general", min_size=1, max_size=3, target_size=2)


class Town:
    """A cluster that is written by hand, and the checkers that watch it."""

    def __init__(self, clock):
        self.clock = clock
        self.cluster = EmbeddedCluster(Store(), clock)
        self.pods = Informer(self.cluster, PODS, clock)
        self.nodes = Informer(self.cluster, NODES, clock)
        self.deployments = Informer(self.cluster, DEPLOYMENTS, clock)
        self.pdbs = Informer(self.cluster, PDBS, clock)
        self.checkers = Checkers(
            clock=clock,
            pods=self.pods,
            nodes=self.nodes,
            deployments=self.deployments,
            pdbs=self.pdbs,
        )

    async def pod(self, name, *, ready=True, node="n1", owner=None, priority=None):
        meta = {"name": name, "labels": {"app": "web"}}
        if owner:
            made = await self.cluster.create(owner, OWNER, namespace="default")
            ref = {"apiVersion": "apps/v1", "kind": owner.kind, "name": "web", "uid": made.metadata.uid}
            meta["ownerReferences"] = [{**ref, "controller": True}]
        body = {"metadata": meta, "spec": {"containers": [{"name": "main", "image": "web"}]}}
        if priority is not None:
            graded = {"metadata": {"name": "graded"}, "value": priority}
            await self.cluster.create(PRIORITY_CLASSES, graded)
            body["spec"]["priorityClassName"] = "graded"
        await self.cluster.create(PODS, body, namespace="default")
        if node:
            await self.cluster.bind(namespace="default", pod=name, node=node)
            await self.status(name, [{"type": "Ready", "status": "True" if ready else "False"}], "Running")

    async def status(self, name, conditions, phase="Running"):
        status = {"status": {"phase": phase, "conditions": conditions}}
        await self.cluster.patch(PODS, name, status, namespace="default", subresource="status")

    async def mark_evicted(self, name, reason="EvictionByEvictionAPI"):
        """Write what an eviction leaves, with no budget asked."""
        target = {"type": "DisruptionTarget", "status": "True", "reason": reason}
        await self.status(name, [{"type": "Ready", "status": "True"}, target])

    async def deployment(self, replicas):
        body = {**OWNER, "spec": {**OWNER["spec"], "replicas": replicas}}
        await self.cluster.create(DEPLOYMENTS, body, namespace="default")

    async def budget(self, **spec):
        body = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
        await self.cluster.create(PDBS, body, namespace="default")

    def unsettled(self):
        return unsettled(
            pods=self.pods.objects, deployments=self.deployments.objects, nodes=self.nodes.objects.values()
        )


def in_town(story):
    """Run a story in virtual time and return the violations, without the time before each."""

    async def main(clock):
        town = Town(clock)
        informers = (town.pods, town.nodes, town.deployments, town.pdbs)
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        for informer in informers:
            await informer.synced()
        await story(town)
        await clock.sleep(seconds(6))
        for task in tasks:
            task.cancel()
        return [text.split(" ", 1)[1] for text in town.checkers.violations]

    return run_virtual(main, start=START)


@pytest.mark.parametrize(("target", "found"), [(0, 1), (1, 0), (3, 0), (4, 1)])
def test_a_target_outside_its_bounds_is_found(target, found):
    """A target size below min or above max is reported at each change; the bounds themselves are allowed."""

    async def story(town):
        town.checkers.groups_changed((GROUP,))
        town.checkers.groups_changed((msgspec.structs.replace(GROUP, target_size=target),))

    violations = in_town(story)
    assert violations == [f"node group general: target size {target} is outside 1 to 3"] * found


def test_a_run_checks_its_groups_whenever_they_change():
    """What calls of the loops, and machines that come and go, do to the sizes of groups is looked at at once."""
    seen = []

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        cloud = EmbeddedCloud(
            cluster, clock, seed=1, groups=[GroupSpec(name="a", instance_type="m5.large", max_size=3)]
        )
        cloud.on_change(lambda groups: seen.append([group.target_size for group in groups]))
        running = asyncio.create_task(cloud.run())
        await cloud.start()
        await cloud.increase_size("a", 2)
        await clock.sleep(minutes(10))
        [group] = await cloud.refresh()
        await cloud.delete_nodes("a", [group.instances[0].provider_id])
        running.cancel()

    run_virtual(main, start=START)
    assert seen[0] == [0]
    assert seen[1] == [2]
    assert seen[-1] == [1]


def test_no_more_than_a_hundred_are_stored():
    """A run that breaks a rule again and again does not fill the memory."""

    async def story(town):
        for _ in range(200):
            town.checkers.groups_changed((msgspec.structs.replace(GROUP, target_size=9),))

    assert len(in_town(story)) == 100


BUDGETS = [
    ({"minAvailable": 2}, 3, 3, False),
    ({"minAvailable": 3}, 3, 3, True),
    ({"minAvailable": "60%"}, 3, 3, False),
    ({"minAvailable": "67%"}, 3, 3, True),
    ({"maxUnavailable": 1}, 3, 3, False),
    ({"maxUnavailable": 1}, 4, 3, True),
    ({"maxUnavailable": 0}, 3, 3, True),
    ({"maxUnavailable": "34%"}, 4, 3, False),
    ({"maxUnavailable": "25%"}, 4, 3, True),
]


@pytest.mark.parametrize(("spec", "replicas", "pods", "broken"), BUDGETS)
def test_an_eviction_that_breaks_a_budget_is_found(spec, replicas, pods, broken):
    """An eviction that leaves fewer ready pods than the budget needs is reported; one that leaves just enough is not."""

    async def story(town):
        await town.deployment(replicas)
        await town.budget(**spec)
        for number in range(pods):
            await town.pod(f"p{number}")
        await town.clock.sleep(seconds(1))
        await town.mark_evicted("p0")

    violations = in_town(story)
    assert len(violations) == int(broken)
    assert all("pod default/p0 was evicted though the disruption budget web needs" in v for v in violations)


@pytest.mark.parametrize(
    ("ready", "reason"), [(False, "EvictionByEvictionAPI"), (True, "PreemptionByScheduler")]
)
def test_what_no_budget_guards_is_not_reported(ready, reason):
    """A pod that was not ready, and a pod that was not evicted by the API, break no budget."""

    async def story(town):
        await town.deployment(1)
        await town.budget(minAvailable=1)
        await town.pod("p", ready=ready)
        await town.clock.sleep(seconds(1))
        await town.mark_evicted("p", reason)

    assert in_town(story) == []


def test_a_budget_of_another_namespace_or_selector_does_not_count():
    """Only budgets that select the pod are asked."""

    async def story(town):
        await town.deployment(1)
        body = {
            "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1},
        }
        await town.cluster.create(PDBS, body, namespace="default")
        await town.pod("p")
        await town.clock.sleep(seconds(1))
        await town.mark_evicted("p")

    assert in_town(story) == []


LOSSES = [
    ({}, True),
    ({"node": ""}, False),
    ({"owner": DAEMON_SETS}, False),
    ({"owner": REPLICA_SETS}, True),
    ({"priority": -11}, False),
    ({"priority": -10}, True),
]


@pytest.mark.parametrize(("pod", "lost"), LOSSES)
def test_a_pod_that_vanishes_from_its_node_is_found(pod, lost):
    """A bound pod that goes without having been asked to is lost; a pending one, a DaemonSet's and an expendable one are not."""

    async def story(town):
        await town.pod("p", **pod)
        await town.clock.sleep(seconds(1))
        await town.cluster.delete(PODS, "p", namespace="default", grace_period_s=0)

    violations = in_town(story)
    assert violations == (["pod default/p was lost with its node n1, not deleted gracefully"] if lost else [])


def test_a_pod_that_was_asked_to_go_or_has_ended_is_not_lost():
    """Deletion with grace first, or a pod that has succeeded, is how pods may go."""

    async def story(town):
        await town.pod("p")
        await town.pod("job")
        await town.status("job", [], "Succeeded")
        await town.clock.sleep(seconds(1))
        await town.cluster.delete(PODS, "p", namespace="default")
        await town.clock.sleep(seconds(1))
        for name in ("p", "job"):
            await town.cluster.delete(PODS, name, namespace="default", grace_period_s=0)

    assert in_town(story) == []


def test_what_has_not_come_to_rest_is_reported():
    """A pod without a node, a Deployment short of pods and a node marked for deletion are unsettled."""
    reported = {}

    async def story(town):
        await town.clock.sleep(seconds(1))
        reported["nothing"] = town.unsettled()
        await town.pod("waiting", node="")
        await town.deployment(2)
        taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
        await town.cluster.create(NODES, {"metadata": {"name": "n1"}, "spec": {"taints": [taint]}})
        await town.cluster.create(NODES, {"metadata": {"name": "n2"}})
        await town.clock.sleep(seconds(1))
        reported["all"] = town.unsettled()
        status = {"status": {"replicas": 2, "readyReplicas": 2}}
        await town.cluster.patch(DEPLOYMENTS, "web", status, namespace="default", subresource="status")
        await town.cluster.patch(NODES, "n1", {"spec": {"taints": None}})
        await town.cluster.bind(namespace="default", pod="waiting", node="n2")
        await town.clock.sleep(seconds(1))
        reported["later"] = town.unsettled()

    assert in_town(story) == []
    assert reported == {
        "nothing": [],
        "all": [
            "pod default/waiting has no node",
            "deployment default/web wants 2 pods, has 0, 0 ready",
            "node n1 is still marked for deletion",
        ],
        "later": [],
    }
