"""The cost of a public trace's pods on 43 types of AWS, by expander: least-waste, most-pods, least-cost.

Pods of the Alibaba GPU trace of 2023 (``openb``, ``default``) wait all at once, or those that are
alive at the trace's peak. Each type is a node group without a limit, at its price on demand; nodes
offer all that they have, GPUs are whole. The node loop ticks until no pod is without a place; the next
tick places pods on the nodes that are on their way. So estimator, expander and demand are those of
production. A scheduler knows no plan: what least-cost comes to if pods take the first node that fits is
the last column. Costs are compared with the linear relaxation, below which no choice can be.

    python -m bench.packing [--data FOLDER]

The data is not part of the repository; by default it is looked for beside it, in ``shared/data``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import IncreaseSize, Outcome, Outcomes
from kubetide.nodes.expander.least_cost.solver import FleetProblem
from kubetide.nodes.expander.least_cost.solver.problem import no_limits
from kubetide.nodes.expander.least_cost.solver.relaxation import relax
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, State
from kubetide.objects.meta import Condition, ObjectMeta, OwnerReference
from kubetide.objects.node import Node, NodeStatus
from kubetide.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from kubetide.ports.cloud import NodeGroup, NodeTemplate
from kubetide.units.time import Instant, after, parse_rfc3339, seconds

DATA = Path(os.environ.get("BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
PODS = "alibaba-gpu-2023/openb_pod_list_default.csv.gz"
TYPES = "node-catalogue/node_types.csv"
PEAK_S = 11_821_598
"""When most pods of the trace are alive."""

FAMILIES = {"c6i", "m6i", "r6i", "g4dn", "g5"}
WITHOUT_METAL = {"c6i", "m6i", "r6i"}
LARGEST = "p4d.24xlarge"
GPU = "nvidia.com/gpu"
MOST_TICKS = 60
START = parse_rfc3339("2026-03-02T08:00:00Z")
DEFAULT_ROUNDS = Settings().least_cost_rounds
EXPANDERS = (
    ("least-waste", 0),
    ("most-pods", 0),
    ("least-cost", 0),
    ("least-cost", DEFAULT_ROUNDS),
    ("least-cost", 200),
)


class Kind(NamedTuple):
    """What one pod requests, or one node has: milli-CPU, MiB, whole GPUs."""

    cpu: int
    memory: int
    gpus: int


class Type(NamedTuple):
    """A type of nodes."""

    name: str
    size: Kind
    pods: int
    price: float


class Found(NamedTuple):
    """The result of an expander."""

    first: float
    price: float
    nodes: int
    groups: int
    ticks: int
    left: int
    cpu_s: float


def read_types(folder: Path) -> list[Type]:
    """Return the 43 types."""
    found = []
    with (folder / TYPES).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            family, _, size = row["type"].partition(".")
            if row["provider"] != "aws" or (family in WITHOUT_METAL and size.startswith("metal")):
                continue
            if family in FAMILIES or row["type"] == LARGEST:
                kind = Kind(int(row["vcpu"]) * 1000, int(row["memory_bytes"]) >> 20, int(row["gpu_count"]))
                price = float(row["ondemand_usd_per_hour"])
                found.append(Type(row["type"], kind, int(row["max_pods"]), price))
    return sorted(found)


def read_pods(folder: Path, at_s: int | None) -> Counter[Kind]:
    """Return the pods by their requests: all of the trace, or those alive at a time."""
    found: Counter[Kind] = Counter()
    with gzip.open(folder / PODS, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if at_s is None or int(row["creation_time"]) <= at_s < int(row["deletion_time"]):
                found[Kind(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]))] += 1
    return found


def lower_bound(types: list[Type], pods: Counter[Kind]) -> float:
    """Return the price of the linear relaxation in USD an hour."""
    kinds = sorted(pods)
    stock = np.array([[1 * one.pods, *one.size] for one in types], np.int64)
    requests = np.array([[1, *kind] for kind in kinds], np.int64)
    problem = FleetProblem(
        demand=np.array([pods[kind] for kind in kinds], np.int64),
        requests=requests,
        stock=stock,
        prices=np.array([one.price for one in types]),
        most=np.full(len(types), sum(pods.values()), np.int64),
        allowed=np.ones((len(kinds), len(types)), np.bool_),
        **no_limits(len(types)),
    )
    return relax(problem, may_leave_out=False).price


def quantities(kind: Kind) -> dict[str, str]:
    """Return amounts as Kubernetes writes them."""
    found = {"cpu": f"{kind.cpu}m", "memory": f"{kind.memory}Mi"}
    return {**found, GPU: str(kind.gpus)} if kind.gpus else found


def make_group(one: Type) -> NodeGroup:
    """Return a type as a node group that may grow at will."""
    offered: dict[str, str | float] = {**quantities(one.size), "pods": str(one.pods)}
    ready = (Condition(type="Ready", status="True"),)
    node = Node(
        metadata=ObjectMeta(name=one.name, labels={"node.kubernetes.io/instance-type": one.name}),
        status=NodeStatus(capacity=offered, allocatable=offered, conditions=ready),
    )
    template = NodeTemplate(node=node, source="catalogue")
    return NodeGroup(id=one.name, max_size=100_000, template=template, price_per_hour=one.price)


def make_pods(pods: Counter[Kind]) -> list[Pod]:
    """Return waiting pods; those with the same requests have one controller."""
    unschedulable = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
    found = []
    for at, kind in enumerate(sorted(pods, reverse=True)):
        owner = OwnerReference(
            api_version="apps/v1", kind="ReplicaSet", name=f"r{at}", uid=f"r{at}", controller=True
        )
        requests: dict[str, str | float] = {**quantities(kind)}
        container = Container(name="main", resources=ResourceRequirements(requests=requests))
        for number in range(pods[kind]):
            name = f"r{at}-{number:04d}"
            found.append(
                Pod(
                    metadata=ObjectMeta(
                        name=name,
                        namespace="default",
                        uid=name,
                        owner_references=(owner,),
                        creation_timestamp="2026-03-02T06:00:00Z",
                    ),
                    spec=PodSpec(containers=(container,)),
                    status=PodStatus(phase="Pending", conditions=unschedulable),
                )
            )
    return found


def run(types: list[Type], pods: Counter[Kind], expander: str, rounds: int, *, by_plan: bool = True) -> Found:
    """Tick until no pod is without a place, or nothing is bought any more.

    Without ``by_plan`` the loop forgets for which pods each node was bought, and uses the first fit.
    """
    settings = Settings(
        expander=expander,
        least_cost_rounds=rounds,
        max_nodes_per_scaleup=0,
        max_node_increases_per_hour=1_000_000,
        cores_total="0:100000000",
        memory_total="0:1000000000",
        scale_down_enabled=False,
        write_status_configmap=False,
    )
    state = State()
    groups = {one.name: make_group(one) for one in types}
    delta = Delta(pods=tuple(make_pods(pods)), groups=tuple(groups.values()), settings=settings)
    state.apply(delta, full=True)
    now, first, ticks = Instant(START), 0.0, 0
    prices = {one.name: one.price for one in types}
    before = time.process_time()
    while ticks < MOST_TICKS:
        commands = decide(state, now)
        increases = [one for one in commands.actions if isinstance(one, IncreaseSize)]
        absorb(state, commands, Outcomes(tuple(Outcome() for _ in commands.actions)), now)
        if not increases:
            break
        ticks += 1
        if ticks == 1:
            first = sum(one.delta * prices[one.group] for one in increases)
        now = after(now, seconds(10))
        if not by_plan:
            state.memory.planned.clear()
        state.apply(Delta())
    cpu_s = time.process_time() - before
    sizes = {one.id: one.target_size for one in state.groups.values() if one.target_size}
    left = len(state.tick.demand.pods) if state.tick is not None else 0
    price = sum(prices[name] * size for name, size in sizes.items())
    return Found(first, price, sum(sizes.values()), len(sizes), ticks, left, cpu_s)


def main() -> int:
    parser = argparse.ArgumentParser(description="What pods of a public trace cost, by expander.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the data sets")
    folder: Path = parser.parse_args().data
    missing = [name for name in (PODS, TYPES) if not (folder / name).exists()]
    if missing:
        print(f"packing: skipped, no {' and no '.join(missing)} under {folder}; --data names the folder")
        return 0
    types = read_types(folder)
    print(
        "| pods | expander | rounds | nodes | types | USD/h | x bound | in the first tick | ticks | CPU s | first fit |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for title, at_s in (("all at once", None), ("at the peak", PEAK_S)):
        pods = read_pods(folder, at_s)
        bound = lower_bound(types, pods)
        print(f"| {title}: {sum(pods.values())} | linear relaxation | | | | {bound:.2f} | 1 | | | | |")
        for expander, rounds in EXPANDERS:
            found = run(types, pods, expander, rounds)
            shown = rounds if expander == "least-cost" else ""
            loose = ""
            if expander == "least-cost" and rounds <= DEFAULT_ROUNDS:
                loose = f"{run(types, pods, expander, rounds, by_plan=False).price:.2f}"
            rest = f" ({found.left} pods left)" if found.left else ""
            print(
                f"| | {expander} | {shown} | {found.nodes}{rest} | {found.groups} | {found.price:.2f} "
                f"| {found.price / bound:.4f} | {found.first:.2f} | {found.ticks} | {found.cpu_s:.1f} | {loose} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
