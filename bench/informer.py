"""What an informer of 20,000 pods costs at a real kube-apiserver, beside client-go's. Prints one JSON line.

Each reader is a process of its own that lists nodes first, so that what a first request costs is not counted:
ours in JSON and in protobuf, and client-go's (``tools/plane/go/informer``) in both. They come in turns, three
times; of each figure the median is printed. CPU is that of the reader's process, and that of kube-apiserver
while it reads. The programs must have been built (``make control-plane``).

``python -m bench.informer PODS`` takes another number of pods.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tools.plane.build import find

from bench.usage import usage_of
from kubetide.cluster import Connection, HttpCluster, load_kubeconfig
from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.protobuf import MEDIA_TYPE
from kubetide.ports.clock import Clock
from kubetide.runtime.process import tune_gc
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.watching import Informer

NODES_COUNT = 1_000
PODS_COUNT = 20_000
APPS = 50
REPEATS = 3
_AT_ONCE = 32
_FLAGS = (
    "--enable-priority-and-fairness=false",
    "--max-requests-inflight=3000",
    "--max-mutating-requests-inflight=1000",
)
READERS = ("json", "protobuf", "client_go_json", "client_go_protobuf")


def main() -> None:
    match sys.argv[1:]:
        case ["read", config, form]:
            print(json.dumps(run_real(lambda clock: read(clock, Path(config), form))))
        case arguments:
            print(json.dumps(measure(int(arguments[0]) if arguments else PODS_COUNT)))


# ── The pods ────────────────────────────────────────────────────────────────────────────────────


def pod_json(index: int) -> Json:
    """A pod of a Deployment as a cluster has it: two containers, a token of its own, who has written what."""
    app = f"app-{index % APPS}"
    token = f"kube-api-access-{index * 7919 % 100_000:05d}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5d4f8c", "uid": f"uid-of-{app}"}
    metadata = {
        "name": f"{app}-5d4f8c-{index:05d}",
        "labels": {"app": app, "pod-template-hash": "5d4f8c", "team": "shop"},
        "annotations": {"prometheus.io/scrape": "true", "checksum/config": f"{index % APPS:064x}"},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    spec = {
        "serviceAccountName": "default",
        "nodeName": f"node-{index % NODES_COUNT:04d}",
        "containers": [_container(app, name, token) for name in ("app", "proxy")],
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app}-config"}},
            {"name": token, "projected": {"sources": sources}},
        ],
    }
    return {"metadata": metadata, "spec": spec}


def _container(app: str, name: str, token: str) -> Json:
    return {
        "name": name,
        "image": f"registry.example.com/shop/{app}-{name}:v1.2.3",
        "env": [{"name": "SETTING", "value": "v" * 40}],
        "ports": [{"containerPort": 8080, "name": f"http-{name}"}],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"},
            {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
    }


def status_json(index: int) -> Json:
    """What a kubelet says of it; pods start at times of their own."""
    since = f"2026-03-02T{index // 3600 % 24:02d}:{index // 60 % 60:02d}:{index % 60:02d}Z"
    address = f"10.{index // 65_536}.{index // 256 % 256}.{index % 256}"
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "startTime": since,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds],
        "containerStatuses": [
            {
                "name": name,
                "ready": True,
                "started": True,
                "restartCount": 0,
                "image": f"registry.example.com/shop/app-{index % APPS}-{name}:v1.2.3",
                "imageID": f"registry.example.com/shop/app@sha256:{index % APPS:064x}",
                "containerID": f"containerd://{index * 31 + 7:064x}",
                "state": {"running": {"startedAt": since}},
            }
            for name in ("app", "proxy")
        ],
    }


async def fill(clock: Clock, connection: Connection, pods: int) -> int:
    """Write nodes and pods; return the bytes of a pod in JSON."""
    turns = asyncio.Semaphore(_AT_ONCE)
    async with HttpCluster(connection, clock) as cluster:

        async def write_node(index: int) -> None:
            async with turns:
                await cluster.create(NODES.untyped, builders.node(f"node-{index:04d}"))

        async def write_pod(index: int) -> None:
            async with turns:
                body = pod_json(index)
                await cluster.create(PODS.untyped, body, namespace="default")
                await cluster.patch(
                    PODS.untyped,
                    body["metadata"]["name"],
                    {"status": status_json(index)},
                    namespace="default",
                    subresource="status",
                )

        await asyncio.gather(*(write_node(index) for index in range(NODES_COUNT)))
        await asyncio.gather(*(write_pod(index) for index in range(pods)))
        page = await cluster.get_raw("/api/v1/pods", {"limit": "100"})
        return len(page) // min(100, pods)


# ── The readers ─────────────────────────────────────────────────────────────────────────────────


async def read(clock: Clock, config: Path, form: str) -> dict[str, Any]:
    """What the first list costs our informer."""
    tune_gc()
    async with HttpCluster(load_kubeconfig(config), clock, protobuf=form == "protobuf") as client:
        informer = Informer(client, PODS, clock)
        await client.list(NODES)
        before = usage_of(os.getpid())
        running = asyncio.ensure_future(informer.run())
        await informer.synced()
        after = usage_of(os.getpid())
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    pods = len(informer.objects)
    return {
        "pods": pods,
        "list_us": (after["cpu_s"] - before["cpu_s"]) / pods * 1e6,
        "cached_pod_kib": (after["rss_mib"] - before["rss_mib"]) * 1024 / pods,
    }


def command_of(reader: str, config: Path) -> list[str]:
    """Return the command line of a reader."""
    if not reader.startswith("client_go"):
        return [sys.executable, "-m", "bench.informer", "read", str(config), reader]
    form = "application/json" if reader.endswith("json") else MEDIA_TYPE
    return [str(find("informer")), str(config), form]


# ── The measuring ───────────────────────────────────────────────────────────────────────────────


def measure(pods: int) -> dict[str, Any]:
    running: Any = import_module("tests.plane.running")
    missing = [*running.missing_programs(), *(["informer"] if find("informer") is None else [])]
    if missing:
        return {"bench": "informer", "skipped": f"not built: {', '.join(missing)} (make control-plane)"}
    with (
        tempfile.TemporaryDirectory() as folder,
        running.running_plane(Path(folder), controllers=False, api_flags=_FLAGS) as plane,
    ):
        size = run_real(lambda clock: fill(clock, plane.connection, pods))
        server = pid_of("kube-apiserver")
        runs: dict[str, list[dict[str, float]]] = {reader: [] for reader in READERS}
        for _ in range(REPEATS):
            for reader, found in runs.items():
                before = usage_of(server)["cpu_s"]
                run = subprocess.run(command_of(reader, plane.kubeconfig), check=True, stdout=subprocess.PIPE)
                one: dict[str, float] = json.loads(run.stdout)
                assert one.pop("pods") == pods
                one["server_us"] = (usage_of(server)["cpu_s"] - before) / pods * 1e6
                found.append(one)
        load = os.getloadavg()[0]
    result: dict[str, Any] = {"bench": "informer", "pods": pods, "pod_bytes": size, "load": round(load, 1)}
    for reader, found in runs.items():
        for figure in found[0]:
            middle = statistics.median(one[figure] for one in found)
            result[f"{reader}_{figure}"] = round(middle, 2 if figure.endswith("kib") else 1)
    return result


def pid_of(name: str) -> int:
    """Return the process of that name that this one has started (Linux: proc(5))."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            head, _, tail = (folder / "stat").read_text(encoding="utf-8").rpartition(")")
            if head.partition("(")[2] == name[:15] and int(tail.split()[1]) == os.getpid():
                return int(folder.name)
    raise LookupError(f"no {name} has been started")


if __name__ == "__main__":
    main()
