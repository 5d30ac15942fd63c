"""Nodes and pods that kwok animates are scaled as any others: what many test clusters are made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plane.kwok import VERSION, skip_without_kwok
from tests.plane.test_whole_loop import AT_ONCE, BOTH, TO_BE_DELETED
from tests.plane.towns import MEDIUM, kubetide_run, requests_of, town

from kubetide.objects.kinds import DEPLOYMENTS, HPAS, LEASES, NODES
from kubetide.objects.node import node_condition
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders

pytestmark = pytest.mark.slow

USER = "kubetide-on-kwok"
CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "110"}


@pytest.fixture(autouse=True)
def _built():
    skip_without_kwok()


def is_ready(place, name):
    node = place.nodes.objects.get(("", name))
    found = None if node is None else node_condition(node, "Ready")
    return found is not None and found.status == "True"


def test_pods_and_nodes_by_kwok(audited, tmp_path):
    """A Deployment is scaled by its HPA, machines are bought for its pods and given back, while kwok animates both."""

    async def run(clock):
        async with town(audited, clock, tmp_path, replace(MEDIUM, initial=1), by_kwok=True) as place:
            cluster, home = place.cluster, place.home
            # One that belongs to no group: ours to look at, not to remove. Tainted, so that nothing goes there.
            taint = {"key": "kubetide.test/apart", "effect": "NoSchedule"}
            status = {"capacity": CAPACITY, "allocatable": CAPACITY}
            bare = {"metadata": {"name": "bare"}, "spec": {"taints": [taint]}, "status": status}
            await cluster.create(NODES.untyped, bare)
            await place.until("kwok says that it is Ready", lambda: is_ready(place, "bare"))
            raw = await cluster.get(NODES.untyped, "bare")
            assert raw["status"]["nodeInfo"]["kubeletVersion"] == VERSION
            lease = await cluster.get(LEASES, "bare", namespace="kube-node-lease")
            assert lease.spec.renew_time

            await cluster.create(
                DEPLOYMENTS, builders.deployment("web", replicas=2, cpu="300m"), namespace=home
            )
            quick = {"spec": {"behavior": {"scaleUp": AT_ONCE, "scaleDown": AT_ONCE}}}
            hpa = builders.hpa("web", "web", min_replicas=2, max_replicas=12, extra=quick)
            await cluster.create(HPAS, hpa, namespace=home)
            place.load.set("web", 200)
            await place.until("two pods run", lambda: len(place.running("web")) == 2)
            (pod, _) = place.running("web")
            assert pod.status.start_time
            async with kubetide_run(place, USER, "--act", *BOTH):
                place.load.set("web", 1700)
                await place.until("twelve pods run", lambda: len(place.running("web")) == 12)
                assert place.ledger.increased("medium") in {1, 2, 3}
                bought = len(place.nodes.objects)
                place.load.set("web", 200)
                await place.until("two pods are left", lambda: len(place.pods.objects) == 2)
                await place.until(
                    "the machines are given back", lambda: place.cloud.counts()["medium"].running == 1
                )
                await place.until("their nodes are deleted", lambda: len(place.nodes.objects) == 2)
            assert bought >= 3
            assert is_ready(place, "bare")
            assert place.ledger.refused == []
            assert place.nodes_with_taint(TO_BE_DELETED) == []
            done = {(r.verb, r.resource) for r in requests_of(audited, USER) if r.code < 300}
            assert ("update", "deployments/scale") in done

    run_real(run)
