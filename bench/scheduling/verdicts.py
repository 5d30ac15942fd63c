"""One class against all nodes, and what trying something out costs."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from bench.scheduling.measuring import Reporter, cpu_us
from bench.scheduling.objects import HOSTNAME, ZONE, make_node, make_pod
from kubetide.objects.meta import LabelSelector, LabelSelectorRequirement
from kubetide.objects.node import Node, NodeSpec
from kubetide.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from kubetide.scheduling import Snapshot, classify

# A pod against all nodes when none fits, kube-scheduler v1.36.2: 1,000 and 5,000 nodes.
_PLAIN = {1_000: 1_200.0, 5_000: 5_500.0}
_AFFINITY = {1_000: 1_400.0, 5_000: 14_400.0}
_SPREAD = {1_000: 8_700.0, 5_000: 45_500.0}
_APART = {1_000: 9_900.0, 5_000: 46_800.0}
_EXCLUDED = {1_000: 12_900.0, 5_000: 49_700.0}


def measure_forks(snapshot: Snapshot, report: Reporter) -> None:
    def fork_and_revert() -> None:
        snapshot.fork()
        snapshot.revert()

    measured = cpu_us(fork_and_revert, number=1000)
    report.line("fork and revert", measured, target_us=2, upstream_us=1, grows=False)
    moving = [make_pod(f"moving-{index}") for index in range(1_000)]
    target = snapshot.node_names[0]

    def change() -> None:
        snapshot.fork()
        for pod in moving:
            snapshot.add_pod(pod, target)
        snapshot.revert()

    report.line("fork, 1,000 pods added, revert", cpu_us(change, number=2), pods=1_000)


def measure_verdicts(snapshot: Snapshot, report: Reporter) -> None:
    """A pod that is put somewhere makes the last answer invalid, as in a scheduler's pass."""
    known = classify(make_pod("incoming", pool="pool-1"))
    for words, pod, target_us, upstream in (
        ("plain", make_pod("incoming"), 50, _PLAIN),
        ("node selector", make_pod("incoming", pool="pool-1"), 50, _AFFINITY),
        ("node affinity", make_pod("incoming", affinity_pool="pool-1"), 100, _AFFINITY),
        ("taints", make_pod("incoming", tolerates=False), 100, None),
        ("spread by zone", make_pod("incoming", spread=ZONE), 100, _SPREAD),
        ("spread by hostname", make_pod("incoming", spread=HOSTNAME), 100, None),
        ("anti-affinity by zone", make_pod("incoming", shape=999, apart=ZONE), 100, _APART),
        ("anti-affinity by hostname", make_pod("incoming", shape=999, apart=HOSTNAME), 100, None),
    ):
        measured = _asked(snapshot, pod)
        report.line(f"class against all nodes, {words}", measured, target_us=target_us, upstream_us=upstream)
    first = make_node(0)
    cordoned = Node(metadata=first.metadata, spec=NodeSpec(unschedulable=True), status=first.status)

    def judged_anew() -> None:
        snapshot.set_node(cordoned)
        snapshot.feasible(known)
        snapshot.set_node(first)

    report.line(
        "class against all nodes, after a node changed", cpu_us(judged_anew, number=50), target_us=100
    )
    number = iter(range(1 << 30))

    def new_class() -> None:
        snapshot.feasible(classify(make_pod("incoming", cpu=f"{next(number) + 1}m")))

    without = cpu_us(lambda: make_pod("incoming", cpu=f"{next(number) + 1}m"), number=50)
    measured = cpu_us(new_class, number=50) - without
    report.line("class against all nodes, for the first time", measured, target_us=100)
    report.line("reasons counted over all nodes", cpu_us(lambda: snapshot.refusals(known)))


def measure_excluded(snapshot: Snapshot, report: Reporter) -> None:
    """With pods that exclude all others from their node: counts for them stay after they are deleted."""
    for guards in (1, 10, 100):
        snapshot.fork()
        _add_guards(snapshot, guards)
        measured = _asked(snapshot, make_pod("incoming"))
        words = f"class against all nodes, kept off by {guards} terms of others"
        report.line(words, measured, target_us=100, upstream_us=_EXCLUDED)
        snapshot.revert()


def _asked(snapshot: Snapshot, pod: Pod) -> float:
    incoming, elsewhere, target = classify(pod), make_pod("elsewhere"), snapshot.node_names[0]

    def change(ask: Callable[[], object]) -> Callable[[], None]:
        def changed() -> None:
            snapshot.fork()
            snapshot.add_pod(elsewhere, target)
            ask()
            snapshot.revert()

        return changed

    whole = cpu_us(change(lambda: snapshot.feasible(incoming)), number=100)
    return whole - cpu_us(change(lambda: None), number=100)


def _add_guards(snapshot: Snapshot, number: int) -> None:
    """Put pods on the first node that exclude all applications, each by a term of its own."""
    everyone = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Exists"),))
    for index in range(number):
        guard = make_pod(f"guard-{index}", shape=1000 + index, apart=HOSTNAME)
        term = PodAffinityTerm(
            label_selector=everyone, topology_key=HOSTNAME, namespaces=("default", f"n{index}")
        )
        anti = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
        spec = replace(guard.spec, affinity=Affinity(pod_anti_affinity=anti))
        snapshot.add_pod(replace(guard, spec=spec), snapshot.node_names[0])
