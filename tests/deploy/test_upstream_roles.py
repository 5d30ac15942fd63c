"""The rights that upstream's charts grant are enough to act, in the account that is there already."""

from __future__ import annotations

from tests.acting.test_election import NAME, elector
from tests.acting.test_election import run as run_election
from tests.acting.test_election import running as running_election
from tests.deploy.requests import Observed, OnlyGranted, rows
from tests.horizontal.running import START
from tests.nodes.live import SHORT, World

from kubetide.nodes.registry.status_map import LAST_UPDATED_ANNOTATION
from kubetide.objects.kinds import CONFIG_MAPS, LEASES
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes, seconds

CACHED = ("get", "list", "watch")
HOME = "kube-system"

# Source: kubernetes/autoscaler, charts/cluster-autoscaler, templates clusterrole and role, default values.
CHART = (
    rows(("create", "patch"), "", ("events", "endpoints"))
    | rows(("create",), "", ("pods/eviction",))
    | rows(("update",), "", ("pods/status",))
    | rows((*CACHED, "update"), "", ("nodes",))
    | rows(CACHED, "", ("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods"))
    | rows(CACHED, "", ("replicationcontrollers", "services"))
    | rows(CACHED, "batch", ("cronjobs", "jobs"))
    | rows(("list", "watch"), "policy", ("poddisruptionbudgets",))
    | rows(CACHED, "apps", ("daemonsets", "replicasets", "statefulsets"))
    | rows(CACHED, "storage.k8s.io", ("csidrivers", "csinodes", "csistoragecapacities", "storageclasses"))
    | rows(("list", "watch"), "", ("configmaps",))
    | rows(("create",), "coordination.k8s.io", ("leases",))
    | rows(("get", "update"), "coordination.k8s.io", ("leases",), names=("cluster-autoscaler",))
    | rows(("create",), "", ("configmaps",), HOME)
    | rows(("delete", "get", "update"), "", ("configmaps",), HOME, ("cluster-autoscaler-status",))
)


def restricted(cluster):
    return Observed(cluster, OnlyGranted(CHART))


def test_nodes_come_and_go_with_the_rights_of_cluster_autoscaler():
    """The loop buys, drains and removes nodes, and keeps the status object, without the roles of this project."""

    async def main(clock):
        world = World(clock, wrap=restricted, **SHORT)
        async with world.running():
            await world.deploy(replicas=6, cpu="900m")
            await world.after(minutes(5))
            many = len(world.nodes)
            assert many > 2
            assert not world.pending
            noted = {"metadata": {"labels": {"team": "a"}}}
            await world.cluster.patch(CONFIG_MAPS, "cluster-autoscaler-status", noted, namespace=HOME)
            await world.scale("web", 2)
            await world.after(minutes(15))
            assert len(world.nodes) < many
            status = await world.cluster.get(CONFIG_MAPS.untyped, "cluster-autoscaler-status", namespace=HOME)
            assert "autoscalerStatus: Running" in status["data"]["status"]
            assert status["metadata"]["labels"] == {"team": "a"}
            assert LAST_UPDATED_ANNOTATION in status["metadata"]["annotations"]
        await world.controller.close()
        left = await world.cluster.list(CONFIG_MAPS)
        assert [one.metadata.name for one in left.items if "autoscaler" in one.metadata.name] == []

    run_virtual(main, start=START)


def test_the_lease_is_taken_renewed_and_released_with_them():
    async def main(cluster, clock):
        ours = elector(restricted(cluster), clock, "ours", name="cluster-autoscaler")
        async with running_election(ours):
            await clock.sleep(seconds(60))
            assert ours.fence.still_leading()
        found = await cluster.get(LEASES, "cluster-autoscaler", namespace=NAME["namespace"])
        assert found.spec.holder_identity == ""

    run_election(main)
