"""Memory of the loops' process by what holds it, as JSON lines: bytes a pod, MiB of the whole.

Clusters as in ``bench.ticks``: 30 pods a node, half as many applications as nodes, all nodes full. Each pod is
read from 3.5 KB of JSON of its own, as a watch sends it and as the cluster's reader decodes it. Each size has
three processes of its own:

- ``loop``: what a process of the node loop alone holds, by growth of its resident memory from step to step:
  with the informer's cache filled, with the state made of it, after the first tick, and at a record of the
  whole state. Peaks are of the whole life of the process.
- ``loops``: the same with the HPA loop in the process, as ``kubetide run`` has both by default. There are no
  HPAs, so no samples: it is the pods that are measured.
- ``snapshot``: what the snapshot takes beside the pods themselves.

    python -m bench.memory [NODES ...]
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.ticks import GROUPS, PODS_A_NODE, START, make_node, tick
from kubetide.cluster.decoding import decode_event
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.controller.gather import Gatherer
from kubetide.nodes.core import as_read_back, encode_in_pieces
from kubetide.nodes.facts.slim_pods import PodSlimmer
from kubetide.nodes.records.export import export_state
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, State
from kubetide.objects.kinds import NODES, PODS, REPLICA_SETS, Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod
from kubetide.objects.sharing import shared
from kubetide.objects.workload import ReplicaSet
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Instance, NodeGroup
from kubetide.ports.cluster import Listing, WatchEvent
from kubetide.ports.errors import NotFound
from kubetide.runtime.process import trim_freed_memory, tune_gc
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.timing.clock import run_real
from kubetide.scheduling import Snapshot
from kubetide.units.time import Duration, Instant
from kubetide.watching import Caches

SINCE = "2026-03-02T05:00:00Z"


def main() -> None:
    match sys.argv[1:]:
        case ["loop", nodes]:
            run_real(lambda clock: measure_loop(clock, int(nodes)))
        case ["loops", nodes]:
            with tempfile.TemporaryDirectory() as folder:
                run_real(lambda clock: measure_loop(clock, int(nodes), Path(folder)))
        case ["snapshot", nodes]:
            measure_snapshot(int(nodes))
        case sizes:
            for size in sizes or ["1000", "5000", "15000"]:
                for what in ("loop", "loops", "snapshot"):
                    subprocess.run([sys.executable, "-m", "bench.memory", what, size], check=True)


# ── The cluster ─────────────────────────────────────────────────────────────────────────────────


def pod_text() -> bytes:
    """A pod of a Deployment as a watch sends it, with marks in the place of its own values."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app-APP", "uid": "uid-of-app-APP"}
    mounts = [
        {"name": "config", "mountPath": "/etc/app"},
        {"name": "kube-api-access-TOKEN", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
    ]
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "app-APP-5d4f8c-POD",
            "generateName": "app-APP-5d4f8c-",
            "namespace": "default",
            "uid": "7f1ce4d2-3b55-4b0e-9c21-UID",
            "resourceVersion": "VERSION",
            "creationTimestamp": SINCE,
            "labels": {"app": "app-APP", "pod-template-hash": "5d4f8c", "team": "shop"},
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": "c" * 64},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "nodeName": "NODE",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "restartPolicy": "Always",
            "containers": [
                {
                    "name": name,
                    "image": f"registry.example.com/shop/app-APP-{name}:v1.2.3",
                    "env": [{"name": "SETTING", "value": "v" * 40}],
                    "ports": [{"containerPort": 8080, "name": f"http-{name}"}],
                    "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                    "volumeMounts": mounts,
                }
                for name in ("app", "proxy")
            ],
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
                for key in ("not-ready", "unreachable")
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": "app-APP-config"}},
                {"name": "kube-api-access-TOKEN", "projected": {"sources": sources}},
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": SINCE,
            "podIP": "10.1.2.3",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": SINCE} for kind in conditions
            ],
            "containerStatuses": [
                {"name": name, "ready": True, "restartCount": 0, "containerID": "containerd://" + 64 * "1"}
                for name in ("app", "proxy")
            ],
        },
    }
    return b'{"type":"ADDED","object":' + msgspec.json.encode(body) + b"}"


def watched_pods(nodes: int) -> Iterator[WatchEvent[Pod]]:
    """Yield the pods one by one, each read from JSON of its own, in order of node."""
    text = pod_text()
    for number in range(nodes * PODS_A_NODE):
        node = number // PODS_A_NODE
        own = text.replace(b"APP", b"%d" % (number % (nodes // 2 + GROUPS)))
        own = own.replace(b"POD", b"%07d" % number).replace(b"NODE", b"n%05d" % node)
        own = own.replace(b"UID", b"%012x" % number).replace(b"VERSION", b"%d" % (10**8 + number))
        yield decode_event(own.replace(b"TOKEN", b"%06d" % number), PODS)[0]


class Streaming:
    """A remote cluster at rest: it streams its objects, and then sends nothing any more."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes

    async def list_and_watch(
        self, kind: Kind[Any], *, keep: Callable[[Any], Any] | None = None, **_where: str
    ) -> AsyncGenerator[Listing[Any] | Sequence[WatchEvent[Any]], None]:
        """Stream the list."""
        keep = keep or shared
        if kind is PODS:
            yield Listing([keep(event.object) for event in watched_pods(self._nodes)], "1")
        elif kind is NODES:
            encoded = (msgspec.json.encode(make_node(number)) for number in range(self._nodes))
            yield Listing([keep(msgspec.json.decode(one, type=kind.model)) for one in encoded], "1")
        elif kind is REPLICA_SETS:
            yield Listing([replica_set(at) for at in range(self._nodes // 2 + GROUPS)], "1")
        else:
            yield Listing([], "1")
        await asyncio.Event().wait()

    async def get(self, _kind: Kind[Any], name: str, *, namespace: str) -> Any:
        """Raise NotFound: nothing was kept of an earlier run."""
        raise NotFound(f"{namespace}/{name}")

    def spread(self, pause: Duration) -> Duration:
        """Return the pause as it is."""
        return pause


def replica_set(at: int) -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name=f"app-{at}", namespace="default", uid=f"uid-of-app-{at}"))


class Groups:
    """A cloud that has the machines of all nodes, and only ever says so."""

    gpu_label = ""

    def __init__(self, nodes: int) -> None:
        self._groups = [
            NodeGroup(
                id=f"g{group}",
                max_size=nodes,
                target_size=len(range(group, nodes, GROUPS)),
                instances=tuple(
                    Instance(provider_id=f"cloud:///n{number:05}") for number in range(group, nodes, GROUPS)
                ),
            )
            for group in range(GROUPS)
        ]

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return the groups."""
        return self._groups


# ── Measuring ───────────────────────────────────────────────────────────────────────────────────


class Meter:
    """Reports how much more memory is resident than at the last reading."""

    def __init__(self, nodes: int, of: str) -> None:
        self.nodes = nodes
        self._of = of
        self._pods = nodes * PODS_A_NODE
        self._begin = self._last = resident()
        self._cpu = time.process_time()

    def report(self, what: str) -> None:
        """Print one line."""
        gc.collect()
        now, cpu = resident(), time.process_time()
        line = {
            "operation": f"memory, {self._of}, {what}",
            "nodes": self.nodes,
            "bytes_a_pod": round((now - self._last) / self._pods),
            "bytes_a_pod_so_far": round((now - self._begin) / self._pods),
            "mib": round(now / 2**20),
            "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "cpu_s": round(cpu - self._cpu, 2),
        }
        print(json.dumps(line), flush=True)
        self._last, self._cpu = resident(), time.process_time()


def resident() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def hpa_loop(cluster: Any, clock: Clock, caches: Caches, records: Path) -> HorizontalController:
    """Return the loop as in production; without HPAs it requests no metrics."""
    recorder = RecordWriter(records, warn=print)
    recorder.start()
    metrics: Any = None
    return HorizontalController(cluster, metrics, clock, recorder, None, HorizontalSettings(), caches=caches)


async def measure_loop(clock: Clock, nodes: int, records: Path | None = None) -> None:
    """Measure the node loop, and the HPA loop beside it where there is a folder for its records."""
    tune_gc()
    trim_freed_memory()
    state = State(Settings(write_status_configmap=False))
    cluster: Any = Streaming(nodes)
    cloud: Any = Groups(nodes)
    meter = Meter(nodes, "node loop" if records is None else "both loops")
    caches = Caches(cluster, clock)
    horizontal = None if records is None else hpa_loop(cluster, clock, caches, records)
    gatherer = Gatherer(cluster, cloud, clock, None, state, caches)
    caching = asyncio.create_task(caches.run())
    await gatherer.synced()
    meter.report("informers, caches filled")
    state.apply(await gatherer.begin(), keys=gatherer.pod_keys())
    meter.report("state, snapshot included")
    now = Instant(START)
    tick(state, now, Delta(step="update"))
    meter.report("after the first tick")
    if horizontal is not None:
        await horizontal.tick()
        meter.report("after the first tick of the HPA loop")
    everything, keys = export_state(state), sorted(state.pods)
    pieces = encode_in_pieces(everything)
    state.apply(replace(everything, memory=as_read_back(state.memory)), full=True, keys=keys)
    del everything, keys
    with tempfile.TemporaryFile() as file:
        file.writelines(pieces)
    meter.report("after a record of the whole state")
    caching.cancel()


def measure_snapshot(nodes: int) -> None:
    tune_gc()
    trim_freed_memory()
    made = [make_node(number) for number in range(nodes)]
    keep = PodSlimmer().keep
    pods = [keep(event.object) for event in watched_pods(nodes) if isinstance(event.object, Pod)]
    gc.collect()
    meter = Meter(nodes, "snapshot")
    snapshot = Snapshot()
    for node in made:
        snapshot.set_node(node)
    for pod in pods:
        snapshot.add_pod(pod, pod.spec.node_name)
    meter.report("without the pods")


if __name__ == "__main__":
    main()
