"""The number of a buffer's pods, cut to what the ResourceQuotas of its namespace leave."""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.capacity.buffers.names import LIMITED, LIMITED_MESSAGE, LIMITED_REASON
from kubetide.nodes.capacity.buffers.quotas import QuotaLimit, QuotaReservations
from kubetide.nodes.capacity.buffers.translate import is_managed, with_condition
from kubetide.nodes.facts.template_pods import with_default_requests
from kubetide.nodes.state import State
from kubetide.objects.capacity import CapacityBuffer, is_true
from kubetide.objects.kinds import RESOURCE_QUOTAS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant


def quotas_unread(state: State) -> bool:
    """Return whether the cluster refuses ResourceQuotas, or has not listed them yet."""
    return RESOURCE_QUOTAS.plural in state.capacity.unread


def within_quotas(
    state: State,
    before: CapacityBuffer,
    buffer: CapacityBuffer,
    reservations: QuotaReservations,
    now: Instant,
) -> CapacityBuffer:
    """Return the buffer with at most as many pods as quotas leave, and reserve these; a buffer that is not ready stays.

    Args:
        before: The buffer as it was before its spec was translated anew.
        buffer: The buffer with as many pods as its spec asks for.
        reservations: What older buffers have reserved.
    """
    asked, pod = buffer.status.replicas, _pod_of(state, buffer)
    if asked is None or pod is None:
        return buffer
    if quotas_unread(state):
        return _as_before(before, buffer, asked)
    allowed, blocking = reservations.take(pod, asked)
    names = ", ".join(one.quota.metadata.name for one in blocking)
    return with_condition(
        replace(buffer, status=replace(buffer.status, replicas=allowed)),
        LIMITED,
        now,
        reason=LIMITED_REASON,
        message=LIMITED_MESSAGE.format(asked=asked, allowed=allowed, quotas=names) if blocking else "",
        holds=bool(blocking),
        generation=buffer.metadata.generation,
    )


def limits_of(state: State, buffer: CapacityBuffer) -> list[QuotaLimit]:
    """Return the limit of each quota that counts the buffer's pods, beside what older buffers have by their statuses."""
    reservations = QuotaReservations(state.capacity.resource_quotas())
    for one in state.capacity.buffers:
        pod = _pod_of(state, one)
        if one.metadata.namespace != buffer.metadata.namespace or not is_managed(one) or pod is None:
            continue
        if one.metadata.name == buffer.metadata.name:
            return reservations.limits(pod)
        reservations.take(pod, one.status.replicas or 0)
    return []


def _as_before(before: CapacityBuffer, buffer: CapacityBuffer, asked: int) -> CapacityBuffer:
    """Return the buffer as limited as it was: quotas that cannot be read for a moment buy no nodes."""
    last = before.status.replicas
    if last is None or not is_true(before.status.conditions, LIMITED):
        return buffer
    return replace(buffer, status=replace(buffer.status, replicas=min(asked, last)))


def _pod_of(state: State, buffer: CapacityBuffer) -> Pod | None:
    """Return a pod of the buffer, with what quotas look at; None if its template is not there."""
    reference, namespace = buffer.status.pod_template_ref, buffer.metadata.namespace
    template = None if reference is None else state.capacity.template(namespace, reference.name)
    if template is None:
        return None
    return Pod(metadata=ObjectMeta(namespace=namespace), spec=with_default_requests(template.template.spec))
