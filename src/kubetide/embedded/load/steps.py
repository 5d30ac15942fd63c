"""The arithmetic of sampling steps: from requests to CPU, memory, queue and latency, several steps at once.

Steps with the same pods differ in their load alone, so they are rows of the same arrays. Only a queue goes on from
one step into the next: what follows a step that leaves one is worked out anew, and so is a step with a crowded node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.embedded.load.rows import PodRows
from kubetide.embedded.load.service import (
    ServiceFacts,
    ServiceResources,
    ServiceStep,
    ServingCapacity,
    settle,
)
from kubetide.embedded.load.unchanged import Unchanged, mean_cores, requests_for, resources_of, sums, totals
from kubetide.units.time import Duration, Instant
from kubetide.units.vectors import Float64Vector

Float64Matrix = NDArray[np.float64]


class Steps(msgspec.Struct, frozen=True, eq=False):
    """Steps that follow one another, at least one.

    Attributes:
        begin: When the first one begins.
        pods: What they were worked out for.
        cpu, memory: (steps, pods) milli-CPU and bytes of the working container.
        worked: (steps, pods) what of the CPU went into requests.
        cpu_used: (steps,) milli-CPU of all containers.
        over: (steps,) rows of the containers that passed their memory limits.
        services: (steps,) what became of the requests.
    """

    begin: Instant
    pods: Unchanged
    cpu: Float64Matrix
    memory: Float64Matrix
    worked: Float64Matrix
    cpu_used: list[float]
    over: Sequence[Sequence[int]]
    services: list[ServiceStep]

    @property
    def queue(self) -> Float64Vector:
        """(services,) requests that wait at the end."""
        return self.services[-1].queue


def work_out(
    begin: Instant,
    step: Duration,
    rows: PodRows,
    pods: Unchanged,
    facts: ServiceFacts,
    capacity_of: Callable[[Float64Vector, Float64Vector], ServingCapacity],
    *,
    offered: Float64Matrix,
    peak: Float64Matrix,
    queue: Float64Vector,
    startup_milli: Float64Vector | None,
) -> Steps:
    """Return the steps from ``begin`` on, one or more of those whose load is given.

    Args:
        begin: When the first step begins.
        step: Length of a step.
        rows: The pods; what they still have to do after their start goes down by what they do.
        pods: The same, as far as it follows from them alone.
        facts: The services.
        capacity_of: Returns what services can do, from the requests/s that pods can serve and the mean cores of a pod.
        offered: (steps, services) requests/s that arrive.
        peak: The same at the trace's own step; the very same array where it has none.
        queue: (services,) requests that wait at the beginning.
        startup_milli: (services + 1,) CPU that a container can use after its start beside its requests; None where no
            service does. With it there must be one step.
    """
    step_s, count, n = step / 1e9, len(facts.cpu_milli_s), rows.n
    service, serving, ready = pods.service, pods.serving, pods.ready
    waiting = np.zeros_like(offered)
    waiting[0] = queue
    # Requests are shared equally by the ready pods of a service.
    share = np.zeros((len(offered), count + 1))
    np.divide(
        (offered + waiting / step_s) * facts.cpu_milli_s, ready, out=share[:, :count], where=pods.any_ready
    )
    base = pods.base
    if startup_milli is not None:
        # What a container does after its start comes before its requests.
        base = base + np.minimum(startup_milli[service], rows.startup[:n] / step_s) * pods.running
    demand = base + share.take(service, axis=1) * serving
    allowed = np.minimum(demand, pods.limit)
    granted, able = _grant(allowed, rows, pods)
    steps = len(granted)
    if steps < len(offered):
        demand, allowed, waiting = demand[:steps], allowed[:steps], waiting[:steps]
        has_peaks, offered, peak = peak is not offered, offered[:steps], peak[:steps]
        peak = peak if has_peaks else offered
    if startup_milli is not None:
        done = np.minimum(granted[0], base) - pods.base
        rows.startup[:n] = np.maximum(rows.startup[:n] - np.maximum(done, 0.0) * step_s, 0.0)

    worked = np.maximum(granted - base, 0.0) * serving
    as_ever = able is pods.able and startup_milli is None
    result = settle(
        facts,
        capacity_of(
            pods.capacity if as_ever else requests_for(able, base, service, serving, facts),
            pods.cores if able is pods.able else mean_cores(service, able * serving, ready),
        ),
        offered=offered,
        peak=peak,
        queue=waiting,
        granted=totals(worked, service, count) / facts.cpu_milli_s,
        asked=pods.asked
        if startup_milli is None
        else requests_for(rows.request[:n], base, service, serving, facts),
        ready=ready,
        existing=pods.existing,
        step_s=step_s,
    )
    memory, over = _memory(result, rows, pods, facts, begin + step * np.arange(1, steps + 1)[:, np.newaxis])
    resources = resources_of(pods, demand, demand - allowed, granted, memory, count)
    services = [
        ServiceStep(*(*columns, ServiceResources(*of_pods)))
        for columns, of_pods in zip(_rows_of(result), _rows_of(resources), strict=False)
    ]
    # Each of the later steps has been worked out as if no request waited when it began.
    queued = np.flatnonzero(result.queue.any(axis=1))
    return Steps(
        begin=begin,
        pods=pods,
        cpu=granted,
        memory=memory,
        worked=worked,
        cpu_used=(granted.sum(axis=1) + pods.side_milli).tolist(),
        over=over,
        services=services[: int(queued[0]) + 1] if len(queued) else services,
    )


def _rows_of(columns: ServiceStep | ServiceResources) -> Iterable[Any]:
    """Yield the columns step by step; one of services alone is the same in each step."""
    found = (column for column in msgspec.structs.astuple(columns) if column is not None)
    return zip(*(column if column.ndim > 1 else repeat(column) for column in found), strict=False)


def _grant(demand: Float64Matrix, rows: PodRows, pods: Unchanged) -> tuple[Float64Matrix, Float64Vector]:
    """Return the CPU that each pod gets, and (pods,) the CPU that it could get, of the steps that have that in common.

    A pod on a node with free CPU gets its demand up to its limit. On a node whose demand exceeds
    its CPU, each pod gets its demand up to its request, and the rest is shared in proportion to
    the demand beyond the requests: CPU requests are guaranteed under contention
    (Kubernetes, "Resource Management for Pods and Containers"). So there a pod could get its
    request, or what it got if that is more.
    """
    node, side, able, capacity = pods.node, pods.side, pods.able, rows.node_cpu
    nodes = len(capacity)
    crowds = sums(demand + side, node, nodes) > capacity
    if not np.count_nonzero(crowds):
        return demand, able
    first = int(crowds.any(axis=1).argmax())
    if first:
        return demand[:first], able
    asks, crowded, request = demand[0], crowds[0], rows.request[: rows.n]
    sure = np.minimum(asks, request)
    beyond = asks - sure
    spare = np.maximum(capacity - np.bincount(node, sure + side, nodes), 0.0)
    asked = np.bincount(node, beyond, nodes)
    factor = np.divide(spare, asked, out=np.ones(nodes), where=crowded & (asked > 0))
    granted = sure + beyond * np.minimum(factor, 1.0)[node]
    granted[(capacity == 0.0)[node]] = 0.0
    guaranteed = np.maximum(granted, np.minimum(request, able))
    return granted[np.newaxis], np.where(crowded[node] & pods.serving, guaranteed, able)


def _memory(
    result: ServiceStep, rows: PodRows, pods: Unchanged, facts: ServiceFacts, ends: NDArray[np.int64]
) -> tuple[Float64Matrix, Sequence[Sequence[int]]]:
    """Return bytes of each pod, and the rows of the containers that pass their limit, by step.

    That is its base, what it has leaked since its start, and its share of the requests in flight: those served times
    their latency (Little's law), the queue included. ``ends``: (steps, 1) when the steps end.
    """
    steps, count, n = len(ends), len(facts.cpu_milli_s), rows.n
    held = np.zeros((steps, count + 1))
    np.divide(
        result.served * result.latency * facts.memory_per_request,
        pods.ready,
        out=held[:, :count],
        where=pods.any_ready,
    )
    memory = rows.base_memory[:n] + held.take(pods.service, axis=1) * pods.serving
    leaking = pods.leaking
    if len(leaking):
        memory[:, leaking] += rows.leak[leaking] * np.maximum(ends - rows.started_ns[leaking], 0) / 1e9
    over = memory > rows.memory_limit[:n]
    if not np.count_nonzero(over):
        return memory, ((),) * steps
    # What was there when the kernel stepped in.
    memory = np.minimum(memory, rows.memory_limit[:n])
    return memory, [np.flatnonzero(row).tolist() for row in over & pods.running]
