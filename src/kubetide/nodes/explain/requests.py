"""The state of a ProvisioningRequest, and what blocks it."""

from __future__ import annotations

from kubetide.nodes.capacity.planned_names import apart
from kubetide.nodes.capacity.provisioning.conditions import has_ended, is_check_capacity, is_served, since
from kubetide.nodes.capacity.provisioning.names import (
    ACCEPTED,
    BOOKING_EXPIRED,
    CHECK_CAPACITY,
    FAILED,
    PROCESSOR_INSTANCE,
    PROVISIONED,
    RESERVATION,
)
from kubetide.nodes.capacity.provisioning.pods import NoPods, pods_of
from kubetide.nodes.capacity.provisioning.queue import retry_time
from kubetide.nodes.expander import packs_all_groups
from kubetide.nodes.explain.waiting.verdict_text import TAKES_THEM, group_lines
from kubetide.nodes.facts.pods import consumed_request
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.registry.cluster_state import observe
from kubetide.nodes.scale_up.orchestrator import open_tick
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.nodes.templates.learning import learn
from kubetide.objects.capacity import ProvisioningRequest, condition_of, is_true
from kubetide.objects.kinds import PROVISIONING_REQUESTS
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.scheduling import hint_key
from kubetide.scheduling.placement import place
from kubetide.units.time import Instant, after, format_rfc3339

_SWITCHED_OFF = "this run serves no ProvisioningRequests: --enable-provisioning-requests turns them on"

_BUY_ALONE = "or take the annotation off the pod, so that it buys a node"
_SPLIT = "would help: a request for each group, or --expander=least-cost, which buys of several"


def explain_request(state: State, key: Key, now: Instant) -> list[str]:
    """Return the state of the request as lines. Raises KeyError for an unknown request."""
    request: ProvisioningRequest = state.capacity.of(PROVISIONING_REQUESTS)[key]
    lines = [request_sentence(state, request)]
    lines += [
        f"{one.type}: {one.status}, {one.reason}: {one.message} ({one.last_transition_time})"
        for one in request.status.conditions or ()
    ]
    return lines + pods_lines(state, request, now)


def pods_lines(state: State, request: ProvisioningRequest, now: Instant) -> list[str]:
    """Return how many pods of each set fit now, and what each group answers to the others; nothing if it is over."""
    if not is_served(request, state.settings) or has_ended(request):
        return []
    try:
        sets = [[apart(state, pod) for pod in one] for one in pods_of(request, state.capacity)]
    except NoPods as error:
        return [f"pods: none, {error}"]
    return _what_is_there(state, request, sets, now)


def consumer_sentence(state: State, pod: Pod) -> str:
    """Return why a pod that consumes a request buys no node; empty for any other pod, and where requests are not served."""
    name = consumed_request(pod)
    if name is None or not state.settings.enable_provisioning_requests:
        return ""
    sentence = (
        f"Its annotation says that it consumes ProvisioningRequest {pod.metadata.namespace}/{name}, so it buys no "
        "node itself"
    )
    request = state.capacity.of(PROVISIONING_REQUESTS).get((pod.metadata.namespace, name))
    if request is None:
        return f"{sentence}, and there is no such request: make it, {_BUY_ALONE}."
    found = f"{sentence}. {request_sentence(state, request)}"
    if not is_served(request, state.settings):
        return found
    if has_ended(request):
        return f"{found} Make a new request, {_BUY_ALONE}."
    if is_true(request.status.conditions, PROVISIONED):
        return f"{found} Where that is: kubetide explain provisioningrequest {pod.metadata.namespace}/{name}."
    return found


def request_sentence(state: State, request: ProvisioningRequest, *, retries_known: bool = True) -> str:
    """Return the state of a request, and when it is tried again where the state knows that."""
    conditions = request.status.conditions
    failed, over = condition_of(conditions, FAILED), condition_of(conditions, BOOKING_EXPIRED)
    if not state.settings.enable_provisioning_requests:
        return f"The request waits: {_SWITCHED_OFF}."
    if not is_served(request, state.settings):
        return f"The request waits: {_why_not_served(request, state.settings)}."
    if failed is not None and failed.status == "True":
        return f"The request has failed: {failed.message}."
    if over is not None and over.status == "True":
        return f"The request was served; its booking is over: {over.message}."
    at = since(request, PROVISIONED)
    if at is None:
        if is_true(conditions, ACCEPTED):
            return "The request is accepted; it is answered once it has the turn and its pods are old enough."
        return "The request has not been looked at yet."
    if is_true(conditions, PROVISIONED):
        return f"The request is served: capacity is booked for its pods until {format_rfc3339(after(at, RESERVATION))}."
    if not retries_known:
        return f"The request found no capacity at {format_rfc3339(at)}; the node loop tries it again."
    again = format_rfc3339(after(at, retry_time(state, request)))
    return f"The request found no capacity at {format_rfc3339(at)}; it is tried again from {again} on."


def _why_not_served(request: ProvisioningRequest, settings: Settings) -> str:
    """Return which part of a request says that another program serves it."""
    kind, instance = request.spec.provisioning_class_name, settings.check_capacity_processor_instance
    if instance:
        return (
            f'this loop serves only requests of class {CHECK_CAPACITY} with the parameter {PROCESSOR_INSTANCE}: "{instance}", '
            "by --check-capacity-processor-instance"
        )
    named = (request.spec.parameters or {}).get(PROCESSOR_INSTANCE, "")
    if named and kind == CHECK_CAPACITY:
        return f'its parameter {PROCESSOR_INSTANCE} is "{named}", and --check-capacity-processor-instance is not set here'
    return f"class {kind} is not served here"


def _what_is_there(
    state: State, request: ProvisioningRequest, sets: list[list[Pod]], now: Instant
) -> list[str]:
    """Return how many pods of each set fit now, and what each group answers to those that do not."""
    copy = copy_state(state)
    tick = open_tick(copy, observe(copy, now), now)
    learn(copy, now)
    lines: list[str] = []
    if is_true(request.status.conditions, PROVISIONED):
        return [_booked_line(copy, tick, sets)]
    buys = not is_check_capacity(request, copy.settings.check_capacity_processor_instance)
    asked: list[Pod] = []
    sets_asked, all_taken = 0, True
    for one, pods in zip(request.spec.pod_sets or (), sets, strict=True):
        left = place(copy.snapshot, pods, start=copy.memory.rotation).unplaced
        lines.append(
            f"pods of {one.pod_template_ref.name}: {len(pods)}, {len(pods) - len(left)} of them fit now"
        )
        if not left or not buys:
            continue
        verdicts, taken = _verdicts(copy, tick, list(left), now)
        lines += verdicts
        asked, sets_asked, all_taken = [*asked, *left], sets_asked + 1, all_taken and taken
    if sets_asked > 1 and not packs_all_groups(copy.settings.expander):
        verdicts, taken = _verdicts(copy, tick, asked, now)
        lines += [f"all {len(asked)} pods that do not fit, which one group has to take:", *verdicts]
        if all_taken and not taken:
            lines.append(_SPLIT)
    if not buys and lines:
        lines.append("class check-capacity buys nothing: it is served once its pods fit")
    return lines


def _booked_line(copy: State, tick: Tick, sets: list[list[Pod]]) -> str:
    """Return how many of the pods that capacity is booked for have a place, and how many of these on nodes to come."""
    keys = [hint_key(pod) for pods in sets for pod in pods]
    booked = copy.memory.requests.booked
    nodes = [booked[key] for key in keys if key in booked]
    coming = sum(node in tick.upcoming_nodes for node in nodes)
    later = f", {coming} of them on nodes that are on their way" if coming else ""
    lost = "" if len(nodes) == len(keys) else "; for the others nothing more is bought: make a new request"
    return f"pods: {len(keys)}, {len(nodes)} of them have capacity{later}{lost}"


def _verdicts(copy: State, tick: Tick, pods: list[Pod], now: Instant) -> tuple[list[str], bool]:
    """Return the verdict of each group on the pods, a line each, and whether one takes all of them."""
    tick.demand.pods, tick.skipped, tick.options = pods, {}, []
    lines = [f"  {line}" for line in group_lines(copy, tick, now)]
    return lines, any(line.endswith(TAKES_THEM) for line in lines)
