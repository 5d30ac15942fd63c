"""What a whole tick of the horizontal loop costs over HTTP, and how long it holds up others. Prints JSON lines.

The API server is the embedded one, in a process of its own; so is the loop, as ``kubetide run --act`` makes
it, with the client's limits raised (``--kube-api-qps``, ``--concurrent-horizontal-pod-autoscaler-syncs``).
Between two ticks the usage of every pod changes, so that every status is written. ``longest_hold_ms`` is the CPU time
between two turns of another task of the loop's process. ``floor_s`` is the CPU time of as many bare requests
of the same client, one after another.

``python -m bench horizontal_http``; ``python -m bench.horizontal_http 1000 100`` for other numbers of HPAs and pods each.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import numpy as np

from bench.run import usage_of
from kubetide.cluster import HttpCluster, HttpMetrics, load_kubeconfig
from kubetide.cluster.limits import Limits
from kubetide.embedded.server import ApiServer, Identities, User
from kubetide.embedded.server.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.server.tls import Authority
from kubetide.embedded.store import EmbeddedCluster, Store
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.settings import Settings
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, NAMESPACES, PODS, REPLICA_SETS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, NodeMetrics, PodMetrics
from kubetide.ports.clock import Clock
from kubetide.runtime.clock import run_real
from kubetide.runtime.process import give_memory_back, tune_gc
from kubetide.runtime.records import RecordWriter
from kubetide.testing import builders
from kubetide.units.time import Duration, before, format_rfc3339, milliseconds, minutes
from kubetide.watching import Caches

SPACES = 20
TICKS = 5
WRITES = 32
_TURN = milliseconds(1)


def main() -> None:
    match sys.argv[1:]:
        case ["serve", folder, hpas, each]:
            run_real(lambda clock: serve(clock, Path(folder), int(hpas), int(each)))
        case ["loop", folder]:
            run_real(lambda clock: loop(clock, Path(folder)))
        case [hpas, each]:
            measure(int(hpas), int(each))
        case _:
            measure(10_000, 10)


# ── The API server ──────────────────────────────────────────────────────────────────────────────


class Busy:
    """metrics.k8s.io: around what the HPAs want, other numbers each time."""

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


# ── The loop ────────────────────────────────────────────────────────────────────────────────────


class Requests:
    """Counts requests by method."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def answered(self, method: str, code: str, took: Duration) -> None:
        del code, took
        self.seen[method] += 1

    def waited(self, method: str, waited: Duration) -> None: ...

    def repeated(self, method: str, code: str) -> None: ...


class Turns:
    """Another task of the process: how much CPU time passes between two of its turns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.longest = 0.0

    async def run(self) -> None:
        while True:
            start = process_time()
            await self._clock.sleep(_TURN)
            self.longest = max(self.longest, process_time() - start)


async def loop(clock: Clock, folder: Path) -> None:
    """Runs ticks one after another and tells what each cost."""
    tune_gc()
    give_memory_back()
    requests, turns = Requests(), Turns(clock)
    connection = load_kubeconfig(folder / "kubeconfig")
    limits = Limits(qps=5_000, burst=5_000, writes=WRITES)
    recorder = RecordWriter(folder / "out", warn=print)
    recorder.start()
    async with HttpCluster(connection, clock, limits=limits, observer=requests) as cluster:
        caches = Caches(cluster, clock)
        settings = Settings(concurrent_syncs=WRITES)
        controller = HorizontalController(
            cluster, HttpMetrics(cluster, clock), clock, recorder, None, settings, caches=caches
        )
        others = [asyncio.ensure_future(turns.run()), asyncio.ensure_future(caches.run())]
        for informer in caches.all:
            await informer.synced()
        print(json.dumps({"synced_rss_mib": round(usage_of(os.getpid())["rss_mib"])}), flush=True)
        for number in range(TICKS):
            # What the writes of the last tick set off comes back by watch: that is part of the next tick.
            requests.seen.clear()
            turns.longest = 0.0
            began, cpu = monotonic(), process_time()
            await controller.tick()
            line: dict[str, float] = {
                "tick": number,
                "wall_s": round(monotonic() - began, 2),
                "cpu_s": round(process_time() - cpu, 2),
                "reads": requests.seen["GET"],
                "writes": requests.seen["PATCH"] + requests.seen["PUT"] + requests.seen["POST"],
                "longest_hold_ms": round(1000 * turns.longest),
                "rss_mib": round(usage_of(os.getpid())["rss_mib"]),
            }
            print(json.dumps(line), flush=True)
        floor = await bare_requests(cluster, sum(requests.seen.values()))
        print(json.dumps({"floor_s": floor}), flush=True)
        for task in others:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    recorder.close()


async def bare_requests(cluster: HttpCluster, count: int) -> float:
    """CPU time of so many small questions."""
    start = process_time()
    for _ in range(1000):
        await cluster.get_raw("/version")
    return round((process_time() - start) / 1000 * count, 2)


# ── The measuring ───────────────────────────────────────────────────────────────────────────────


def measure(hpas: int, each: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        server = child("serve", name, str(hpas), str(each))
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            start = usage_of(server.pid)["cpu_s"]
            lines = list(told(child("loop", name)))
            spent = usage_of(server.pid)["cpu_s"] - start
        finally:
            server.kill()
            server.wait()
    for line in lines:
        print(json.dumps({"name": "horizontal_http", "hpas": hpas, "pods": hpas * each, **line}), flush=True)
    print(json.dumps({"name": "horizontal_http/server", "hpas": hpas, "cpu_s": round(spent, 1)}), flush=True)


def told(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    assert process.stdout is not None
    found = [json.loads(line) for line in process.stdout]
    process.wait()
    return found


def child(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.horizontal_http", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


if __name__ == "__main__":
    main()
