"""How many new nodes pods need: estimates by the number of pods, and by the nodes that are there."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scheduling.measuring import Reporter, cpu_us
from bench.scheduling.objects import HOSTNAME, ZONE, copies, make_cluster, make_node, make_pod, node_name
from kubetide.objects.pod import Pod
from kubetide.scheduling import Limits, Snapshot, classify, equivalence_groups, estimate

# Seconds of one estimate for an empty cluster, in upstream's estimator (core of July 2026), by pods.
_UPSTREAM_S: Mapping[str, Mapping[int, float]] = {
    "identical": {1_000: 0.023, 10_000: 0.31, 50_000: 4.7},
    "of 200 classes": {1_000: 0.055, 10_000: 1.55, 50_000: 13.7},
    "spread by zone": {1_000: 0.094, 10_000: 9.6},
    "spread by hostname": {1_000: 0.097, 10_000: 8.5},
    "apart by hostname": {1_000: 3.0},
}
_TARGET_US: Mapping[str, Mapping[int, float]] = {
    "identical": {50_000: 2_000},
    "of 200 classes": {50_000: 50_000},
    "spread by zone": {10_000: 20_000},
    "spread by hostname": {10_000: 20_000},
    "apart by hostname": {1_000: 2_000},
    "of 200 classes spread by hostname": {10_000: 300_000},
}


def of_classes(pods: int, *, spread: str = "") -> list[Pod]:
    """Return pods of 200 classes of distinct sizes, as many of each."""
    return [
        make_pod(
            f"mixed-{shape}-{index}",
            cpu=f"{100 + 7 * shape}m",
            memory=f"{64 + shape}Mi",
            shape=shape + 500,
            spread=spread,
        )
        for shape in range(200)
        for index in range(pods // 200)
    ]


def diverse(pods: int) -> list[Pod]:
    """Return pods of 200 classes; a quarter have anti-affinity by hostname, a quarter are spread by it."""
    return [
        make_pod(
            f"diverse-{shape}-{index}",
            cpu=f"{100 + 7 * shape}m",
            shape=shape + 500,
            apart=HOSTNAME if shape % 4 == 0 else "",
            spread=HOSTNAME if shape % 4 == 1 else "",
        )
        for shape in range(200)
        for index in range(pods // 200)
    ]


def measure_empty(report: Reporter) -> None:
    """Estimates for a cluster without nodes, by the number of pods."""
    empty = Snapshot()
    for pods in (1_000, 10_000, 50_000):
        cases = {
            "identical": [make_pod(f"same-{index}", shape=3000) for index in range(pods)],
            "of 200 classes": of_classes(pods),
            "spread by zone": copies(pods, spread=ZONE),
            "spread by hostname": copies(pods, spread=HOSTNAME),
            "apart by hostname": copies(pods, apart=HOSTNAME),
            "of 200 classes spread by hostname": of_classes(pods, spread=HOSTNAME),
        }
        for words, incoming in cases.items():
            upstream_s = _UPSTREAM_S.get(words, {}).get(pods)
            report.line(
                f"estimate of pods {words}",
                _estimated(empty, incoming),
                target_us=_TARGET_US.get(words, {}).get(pods),
                upstream_us=None if upstream_s is None else upstream_s * 1e6,
                pods=pods,
            )


def measure_existing(snapshot: Snapshot, report: Reporter) -> None:
    """Estimates beside existing nodes with free capacity."""
    for words, pods, target_us, upstream_us in (
        ("50,000 identical", copies(50_000), 2_000, None),
        ("50,000 of 200 classes", of_classes(50_000), 50_000, None),
        ("10,000 spread by zone", copies(10_000, spread=ZONE), 20_000, None),
        ("10,000 spread by hostname", copies(10_000, spread=HOSTNAME), 100_000, None),
        ("1,000 apart by hostname", copies(1_000, apart=HOSTNAME), 2_000, {1_000: 21.9e6}),
        ("1,000 of 200 classes, half of them with inter-pod rules", diverse(1_000), 50_000, None),
    ):
        report.line(
            f"estimate beside nodes, {words}",
            _estimated(snapshot, pods),
            target_us=target_us,
            upstream_us=upstream_us,
            pods=len(pods),
        )


def measure_full(nodes: int, report: Reporter) -> None:
    """Spreading by hostname where all nodes are full, so that what new nodes may not take finds no place."""
    full = make_cluster(nodes, cpu="500m")
    for number in range(nodes):
        full.add_pod(make_pod(f"one-{number}", cpu="500m", shape=4000), node_name(number))
    for words, shape in (
        ("of an application that is not there", 3000),
        ("whose application is on some nodes", 1),
        ("whose application is on every node", 4000),
    ):
        pods = [make_pod(f"more-{at}", cpu="500m", shape=shape, spread=HOSTNAME) for at in range(10_000)]
        measured = _estimated(full, pods)
        operation = f"estimate beside full nodes, 10,000 spread by hostname, {words}"
        report.line(operation, measured, target_us=100_000, pods=10_000)


def measure_grouping(report: Reporter) -> None:
    pods = of_classes(50_000)
    report.line("group, per pod", cpu_us(lambda: equivalence_groups(pods), repeat=3, number=1) / len(pods))
    few = pods[:1_000]
    report.line("classify, per pod", cpu_us(lambda: [classify(pod) for pod in few], number=3) / len(few))


def _estimated(snapshot: Snapshot, pods: list[Pod]) -> float:
    template, groups = make_node(1), equivalence_groups(pods)
    return cpu_us(lambda: estimate(snapshot, template, (), groups, Limits()), repeat=5, number=1)
