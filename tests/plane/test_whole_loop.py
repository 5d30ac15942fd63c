"""The whole loop on a real control plane: load, replicas, nodes, and back, by ``kubetide run --act``."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest
import yaml
from tests.plane.towns import (
    ACCOUNT,
    CRON_TABS,
    MEDIUM,
    ROOT,
    SOON,
    cron_tabs,
    kubetide_run,
    requests_of,
    town,
)

from kubetide.objects.kinds import DEPLOYMENTS, HPAS, LEASES, PDBS, PODS
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import between, parse_rfc3339, to_seconds

pytestmark = pytest.mark.slow

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
TAB = "my-new-cron-object"

BOTH = (
    "--controllers=horizontal,nodes",
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=2s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
    *SOON,
)
AT_ONCE = {"policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]}
LEASE_S = 6
LEASE_TIMES = (
    f"--leader-elect-lease-duration={LEASE_S}s",
    "--leader-elect-renew-deadline=5s",
    "--leader-elect-retry-period=500ms",
)


@asynccontextmanager
async def shop(audited, clock, folder):
    """A town with a Deployment (3 to 12 pods of 0.3 cores, at most one missing) and a CronTab (0.5 cores), both with HPAs."""
    async with town(audited, clock, folder, MEDIUM) as place, cron_tabs(place):
        cluster, home = place.cluster, place.home
        place.fewest = 12
        tab = yaml.safe_load((ROOT / "examples/crontab/crontab.yaml").read_text())
        await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=3, cpu="300m"), namespace=home)
        await cluster.create(PDBS, builders.pdb("web", {"app": "web"}, max_unavailable=1), namespace=home)
        await cluster.create(CRON_TABS, tab, namespace=home)
        await place.until(
            "three and one run", lambda: len(place.running("web")) == 3 and len(place.running(TAB)) == 1
        )
        place.pods.on_change(
            lambda *_: setattr(place, "fewest", min(place.fewest, len(place.running("web"))))
        )
        target = {"apiVersion": CRON_TABS.api_version, "kind": CRON_TABS.kind, "name": TAB}
        quick = {"spec": {"behavior": {"scaleUp": AT_ONCE, "scaleDown": AT_ONCE}}}
        web = builders.hpa("web", "web", min_replicas=3, max_replicas=12, extra=quick)
        tabs = builders.hpa("tabs", TAB, extra={"spec": {**quick["spec"], "scaleTargetRef": target}})
        place.load.set("web", 300)
        place.load.set(TAB, 100)
        for body in (web, tabs):
            await cluster.create(HPAS, body, namespace=home)
        yield place


def settled(place, *, web, tabs, nodes=None):
    """Whether that many pods run, nothing else does, and every machine is a node."""
    counts = place.cloud.counts()["medium"]
    there = len(place.nodes.objects)
    return (
        (len(place.running("web")), len(place.running(TAB)), len(place.pods.objects))
        == (web, tabs, web + tabs)
        and (counts.creating, counts.deleting, counts.running) == (0, 0, there)
        and nodes in {None, there}
    )


async def load_up(place):
    """6.0 cores are in demand where there were 1.4."""
    place.load.set("web", 1700)
    place.load.set(TAB, 900)
    await place.until("all the pods run", lambda: settled(place, web=12, tabs=4))


async def load_down(place):
    """The demand is as at first; the pods that stay are on several nodes, so that some must be drained."""
    patch = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "1000"}}}
    for pods in by_node(place.running("web"))[:3]:
        await place.cluster.patch(PODS, pods[0].metadata.name, patch, namespace=place.home)
    place.load.set("web", 300)
    place.load.set(TAB, 100)
    await place.until("what is left fits on one node", lambda: settled(place, web=3, tabs=1, nodes=1))


def by_node(pods):
    """The pods of each node."""
    nodes = sorted({pod.spec.node_name for pod in pods})
    return [[pod for pod in pods if pod.spec.node_name == node] for node in nodes]


async def check(place, user):
    """Whether every action was taken once, and nothing is left behind."""
    ledger = place.ledger
    assert ledger.refused == []
    assert ledger.increased("medium") == len(ledger.deleted("medium"))
    assert set(Counter(ledger.deleted("medium")).values()) == {1}
    # 5.6 cores on machines of 1.93: three can hold them, and the scheduler may need one more.
    assert ledger.increased("medium") in {2, 3, 4}
    assert min(ledger.targets["medium"]) == 1
    assert place.nodes_with_taint(TO_BE_DELETED) == []
    assert place.fewest >= 2
    # Each write of a scale has changed something: the generation counts changes.
    web = await place.cluster.get(DEPLOYMENTS.untyped, "web", namespace=place.home)
    tab = await place.cluster.get(CRON_TABS.untyped, TAB, namespace=place.home)
    done = Counter(
        (r.verb, r.resource)
        for r in requests_of(place.plane, user)
        if r.code < 300 and r.namespace in {place.home, ""}
    )
    assert done["update", "deployments/scale"] == web["metadata"]["generation"] - 1
    assert done["update", "crontabs/scale"] == tab["metadata"]["generation"] - 1
    assert done["create", "pods/eviction"] >= 1
    return done


@pytest.mark.usefixtures("roles_of_the_chart")
def test_load_up_and_down(audited, tmp_path):
    """More load: replicas, pending pods, nodes. Less load: fewer replicas, nodes drained within the budget, and deleted.

    With the roles of the chart and no others.
    """

    async def run(clock):
        async with shop(audited, clock, tmp_path) as place:
            async with kubetide_run(place, ACCOUNT, "--act", *BOTH):
                await load_up(place)
                bought = place.ledger.increased("medium")
                assert len(place.nodes.objects) == 1 + bought
                await load_down(place)
            await check(place, ACCOUNT)
            assert [one for one in requests_of(audited, ACCOUNT) if one.code == 403] == []

    run_real(run)


def once(action, when):
    """Return a listener that does something the first time its condition holds, and the time of it."""
    done = []

    def listen(*args):
        if not done and when(*args):
            done.append(True)
            action()

    return listen


async def take_over(place, leader, follower):
    """Wait until the one has been killed and the other leads; check that nobody waited longer than the lease says."""
    await place.until("the leader is dead", lambda: leader.process.returncode is not None)
    renewed = [parse_rfc3339(lease.renew_time) for lease in await leases_of(place)]
    await place.until(
        "the other leads by both leases", lambda: follower.said("leading by lease cluster-autoscaler")
    )
    for lease, last in zip(await leases_of(place), renewed, strict=True):
        waited = to_seconds(between(last, parse_rfc3339(lease.acquire_time)))
        # Others see a renewal a retry after it was made, and try again a retry after the lease has run out (each of
        # 0.5 to 1.1 s); the second lease comes another retry after the first. The rest is for a slow machine.
        assert LEASE_S <= waited < LEASE_S + 30


async def leases_of(place):
    names = ("kubetide", "cluster-autoscaler")
    return [(await place.cluster.get(LEASES, name, namespace="kube-system")).spec for name in names]


def test_the_leader_is_killed_twice(audited, tmp_path):
    """Killed right after it has bought nodes, and in the middle of a drain: the next one does nothing twice, and leaves nothing."""

    async def run(clock):
        async with shop(audited, clock, tmp_path) as place:
            flags = ("--act", *BOTH, *LEASE_TIMES)
            async with kubetide_run(place, "relay", *flags, name="first") as first:
                await place.until(
                    "the first leads", lambda: first.said("leading by lease cluster-autoscaler")
                )
                async with kubetide_run(place, "relay", *flags, name="second") as second:
                    await place.until("the second waits", lambda: second.said("waiting for lease kubetide"))
                    # The cloud has bought; the process that requested it never gets the answer.
                    place.ledger.after = once(first.process.kill, lambda call: call.name == "increase_size")
                    assert not second.said("leading by")
                    up = asyncio.create_task(load_up(place))
                    await take_over(place, first, second)
                    await up
                    async with kubetide_run(place, "relay", *flags, name="third") as third:
                        await place.until("the third waits", lambda: third.said("waiting for lease kubetide"))
                        place.pods.on_change(
                            once(second.process.kill, lambda _, __, pod: is_drained(place, pod))
                        )
                        down = asyncio.create_task(load_down(place))
                        await take_over(place, second, third)
                        await down
            done = await check(place, "relay")
            assert done["update", "nodes"] >= 1
            assert place.nodes_with_taint(CANDIDATE) == []

    run_real(run)


def is_drained(place, pod):
    """Whether a pod is being evicted from a node that is about to go."""
    return (
        pod is not None
        and pod.metadata.deletion_timestamp is not None
        and pod.spec.node_name in place.nodes_with_taint(TO_BE_DELETED)
    )


def test_advice_writes_nothing(audited, tmp_path):
    """Without --act, in need of pods and nodes: what the API server has written down are reads, and the cloud was not asked."""

    async def run(clock):
        async with shop(audited, clock, tmp_path) as place:
            place.load.set("web", 1700)
            await place.cluster.replace_scale(CRON_TABS, TAB, 6, namespace=place.home)
            await place.until("pods fit nowhere", lambda: bool(pending(place)))
            async with kubetide_run(place, "adviser", *BOTH) as adviser:
                for advice in ("would be scaled from 3 to 12", "would be"):
                    await place.until(advice, lambda advice=advice: adviser.said(advice))
                await place.until("nodes are advised, too", lambda: adviser.said("medium"))
                periods = len(requests_of(audited, "adviser"))
                await place.until(
                    "it has gone on for a while", lambda: len(requests_of(audited, "adviser")) > periods + 10
                )
            made = requests_of(audited, "adviser")
            assert {request.verb for request in made} == {"get", "list", "watch"}
            assert (place.ledger.calls, place.ledger.refused) == ([], [])
            assert not place.nodes_with_taint(CANDIDATE)

    run_real(run)


def pending(place):
    return [pod for pod in place.pods.objects.values() if not pod.spec.node_name]
