"""Pods that block the removal of their nodes for good, and the cost of that."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.explain.blockers import LASTING, fix_for
from kubetide.nodes.scale_down.context import drain_context
from kubetide.nodes.scale_down.drain_rules.base import Answer
from kubetide.nodes.scale_down.drain_rules.evaluate import evaluate
from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.objects.meta import key_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield, per node of a group, the pods that scale-down may never move, with the price of the node.

    Budgets are another check: what they refuse may be allowed later.
    """
    if not snapshot.groups:
        return
    state = snapshot.node_state
    context = drain_context(state, snapshot.now, Allowances.of(state.pdbs))
    rules = [rule for rule in context.rules if not rule.uses_allowance]
    on_node: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        on_node.setdefault(pod.spec.node_name, []).append(pod)
    for node in snapshot.nodes:
        group = state.group_of(node.metadata.name)
        if group is None:
            continue
        blocked: list[tuple[Pod, Answer]] = []
        for pod in sorted(on_node.get(node.metadata.name, ()), key=key_of):
            answer, _ = evaluate(pod, context, rules)
            if answer.outcome == "block" and answer.reason in LASTING:
                blocked.append((pod, answer))
        if blocked:
            known = state.groups[group]
            # At the minimum the node stays without these pods as well: they cost nothing.
            costs = known.price_per_hour if known.target_size > known.min_size else None
            yield _finding(node, group, blocked, costs)


def _finding(node: Node, group: str, blocked: list[tuple[Pod, Answer]], price: float | None) -> Finding:
    seen = "; ".join(
        f"{pod.metadata.namespace}/{pod.metadata.name}: {answer.reason}" for pod, answer in blocked
    )
    fixes = dict.fromkeys(fix_for(answer.reason) for _, answer in blocked)
    return Finding(
        check="scale-down-blockers",
        severity="warning",
        object=f"Node {node.metadata.name}",
        seen=f"pods keep it for ever: {seen}",
        why=f"a node of group {group} is never removed while they are on it, however empty it is",
        fix="; ".join(fixes),
        cost_per_hour=price,
    )
