"""Filters demand: pods that fit already, pods that are too new, and pods that need new nodes.

Source: Cluster Autoscaler's pod list processors, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from kubetide.nodes.facts.pods import consumes_request, is_daemon_set_pod
from kubetide.nodes.scale_up.pending.degradation import is_late
from kubetide.nodes.scale_up.pending.demand import every_demand, workload_of
from kubetide.nodes.scale_up.pending.injected_pods import INJECTED, within_limit
from kubetide.nodes.scale_up.tick import Demand
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod, priority_of
from kubetide.ports.cloud import GPU_RESOURCES
from kubetide.scheduling import classify
from kubetide.scheduling.estimator.unstable_sort import descending_order
from kubetide.scheduling.placement import Placements, Search, place
from kubetide.units.time import Duration, Instant, after, instant_of, parse_duration, seconds

SCALE_UP_DELAY_ANNOTATION = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
_NEW = seconds(2)
_NEW_GPU = seconds(30)


def demanded_pods(state: State, now: Instant, hints: Mapping[str, str], *, most: int | None = None) -> Demand:
    """Place pods that fit on the snapshot's nodes (and leave them there); return those that do not fit.

    Called on a fork that holds the upcoming nodes.

    Args:
        state: The state.
        now: The time.
        hints: Nodes that are tried first, by ``hint_key`` of the pod; after them those of the tick before.
        most: How many pods are looked at; where there are more, ``place_more`` goes on with them. None for all.
    """
    demand = Demand()
    asked = every_demand(state, now)
    if not asked:
        state.memory.hints = {}
        return demand
    for item in asked:
        key = (item.pod.metadata.namespace, item.pod.metadata.name)
        if item.virtual:
            demand.virtual[key] = item.source
        workload = workload_of(state, item.pod)
        if workload is not None:
            demand.workloads[key] = workload
    state.phases.begin("filterOutSchedulable")
    # Upstream's sort is not stable: of more than twelve pods equals change places.
    order = descending_order([priority_of(item.pod) for item in asked])
    demand.search = Search(
        state.snapshot,
        [asked[at].pod for at in order],
        hints={**hints_that_hold(state, state.memory.hints), **hints},
        start=state.memory.rotation,
        by_name=True,
    )
    demand.begun = state.elapsed
    place_more(state, demand, now, most)
    return demand


def place_more(state: State, demand: Demand, now: Instant, most: int | None) -> None:
    """Place the next pods; once all are done, or the time is over, sort out the rest."""
    search = demand.search
    assert search is not None, "there are pods that were not looked at"
    late = is_late(state, demand.begun)
    if not late and not search.go_on(most):
        return
    placements = search.result()
    state.memory.rotation = placements.start
    state.memory.hints = dict(sorted(placements.hints.items()))
    demand.search = None
    demand.placed = list(placements.placed)
    demand.overflowing = placements.overflowing
    demand.unprocessed = len(placements.unprocessed)
    state.phases.end("filterOutSchedulable")
    injected = {key: None for key, source in demand.virtual.items() if source == INJECTED}
    unplaced = [pod for pod in placements.unplaced if not is_daemon_set_pod(pod)]
    if state.settings.enable_provisioning_requests:
        demand.consumers = [pod for pod in unplaced if consumes_request(pod)]
        unplaced = [pod for pod in unplaced if not consumes_request(pod)]
    left = within_limit(state, unplaced, injected)
    demand.injected = sum(key_of(pod) in injected for pod in left) if injected else 0
    demand.over_limit = len(unplaced) - len(left)
    for pod in left:
        if is_too_new(pod, state, now):
            demand.too_new.append(pod)
        else:
            demand.pods.append(pod)


def place_in_turn(
    state: State,
    pods: Sequence[Pod],
    *,
    hints: Mapping[str, str] | None = None,
    stop_at_failure: bool = False,
) -> Placements:
    """Place pods on the snapshot; the search begins where the loop's last one ended, and goes round in name order.

    Source: Cluster Autoscaler: one index of the snapshot rotates in all its searches.
    """
    found = place(
        state.snapshot,
        pods,
        hints=hints,
        start=state.memory.rotation,
        stop_at_failure=stop_at_failure,
        by_name=True,
    )
    state.memory.rotation = found.start
    return found


def hints_that_hold(state: State, hints: Mapping[str, str]) -> dict[str, str]:
    """Return those of the last tick's hints that still hold; one to an upcoming node holds only if its group's template is a cached one.

    Source: Cluster Autoscaler, the hints of its scheduling simulator. They live for one more loop. It names upcoming
    nodes after the template, and gives each template that it makes a random name; only a cached one keeps its name.
    """
    tick = state.tick
    assert tick is not None, "the tick is open"
    stale = {
        name
        for name, group in tick.upcoming_nodes.items()
        if (template := tick.templates[group]) is None or template.origin != "seen"
    }
    return {key: name for key, name in hints.items() if name not in stale}


def is_too_new(pod: Pod, state: State, now: Instant) -> bool:
    """Return whether the pod is younger than, or exactly as old as, its scale-up delay (also for 0)."""
    created = instant_of(pod.metadata.creation_timestamp)
    return created is not None and delayed_until(pod, state) >= now


def delayed_until(pod: Pod, state: State) -> Instant:
    """Return until when the pod is too new: its scale-up delay after its creation."""
    delay = state.settings.new_pod_scale_up_delay
    text = (pod.metadata.annotations or {}).get(SCALE_UP_DELAY_ANNOTATION)
    if text:
        with suppress(ValueError):  # upstream ignores what it cannot read
            delay = Duration(max(delay, parse_duration(text)))
    return after(_created(pod), delay)


def new_until(pods: list[Pod], state: State) -> Instant:
    """Return until when to wait for more pods: the oldest is 2 s old, and the oldest GPU pod 30 s.

    As upstream, a pod that does not exist yet (of a CapacityBuffer, say) counts as old.
    """
    if state.settings.bypassed_scheduler_names:
        return Instant(0)
    oldest = min(map(_created, pods), default=Instant(0))
    with_gpu = min((_created(pod) for pod in pods if _asks_gpu(pod)), default=Instant(0))
    return max(after(oldest, _NEW), after(with_gpu, _NEW_GPU))


def old_enough_at(state: State) -> Instant | None:
    """Return when the first of the pods that are too new in this tick is old enough for a scale-up; None without one."""
    tick = state.tick
    if tick is None:
        return None
    # Upstream's delay has to be exceeded.
    ends = [Instant(delayed_until(pod, state) + 1) for pod in tick.demand.too_new]
    if tick.new_until is not None:
        ends.append(tick.new_until)
    return min(ends, default=None)


def _created(pod: Pod) -> Instant:
    created = instant_of(pod.metadata.creation_timestamp)
    return Instant(0) if created is None else created


def _asks_gpu(pod: Pod) -> bool:
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    given = [*(one.resources.requests for one in containers), pod.spec.overhead]
    # Few pods name one at all: only these are worth adding up.
    named = any(name in GPU_RESOURCES for amounts in given for name in amounts or ())
    return named and any(name in GPU_RESOURCES for name in classify(pod).requests)


def kind_of(pod: Pod) -> str:
    """Return a key for equal pods: their controller's, or the pod's own."""
    for owner in pod.metadata.owner_references or ():
        if owner.controller:
            return f"{pod.metadata.namespace}/{owner.kind}/{owner.name}"
    return f"{pod.metadata.namespace}/Pod/{pod.metadata.name}"
