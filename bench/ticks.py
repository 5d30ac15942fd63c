"""CPU time of one tick of the node loop, as JSON lines, beside Cluster Autoscaler's RunOnce on the same clusters.

Clusters of 16-core, 64 GiB nodes in 10 groups and 3 zones, 30 pods a node of one of half as many
applications as there are nodes. The cases, with upstream's CPU time (core of July 2026, this kind of
machine, quiet; in ms):

- ``rest``: all nodes are full, nothing waits. First tick, one after 5 pods have changed, a quiet one.
- ``waiting N``: N pods of 3 controllers wait; the tick that scales up.
- ``diverse``: 1,000 waiting pods of 200 controllers, a quarter apart by hostname, a quarter spread by it.
- ``scan``, in a process of its own: half of the nodes are at 19 % CPU, half at 65 %: scale-down. First tick, and the next.

    python -m bench.ticks [NODES ...]
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time

import msgspec
from msgspec.structs import replace

from bench.scheduling.objects import HOSTNAME, ZONE, make_pod
from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import Outcome, Outcomes
from kubetide.nodes.facts.slim_pods import PodSlimmer
from kubetide.nodes.facts.slimming import slim_node
from kubetide.nodes.memory import Memory
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, Gone, State
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus
from kubetide.objects.pod import Pod, PodStatus
from kubetide.objects.workload import ReplicaSet
from kubetide.ports.cloud import Instance, NodeGroup
from kubetide.runtime.process import tune_gc
from kubetide.units.time import Instant, after, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")
LONG_AGO = "2026-03-02T05:00:00Z"
GROUPS = 10
PODS_A_NODE = 30
_pods = msgspec.json.Decoder(Pod)
REST, SCAN = (("500m", "2Gi"),), (("100m", "256Mi"), ("350m", "1Gi"))

UPSTREAM_MS = {
    ("rest", 100): 48,
    ("rest", 1_000): 630,
    ("rest", 5_000): 2_243,
    ("rest", 15_000): 9_711,
    ("waiting 100", 100): 117,
    ("waiting 100", 1_000): 619,
    ("waiting 100", 5_000): 3_991,
    ("waiting 1000", 100): 747,
    ("waiting 1000", 1_000): 1_540,
    ("waiting 1000", 5_000): 6_559,
    ("waiting 1000", 15_000): 28_301,
    ("waiting 5000", 100): 5_238,
    ("waiting 5000", 1_000): 8_250,
    ("waiting 5000", 5_000): 24_230,
    ("diverse", 100): 9_177,
    ("diverse", 1_000): 163_546,
    ("diverse", 5_000): 392_729,
    ("scan", 100): 184,
    ("scan", 1_000): 930,
    ("scan", 5_000): 5_497,
    ("scan", 15_000): 20_149,
}


def make_node(number: int) -> Node:
    name, group = f"n{number:05}", number % GROUPS
    sizes: dict[str, str | float] = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    ready = (Condition(type="Ready", status="True", last_transition_time=LONG_AGO),)
    labels = {HOSTNAME: name, ZONE: f"z{group % 3}", "group": f"g{group}"}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels, creation_timestamp=LONG_AGO),
        spec=NodeSpec(provider_id=f"cloud:///{name}"),
        status=NodeStatus(capacity=sizes, allocatable=sizes, conditions=ready),
    )


def bound_pod(slimmer: PodSlimmer, encoded: bytes, node: int, at: int, nodes: int) -> Pod:
    """Return a pod that is read from JSON of its own and slimmed as in a cache that only the node loop reads."""
    app = (PODS_A_NODE * node + at) % (nodes // 2 + GROUPS)
    text = encoded.replace(b"APP", b"%d" % app).replace(b"NODE", b"n%05d" % node)
    return slimmer.keep(_pods.decode(text.replace(b"POD", b"p-%05d-%02d" % (node, at))))


def pod_text(cpu: str, memory: str) -> bytes:
    body = {
        "metadata": {
            "name": "POD",
            "namespace": "default",
            "uid": "POD",
            "creationTimestamp": LONG_AGO,
            "labels": {"app": "app-APP"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "app-APP",
                    "uid": "app-APP",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": "NODE",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
        },
        "status": {"phase": "Running"},
    }
    return msgspec.json.encode(body)


def make_state(nodes: int, sizes: tuple[tuple[str, str], ...], waiting: tuple[Pod, ...] = ()) -> State:
    texts, slimmer = [pod_text(*size) for size in sizes], PodSlimmer()
    names = [f"n{number:05}" for number in range(nodes)]
    groups = tuple(
        NodeGroup(
            id=f"g{at}",
            max_size=nodes,
            target_size=len(names[at::GROUPS]),
            instances=tuple(Instance(provider_id=f"cloud:///{name}") for name in names[at::GROUPS]),
        )
        for at in range(GROUPS)
    )
    sets = tuple(
        ReplicaSet(metadata=ObjectMeta(name=f"app-{at}", namespace="default", uid=f"app-{at}"))
        for at in range(nodes // 2 + GROUPS)
    )
    state = State()
    state.apply(
        Delta(
            nodes=tuple(slim_node(make_node(number)) for number in range(nodes)),
            pods=tuple(
                bound_pod(slimmer, texts[number % len(texts)], number, at, nodes)
                for number in range(nodes)
                for at in range(PODS_A_NODE)
            )
            + waiting,
            replica_sets=sets,
            groups=groups,
            settings=Settings(write_status_configmap=False),
        ),
        full=True,
    )
    return state


def tick(state: State, now: Instant, delta: Delta | None = None) -> None:
    """Run all steps of a tick; every action counts as done."""
    step = delta or Delta()
    while True:
        state.apply(step)
        commands = decide(state, now)
        absorb(state, commands, Outcomes(tuple(Outcome() for _ in commands.actions)), now)
        if not commands.next_step:
            return
        step = Delta(step=commands.next_step)


def cpu_ms(state: State, now: Instant, delta: Delta | None = None) -> float:
    """Run a tick and return its CPU time in milliseconds."""
    before = time.process_time_ns()
    tick(state, now, delta)
    return (time.process_time_ns() - before) / 1e6


def report(case: str, nodes: int, words: str, measured_ms: float) -> None:
    line: dict[str, object] = {"operation": f"node tick, {case}, {words}", "nodes": nodes}
    line["cpu_ms"] = round(measured_ms, 2)
    upstream = UPSTREAM_MS.get((case, nodes))
    if upstream is not None:
        line["upstream_cpu_ms"] = upstream
        line["times_less"] = round(upstream / measured_ms, 1)
    print(json.dumps(line), flush=True)


def waiting_pods(count: int, controllers: int, *, inter_pod: bool = False) -> tuple[Pod, ...]:
    found: list[Pod] = []
    for at in range(count):
        of = at % controllers
        cpu, memory = (f"{200 + 5 * of}m", f"{512 + of}Mi") if inter_pod else ("1500m", "4Gi")
        rule = of % 4 if inter_pod else 3
        made = make_pod(
            f"w-{at}",
            cpu=cpu,
            memory=memory,
            shape=100_000 + of,
            apart=HOSTNAME if rule == 0 else "",
            spread=HOSTNAME if rule == 1 else "",
        )
        lost = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
        metadata = replace(made.metadata, creation_timestamp=LONG_AGO)
        found.append(replace(made, metadata=metadata, status=PodStatus(phase="Pending", conditions=lost)))
    return tuple(found)


def measure_rest(nodes: int) -> None:
    state = make_state(nodes, REST)
    now = Instant(START)
    report("rest", nodes, "the first", cpu_ms(state, now))
    keys = sorted(state.pods)[:5]
    changed = []
    for at in range(3):
        pods = [state.pods[key] for key in keys]
        labels = [{**(pod.metadata.labels or {}), "v": str(at)} for pod in pods]
        again = tuple(
            replace(pod, metadata=replace(pod.metadata, labels=new))
            for pod, new in zip(pods, labels, strict=True)
        )
        changed.append(cpu_ms(state, after(now, seconds(10 * at + 10)), Delta(pods=again)))
    report("rest", nodes, "5 pods changed", statistics.median(changed))
    quiet = [cpu_ms(state, after(now, seconds(100 + 10 * at))) for at in range(3)]
    report("rest", nodes, "nothing changed", statistics.median(quiet))
    cases = [(f"waiting {count}", waiting_pods(count, 3)) for count in (100, 1_000, 5_000)]
    cases.append(("diverse", waiting_pods(1_000, 200, inter_pod=True)))
    for case, waiting in cases:
        report(case, nodes, "scales up", cpu_ms(state, after(now, seconds(200)), Delta(pods=waiting)))
        deleted = tuple((one.metadata.namespace, one.metadata.name) for one in waiting)
        state.apply(Delta(gone=Gone(pods=deleted)))
        forget_purchases(state)


def forget_purchases(state: State) -> None:
    """Take back the requested nodes of a tick."""
    for group, names in state.nodes_by_group().items():
        state.set_target(group, len(names))
    state.memory = Memory()


def measure_scan(nodes: int) -> None:
    state = make_state(nodes, SCAN)
    now = Instant(START)
    report("scan", nodes, "the first", cpu_ms(state, now))
    warm = [cpu_ms(state, after(now, seconds(10 + 10 * at))) for at in range(5)]
    report("scan", nodes, "the next", statistics.median(warm))


def main() -> None:
    match sys.argv[1:]:
        case ["rest" | "scan" as case, nodes]:
            tune_gc()
            (measure_rest if case == "rest" else measure_scan)(int(nodes))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            line = {"operation": f"node tick, {case}, peak memory of the process", "nodes": int(nodes)}
            print(json.dumps({**line, "mib": round(peak)}), flush=True)
        case sizes:
            for size in sizes or ["100", "1000", "5000"]:
                for case in ("rest", "scan"):
                    subprocess.run([sys.executable, "-m", "bench.ticks", case, size], check=True)


if __name__ == "__main__":
    main()
