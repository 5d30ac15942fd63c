"""Checks the pods that are on a node before its deletion goes on: whether it may go, and which of them are evicted.

Source: Cluster Autoscaler, actuator (the check before a node is drained or deleted). Its look at pods that come
later is kubetide's own: no machine is deleted with a pod that nobody has decided about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubetide.nodes.scale_down.context import drain_context, empty_context
from kubetide.nodes.scale_down.deletion.evictions import evictions_of
from kubetide.nodes.scale_down.drain_rules import Moves, pods_to_move
from kubetide.nodes.scale_down.drain_rules.blocking_errors import blocking_error
from kubetide.nodes.scale_down.memory import Deletion, Eviction
from kubetide.nodes.scale_down.pods import is_expendable
from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod, is_finished
from kubetide.units.time import Instant

_MAX_LANDINGS = 3
"""How often pods may land again on a node that is drained before it is given up."""


class PodCheck(NamedTuple):
    """Why the node stays, empty where nothing keeps it; and the evictions that it needs."""

    problem: str
    evictions: tuple[Eviction, ...] = ()


def check_pods(state: State, deletion: Deletion, pods: Sequence[Pod], now: Instant) -> PodCheck:
    """Check all pods of the node when the taint has had its time and the deletion begins.

    An empty node must still be empty; a pod that came may be one that no rule would let go.
    """
    moves = _split(state, pods, now, drain=deletion.drain)
    if moves.blocked is not None:
        return PodCheck(
            f'GetPodsToMove for "{deletion.node}" returned error: {blocking_error(moves.blocked)}'
        )
    empty = f'failed to delete empty node "{deletion.node}"'
    if moves.pods and not deletion.drain:
        return PodCheck(f"{empty}, new pods scheduled")
    if moves.waiting:
        # Upstream evicts such a pod from a node that is drained, though its owner asks for the contrary.
        if not deletion.drain:
            return PodCheck(f"{empty}, active on-completion pods present")
        return PodCheck(f"pod {'/'.join(key_of(moves.waiting[0]))} must end by itself first")
    return PodCheck("", evictions_of(moves, state.settings, now, drain=deletion.drain))


def check_new_pods(state: State, deletion: Deletion, pods: Sequence[Pod], now: Instant) -> PodCheck:
    """Check pods that came after the deletion began: a drain evicts them, and a node that was empty stays."""
    asked = {(one.namespace, one.name, one.uid) for one in deletion.pods}
    others = tuple(pod for pod in pods if (*key_of(pod), pod.metadata.uid) not in asked)
    moves = _split(state, others, now, drain=deletion.drain)
    if moves.blocked is not None:
        pod = "/".join(key_of(moves.blocked.pod))
        return PodCheck(f"pod {pod} landed on it and blocks it: {moves.blocked.answer.reason}")
    if moves.waiting:
        return PodCheck(f"pod {'/'.join(key_of(moves.waiting[0]))} landed on it and must end by itself first")
    if not moves.pods:
        return PodCheck("")
    if not deletion.drain or deletion.landings >= _MAX_LANDINGS:
        names = ", ".join("/".join(key_of(pod)) for pod in moves.pods)
        return PodCheck(f"new pods scheduled: {names}")
    evictions = evictions_of(moves, state.settings, now, drain=True)
    return PodCheck("", tuple(one for one in evictions if one.needed))


def _split(state: State, pods: Sequence[Pod], now: Instant, *, drain: bool) -> Moves:
    """Ask the drain rules about freshly read pods; finished and expendable ones do not count."""
    cutoff = state.settings.expendable_pods_priority_cutoff
    counted = [pod for pod in pods if not is_finished(pod) and not is_expendable(pod, cutoff)]
    context = drain_context(state, now, Allowances.of(state.pdbs)) if drain else empty_context(state, now)
    return pods_to_move(counted, context)
