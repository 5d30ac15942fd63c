"""Why no node is sought for a pod at all, and who has to act instead."""

from __future__ import annotations

from kubetide.nodes.facts.pods import is_daemon_set_pod, is_unschedulable
from kubetide.nodes.scale_down.pods import is_expendable
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod, priority_of

_DEFAULT_SCHEDULER = "default-scheduler"


def not_considered_sentence(state: State, pod: Pod) -> str:
    """Return why no loop ever buys a node for this pod as it is; empty for a pod that one may be bought for.

    Source: Cluster Autoscaler, the list of unschedulable pods and the filter of expendable ones.
    """
    settings = state.settings
    if pod.metadata.deletion_timestamp:
        return "It is being deleted, so no node is sought for it."
    if gates := [gate.name for gate in pod.spec.scheduling_gates or ()]:
        hold, them = ("gate {} holds", "it") if len(gates) == 1 else ("gates {} hold", "them")
        return (
            f"Its scheduling {hold.format(', '.join(gates))} it back from the scheduler, so no node is sought for it. "
            f"What would help: the controller that set {them} removes {them}."
        )
    if not is_unschedulable(pod, settings):
        return _unasked(pod, settings.allowed_scheduler_names)
    if is_expendable(pod, cutoff := settings.expendable_pods_priority_cutoff):
        return (
            f"Its priority {priority_of(pod)} is below {cutoff}, --expendable-pods-priority-cutoff, so it waits for free "
            f"capacity and no node is bought for it. What would help: a PriorityClass of {cutoff} or more."
        )
    return ""


def not_in_tick_sentence(tick: Tick, pod: Pod, key: Key) -> str:
    """Return why this tick buys nothing for a pod that has no place."""
    if is_daemon_set_pod(pod):
        return "It belongs to a DaemonSet, so no node is bought for it: it waits for capacity on the node that it is for."
    if any((one.metadata.namespace, one.metadata.name) == key for one in tick.demand.too_new):
        return "It is younger than its scale-up delay, so it is not looked at yet."
    return f"It is not looked at in this tick: {tick.result}."


def _unasked(pod: Pod, allowed: tuple[str, ...]) -> str:
    scheduler = pod.spec.scheduler_name or _DEFAULT_SCHEDULER
    if allowed and scheduler not in allowed:
        return f"Its scheduler {scheduler} is not in --allowed-scheduler-names, so no node is sought for it."
    if scheduler != _DEFAULT_SCHEDULER:
        return (
            f"Its scheduler {scheduler} has not said that it is unschedulable, so no node is sought for it. Check that a "
            "scheduler of that name runs."
        )
    return "The scheduler has not said that it is unschedulable, so no node is sought for it."
