"""What of a sampling step follows from pods and nodes alone: worked out once while these are the same."""

from __future__ import annotations

from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.embedded.load.rows import PodRows
from kubetide.embedded.load.service import ServiceFacts, ServiceResources
from kubetide.units.vectors import Float64Vector


class Unchanged(msgspec.Struct, frozen=True, eq=False):
    """Columns of pods, and sums by service.

    Attributes:
        changes: The count of changes at which they hold.
        service, node, running, base, limit, side: (pods,) as in the rows.
        serving: (pods,) whether a pod takes requests.
        ready, existing: (services,) how many serve, and how many exist; ``any_ready`` whether any serves.
        able: (pods,) milli-CPU that a pod could get on a node with enough of it.
        cores: (services,) mean CPU of a ready pod by ``able``; inf where none is ready.
        capacity: (services,) requests/s that ready pods could serve with ``able``, beside what they use without any.
        asked: (services,) requests/s that their CPU requests are for.
        cpu, memory: (pods,) what running pods request; ``total_cpu`` and ``total_memory`` (services,).
        side_milli: CPU of all containers that do not work for a service.
        leaking: Rows of running pods whose memory grows.
    """

    changes: int
    service: NDArray[np.int64]
    node: NDArray[np.int64]
    running: NDArray[np.bool_]
    base: Float64Vector
    limit: Float64Vector
    side: Float64Vector
    serving: NDArray[np.bool_]
    ready: NDArray[np.int64]
    existing: NDArray[np.int64]
    any_ready: NDArray[np.bool_]
    able: Float64Vector
    cores: Float64Vector
    capacity: Float64Vector
    asked: Float64Vector
    cpu: Float64Vector
    memory: Float64Vector
    total_cpu: Float64Vector
    total_memory: Float64Vector
    side_milli: float
    leaking: NDArray[np.int64]

    @classmethod
    def of(cls, rows: PodRows, facts: ServiceFacts) -> Self:
        """Work it out for the pods and nodes as they are."""
        n, count = rows.n, len(facts.cpu_milli_s)
        service, node, running = rows.service[:n], rows.node[:n], rows.running[:n]
        base, limit = rows.base_cpu[:n], rows.limit[:n]
        serving = rows.serving[:n] & ~rows.node_down[node]
        ready = total(serving, service, count)
        able = np.minimum(limit, rows.node_cpu[node])
        cpu, memory = rows.request[:n] * running, rows.memory_request[:n] * running
        return cls(
            changes=rows.changes,
            service=service,
            node=node,
            running=running,
            base=base,
            limit=limit,
            side=rows.side_cpu[:n],
            serving=serving,
            ready=ready.astype(np.int64),
            existing=total(rows.exists[:n], service, count).astype(np.int64),
            any_ready=ready > 0,
            able=able,
            cores=mean_cores(service, able * serving, ready),
            capacity=requests_for(able, base, service, serving, facts),
            asked=requests_for(rows.request[:n], base, service, serving, facts),
            cpu=cpu,
            memory=memory,
            total_cpu=total(cpu, service, count),
            total_memory=total(memory, service, count),
            side_milli=float(rows.side_cpu[:n].sum()),
            leaking=np.flatnonzero((rows.leak[:n] > 0) & running),
        )


def total(column: Float64Vector | NDArray[np.bool_], service: NDArray[np.int64], count: int) -> Float64Vector:
    """Return the sums of a column of pods, by service."""
    return np.bincount(service, column, count + 1)[:count].astype(np.float64, copy=False)


def sums(columns: Float64Vector, group: NDArray[np.int64], groups: int) -> Float64Vector:
    """Return (steps, groups) the sums of columns of (steps, pods) by group, each in the order of the pods."""
    steps = len(columns)
    places = (np.arange(steps)[:, np.newaxis] * groups + group).ravel()
    found = np.bincount(places, columns.ravel(), steps * groups).astype(np.float64, copy=False)
    return found.reshape(steps, groups)


def totals(columns: Float64Vector, service: NDArray[np.int64], count: int) -> Float64Vector:
    """Return (steps, services) the sums of columns of (steps, pods)."""
    return sums(columns, service, count + 1)[:, :count]


def requests_for(
    cpu: Float64Vector,
    base: Float64Vector,
    service: NDArray[np.int64],
    serving: NDArray[np.bool_],
    facts: ServiceFacts,
) -> Float64Vector:
    """Return (services,) the requests/s that the CPU of the serving pods is for, beyond their base."""
    beyond = np.maximum(cpu - base, 0.0) * serving
    return total(beyond, service, len(facts.cpu_milli_s)) / facts.cpu_milli_s


def mean_cores(
    service: NDArray[np.int64], able: Float64Vector, ready: Float64Vector | NDArray[np.int64]
) -> Float64Vector:
    """Return (services,) the mean cores of a ready pod, inf where none is; ``able`` is 0 for pods that do not serve."""
    count = len(ready)
    cores = np.full(count, np.inf)
    np.divide(total(able, service, count), ready * 1000.0, out=cores, where=ready > 0)
    return cores


def resources_of(
    pods: Unchanged,
    demand: Float64Vector,
    withheld: Float64Vector,
    granted: Float64Vector,
    memory: Float64Vector,
    count: int,
) -> ServiceResources:
    """Return what the working containers of each service asked for and used; each argument has columns of (steps, pods)."""
    return ServiceResources(
        demanded_cpu=totals(demand, pods.service, count),
        withheld_cpu=totals(withheld, pods.service, count),
        requested_cpu=pods.total_cpu,
        unused_cpu=totals(np.maximum(pods.cpu - granted, 0.0), pods.service, count),
        requested_memory=pods.total_memory,
        unused_memory=totals(np.maximum(pods.memory - memory, 0.0), pods.service, count),
    )
