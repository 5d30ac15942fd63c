"""CPU time of the scheduling operations that a tick repeats, as JSON lines.

Each line has the median of several runs in process CPU time, the target where there is one, and the
ratio to a floor measured in the same run: six NumPy compares over as many nodes (or one, for
operations that do not grow with the cluster).

    python -m bench.scheduling
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from kubetide.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from kubetide.objects.node import Node, NodeSpec, NodeStatus, Taint
from kubetide.objects.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from kubetide.scheduling import (
    Limits,
    PodClass,
    PodGroup,
    Snapshot,
    classify,
    equivalence_groups,
    estimate,
    place,
)

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
_PODS = 30_000
"""In the whole cluster, or 30 a node where that is less."""


def cpu_us(work: Callable[[], object], *, repeat: int = 7, number: int = 200) -> float:
    """Gives the median CPU time of one call in microseconds."""
    runs = []
    for _ in range(repeat):
        before = time.process_time_ns()
        for _ in range(number):
            work()
        runs.append((time.process_time_ns() - before) / number / 1000)
    return statistics.median(runs)


def make_node(number: int) -> Node:
    name = f"node-{number:05}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "pool": f"pool-{number % 5}",
    }
    taints = (Taint(key="dedicated", value="batch", effect="NoSchedule"),) if number % 10 == 0 else None
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(
            allocatable={"cpu": "15890m", "memory": "60Gi", "pods": "110", "ephemeral-storage": "95Gi"}
        ),
    )


def make_pod(
    name: str,
    *,
    cpu: str = "250m",
    memory: str = "512Mi",
    pool: str = "",
    shape: int = 0,
    spread: str = "",
    apart: str = "",
) -> Pod:
    """Gives a pod; ``spread`` and ``apart`` are the labels by which copies are spread or kept apart."""
    own = LabelSelector(match_labels={"app": f"app-{shape}"})
    term = PodAffinityTerm(label_selector=own, topology_key=apart)
    anti = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    rule = TopologySpreadConstraint(
        topology_key=spread, max_skew=1, when_unsatisfiable="DoNotSchedule", label_selector=own
    )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            labels={"app": f"app-{shape}"},
            owner_references=(
                OwnerReference(kind="ReplicaSet", name="rs", uid=f"rs-{shape}", controller=True),
            ),
        ),
        spec=PodSpec(
            containers=(
                Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu, "memory": memory})),
            ),
            node_selector={"pool": pool} if pool else None,
            tolerations=(Toleration(key="dedicated", operator="Exists"),),
            affinity=Affinity(pod_anti_affinity=anti) if apart else None,
            topology_spread_constraints=(rule,) if spread else None,
        ),
    )


def make_cluster(nodes: int) -> Snapshot:
    snapshot = Snapshot()
    for number in range(nodes):
        snapshot.set_node(make_node(number))
        for index in range(min(30, _PODS // nodes)):
            snapshot.add_pod(make_pod(f"pod-{number}-{index}", shape=index), f"node-{number:05}")
    return snapshot


def floor_us(nodes: int) -> float:
    """Six compares into one mask: what judging a class cannot go below."""
    column = np.arange(nodes, dtype=np.int64)
    mask = np.ones(nodes, np.bool_)

    def compares() -> None:
        for least in range(6):
            np.logical_and(mask, column >= least, out=mask)

    return cpu_us(compares)


def report(
    operation: str, nodes: int, measured_us: float, floor: float, target_us: float | None = None
) -> None:
    line = {
        "operation": operation,
        "nodes": nodes,
        "cpu_us": round(measured_us, 2),
        "floor_us": round(floor, 2),
        "ratio": round(measured_us / floor, 2),
    }
    if target_us is not None:
        line["target_us"] = target_us
    print(json.dumps(line), flush=True)


def fork_and_revert(snapshot: Snapshot) -> None:
    snapshot.fork()
    snapshot.revert()


def measure_cluster(nodes: int) -> None:
    before = time.process_time_ns()
    snapshot = make_cluster(nodes)
    built_us = (time.process_time_ns() - before) / 1000
    floor = floor_us(nodes)
    report("build, with making the objects", nodes, built_us, floor)
    report("fork and revert", nodes, cpu_us(lambda: fork_and_revert(snapshot), number=1000), floor, 10)

    moving = [make_pod(f"moving-{index}") for index in range(100)]
    target = snapshot.node_names[0]

    def change_100() -> None:
        snapshot.fork()
        for pod in moving:
            snapshot.add_pod(pod, target)
        snapshot.revert()

    report("fork, 100 pods added, revert", nodes, cpu_us(change_100, number=10), floor)

    wanted = classify(make_pod("wanted", pool="pool-1"))
    elsewhere = make_pod("elsewhere")

    def class_known() -> None:
        # A pod that is put somewhere makes the last answer invalid, as in a scheduler's pass.
        snapshot.fork()
        snapshot.add_pod(elsewhere, target)
        snapshot.feasible(wanted)
        snapshot.revert()

    def change_only() -> None:
        snapshot.fork()
        snapshot.add_pod(elsewhere, target)
        snapshot.revert()

    changed = cpu_us(change_only)
    report("class against all nodes, known", nodes, cpu_us(class_known) - changed, floor, 30)

    cordoned = make_node(0)
    again = Node(metadata=cordoned.metadata, spec=NodeSpec(unschedulable=True), status=cordoned.status)

    def class_new() -> None:
        snapshot.set_node(again)
        snapshot.feasible(wanted)
        snapshot.set_node(cordoned)

    report("class against all nodes, after a node changed", nodes, cpu_us(class_new, number=50), floor)
    report("reasons counted over all nodes", nodes, cpu_us(lambda: snapshot.refusals(wanted)), floor)

    pending = [make_pod(f"pending-{index}", shape=index % 20) for index in range(500)]

    def place_500() -> None:
        snapshot.fork()
        place(snapshot, pending)
        snapshot.revert()

    report("place, per pod of 500", nodes, cpu_us(place_500, number=1) / len(pending), floor)


def measure_minding(nodes: int) -> None:
    """Classes that mind other pods, against a cluster where every node has some of them."""
    snapshot = make_cluster(nodes)
    floor = floor_us(nodes)
    target = snapshot.node_names[0]
    elsewhere = make_pod("elsewhere")
    for words, pod in (
        ("spread by zone", make_pod("wanted", spread=ZONE)),
        ("spread by hostname", make_pod("wanted", spread=HOSTNAME)),
        ("anti-affinity by zone", make_pod("wanted", shape=99, apart=ZONE)),
        ("anti-affinity by hostname", make_pod("wanted", shape=99, apart=HOSTNAME)),
    ):
        wanted = classify(pod)

        def asked(wanted: PodClass = wanted) -> None:
            snapshot.fork()
            snapshot.add_pod(elsewhere, target)
            snapshot.feasible(wanted)
            snapshot.revert()

        report(f"class against all nodes, {words}", nodes, cpu_us(asked, number=50), floor, 100)
    for guards in (1, 100):
        snapshot.fork()
        for index in range(guards):
            term = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Exists"),))
            guard = make_pod(f"guard-{index}", shape=1000 + index, apart=HOSTNAME)
            anti = PodAffinityTerm(
                label_selector=term, topology_key=HOSTNAME, namespaces=("default", f"n{index}")
            )
            affinity = Affinity(
                pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(anti,))
            )
            snapshot.add_pod(replace(guard, spec=replace(guard.spec, affinity=affinity)), target)
        plain = classify(make_pod("wanted"))

        def kept_off(plain: PodClass = plain) -> None:
            snapshot.fork()
            snapshot.add_pod(elsewhere, target)
            snapshot.feasible(plain)
            snapshot.revert()

        words = f"class against all nodes, kept off by {guards} terms of others"
        report(words, nodes, cpu_us(kept_off, number=20), floor, 100)
        snapshot.revert()
    for words, key in (("spread by hostname", HOSTNAME), ("spread by zone", ZONE)):
        pending = [make_pod(f"pending-{index}", shape=2000, spread=key) for index in range(500)]

        def place_500(pending: list[Pod] = pending) -> None:
            snapshot.fork()
            place(snapshot, pending)
            snapshot.revert()

        measured = cpu_us(place_500, repeat=3, number=1) / len(pending)
        report(f"place, per pod of 500, {words}", nodes, measured, floor)


def measure_minding_estimates() -> None:
    """Estimates for pods that mind other pods: (words, existing nodes, pods, target in seconds)."""
    template = make_node(1)
    floor = floor_us(1000)
    empty, thousand, many = Snapshot(), make_cluster(1000), make_cluster(5000)
    mixed = [
        make_pod(
            f"mixed-{shape}-{index}",
            cpu=f"{100 + 7 * shape}m",
            shape=shape + 500,
            apart=HOSTNAME if shape % 4 == 0 else "",
            spread=HOSTNAME if shape % 4 == 1 else "",
        )
        for shape in range(200)
        for index in range(5)
    ]
    spread_classes = [
        make_pod(f"s-{shape}-{index}", cpu=f"{100 + 7 * shape}m", shape=shape + 500, spread=HOSTNAME)
        for shape in range(200)
        for index in range(50)
    ]
    for words, snapshot, pods, target_us in (
        ("10,000 spread by zone", empty, _copies(10_000, spread=ZONE), 20_000),
        ("10,000 spread by hostname", empty, _copies(10_000, spread=HOSTNAME), 20_000),
        ("10,000 spread by hostname, nodes with room", many, _copies(10_000, spread=HOSTNAME), 100_000),
        ("1,000 apart by hostname", thousand, _copies(1_000, apart=HOSTNAME), 2_000),
        ("1,000 of 200 classes, half of them minding", many, mixed, 50_000),
        ("10,000 of 200 classes spread by hostname", empty, spread_classes, 300_000),
    ):
        groups = equivalence_groups(pods)

        def run(snapshot: Snapshot = snapshot, groups: list[PodGroup] = groups) -> None:
            estimate(snapshot, template, (), groups, Limits())

        report(f"estimate of {words}", len(snapshot), cpu_us(run, repeat=3, number=1), floor, target_us)


def _copies(count: int, *, spread: str = "", apart: str = "") -> list[Pod]:
    return [make_pod(f"copy-{index}", shape=3000, spread=spread, apart=apart) for index in range(count)]


def measure_packing() -> None:
    snapshot = make_cluster(100)
    template = make_node(1)
    floor = floor_us(1000)
    same = [make_pod(f"same-{index}") for index in range(50_000)]
    groups = equivalence_groups(same)
    report(
        "estimate of 50,000 identical pods",
        100,
        cpu_us(lambda: estimate(snapshot, template, (), groups, Limits()), number=5),
        floor,
        2000,
    )
    mixed = [
        make_pod(f"mixed-{shape}-{index}", cpu=f"{100 + 7 * shape}m", memory=f"{64 + shape}Mi", shape=shape)
        for shape in range(200)
        for index in range(250)
    ]
    many = equivalence_groups(mixed)
    report(
        "estimate of 50,000 pods in 200 groups",
        100,
        cpu_us(lambda: estimate(snapshot, template, (), many, Limits()), number=1),
        floor,
        50_000,
    )
    report(
        "group, per pod of 50,000",
        100,
        cpu_us(lambda: equivalence_groups(mixed), repeat=3, number=1) / 50_000,
        floor,
    )
    report(
        "classify, per pod",
        100,
        cpu_us(lambda: [classify(pod) for pod in mixed[:1000]], number=3) / 1000,
        floor,
    )


def main() -> None:
    for nodes in (100, 1_000, 15_000):
        measure_cluster(nodes)
        if nodes > 100:
            measure_minding(nodes)
    measure_packing()
    measure_minding_estimates()


if __name__ == "__main__":
    main()
