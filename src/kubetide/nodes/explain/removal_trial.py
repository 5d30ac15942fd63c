"""What still keeps a node once its obstacle is put right, found by deciding about its removal again.

The nodes that are unneeded already are tried before it, as the loop does: their pods have taken their places, and
their groups have shrunk.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.explain.reserved_capacity import blocker_text, request_of
from kubetide.nodes.scale_down.context import drain_context
from kubetide.nodes.scale_down.drain_rules import Answer, Blocked, DrainContext, Moves, Rule, pods_to_move
from kubetide.nodes.scale_down.facts import Cache
from kubetide.nodes.scale_down.names import SCALE_DOWN_DISABLED
from kubetide.nodes.scale_down.pods import in_order
from kubetide.nodes.scale_down.unneeded.eligibility import ignores_daemon_sets, refusal
from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.nodes.scale_down.unneeded.removal import DoesNotFit, Simulation
from kubetide.nodes.scale_down.unneeded.simulation_time import is_evaluating
from kubetide.nodes.state import State
from kubetide.objects.meta import controller_of, key_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant


def remaining_obstacle(state: State, name: str, reason: str, now: Instant, *, blocked: bool) -> str | None:
    """Return what keeps the node once its obstacle is gone; empty if it would go then, None if that cannot be tried.

    Args:
        state: After the last evaluation. It is left as it is: the snapshot is forked and reverted.
        name: The node.
        reason: Why it stays, in upstream's word.
        now: The time.
        blocked: Whether a pod keeps it. Which one is found anew.
    """
    group_id = state.group_of(name)
    if group_id is None or name not in state.snapshot or is_evaluating(state):
        return None
    state.snapshot.fork()
    try:
        return _Trial(state, now).obstacle(name, group_id, reason, blocked=blocked)
    finally:
        state.snapshot.revert()


class _Trial:
    """Removals on a fork of the snapshot, one after another."""

    def __init__(self, state: State, now: Instant) -> None:
        self._state = state
        self._now = now
        self._context = drain_context(state, now, Allowances.of(state.pdbs))
        memory = state.memory
        self._simulation = Simulation(
            state.snapshot, state.nodes, memory.scale_down.hints, memory.rotation, memory.new_pods
        )
        for deleted in memory.scale_down.deletions:
            self._simulation.close(deleted)

    def obstacle(self, name: str, group_id: str, reason: str, *, blocked: bool) -> str:
        """Return what keeps the node though the reason, or the first pod that keeps it, no longer does; empty for nothing."""
        state = self._state
        going = [one for one in state.memory.scale_down.unneeded if one != name and one in state.snapshot]
        for other in going:
            self._remove(other)
        blocking = self._moves(name, self._context).blocked if blocked else None
        context = self._context if blocking is None else self._without(blocking, name)
        if refused := self._refusal(name, group_id, reason, context):
            return refused
        moves = self._moves(name, context)
        if moves.blocked is not None:
            pod, answer = "/".join(key_of(moves.blocked.pod)), moves.blocked.answer
            return blocker_text(state, pod, ", ".join(filter(None, (answer.reason, answer.detail))))
        group = state.groups[group_id]
        left = group.target_size - sum(state.group_of(one) == group_id for one in going)
        if left <= group.min_size and reason != "NodeGroupMinSizeReached":
            return f"group {group_id} is at its minimum of {group.min_size}, as other nodes of it go"
        try:
            self._simulation.move(name, moves.pods)
        except DoesNotFit as error:
            return error.detail
        return ""

    def _remove(self, name: str) -> None:
        """Remove a node that goes anyway, as far as it still can."""
        moves = self._moves(name, self._context)
        if moves.blocked is not None:
            return
        try:
            self._simulation.move(name, moves.pods)
        except DoesNotFit:
            return
        self._context.allowances.take(moves.pods)
        self._simulation.remove(name)

    def _moves(self, name: str, context: DrainContext) -> Moves:
        return pods_to_move(in_order(name, self._state.snapshot.pods_on(name)), context)

    def _without(self, blocked: Blocked, name: str) -> DrainContext:
        """Return rules that let the pod go, and those of the same controller, which the same change concerns."""
        state, context = self._state, self._context
        request = request_of(state, "/".join(key_of(blocked.pod)))
        if request is not None:
            for pod in state.snapshot.pods_on(name):
                if request_of(state, "/".join(key_of(pod))) is request:
                    state.snapshot.remove_pod(key_of(pod))
            return context
        if blocked.answer.reason == "NotEnoughPdb":
            while (budget := context.allowances.refusing(blocked.pod)) is not None:
                context.allowances.left[budget] = 1
            return context
        rules = [_lifted(rule, blocked.pod) if rule.name == blocked.rule else rule for rule in context.rules]
        return replace(context, rules=tuple(rules))

    def _refusal(self, name: str, group_id: str, reason: str, context: DrainContext) -> str:
        """Return why the node stays whatever its pods are, apart from ``reason``; empty for nothing."""
        state, group = self._state, self._state.groups[group_id]
        ignored = ignores_daemon_sets(group, state.settings)
        facts = Cache().facts(state.snapshot, name, context, ignore_daemon_sets=ignored)
        settings = state.settings
        if reason == "ScaleDownDisabledAnnotation":
            facts = replace(facts, node=_enabled(facts.node))
        if reason == "ScaleDownUnreadyDisabled":
            settings = replace(settings, scale_down_unready_enabled=True)
        refused = refusal(facts, group, settings, self._now)
        return "" if refused is None else f"{refused.reason}, {refused.detail}"


def _lifted(rule: Rule, pod: Pod) -> Rule:
    """Return the rule without an answer about the pod and the others of its controller."""
    owner = controller_of(pod.metadata)

    def check(other: Pod, context: DrainContext) -> Answer | None:
        same = key_of(other) == key_of(pod) if owner is None else controller_of(other.metadata) == owner
        return None if same else rule.check(other, context)

    return replace(rule, check=check)


def _enabled(node: Node) -> Node:
    """Return the node without the annotation that excludes it from removal."""
    kept = {
        key: value for key, value in (node.metadata.annotations or {}).items() if key != SCALE_DOWN_DISABLED
    }
    return replace(node, metadata=replace(node.metadata, annotations=kept))
