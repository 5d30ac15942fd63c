"""Nominations: new nodes whose group has a taint for it get the pods that they were bought for.

A scheduler binds pods to whichever node is ready first. So a small pod takes part of a node that was bought for a
large one, and another must be bought. Where a group's nodes begin with the start-up taint ``NOMINATES``, the loop
writes ``status.nominatedNodeName`` of the planned pods that still wait once the node is well, and then takes the taint off.
Only then: kube-scheduler drops a nomination at the first try at which the node does not take the pod.

Source: kube-scheduler 1.36, KEP-5278 (nominatedNodeName for expectation): pods of no higher priority leave a node's capacity to
those nominated to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import NominatePod, RemoveTaint
from kubetide.nodes.facts.nodes import NOMINATES, has_taint, readiness
from kubetide.nodes.reasons import reason
from kubetide.nodes.state import State
from kubetide.objects.node import Node, node_condition
from kubetide.objects.pod import Pod
from kubetide.scheduling import hint_key


def nominations(state: State) -> tuple[list[NominatePod], list[RemoveTaint], list[Reason]]:
    """Return the nominations of this tick, the taints to take off after them, and why.

    The nodes are remembered, so that one that still shows its taint only loses that.
    """
    ready = [name for name in _tainted(state) if _waits_for_nothing_else(state, name)]
    known = frozenset(state.memory.nominated)
    state.memory.nominated = tuple(ready)
    new = [name for name in ready if name not in known]
    nominated: list[NominatePod] = []
    reasons: list[Reason] = []
    waiting = {hint_key(pod): pod for pod in state.pending.values()} if new else {}
    for name in new:
        pods = _take_planned(state, name, waiting)
        nominated += [
            NominatePod(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, name) for pod in pods
        ]
        if pods:
            group = state.group_of(name) or ""
            reasons.append(reason("PodsNominated", name, group=group, pods=len(pods)))
    return nominated, [RemoveTaint(name, NOMINATES) for name in ready], reasons


def may_be_nominated_to(node: Node) -> bool:
    """Return whether only the loop still keeps pods away from the node, as far as its conditions say."""
    ready = node_condition(node, "Ready")
    return has_taint(node, NOMINATES) and ready is not None and ready.status == "True"


def _tainted(state: State) -> tuple[str, ...]:
    known = state.known_nodes()
    if known.nominating is None:
        known.nominating = tuple(
            sorted(name for name, node in state.nodes.items() if has_taint(node, NOMINATES))
        )
    return known.nominating


def _waits_for_nothing_else(state: State, name: str) -> bool:
    node = state.nodes[name]
    taints = tuple(taint for taint in node.spec.taints or () if taint.key != NOMINATES)
    open_node = replace(node, spec=replace(node.spec, taints=taints))
    has_devices = state.snapshot.facts.devices is None or not state.lacks_devices(name)
    return may_be_nominated_to(node) and not readiness(open_node, state.settings) and has_devices


def _take_planned(state: State, name: str, waiting: dict[str, Pod]) -> list[Pod]:
    """Take a node's share of the group's plan: the planned node of which most pods still wait; return these pods."""
    planned = state.memory.planned.get(state.group_of(name) or "", ())
    best = max(planned, key=lambda keys: _number_of(keys, waiting), default=())
    if not _number_of(best, waiting):
        return []
    group = state.group_of(name) or ""
    at = planned.index(best)
    state.memory.planned[group] = (*planned[:at], *planned[at + 1 :])
    return [waiting.pop(key) for key in best if key in waiting]


def _number_of(keys: tuple[str, ...], waiting: Mapping[str, Pod]) -> int:
    return sum(key in waiting for key in keys)
