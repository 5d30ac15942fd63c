"""CPU time of a scale-up for Karpenter's diverse pods over 400 instance types, as JSON lines.

Five equal kinds of pods, each of one of seven applications and thirty sizes: plain, spread by zone,
spread by hostname, near each other by zone, apart by hostname. Every instance type is a node group
without a limit, with a price, in one of three zones; the cluster is empty. The loop is not at its start: ten
seconds before, a tick has looked at the same groups for one pod, which is deleted. Then the pods come, and ``cpu_s``
is the whole tick that reads them and chooses what to buy, ``net_s`` that less the same tick for a single pod. Karpenter's own solver
(checkout of August 2026) places 100 to 160 such pods a CPU second on this kind of machine, the process less its
set-up with one pod; its types, sizes and draws are its own, so only the order of magnitude compares.
``solver_s`` is the choice alone, made once more on the same tick: the plan, playing it by the filters, and the
bound on its price. The garbage collector is set as ``kubetide run`` sets it.

    python -m bench.mix [PODS ...] [--expander EXPANDER] [--rounds ROUNDS] [--most NODES] [--own-sizes]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import time

from msgspec.structs import replace

from bench.scheduling.objects import HOSTNAME, ZONE, make_pod
from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import Commands, IncreaseSize, Outcome, Outcomes
from kubetide.nodes.expander import packs_all_groups
from kubetide.nodes.expander.least_cost.buy import choose_fleet
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, Gone, State
from kubetide.objects.meta import Condition, LabelSelector, ObjectMeta
from kubetide.objects.node import Node, NodeStatus
from kubetide.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, PodStatus
from kubetide.ports.cloud import NodeGroup, NodeTemplate
from kubetide.runtime.process import tune_gc
from kubetide.units.time import after, parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")
LONG_AGO = "2026-03-02T05:00:00Z"
TYPES = 400
CPUS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128)
GIB_A_CPU = (2, 4, 8)
SEED = 42
APPS = 7
POD_CPUS = ("100m", "250m", "500m", "1", "1500m")
POD_MEMORIES = ("100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi")


def make_groups(most: int) -> tuple[NodeGroup, ...]:
    """Return a group for each type: sizes by turns, more expensive for the same size as numbers go up; ``most`` nodes in each."""
    groups = []
    for number in range(TYPES):
        cpu = CPUS[number % len(CPUS)]
        gib = cpu * GIB_A_CPU[number // len(CPUS) % len(GIB_A_CPU)]
        sizes: dict[str, str | float] = {"cpu": str(cpu), "memory": f"{gib}Gi", "pods": "110"}
        name = f"t{number:03}"
        node = Node(
            metadata=ObjectMeta(name=name, labels={HOSTNAME: name, ZONE: f"z{number % 3}"}),
            status=NodeStatus(
                capacity=sizes, allocatable=sizes, conditions=(Condition(type="Ready", status="True"),)
            ),
        )
        price = cpu * 0.03 + gib * 0.004 + number // 30 * 0.0005
        template = NodeTemplate(node=node, source="benchmark")
        groups.append(NodeGroup(id=name, max_size=most, template=template, price_per_hour=price))
    return tuple(groups)


def make_pods(count: int, *, own_sizes: bool = False, name: str = "d") -> tuple[Pod, ...]:
    """Return pods that the scheduler has given up, of the five kinds by turns, of thirty sizes or each of its own."""
    draw = random.Random(SEED)
    unscheduled = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
    pods = []
    for number in range(count):
        kind = number % 5
        cpu, memory = draw.choice(POD_CPUS), draw.choice(POD_MEMORIES)
        if own_sizes:
            cpu, memory = f"{draw.randrange(100, 1500)}m", f"{draw.randrange(100, 4096)}Mi"
        pod = make_pod(
            f"{name}-{number}",
            cpu=cpu,
            memory=memory,
            shape=1000 + kind * 10 + draw.randrange(APPS),
            spread={1: ZONE, 2: HOSTNAME}.get(kind, ""),
            apart=HOSTNAME if kind == 4 else "",
        )
        if kind == 3:
            pod = near_its_own(pod)
        metadata = replace(pod.metadata, creation_timestamp=LONG_AGO)
        pods.append(
            replace(pod, metadata=metadata, status=PodStatus(phase="Pending", conditions=unscheduled))
        )
    return tuple(pods)


def near_its_own(pod: Pod) -> Pod:
    """Return the pod with affinity to its own app by zone."""
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels=pod.metadata.labels), topology_key=ZONE)
    near = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return replace(pod, spec=replace(pod.spec, affinity=Affinity(pod_affinity=near)))


def tick_with(
    pods: tuple[Pod, ...], groups: tuple[NodeGroup, ...], settings: Settings
) -> tuple[State, Commands, float]:
    """Return the state in the middle of the tick in which the pods have come, what it decided, and its CPU time."""
    state = State()
    state.apply(Delta(pods=make_pods(1, name="before"), groups=groups, settings=settings), full=True)
    commands = decide(state, START)
    absorb(state, commands, Outcomes(tuple(Outcome("withheld") for _ in commands.actions)), START)
    later = after(START, settings.scan_interval)
    gc.collect()  # of what the pods and groups were made with
    start = time.process_time()
    state.apply(Delta(pods=pods, gone=Gone(pods=tuple(state.pods))))
    commands = decide(state, later)
    return state, commands, time.process_time() - start


def measure(
    pods: int, expander: str, rounds: int, *, most: int = 1_000, own_sizes: bool = False
) -> dict[str, object]:
    """Return the CPU time of a tick and what it buys."""
    settings = Settings(
        write_status_configmap=False,
        scale_down_enabled=False,
        expander=expander,
        least_cost_rounds=rounds,
    )
    state, commands, spent = tick_with(make_pods(pods, own_sizes=own_sizes), make_groups(most), settings)
    _, _, alone = tick_with(make_pods(1), make_groups(most), settings)
    assert state.tick is not None
    cost_summary = state.tick.cost_summary
    solver = None
    if packs_all_groups(expander):
        start = time.process_time()
        hourly = settings.max_node_increases_per_hour
        choose_fleet(state, state.tick, Headroom(settings, []), most_nodes=hourly, now=START)
        solver = time.process_time() - start
    return {
        "benchmark": "mix",
        "expander": expander,
        "rounds": rounds,
        "groups": TYPES,
        "pods": pods,
        "own_sizes": own_sizes,
        "cpu_s": round(spent, 3),
        "pods_a_s": round(pods / spent),
        "net_s": round(spent - alone, 3),
        "net_pods_a_s": round(pods / (spent - alone)) if pods > 1 and spent > alone else None,
        "solver_s": solver and round(solver, 3),
        "solver_pods_a_s": solver and round(pods / solver),
        "served": sum(len(option.pods) for option in state.tick.chosen),
        "nodes": sum(one.delta for one in commands.actions if isinstance(one, IncreaseSize)),
        "price": round(cost_summary.price, 3) if cost_summary else None,
        "bound": round(cost_summary.bound, 3) if cost_summary else None,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mix")
    parser.add_argument("pods", nargs="*", type=int, help="100, 500, 1000 and 2000, when none is given")
    parser.add_argument("--expander", help="least-cost, and 200 pods by least-waste, when none is given")
    parser.add_argument("--rounds", type=int, default=Settings().least_cost_rounds, help="of least-cost")
    parser.add_argument("--most", type=int, default=1_000, help="nodes of each group")
    parser.add_argument("--own-sizes", action="store_true", help="each pod has a size of its own")
    asked = parser.parse_args()
    tune_gc()
    runs = [(asked.expander or "least-cost", pods) for pods in asked.pods or (100, 500, 1_000, 2_000)]
    if not asked.expander:
        runs.append(("least-waste", 200))
    for expander in dict.fromkeys(expander for expander, _ in runs):
        measure(20, expander, asked.rounds)  # imports are not what is measured
    for expander, pods in runs:
        found = measure(pods, expander, asked.rounds, most=asked.most, own_sizes=asked.own_sizes)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
