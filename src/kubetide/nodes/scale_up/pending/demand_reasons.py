"""Reasons for demand without pods: requested replicas that do not exist yet, capacity that buffers reserve."""

from __future__ import annotations

from kubetide.explain.reasons import Reason
from kubetide.nodes.capacity.buffers.inject import BUFFERS
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.pending.replacements import REPLACEMENTS
from kubetide.nodes.scale_up.tick import Demand
from kubetide.objects.meta import controller_of, key_of
from kubetide.plan.board import Workload


def intent_reasons(demand: Demand) -> list[Reason]:
    """Return, per workload, the replicas and larger pods that other loops ask for and that do not exist yet, as reasons."""
    missing: dict[tuple[Workload, str], int] = {}
    for key, source in demand.virtual.items():
        workload = demand.workloads.get(key)
        if workload is not None and source != BUFFERS:
            missing[workload, source] = missing.get((workload, source), 0) + 1
    return [
        reason("ReplacementDemand", _name(one), pods=count)
        if source == REPLACEMENTS
        else reason("IntentDemand", _name(one), source=source, missing=count)
        for (one, source), count in sorted(missing.items())
    ]


def _name(workload: Workload) -> str:
    return f"{workload.kind}/{workload.namespace}/{workload.name}"


def buffer_reasons(demand: Demand) -> list[Reason]:
    """Return, per buffer, how many placeholder pods fit, and how many do not."""
    by_buffer: dict[str, list[int]] = {}
    placed = ((pod, 0) for pod, _ in demand.placed)
    for pod, at in (*placed, *((pod, 1) for pod in demand.pods)):
        if demand.virtual.get(key_of(pod)) == BUFFERS:
            owner = controller_of(pod.metadata)
            name = f"{pod.metadata.namespace}/{owner.name if owner is not None else ''}"
            by_buffer.setdefault(name, [0, 0])[at] += 1
    return [
        reason("BufferDemand", name, pods=reserved + missing, missing=missing)
        for name, (reserved, missing) in sorted(by_buffer.items())
    ]
