"""Buffers in a tick: their statuses, and the placeholder pods that need a node.

Source: Cluster Autoscaler, processors/capacitybuffer.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.capacity.buffers.limiting import within_quotas
from kubetide.nodes.capacity.buffers.names import (
    ACTIVE,
    EMPTY_MESSAGE,
    EMPTY_REASON,
    INJECTED_REASON,
    NO_TEMPLATE,
    NO_TEMPLATE_REASON,
    NOT_READY_FOR_MESSAGE,
    NOT_READY_FOR_REASON,
    POD_TYPE,
    POD_TYPE_ANNOTATION,
    PROVISIONING,
    READY,
    SAFE_TO_EVICT,
    template_name,
)
from kubetide.nodes.capacity.buffers.quotas import QuotaReservations
from kubetide.nodes.capacity.buffers.translate import is_managed, translate, with_condition
from kubetide.nodes.capacity.planned_names import apart
from kubetide.nodes.decision import Write
from kubetide.nodes.facts.statuses import status_write
from kubetide.nodes.facts.template_pods import with_default_requests
from kubetide.nodes.state import State
from kubetide.objects.capacity import CapacityBuffer, PodTemplateObject, condition_of, is_true
from kubetide.objects.kinds import CAPACITY_BUFFERS
from kubetide.objects.meta import ObjectMeta, OwnerReference
from kubetide.objects.pod import Pod, PodStatus
from kubetide.units.time import Instant

BUFFERS = "buffers"
"""The source of demand."""


def update_buffers(state: State, now: Instant) -> tuple[Write, ...]:
    """Update the statuses of all buffers in the state; return the writes."""
    settings = state.settings
    before = state.capacity.buffers
    writes: list[Write] = []
    reservations = QuotaReservations(state.capacity.resource_quotas())
    _forget_templates(state)
    for buffer in before if settings.capacity_buffer_controller_enabled else ():
        if is_managed(buffer):
            updated, copy = translate(state, buffer, now)
            limited = within_quotas(state, buffer, updated, reservations, now)
            state.capacity.put(limited, CAPACITY_BUFFERS)
            writes += [copy] if copy is not None else []
    for buffer in state.capacity.buffers if settings.capacity_buffer_pod_injection_enabled else ():
        if _is_served(state, buffer):
            state.capacity.put(_provisioned(state, buffer, now), CAPACITY_BUFFERS)
    for old, new in zip(before, state.capacity.buffers, strict=True):
        if old.status != new.status:
            writes.append(status_write(CAPACITY_BUFFERS, new))
    if writes:
        state.version += 1
    return tuple(writes)


def _forget_templates(state: State) -> None:
    """Forget what the templates of buffers that are gone were copied from."""
    held = state.memory.buffer_templates
    if held:
        there = {
            f"{one.metadata.namespace}/{template_name(one.metadata.name)}" for one in state.capacity.buffers
        }
        state.memory.buffer_templates = {name: uid for name, uid in held.items() if name in there}


def placeholders(state: State) -> list[Pod]:
    """Return the placeholder pods of all provisioned buffers, oldest buffer first."""
    if not state.settings.capacity_buffer_pod_injection_enabled:
        return []
    found: list[Pod] = []
    for buffer in state.capacity.buffers:
        template = _template(state, buffer)
        if (
            template is not None
            and _is_served(state, buffer)
            and is_true(buffer.status.conditions, PROVISIONING)
        ):
            found += [apart(state, pod) for pod in pods_of(buffer, template, buffer.status.replicas or 0)]
    return found


def pods_of(buffer: CapacityBuffer, template: PodTemplateObject, count: int) -> list[Pod]:
    """Return ``count`` placeholder pods of a buffer; like any evictable pod, they block no scale-down."""
    meta, inner = buffer.metadata, template.template
    owner = OwnerReference(
        api_version=CAPACITY_BUFFERS.api_version,
        kind=CAPACITY_BUFFERS.kind,
        name=meta.name,
        uid=meta.uid,
        controller=True,
    )
    first = Pod(
        metadata=ObjectMeta(
            namespace=meta.namespace,
            labels=inner.metadata.labels,
            annotations={
                **(inner.metadata.annotations or {}),
                POD_TYPE_ANNOTATION: POD_TYPE,
                SAFE_TO_EVICT: "true",
            },
            owner_references=(owner,),
        ),
        spec=with_default_requests(replace(inner.spec, node_name="")),
        status=PodStatus(phase="Pending"),
    )
    return [
        replace(
            first,
            metadata=replace(
                first.metadata,
                name=f"capacity-buffer-{meta.name}-{number}",
                uid=f"{meta.uid}-{number}",
            ),
        )
        for number in range(1, count + 1)
    ]


def _is_served(state: State, buffer: CapacityBuffer) -> bool:
    """Return whether the buffer is ready or provisioned, and counted for its template as that is now.

    Others are another controller's to bring up to date, and are left alone.
    """
    status = buffer.status
    if status.provisioning_strategy != ACTIVE:
        return False
    if not any(is_true(status.conditions, kind) for kind in (READY, PROVISIONING)):
        return False
    template, generation = _template(state, buffer), status.pod_template_generation
    return template is None or generation is None or template.metadata.generation == generation


def _provisioned(state: State, buffer: CapacityBuffer, now: Instant) -> CapacityBuffer:
    status = buffer.status
    ready = condition_of(status.conditions, READY)
    if (
        status.pod_template_ref is None
        or status.replicas is None
        or (ready is not None and ready.status == "False")
    ):
        reason, message = NOT_READY_FOR_REASON, NOT_READY_FOR_MESSAGE
    elif not status.replicas:
        reason, message = EMPTY_REASON, EMPTY_MESSAGE
    elif _template(state, buffer) is None:
        name = status.pod_template_ref.name
        reason, message = (
            NO_TEMPLATE_REASON,
            f"failed to get pod template with error: {NO_TEMPLATE.format(name=name)}",
        )
    else:
        return with_condition(buffer, PROVISIONING, now, reason=INJECTED_REASON, message="", holds=True)
    return with_condition(buffer, PROVISIONING, now, reason=reason, message=message, holds=False)


def _template(state: State, buffer: CapacityBuffer) -> PodTemplateObject | None:
    reference = buffer.status.pod_template_ref
    if reference is None:
        return None
    return state.capacity.template(buffer.metadata.namespace, reference.name)
