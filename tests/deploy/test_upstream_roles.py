"""The rights that upstream's charts grant are enough to act, in the account that is there already."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.acting.electing import NAME, elector
from tests.acting.electing import run as run_election
from tests.acting.electing import running as running_election
from tests.cli.test_cluster_autoscaler import a_waiting_pod, running
from tests.cli.test_run import line_with
from tests.cluster.served import ADMIN, TOKEN, served
from tests.deploy.requests import Observed, OnlyGranted, Watched, rows
from tests.horizontal.running import START
from tests.nodes.live import SHORT, World

from kubetide.embedded.apiserver.http import Identities, User
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.nodes.registry.status_map import LAST_UPDATED_ANNOTATION
from kubetide.objects.kinds import CONFIG_MAPS, LEASES
from kubetide.runtime.timing.clock import run_real, run_virtual
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


PROGRAM = Path(__file__).parents[2] / "deploy" / "programs" / "cluster-autoscaler"
ACCOUNT = "system:serviceaccount:kube-system:cluster-autoscaler"


@pytest.mark.slow
def test_the_program_of_the_image_takes_over(tmp_path):
    """As `./cluster-autoscaler` in a container without a place to write, and with the account that is there."""
    (tmp_path / "kubetide-out").write_text("no folder")
    (tmp_path / "python").symlink_to(sys.executable)

    async def main(clock):
        account = User(ACCOUNT, ("system:authenticated",), (Watched(granted=frozenset(CHART)),))
        identities = Identities({TOKEN: ADMIN, "account": account})
        async with served(clock, identities=identities) as (cluster, server, connection):
            config = tmp_path / "kubeconfig"
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token="account", authority=authority))
            await a_waiting_pod(cluster, clock)
            command = ("env", f"PATH={tmp_path}:{os.environ['PATH']}", "sh", str(PROGRAM))
            async with running(tmp_path, config, command=command, says="kubetide: ") as process:
                await line_with(process, "leading by lease cluster-autoscaler")
                await line_with(process, "group workers was increased from 0 to 1")
            assert (tmp_path / "increases").read_text() == "workers +1\n"

    run_real(main)
