"""Why no node is sought for a pod at all, and who has to act instead."""

from __future__ import annotations

from kubetide.nodes.explain.waiting.node_fit import refusal_on
from kubetide.nodes.facts.amounts import refusal_text
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_unschedulable
from kubetide.nodes.scale_down.pods import is_expendable
from kubetide.nodes.scale_up.pending.pods import delayed_until
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod, priority_of
from kubetide.units.time import Instant, between, format_duration, format_rfc3339, instant_of

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


def not_in_tick_sentence(state: State, tick: Tick, pod: Pod, now: Instant) -> str:
    """Return why this tick buys nothing for a pod that has no place."""
    if is_daemon_set_pod(pod):
        node, key = _node_of(pod), key_of(pod)
        refusal = refusal_on(state, key, node) if node in state.nodes else None
        where = f"node {node}" if node else "the node that it is for"
        why = f", which does not take it: {refusal_text(refusal)}" if refusal is not None else ""
        return (
            f"It belongs to a DaemonSet, so no node is bought for it: it waits for capacity on {where}{why}."
        )
    if any(key_of(one) == key_of(pod) for one in tick.demand.too_new):
        return _too_new_sentence(state, pod, now)
    if tick.new_until is not None:
        return (
            "All pods without a node are so new that more may come, so they are looked at from "
            f"{format_rfc3339(tick.new_until)} on.{_created_later(pod, now)}"
        )
    return f"It is not looked at in this tick: {tick.result}."


def _too_new_sentence(state: State, pod: Pod, now: Instant) -> str:
    until = format_rfc3339(delayed_until(pod, state))
    if later := _created_later(pod, now):
        return f"It is not looked at before {until}.{later}"
    return f"It is younger than its scale-up delay (--new-pod-scale-up-delay, or its annotation), so it is looked at after {until}."


def _created_later(pod: Pod, now: Instant) -> str:
    """Return what is wrong where a pod was created in the future; empty for any other pod."""
    created = instant_of(pod.metadata.creation_timestamp)
    if created is None or created <= now:
        return ""
    return (
        f" It was created at {format_rfc3339(created)}, which is {format_duration(between(now, created))} later than the clock of "
        "the node loop shows: set the clocks of its machine and of the API server's right, and start the loop again."
    )


def _node_of(pod: Pod) -> str:
    """Return the node that a pod of a DaemonSet is for; empty if it does not say. Source: the DaemonSet controller."""
    affinity = pod.spec.affinity
    required = (
        affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if affinity is not None and affinity.node_affinity is not None
        else None
    )
    fields = [
        field
        for term in (required.node_selector_terms or () if required is not None else ())
        for field in term.match_fields or ()
    ]
    names = [name for field in fields if field.key == "metadata.name" for name in field.values or ()]
    return names[0] if len(names) == 1 else ""


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
