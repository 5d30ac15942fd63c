"""What ``kubetide run`` costs on a big cluster at rest, and what its caches cost. Prints one JSON line.

The API server is the embedded one, in a process of its own, whose cost does not count. Each reader is a
process of its own, too: ``kubetide run`` with both loops, advising, and a bare informer of all pods. CPU is
that of the reader's process. ``decode_us`` is the floor of the list: the same pods decoded as plain JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import Any

import msgspec

from bench.usage import usage_of
from kubetide.cluster import HttpCluster, load_kubeconfig
from kubetide.embedded.apiserver.http import ApiServer, Identities, User
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import CATALOGUE, EmbeddedCloud, GroupSpec
from kubetide.embedded.cloud.groups import node_json
from kubetide.objects.base import Json, Quantities
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, HPAS, NODES, PODS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, NodeMetrics, PodMetrics
from kubetide.ports.clock import Clock
from kubetide.runtime.process import tune_gc
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339, milliseconds
from kubetide.watching import Informer

NODES_COUNT = 1_000
PODS_COUNT = 30_000
APPS = 50
GROUPS = 10
EVENTS = 20_000
IDLE_S = 60
_READY_S = 300
_SIZE = "m5.2xlarge"


def main() -> None:
    match sys.argv[1:]:
        case ["serve", folder]:
            run_real(lambda clock: serve(clock, Path(folder)))
        case ["inform", config]:
            print(json.dumps(run_real(lambda clock: inform(clock, Path(config)))))
        case _:
            print(json.dumps(measure()))


# ── The API server ──────────────────────────────────────────────────────────────────────────────


def groups() -> list[GroupSpec]:
    size = NODES_COUNT // GROUPS
    return [
        GroupSpec(f"group-{index}", _SIZE, max_size=2 * size, initial=size, min_size=size)
        for index in range(GROUPS)
    ]


def pod_json(index: int, since: str) -> Json:
    """A pod of a Deployment with about as many bytes as real ones have, most of which no loop reads."""
    app = index % APPS
    body = builders.pod(
        f"app-{app}-{index:05d}", namespace="default", labels={"app": f"app-{app}"}, cpu="200m"
    )
    body["spec"]["nodeName"] = f"node-{index % NODES_COUNT:04d}"
    body["spec"]["containers"][0]["env"] = [
        {"name": f"E{number}", "value": "x" * 120} for number in range(45)
    ]
    kinds = ("Ready", "ContainersReady", "PodScheduled", "Initialized")
    body["status"] = {
        "phase": "Running",
        "startTime": since,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds],
    }
    return body


class AtRest:
    """metrics.k8s.io: the usage of every pod is exactly its HPA's target."""

    def __init__(self, since: str) -> None:
        usage: Quantities = {"cpu": "100m", "memory": "64Mi"}
        self._pods = [
            PodMetrics(
                metadata=ObjectMeta(
                    name=f"app-{index % APPS}-{index:05d}",
                    namespace="default",
                    labels={"app": f"app-{index % APPS}"},
                ),
                timestamp=since,
                window="15s",
                containers=(ContainerMetrics(name="app", usage=usage),),
            )
            for index in range(PODS_COUNT)
        ]

    def pod_metrics(self) -> list[PodMetrics]:
        return self._pods

    def node_metrics(self) -> list[NodeMetrics]:
        return []


async def serve(clock: Clock, folder: Path) -> None:
    """Serve the cluster, and write EVENTS changes of pods whenever a line comes in."""
    cluster = EmbeddedCluster(Store(), clock, seed=1)
    since = format_rfc3339(clock.now())
    await fill(cluster, since, clock)
    authority = Authority()
    server = ApiServer(
        cluster.rest,
        clock,
        identities=Identities({"t": User("bench", ("system:masters",))}),
        metrics=AtRest(since),
        tls=authority.server_context(["127.0.0.1"]),
    )
    await server.start()
    config = kubeconfig(server.url, token="t", authority=authority.certificate)
    write_kubeconfig(folder / "kubeconfig", config)
    tune_gc()
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    asked = asyncio.Queue[str]()
    loop.add_reader(sys.stdin, lambda: asked.put_nowait(sys.stdin.readline()))
    while await asked.get():
        for number in range(EVENTS):
            index = number % PODS_COUNT
            await cluster.patch(
                PODS,
                f"app-{index % APPS}-{index:05d}",
                {"metadata": {"labels": {"round": str(number)}}},
                namespace="default",
            )
            if not number % 100:
                await clock.sleep(milliseconds(5))
    await server.stop()


async def fill(cluster: EmbeddedCluster, since: str, clock: Clock) -> None:
    for index in range(NODES_COUNT):
        group = groups()[index % GROUPS]
        name = f"node-{index:04d}"
        body = node_json(group, CATALOGUE[_SIZE], name=name, zone="zone-a", ready=True, now=clock.now())
        await cluster.create(NODES, body)
    for index in range(PODS_COUNT):
        body = pod_json(index, since)
        status = body.pop("status")
        name = body["metadata"]["name"]
        await cluster.create(PODS, body, namespace="default")
        await cluster.patch(PODS, name, {"status": status}, namespace="default", subresource="status")
    each = PODS_COUNT // APPS
    for app in range(APPS):
        name = f"app-{app}"
        await cluster.create(DEPLOYMENTS, builders.deployment(name, replicas=each), namespace="default")
        status = {"status": {"replicas": each}}
        await cluster.patch(DEPLOYMENTS, name, status, namespace="default", subresource="status")
        hpa = builders.hpa(name, name, max_replicas=2 * each)
        await cluster.create(HPAS, hpa, namespace="default")
    await cluster.create(CONFIG_MAPS, builders.config_map("filled"), namespace="default")


# ── The readers ─────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def cloud(_config: str, clock: Clock) -> AsyncIterator[EmbeddedCloud]:
    """The node groups of the cluster's nodes, for ``--cloud-provider=bench.run:cloud``."""
    stored: Json = {
        "spent": 0.0,
        "groups": {
            group.name: {
                "ordered": 0,
                "machines": [
                    {"name": f"node-{index:04d}", "zone": "zone-a", "state": "Running", "node": True}
                    for index in range(number, NODES_COUNT, GROUPS)
                ],
            }
            for number, group in enumerate(groups())
        },
    }
    cluster = EmbeddedCluster(Store(), clock, seed=1)  # nothing is bought in a run that advises
    yield EmbeddedCloud(cluster, clock, seed=1, groups=groups(), stored=stored)


async def inform(clock: Clock, config: Path) -> dict[str, Any]:
    """What the first list and the events after it cost an informer of all pods."""
    tune_gc()
    async with HttpCluster(load_kubeconfig(config), clock) as client:
        informer = Informer(client, PODS, clock)
        # What a first request costs, and its code, is not what is measured.
        await client.list(NODES)
        before = usage_of(os.getpid())
        running = asyncio.ensure_future(informer.run())
        await informer.synced()
        after = usage_of(os.getpid())
        seen = [0]
        enough = asyncio.Event()

        def count(*_: object) -> None:
            seen[0] += 1
            if seen[0] == EVENTS:
                enough.set()

        informer.on_change(count)
        start = process_time()
        print("events", flush=True)
        await enough.wait()
        events_s = process_time() - start
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        raw = await client.get_raw("/api/v1/namespaces/default/pods", {"limit": "500"})
        start = process_time()
        page = msgspec.json.decode(raw)["items"]
        decode_s = process_time() - start
    pods = len(informer.objects)
    return {
        "pod_bytes": len(raw) // len(page),
        "list_us": round((after["cpu_s"] - before["cpu_s"]) / pods * 1e6, 1),
        "decode_us": round(decode_s / len(page) * 1e6, 1),
        "cached_pod_kib": round((after["rss_mib"] - before["rss_mib"]) * 1024 / pods, 2),
        "events_per_cpu_s": round(EVENTS / events_s),
    }


# ── The measuring ───────────────────────────────────────────────────────────────────────────────


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = child("bench.run", "serve", name)
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            result = {"bench": "run", "pods": PODS_COUNT, "nodes": NODES_COUNT, "hpas": APPS}
            result |= informer_cost(server, folder / "kubeconfig")
            return result | idle_cost(folder)
        finally:
            server.kill()
            server.wait()


def informer_cost(server: subprocess.Popen[str], config: Path) -> dict[str, Any]:
    reader = child("bench.run", "inform", str(config))
    assert reader.stdout is not None
    assert server.stdin is not None
    assert reader.stdout.readline() == "events\n"
    server.stdin.write("events\n")
    server.stdin.flush()
    found: dict[str, Any] = json.loads(reader.stdout.readline())
    reader.wait()
    return found


def idle_cost(folder: Path) -> dict[str, Any]:
    """A minute of ``kubetide run``, once its caches are there and its first ticks are over."""
    run = child(
        "kubetide",
        "run",
        f"--kubeconfig={folder / 'kubeconfig'}",
        f"--out={folder / 'out'}",
        "--address=127.0.0.1:0",
        "--controllers=horizontal,nodes",
        "--cloud-provider=bench.run:cloud",
        "--kube-api-qps=100",
        "--kube-api-burst=100",
    )
    try:
        assert run.stdout is not None
        while "health and metrics on" not in (line := run.stdout.readline()):
            assert line, "kubetide run has ended"
        address = line.split()[-1]
        started = monotonic()
        wait_until(lambda: answers(f"{address}/readyz"))
        ready_s = monotonic() - started
        sleep(IDLE_S / 2)
        before, since = usage_of(run.pid), monotonic()
        sleep(IDLE_S)
        after = usage_of(run.pid)
        spent = after["cpu_s"] - before["cpu_s"]
        return {
            "ready_s": round(ready_s, 1),
            "start_cpu_s": round(before["cpu_s"], 1),
            "idle_cpu_percent": round(100 * spent / (monotonic() - since), 2),
            "rss_mib": round(after["rss_mib"]),
        }
    finally:
        run.terminate()
        run.wait()


def child(module: str, *arguments: str) -> subprocess.Popen[str]:
    code = (
        ["-m", module]
        if module.startswith("bench.")
        else ["-c", f"from {module}.cli.main import main; main()"]
    )
    return subprocess.Popen(
        [sys.executable, *code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = monotonic() + _READY_S
    while not holds():
        assert monotonic() < deadline, "kubetide run is not ready"
        sleep(0.2)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


if __name__ == "__main__":
    main()
