"""The API server of ``bench.horizontal_http``, in a process of its own; so the loop's has none of its modules.

``python -m bench.horizontal_http_server FOLDER HPAS PODS_OF_EACH`` writes a kubeconfig, prints ``ready`` and serves until its
standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import numpy as np

from kubetide.embedded.apiserver.http import ApiServer, Identities, User
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, NAMESPACES, PODS, REPLICA_SETS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, NodeMetrics, PodMetrics
from kubetide.ports.clock import Clock
from kubetide.runtime.process import tune_gc
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.testing import builders
from kubetide.units.time import before, format_rfc3339, minutes

SPACES = 20


def main() -> None:
    folder, hpas, each = sys.argv[1:]
    run_real(lambda clock: serve(clock, Path(folder), int(hpas), int(each)))


class Busy:
    """metrics.k8s.io: around the HPAs' targets, other numbers each time."""

    def __init__(self, clock: Clock, hpas: int, each: int) -> None:
        self._clock = clock
        self._metas = [
            ObjectMeta(name=f"app-{app}-{number}", namespace=_space(app), labels={"app": f"app-{app}"})
            for app in range(hpas)
            for number in range(each)
        ]
        self._rng = np.random.default_rng(1)

    def pod_metrics(self) -> list[PodMetrics]:
        now = format_rfc3339(self._clock.now())
        nanos = self._rng.integers(80_000_000, 120_000_000, len(self._metas)).tolist()
        return [
            PodMetrics(
                metadata=meta,
                timestamp=now,
                window="15s",
                containers=(ContainerMetrics(name="app", usage={"cpu": f"{nano}n", "memory": "65536Ki"}),),
            )
            for meta, nano in zip(self._metas, nanos, strict=True)
        ]

    def node_metrics(self) -> list[NodeMetrics]:
        return []


def _space(app: int) -> str:
    return f"team-{app % SPACES}"


async def serve(clock: Clock, folder: Path, hpas: int, each: int) -> None:
    cluster = EmbeddedCluster(Store(), clock, seed=1)
    await fill(cluster, format_rfc3339(before(clock.now(), minutes(60))), hpas, each)
    authority = Authority()
    server = ApiServer(
        cluster.rest,
        clock,
        identities=Identities({"t": User("bench", ("system:masters",))}),
        metrics=Busy(clock, hpas, each),
        tls=authority.server_context(["127.0.0.1"]),
    )
    await server.start()
    write_kubeconfig(
        folder / "kubeconfig", kubeconfig(server.url, token="t", authority=authority.certificate)
    )
    tune_gc()
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop()


async def fill(cluster: EmbeddedCluster, since: str, hpas: int, each: int) -> None:
    for number in range(SPACES):
        await cluster.create(NAMESPACES, {"metadata": {"name": f"team-{number}"}})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    running = {"status": {"phase": "Running", "startTime": since, "conditions": [ready]}}
    for app in range(hpas):
        name, space = f"app-{app}", _space(app)
        made = await cluster.create(REPLICA_SETS, builders.replica_set(name, replicas=each), namespace=space)
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": name,
            "uid": made.metadata.uid,
            "controller": True,
        }
        for number in range(each):
            body = builders.pod(f"{name}-{number}", labels={"app": name}, cpu="200m", owners=(owner,))
            await cluster.create(PODS, body, namespace=space)
            await cluster.patch(PODS, f"{name}-{number}", running, namespace=space, subresource="status")
        await cluster.create(DEPLOYMENTS, builders.deployment(name, replicas=each), namespace=space)
        counted = {"status": {"replicas": each}}
        await cluster.patch(DEPLOYMENTS, name, counted, namespace=space, subresource="status")
        await cluster.create(HPAS, builders.hpa(name, name, max_replicas=2 * each), namespace=space)


if __name__ == "__main__":
    main()
