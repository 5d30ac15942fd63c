"""The course of a run in columns: one entry per sampling step, and what happened between them."""

from __future__ import annotations

import msgspec

from kubetide.units.time import Instant


class ResourceTotals(msgspec.Struct):
    """Requests and usage of a service's working containers, summed over the steps.

    Attributes:
        demanded_cpu, withheld_cpu: CPU that they had work for, and what of it their limits withheld; milli-CPU.
        requested_cpu, unused_cpu, requested_memory, unused_memory: Milli-CPU and bytes.
        oom_kills: How often the kernel ended one of them.
    """

    demanded_cpu: float = 0.0
    withheld_cpu: float = 0.0
    requested_cpu: float = 0.0
    unused_cpu: float = 0.0
    requested_memory: float = 0.0
    unused_memory: float = 0.0
    oom_kills: int = 0


class ServiceSeries(msgspec.Struct):
    """One service, one entry per step.

    Attributes:
        offered: Requests/s that arrived.
        capacity: Requests/s that the ready pods can serve.
        asked: Requests/s that the CPU requests of the ready pods are for.
        queue: Requests waiting at the end of the step.
        latency: Seconds.
        desired: Replicas asked for.
        existing: Pods that exist and are not being deleted.
        ready: Pods that serve.
        violated: Whether the step broke the objective.
        violated_own_step: The same, with the load at the trace's own step.
        resources: Requests and use of its containers.
    """

    name: str
    offered: list[float] = msgspec.field(default_factory=list)
    capacity: list[float] = msgspec.field(default_factory=list)
    asked: list[float] = msgspec.field(default_factory=list)
    queue: list[float] = msgspec.field(default_factory=list)
    latency: list[float] = msgspec.field(default_factory=list)
    desired: list[int] = msgspec.field(default_factory=list)
    existing: list[int] = msgspec.field(default_factory=list)
    ready: list[int] = msgspec.field(default_factory=list)
    violated: list[bool] = msgspec.field(default_factory=list)
    violated_own_step: list[bool] = msgspec.field(default_factory=list)
    resources: ResourceTotals = msgspec.field(default_factory=ResourceTotals)


class GroupPrice(msgspec.Struct, frozen=True):
    """The hourly price of a node of a group, its capacity for pods by resource (cores, bytes, counts), and the minimum size."""

    per_hour: float
    offers: dict[str, float]
    min_size: int = 0


class Mark(msgspec.Struct, frozen=True):
    """A decision that acted: when, which loop, which object, and why.

    ``change`` counts the pods or nodes that it adds, or takes away where it is negative. ``fruitless`` is advice, or
    what was refused: the next tick is likely to say the same again.
    """

    at: Instant
    loop: str
    subject: str
    title: str
    why: tuple[str, ...] = ()
    change: int = 0
    fruitless: bool = False
    code: str = ""


class NodeLife(msgspec.Struct):
    """A node of a group: when its object was created and, unless it still exists, deleted."""

    name: str
    group: str
    created: Instant
    deleted: Instant | None = None


class Timeline(msgspec.Struct):
    """A whole run.

    Attributes:
        start: Time of the first step's end.
        pending: Pods without a node.
        waits: Seconds from creation to binding, of each pod that was bound since the start, in that order.
        waiting_since: When the pods that still wait for a node were created; at the start, if that was before.
        nodes: Nodes that are Ready, by group.
        cpu_requested, cpu_used, cpu_allocatable: Cores.
        requested: Of other resources, what the pods on nodes ask for: bytes, counts.
        largest: Most machines that each group had at a time since the start, without a node too.
        cost: Money spent since the start, in ``currency``.
        node_lives: Of each node that was there, in the order of their coming.
        evictions: Pods that were asked to go by the Eviction API.
        preemptions: Pods that the scheduler deleted for pods of a higher priority.
        taint_evictions: Pods that were deleted for NoExecute taints, such as those of lost nodes.
        prices: Of each node group.
        warm_up_s: How long the run was before the start; nothing of it counts.
        notices: What the run left out of its manifests and what could not scale, a sentence each.
    """

    start: Instant
    step_s: float
    services: dict[str, ServiceSeries] = msgspec.field(default_factory=dict)
    pending: list[int] = msgspec.field(default_factory=list)
    waits: list[float] = msgspec.field(default_factory=list)
    waiting_since: dict[str, Instant] = msgspec.field(default_factory=dict)
    nodes: dict[str, list[int]] = msgspec.field(default_factory=dict)
    largest: dict[str, int] = msgspec.field(default_factory=dict)
    cpu_requested: list[float] = msgspec.field(default_factory=list)
    requested: dict[str, list[int]] = msgspec.field(default_factory=dict)
    cpu_used: list[float] = msgspec.field(default_factory=list)
    cpu_allocatable: list[float] = msgspec.field(default_factory=list)
    cost: list[float] = msgspec.field(default_factory=list)
    marks: list[Mark] = msgspec.field(default_factory=list)
    node_lives: list[NodeLife] = msgspec.field(default_factory=list)
    pod_starts: int = 0
    evictions: int = 0
    preemptions: int = 0
    taint_evictions: int = 0
    currency: str = "USD"
    prices: dict[str, GroupPrice] = msgspec.field(default_factory=dict)
    warm_up_s: float = 0.0
    notices: tuple[str, ...] = ()
