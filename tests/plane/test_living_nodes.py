"""The embedded kubelets and cloud are good enough for Kubernetes' own scheduler and controllers."""

from __future__ import annotations

import dataclasses

import pytest
from tests.plane.towns import MEDIUM, SILENT, town

from kubetide.objects.kinds import DEPLOYMENTS, LEASES, NODES, PODS
from kubetide.objects.node import node_condition
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders

pytestmark = pytest.mark.slow

NOT_READY = "node.kubernetes.io/not-ready"


def ready_of(place, name):
    node = place.nodes.objects.get(("", name))
    found = None if node is None else node_condition(node, "Ready")
    return "" if found is None else found.status


def test_nodes_stay_ready_and_pods_live_and_end(audited, tmp_path):
    """A silent node is given up, ours are not; pods are bound by the real scheduler, run, and end in order."""

    async def run(clock):
        two = dataclasses.replace(MEDIUM, initial=2)
        async with town(audited, clock, tmp_path, two) as place:
            cluster, home = place.cluster, place.home
            ours = [name for _, name in place.nodes.objects]
            # Cordoned, as nothing would run the pods that were bound to it.
            cordoned = {"spec": {"unschedulable": True}}
            silent = builders.node("silent", labels={SILENT: "yes"}, extra=cordoned)
            await cluster.create(NODES, silent)
            await place.until(
                "ours may be used", lambda: not set(ours) & set(place.nodes_with_taint(NOT_READY))
            )

            await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=4), namespace=home)
            await place.until("four run", lambda: len(place.running("web")) == 4)
            first, second = place.running("web")[:2]
            assert {pod.spec.node_name for pod in place.running("web")} <= set(ours)
            pods = (await cluster.list(PODS.untyped, namespace=home)).items
            assert len({pod["status"]["podIP"] for pod in pods}) == 4

            deleted, stopping = [], []

            def note(key, _, new):
                if new is None:
                    deleted.append(key[1])
                elif new.metadata.deletion_timestamp is not None:
                    stopping.append((key[1], new.status.phase))

            place.pods.on_change(note)
            await cluster.delete(PODS, first.metadata.name, namespace=home)
            await cluster.delete(PODS, second.metadata.name, namespace=home, grace_period_s=0)
            names = {first.metadata.name, second.metadata.name}
            await place.until("both are deleted", lambda: names <= set(deleted))
            assert (first.metadata.name, "Running") in stopping
            await place.until("others run in their place", lambda: len(place.running("web")) == 4)

            await place.until("the silent one is given up", lambda: ready_of(place, "silent") == "Unknown")
            # The taint comes with a later pass of the node lifecycle controller.
            await place.until(
                "it is tainted", lambda: "silent" in place.nodes_with_taint("node.kubernetes.io/unreachable")
            )
            assert [ready_of(place, name) for name in ours] == ["True", "True"]
            assert place.nodes_with_taint("node.kubernetes.io/unreachable") == ["silent"]
            leases = (await cluster.list(LEASES, namespace="kube-node-lease")).items
            assert {lease.metadata.name for lease in leases} == set(ours)

    run_real(run)
