"""The whole loop on a real control plane: load, replicas, nodes, and back, by ``kubetide run --act``."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager

import pytest
import yaml
from tests.plane.towns import CRON_TABS, MEDIUM, ROOT, cron_tabs, kubetide_run, requests_of, town

from kubetide.objects.kinds import DEPLOYMENTS, HPAS, LEASES, PDBS
from kubetide.runtime.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import to_seconds

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
    "--scan-interval=1s",
    "--scale-down-unneeded-time=3s",
    "--scale-down-delay-after-add=3s",
    "--scale-down-delay-after-failure=3s",
    "--unremovable-node-recheck-timeout=1s",
    "--node-delete-delay-after-taint=1s",
    "--skip-nodes-with-custom-controller-pods=false",
    "--kube-api-qps=200",
    "--kube-api-burst=200",
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
    """Whether so many pods run, nothing else does, and every machine is a node."""
    counts = place.cloud.counts()["medium"]
    there = len(place.nodes.objects)
    return (
        (len(place.running("web")), len(place.running(TAB)), len(place.pods.objects)) == (web, tabs, web + tabs)
        and (counts.creating, counts.deleting, counts.running) == (0, 0, there)
        and nodes in {None, there}
    )


async def load_up(place):
    """6.0 cores are wanted where there were 1.4."""
    place.load.set("web", 1700)
    place.load.set(TAB, 900)
    await place.until("all the pods run", lambda: settled(place, web=12, tabs=4))


async def load_down(place):
    place.load.set("web", 300)
    place.load.set(TAB, 100)
    await place.until("what is left fits on one node", lambda: settled(place, web=3, tabs=1, nodes=1))


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
    done = Counter((r.verb, r.resource) for r in requests_of(place.plane, user) if r.code < 300)
    assert done["update", "deployments/scale"] == web["metadata"]["generation"] - 1
    assert done["update", "crontabs/scale"] == tab["metadata"]["generation"] - 1
    assert done["create", "pods/eviction"] >= 1
    return done


def test_load_up_and_down(audited, tmp_path):
    """More load: replicas, pending pods, nodes. Less load: fewer replicas, nodes drained within the budget, and gone."""

    async def run(clock):
        async with shop(audited, clock, tmp_path) as place:
            async with kubetide_run(place, "whole", "--act", *BOTH):
                await load_up(place)
                bought = place.ledger.increased("medium")
                assert len(place.nodes.objects) == 1 + bought
                await load_down(place)
            await check(place, "whole")

    run_real(run)
