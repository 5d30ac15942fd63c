"""Nominations: a new node gets the pods that were planned for it, where its group has the nomination taint.

A scheduler binds pods to whichever node is ready first. So a small pod takes part of a node that was bought for a
large one, and another must be bought. Nodes with the taint take no pods. Once such a node is ready, the loop writes
``status.nominatedNodeName`` of the pods that it has placed on one of the group's upcoming nodes, and then removes the
taint. In this order: kube-scheduler drops a nomination at the first try at which the node does not take the pod.

Source: kube-scheduler 1.36, KEP-5278 (nominatedNodeName for expectation): pods of the same or a lower priority
cannot use the capacity that nominated pods need.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import NominatePod, RemoveTaint
from kubetide.nodes.facts.nodes import NOMINATION_TAINT, has_taint, readiness
from kubetide.nodes.memory import UpcomingNode
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.nodes.templates.upcoming_names import upcoming_name, upcoming_number
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import hint_key

_NONE = -1


def nominations(state: State) -> tuple[list[NominatePod], list[RemoveTaint], list[Reason]]:
    """Return the nominations of this tick, the taints to remove after them, and the reasons.

    The memory keeps a node until a watch shows it without the taint. Until then the node counts as upcoming, and
    its pods stay on the same upcoming node, so that nothing is bought for them again.
    """
    memory = state.memory
    ready = [name for name in _tainted(state) if _waits_for_nothing_else(state, name)]
    if not ready and not memory.nominated:
        return [], [], []
    _forget_opened(state, ready)
    nominated: list[NominatePod] = []
    reasons: list[Reason] = []
    pending = {hint_key(pod): pod for pod in state.pending.values()}
    for name in ready:
        if name in memory.nominated:
            continue
        group = state.group_of(name) or ""
        number, pods = _choose_upcoming(state, group, pending)
        memory.nominated[name] = UpcomingNode(group, number)
        nominated += [
            NominatePod(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, name) for pod in pods
        ]
        if pods:
            reasons.append(reason("PodsNominated", name, group=group, pods=len(pods)))
    return nominated, [RemoveTaint(name, NOMINATION_TAINT) for name in ready], reasons


def note_expected(state: State, tick: Tick) -> None:
    """Remember which pods the tick placed on each upcoming node, where any group has the nomination taint."""
    placed = tick.demand.placed if _has_nominations(state) else ()
    state.memory.expected = {hint_key(pod): name for pod, name in placed if name in tick.upcoming_nodes}


def _has_nominations(state: State) -> bool:
    learned = state.memory.learned.groups.values()
    return bool(_tainted(state)) or any(NOMINATION_TAINT in one.startup_taints for one in learned)


def awaits_nominations(node: Node, settings: Settings) -> bool:
    """Return whether the node is ready but for the nomination taint, so that only the loop still keeps pods away from it."""
    if not has_taint(node, NOMINATION_TAINT):
        return False
    taints = tuple(taint for taint in node.spec.taints or () if taint.key != NOMINATION_TAINT)
    return not readiness(replace(node, spec=replace(node.spec, taints=taints)), settings)


def _tainted(state: State) -> tuple[str, ...]:
    known = state.known_nodes()
    if known.nominating is None:
        known.nominating = tuple(
            sorted(name for name, node in state.nodes.items() if has_taint(node, NOMINATION_TAINT))
        )
    return known.nominating


def _waits_for_nothing_else(state: State, name: str) -> bool:
    has_devices = state.snapshot.facts.devices is None or not state.lacks_devices(name)
    return has_devices and awaits_nominations(state.nodes[name], state.settings)


def _choose_upcoming(state: State, group: str, pending: Mapping[str, Pod]) -> tuple[int, list[Pod]]:
    """Return the number of the group's upcoming node that has the pod that waits longest, and all pods placed on that node."""
    taken = {one.number for one in state.memory.nominated.values() if one.group == group}
    expected: dict[int, dict[str, None]] = {}
    for number, keys in enumerate(state.memory.planned.get(group, ())):
        expected[number] = dict.fromkeys(key for key in keys if key in pending)
    for key, name in state.memory.expected.items():
        if key in pending and (found := upcoming_number(group, name)) is not None:
            expected.setdefault(found, {})[key] = None
    free = [number for number in sorted(expected) if number not in taken and expected[number]]
    if not free:
        return _NONE, []
    best = min(free, key=lambda number: _oldest(expected[number], pending))
    return best, [pending[key] for key in expected[best]]


def _oldest(keys: Collection[str], pending: Mapping[str, Pod]) -> str:
    """Return the first creation among these pods. All times are of one format, so that they compare as texts."""
    return min(pending[key].metadata.creation_timestamp or "" for key in keys)


def _forget_opened(state: State, ready: Collection[str]) -> None:
    """Remove nodes that lost the taint, or are gone, from the plan: the upcoming nodes after each move up by one."""
    memory = state.memory
    opened = [name for name in memory.nominated if name not in ready]
    for one in sorted((memory.nominated.pop(name) for name in opened), key=lambda one: -one.number):
        if one.number == _NONE:
            continue
        planned = memory.planned.get(one.group, ())
        memory.planned[one.group] = (*planned[: one.number], *planned[one.number + 1 :])
        memory.expected = {
            key: moved for key, name in memory.expected.items() if (moved := _moved_up(one, name)) is not None
        }
        for name, other in memory.nominated.items():
            if other.group == one.group and other.number > one.number:
                memory.nominated[name] = replace(other, number=other.number - 1)


def _moved_up(opened: UpcomingNode, name: str) -> str | None:
    """Return the name of an upcoming node once an earlier one is no longer upcoming; None of that one itself."""
    number = upcoming_number(opened.group, name)
    if number is None or number < opened.number:
        return name
    return None if number == opened.number else upcoming_name(opened.group, number - 1)
