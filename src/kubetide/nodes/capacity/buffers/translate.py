"""From a CapacityBuffer's spec to its status: which PodTemplate, and how many pods of it.

Source: Cluster Autoscaler, capacitybuffer/translators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.capacity.buffers.names import (
    ACTIVE,
    NO_COUNT,
    NO_TEMPLATE,
    NOT_READY,
    NOT_READY_REASON,
    READY,
    READY_MESSAGE,
    READY_REASON,
    template_name,
)
from kubetide.nodes.capacity.buffers.sources import (
    NotResolved,
    Workload,
    copied_from,
    template_of_workload,
    workload_of,
)
from kubetide.nodes.decision import CopyTemplate
from kubetide.nodes.facts.template_pods import MOST_PODS, with_default_requests
from kubetide.nodes.state import State
from kubetide.objects.base import Quantities
from kubetide.objects.capacity import (
    CapacityBuffer,
    CapacityBufferStatus,
    LocalReference,
    PodTemplateObject,
    StatusCondition,
    condition_of,
)
from kubetide.objects.kinds import POD_TEMPLATES
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod, PodTemplate
from kubetide.scheduling import classify
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Instant, format_rfc3339

_NAMED: Final = "podtemplates/"
"""Begins the identity of a source that is a PodTemplate; that of another one is a pod's uid, or a workload's version."""


def is_managed(buffer: CapacityBuffer) -> bool:
    """Return whether the buffer has the strategy that this program serves; no strategy means that one."""
    return buffer.spec.provisioning_strategy in {None, "", ACTIVE}


def translate(
    state: State, buffer: CapacityBuffer, now: Instant
) -> tuple[CapacityBuffer, CopyTemplate | None]:
    """Return the buffer with the status for its spec, and the template to copy for it.

    A template that is to be copied as it is is held from here on as it will be; one that the API server has to admit
    is waited for. Of a buffer that is not ready the strategy stays in the status, and what is known of its template.
    """
    copy = template = None
    try:
        workload = workload_of(state, buffer) if buffer.spec.scalable_ref is not None else None
        if workload is not None:
            copy = _keep_template(state, buffer, workload)
        else:
            copy = _keep_reference(state, buffer)
        template = _managed_template(state, buffer, copy)
        count = replicas_of(buffer, template, _current(workload))
    except NotResolved as error:
        status = CapacityBufferStatus(
            pod_template_ref=None if template is None else LocalReference(template.metadata.name),
            pod_template_generation=None if template is None else template.metadata.generation,
            provisioning_strategy=buffer.spec.provisioning_strategy or ACTIVE,
            conditions=buffer.status.conditions,
        )
        refused = replace(buffer, status=status)
        message = f"{NOT_READY}{'' if template is None else NO_COUNT}{error}"
        return with_condition(
            refused, READY, now, reason=NOT_READY_REASON, message=message, holds=False
        ), copy
    status = CapacityBufferStatus(
        pod_template_ref=LocalReference(template.metadata.name),
        replicas=count,
        pod_template_generation=template.metadata.generation,
        provisioning_strategy=buffer.spec.provisioning_strategy or ACTIVE,
        conditions=buffer.status.conditions,
    )
    return with_condition(
        replace(buffer, status=status), READY, now, reason=READY_REASON, message=READY_MESSAGE, holds=True
    ), copy


def replicas_of(buffer: CapacityBuffer, template: PodTemplateObject, current: int | None) -> int:
    """Return the larger of replicas and of a share of the workload's replicas, and at most what fits into the limits.

    A part of a pod counts as one. Limits alone say how many pods there are.

    Raises: NotResolved where it says nothing that can be counted.
    Source: Cluster Autoscaler, capacitybuffer/translators/replicas.go (since its pull request 9959 of July 2026).
    """
    spec = buffer.spec
    asked = []
    if spec.replicas is not None:
        asked.append(max(0, spec.replicas))
    if spec.percentage is not None and current is not None:
        asked.append(max(0, -(-spec.percentage * current // 100)))
    counts = [max(asked)] if asked else []
    if spec.limits is not None:
        counts.append(_within(template, spec.limits))
    if not counts:
        raise NotResolved("replicas, percentage and limits are not defined")
    if (count := min(counts)) > MOST_PODS:
        raise NotResolved(
            f"it asks for {count} pods, and capacity for at most {MOST_PODS} can be reserved: set replicas or limits"
        )
    return count


def with_condition(
    buffer: CapacityBuffer,
    kind: str,
    now: Instant,
    *,
    reason: str,
    message: str,
    holds: bool,
    generation: int = 0,
) -> CapacityBuffer:
    """Return the buffer with the condition; its time changes only with its status.

    As upstream, only the condition of quotas names the generation that it is of.
    """
    before = condition_of(buffer.status.conditions, kind)
    status = "True" if holds else "False"
    since = before.last_transition_time if before is not None and before.status == status else None
    made = StatusCondition(
        type=kind,
        status=status,
        observed_generation=generation,
        last_transition_time=since or format_rfc3339(now),
        reason=reason,
        message=message,
    )
    conditions = buffer.status.conditions or ()
    if before is None:
        conditions = (*conditions, made)
    else:
        conditions = tuple(made if one.type == kind else one for one in conditions)
    return replace(buffer, status=replace(buffer.status, conditions=conditions))


def _template_of(state: State, namespace: str, name: str) -> PodTemplateObject:
    found = state.capacity.template(namespace, name)
    if found is None:
        raise NotResolved(NO_TEMPLATE.format(name=name))
    return found


def _managed_template(state: State, buffer: CapacityBuffer, copy: CopyTemplate | None) -> PodTemplateObject:
    """Return the template that the buffer's pods are of. Raises NotResolved where the API server has yet to admit it."""
    namespace, name = buffer.metadata.namespace, template_name(buffer.metadata.name)
    if copy is not None and copy.dry_run:
        if error := state.memory.unwritten_templates.get(f"{namespace}/{name}"):
            named = buffer.spec.pod_template_ref is not None
            raise NotResolved(f"failed to {'create fake pod' if named else 'resolve pod spec'}: {error}")
        if state.capacity.template(namespace, name) is None:
            raise NotResolved(f"the API server has yet to admit a pod of {copy.source}/{copy.source_name}")
    return _template_of(state, namespace, name)


def _is_admitted(state: State, key: str) -> bool:
    """Return whether templates are what the API server makes of them; not where it must not be asked."""
    return (
        state.settings.capacity_buffer_pod_dry_run_enabled and state.memory.unwritten_templates.get(key) != ""
    )


def _admitted(
    state: State, buffer: CapacityBuffer, plural: str, source: str, identity: str
) -> CopyTemplate | None:
    """Return the copy, as the API server admits it, of a source that has changed; None for none."""
    meta = buffer.metadata
    name = template_name(meta.name)
    there = state.capacity.template(meta.namespace, name)
    if there is not None and state.memory.buffer_templates.get(f"{meta.namespace}/{name}") == identity:
        return None
    _hold(state, meta.namespace, name, None, identity)
    return CopyTemplate(meta.name, meta.uid, meta.namespace, name, plural, source, dry_run=True)


def _keep_reference(state: State, buffer: CapacityBuffer) -> CopyTemplate | None:
    """Hold the buffer's copy of the PodTemplate that it names; return the copy that this takes, None for none.

    As upstream, the pods are of the copy, so that a buffer whose PodTemplate changes has a template of a new generation.
    """
    reference, meta = buffer.spec.pod_template_ref, buffer.metadata
    if reference is None:
        raise NotResolved("neither podTemplateRef nor scalableRef is set: set one of them")
    source = _template_of(state, meta.namespace, reference.name)
    name = template_name(meta.name)
    if _is_admitted(state, f"{meta.namespace}/{name}"):
        identity = f"{_NAMED}{reference.name}@{source.metadata.uid}@{source.metadata.generation}"
        return _admitted(state, buffer, POD_TEMPLATES.plural, reference.name, identity)
    there = state.capacity.template(meta.namespace, name)
    if there is not None and there.template == source.template:
        return None
    _hold(state, meta.namespace, name, source.template, f"{_NAMED}{reference.name}")
    return CopyTemplate(meta.name, meta.uid, meta.namespace, name, POD_TEMPLATES.plural, reference.name)


def _keep_template(state: State, buffer: CapacityBuffer, workload: Workload) -> CopyTemplate | None:
    """Hold the buffer's template as the workload has it; return the copy that this takes, None for none.

    A template is copied once from each source: what the server makes of it may never equal what is held of the source.
    """
    reference = buffer.spec.scalable_ref
    assert reference is not None, "the buffer is one of a workload"
    meta = buffer.metadata
    name = template_name(meta.name)
    there = state.capacity.template(meta.namespace, name)
    key = f"{meta.namespace}/{name}"
    last = state.memory.buffer_templates.get(key)
    template = template_of_workload(workload)
    if template is None and workload.kind is None:
        raise NotResolved(
            f"Couldn't resolve buffer {meta.name}, Controller requires to observe a running pod for "
            f"ScalableRef {reference.name}"
        )
    plural, source, identity = copied_from(workload, reference.name)
    if not workload.pods and _is_admitted(state, key):
        return _admitted(state, buffer, plural, source, identity)
    same = there is not None and template is not None and there.template == template
    if same or (there is not None and last == identity):
        return None
    _hold(state, meta.namespace, name, template, identity)
    return CopyTemplate(meta.name, meta.uid, meta.namespace, name, plural, source)


def _hold(state: State, namespace: str, name: str, template: PodTemplate | None, identity: str) -> None:
    """Hold a buffer's template as it will be once it is copied, if that is known, and what it is copied from."""
    there = state.capacity.template(namespace, name)
    state.memory.buffer_templates = {**state.memory.buffer_templates, f"{namespace}/{name}": identity}
    if template is not None:
        generation = 1 if there is None else there.metadata.generation + 1
        held = ObjectMeta(name=name, namespace=namespace, generation=generation)
        state.capacity.put(PodTemplateObject(metadata=held, template=template), POD_TEMPLATES)


def _parsed(name: str, limit: str | float) -> Quantity:
    """Return the limit. Raises NotResolved for one below 0 as well: upstream rounds it to 0 pods or looks past it."""
    try:
        amount = Quantity.parse(limit)
    except QuantityError as error:
        raise NotResolved(f"spec.limits[{name}]: {error}") from error
    if amount.sign() < 0:
        raise NotResolved(f"spec.limits[{name}]: {limit}: give 0 or more")
    return amount


def _current(workload: Workload | None) -> int | None:
    if workload is None:
        return None
    return len(workload.pods) or workload.replicas


def _within(template: PodTemplateObject, limits: Quantities) -> int:
    """Return how many pods fit into the limits, by the resources that they ask for. Raises NotResolved for none of these."""
    pod = Pod(spec=with_default_requests(template.template.spec))
    asked: Mapping[str, int] = classify(pod).requests
    counts = []
    for name, limit in sorted(limits.items()):
        each = asked.get(name, 0)
        if each > 0:
            amount = _parsed(name, limit)
            counts.append((amount.milli_value() if name == "cpu" else amount.value()) // each)
    if not counts:
        raise NotResolved("resources in configured limits not found in the pod template")
    return int(min(counts))
