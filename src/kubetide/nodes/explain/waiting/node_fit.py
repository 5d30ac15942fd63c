"""Why each existing node rejects a pod, and the smallest change with which it would accept.

The scheduler's filters are asked on a copy of the cluster; each offer of help is verified by asking
them again with it.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kubetide.nodes.explain.waiting.group_changes import SET_BY_THE_CLOUD, asks_far_too_much
from kubetide.nodes.explain.waiting.pod_changes import (
    Change,
    ask_less,
    give_up_ports,
    labels_missing,
    labels_text,
    relax_inter_pod_rules,
    spread_less,
    tolerate,
)
from kubetide.nodes.facts.amounts import refusal_text
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.state import State
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import Refusal, Shortfall, Snapshot, classify_unbound

_MOST_CHANGES = 6


class NodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of nodes that reject or accept a pod for the same reason.

    Attributes:
        nodes: Their names, in order.
        takes: Whether they take it as it is.
        why: The first filter's refusal with its numbers, in words; empty where they take it.
        reasons: Upstream's words for it.
        plugin: The scheduler's plugin that refuses.
        shortfalls: What is short: requested, free, allocatable.
        changes: What would have to be different, all of it together.
        verified: Whether the filters let the pod in with these changes.
        remaining: Upstream's words for what they refuse with them; empty where they let it in.
    """

    nodes: tuple[str, ...]
    takes: bool
    why: str = ""
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    changes: tuple[Change, ...] = ()
    verified: bool = False
    remaining: str = ""

    @property
    def way_out(self) -> str:
        """All changes in one sentence."""
        return " and ".join(change.what for change in self.changes)


class NodesExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts of all nodes on a pod: accepting nodes first, then by the size of the needed change."""

    namespace: str
    name: str
    sentence: str
    verdicts: tuple[NodeVerdict, ...] = ()


class _Finding(NamedTuple):
    refusal: Refusal | None
    changes: tuple[Change, ...]
    remaining: str

    @property
    def verified(self) -> bool:
        return not self.remaining


def explain_on_nodes(state: State, key: Key) -> NodesExplanation:
    """Explain one pod node by node. Raises KeyError for an unknown pod.

    A pod that has a node is asked about as if it had none yet, so its own node says whether it would
    take it again.
    """
    state = copy_state(state)
    pod, snapshot = state.pods[key], state.snapshot
    namespace, name = key
    snapshot.fork()
    try:
        snapshot.remove_pod(key)
        found: dict[_Finding, list[str]] = {}
        for node_name in list(snapshot.node_names):
            found.setdefault(_look(snapshot, pod, node_name), []).append(node_name)
    finally:
        snapshot.revert()
    ordered = sorted(found.items(), key=lambda item: (*_effort(item[0]), -len(item[1]), item[1]))
    verdicts = tuple(_verdict(finding, tuple(nodes)) for finding, nodes in ordered)
    return NodesExplanation(
        namespace=namespace, name=name, sentence=_sentence(pod, verdicts), verdicts=verdicts
    )


def refusal_on(state: State, key: Key, node_name: str) -> Refusal | None:
    """Return why a node does not take a pod that has none, as if the pod were not nominated to it; None if it takes it.

    Raises KeyError for an unknown pod.
    """
    state = copy_state(state)
    pod, snapshot = state.pods[key], state.snapshot
    snapshot.fork()
    try:
        snapshot.remove_pod(key)
        return snapshot.first_refusal(classify_unbound(pod), node_name)
    finally:
        snapshot.revert()


def _sentence(pod: Pod, verdicts: tuple[NodeVerdict, ...]) -> str:
    nodes = sum(len(one.nodes) for one in verdicts)
    takers = sum(len(one.nodes) for one in verdicts if one.takes)
    now = f"It is on node {pod.spec.node_name}. " if pod.spec.node_name else ""
    if not nodes:
        return f"{now}There is no node."
    return f"{now}{takers} of {nodes} {'node' if nodes == 1 else 'nodes'} would take it as {'it is' if nodes == 1 else 'they are'}."


def _effort(finding: _Finding) -> tuple[int, int]:
    if finding.refusal is None:
        return 0, 0
    return (1, len(finding.changes)) if finding.verified else (2, 0)


def _verdict(finding: _Finding, nodes: tuple[str, ...]) -> NodeVerdict:
    refusal = finding.refusal
    if refusal is None:
        return NodeVerdict(nodes=nodes, takes=True)
    return NodeVerdict(
        nodes=nodes,
        takes=False,
        why=refusal_text(refusal),
        reasons=refusal.reasons,
        plugin=refusal.plugin,
        shortfalls=refusal.numbers,
        changes=finding.changes,
        verified=finding.verified,
        remaining=finding.remaining,
    )


def _look(snapshot: Snapshot, pod: Pod, node_name: str) -> _Finding:
    """Ask one node, puts right what it refuses, and asks again, until it takes the pod or nothing helps."""
    first = snapshot.first_refusal(classify_unbound(pod), node_name)
    refusal = first
    changes: list[Change] = []
    snapshot.fork()
    try:
        while refusal is not None and len(changes) < _MOST_CHANGES:
            changed = _put_right(snapshot, pod, node_name, refusal)
            if changed is None:
                break
            pod, change = changed
            changes.append(change)
            refusal = snapshot.first_refusal(classify_unbound(pod), node_name)
    finally:
        snapshot.revert()
    remaining = "" if refusal is None else ", ".join(refusal.reasons) or refusal.plugin
    return _Finding(first, tuple(changes), remaining)


def _put_right(snapshot: Snapshot, pod: Pod, node_name: str, refusal: Refusal) -> tuple[Pod, Change] | None:
    """Change the pod, or the node in the snapshot, by what the filter refuses."""
    node = snapshot.node(node_name)

    def passes(changed: Pod) -> bool:
        after = snapshot.first_refusal(classify_unbound(changed), node_name)
        return after is None or after.plugin != refusal.plugin

    match refusal.plugin:
        case "NodeResourcesFit":
            return None if asks_far_too_much(refusal) else ask_less(pod, refusal)
        case "TaintToleration":
            return tolerate(pod, node.spec.taints or ())
        case "PodTopologySpread":
            return spread_less(pod, passes)
        case "InterPodAffinity":
            return relax_inter_pod_rules(pod, passes)
        case "NodePorts":
            return give_up_ports(pod, passes)
        case "NodeUnschedulable":
            snapshot.set_node(replace(node, spec=replace(node.spec, unschedulable=False)))
            return pod, Change("cordon", "uncordon the node")
        case "NodeAffinity":
            return _label(snapshot, pod, node)
    return None


def _label(snapshot: Snapshot, pod: Pod, node: Node) -> tuple[Pod, Change] | None:
    labels = node.metadata.labels or {}
    missing = labels_missing(pod, labels)
    if not missing:
        return None
    snapshot.set_node(replace(node, metadata=replace(node.metadata, labels={**labels, **missing})))
    fixed = {key: value for key, value in missing.items() if key in SET_BY_THE_CLOUD}
    free = {key: value for key, value in missing.items() if key not in fixed}
    parts = [f"add label {labels_text(free)} to the node"] if free else []
    parts += [f"drop {labels_text(fixed)} from the pod's node selector"] if fixed else []
    return pod, Change("label", " and ".join(parts))
