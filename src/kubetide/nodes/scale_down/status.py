"""What scale-down reports of a tick: its result, what stays and why, what has begun, how deletions ended."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.scale_down.memory import DeleteResult, ScaledDownNode, ScaleDownStatus, UnremovableNode
from kubetide.nodes.scale_down.plan import Plan
from kubetide.nodes.scale_down.pods import in_order
from kubetide.nodes.scale_down.unneeded.evaluate import Evaluation, Removable, in_name_order
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod

NOT_TRIED: Final = "ScaleDownNotTried"


def begin_status(state: State) -> None:
    """Begin a tick's status: nothing was tried yet, and nothing deleted."""
    memory = state.memory.scale_down
    memory.status = replace(memory.status, result=NOT_TRIED, scaled_down=(), delete_results={})


def report_results(state: State) -> None:
    """Note how deletions ended in the status of a tick that ends before scale-down."""
    memory = state.memory.scale_down
    if memory.results:
        results, memory.results = memory.results, {}
        memory.status = replace(memory.status, delete_results=dict(sorted(results.items())))


def status_of(
    state: State,
    found: Evaluation,
    plan: Plan,
    result: str,
    why: str,
    results: dict[str, DeleteResult],
) -> ScaleDownStatus:
    """Return the status of an evaluation and of what was planned then; ``why`` says what holds nodes back that are unneeded."""
    waiting = {
        one.node: _waiting(one, *plan.waiting[one.node])
        for one in found.removable
        if one.node in plan.waiting
    }
    unremovable = in_name_order(found.unremovable, waiting)
    return ScaleDownStatus(
        result=result,
        why=why,
        unneeded=tuple(state.memory.scale_down.unneeded),
        unremovable=tuple(unremovable.values()),
        scaled_down=_scaled_down(state, plan),
        delete_results=dict(sorted(results.items())),
    )


def _waiting(one: Removable, word: str, detail: str) -> UnremovableNode:
    return UnremovableNode(
        node=one.node,
        group=one.group,
        reason=word,
        detail=detail,
        utilization=one.utilization.value,
        resource=one.utilization.resource,
    )


def pods_to_evict(state: State, one: Removable) -> list[Pod]:
    """Return the pods that a drain evicts, as this tick's snapshot has them: without what the evaluation moved there."""
    if not one.moves.pods:
        return []
    pods = in_order(one.node, state.snapshot.pods_on(one.node))
    return [pod for pod in pods if not is_mirror_pod(pod) and not is_daemon_set_pod(pod)]


def _scaled_down(state: State, plan: Plan) -> tuple[ScaledDownNode, ...]:
    return tuple(
        ScaledDownNode(
            node=one.node,
            group=one.group,
            kind="drain" if one.moves.pods else "empty",
            evicted_pods=tuple("/".join(key_of(pod)) for pod in pods_to_evict(state, one)),
            utilization=one.utilization.value,
            resource=one.utilization.resource,
        )
        for one in (*plan.empty, *plan.drain)
    )
