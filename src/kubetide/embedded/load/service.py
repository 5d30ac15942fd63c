"""What a service under load is, and what is known about it after each sampling step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.embedded.load.traces import Trace
from kubetide.ports.errors import KubetideError
from kubetide.units.selectors import Selector
from kubetide.units.vectors import Float64Vector


class LoadError(KubetideError):
    """A service that cannot be modelled; the text names it, the field and the fix."""


class Needs(msgspec.Struct, frozen=True):
    """Memory of a running container that its requests have no part in, in bytes, and bytes an hour."""

    base_memory_bytes: int
    leak_bytes_per_hour: int


@dataclass(frozen=True)
class Service:
    """A workload whose ready pods share requests equally.

    Attributes:
        name, namespace: Who it is; the name is also that of its history.
        selector: Which pods of the namespace do the work.
        trace: Requests/s over time.
        cpu_seconds_per_request: CPU time that one request takes, greater than 0.
        base_cpu_milli: CPU of a running pod without a request.
        base_memory_bytes: Memory of a running pod without a request.
        memory_per_request_bytes: Memory that a request holds while it is in the pod or its queue.
        base_latency_s: Time of a request outside of the CPU (network, other services).
        max_queue_s: How long a request may wait before it is dropped; 0 keeps no queue.
        slo_latency_s: A step with a longer latency breaks the objective; None asks for capacity only.
        container: The container that does the work; empty takes the first.
        leak_bytes_per_hour: By how much the memory of a running container grows.
        startup_cpu_seconds: CPU time that a container needs after its start, beside its requests.
        startup_cpu_milli: How much of it it can use at once.
        images: What is otherwise for containers of an image: what a rollout changes.
    """

    name: str
    namespace: str
    selector: Selector
    trace: Trace
    cpu_seconds_per_request: float
    base_cpu_milli: float = 0.0
    base_memory_bytes: int = 0
    memory_per_request_bytes: int = 0
    base_latency_s: float = 0.0
    max_queue_s: float = 0.0
    slo_latency_s: float | None = None
    container: str = ""
    leak_bytes_per_hour: int = 0
    startup_cpu_seconds: float = 0.0
    startup_cpu_milli: float = 0.0
    images: Mapping[str, Needs] = field(default_factory=dict)

    def needs(self, image: str) -> Needs:
        """Return what a container of the image uses beside its requests."""
        own = Needs(self.base_memory_bytes, self.leak_bytes_per_hour)
        return self.images.get(image, own)

    def __post_init__(self) -> None:
        where = f"service {self.namespace}/{self.name}"
        if not (isfinite(self.cpu_seconds_per_request) and self.cpu_seconds_per_request > 0):
            raise LoadError(
                f"{where}: cpu_seconds_per_request {self.cpu_seconds_per_request} must be greater than 0"
            )
        for name in (
            "base_cpu_milli",
            "base_memory_bytes",
            "memory_per_request_bytes",
            "base_latency_s",
            "max_queue_s",
            "leak_bytes_per_hour",
            "startup_cpu_seconds",
            "startup_cpu_milli",
        ):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise LoadError(f"{where}: {name} {value} must be a finite number, 0 or more")


class ServiceResources(msgspec.Struct, frozen=True, eq=False):
    """The working containers of all services in one step; one entry a service, those that run only.

    Attributes:
        demanded_cpu: Milli-CPU that they had work for.
        withheld_cpu: What of it their limits did not let them use (throttling).
        requested_cpu, requested_memory: What they ask for, in milli-CPU and bytes.
        unused_cpu, unused_memory: What of that they left.
    """

    demanded_cpu: Float64Vector
    withheld_cpu: Float64Vector
    requested_cpu: Float64Vector
    unused_cpu: Float64Vector
    requested_memory: Float64Vector
    unused_memory: Float64Vector


class ServiceStep(msgspec.Struct, frozen=True, eq=False):
    """All services in one step; each field has one entry a service, in the order they were given.

    Attributes:
        offered: Requests/s that arrived.
        capacity: Requests/s that the ready pods could have served.
        asked: Requests/s that the CPU requests of the ready pods are for.
        served: Requests/s that were served, from the queue too.
        dropped: Requests/s that were dropped because the queue was full.
        queue: Requests waiting at the end.
        latency: Seconds; see ``response``.
        ready: Pods that serve.
        existing: Pods that exist, have not ended and are not being deleted.
        violated: Whether more was offered than the capacity, or the latency broke the objective.
        violated_own_step: The same with the load at the trace's own step, where that is finer: a second of a burst
            counts though the mean of the step hides it.
        resources: What the pods asked for and used.
    """

    offered: Float64Vector
    capacity: Float64Vector
    asked: Float64Vector
    served: Float64Vector
    dropped: Float64Vector
    queue: Float64Vector
    latency: Float64Vector
    ready: NDArray[np.int64]
    existing: NDArray[np.int64]
    violated: NDArray[np.bool_]
    violated_own_step: NDArray[np.bool_]
    resources: ServiceResources | None = None


class ServiceFacts(msgspec.Struct, frozen=True):
    """The services' settings as columns, one entry a service."""

    cpu_milli_s: Float64Vector
    """Milli-CPU-seconds that one request takes."""
    base_cpu_milli: Float64Vector
    base_memory: Float64Vector
    memory_per_request: Float64Vector
    base_latency: Float64Vector
    max_queue: Float64Vector
    slo_latency: Float64Vector

    @classmethod
    def of(cls, services: Sequence[Service]) -> ServiceFacts:
        """Read the services into columns."""

        def column(values: Sequence[float]) -> Float64Vector:
            return np.array(values, np.float64)

        return cls(
            cpu_milli_s=column([s.cpu_seconds_per_request * 1000.0 for s in services]),
            base_cpu_milli=column([s.base_cpu_milli for s in services]),
            base_memory=column([s.base_memory_bytes for s in services]),
            memory_per_request=column([s.memory_per_request_bytes for s in services]),
            base_latency=column([s.base_latency_s for s in services]),
            max_queue=column([s.max_queue_s for s in services]),
            slo_latency=column([np.inf if s.slo_latency_s is None else s.slo_latency_s for s in services]),
        )


class ServingCapacity(NamedTuple):
    """What services can do in a step, which follows from their pods alone; a column a field.

    Attributes:
        capacity: Requests/s that the ready pods can serve; ``bound`` is that with a margin for rounding.
        able: Whether that is any; ``divisor`` is the capacity, 1 where there is none.
        alone: Seconds that one request takes alone on a pod.
        built_up: The most that sharing a pod adds within a step, ``longest`` the most that a request waits; see ``response``.
    """

    capacity: Float64Vector
    bound: Float64Vector
    able: NDArray[np.bool_]
    divisor: Float64Vector
    alone: Float64Vector
    built_up: Float64Vector
    longest: Float64Vector

    @classmethod
    def of(
        cls, facts: ServiceFacts, *, capacity: Float64Vector, cores: Float64Vector, step_s: float
    ) -> ServingCapacity:
        """Work it out.

        Args:
            facts: The services.
            capacity: Requests/s that the ready pods can serve.
            cores: Mean CPU limit of a ready pod, in cores (inf without a limit).
            step_s: Length of the step.
        """
        alone = facts.cpu_milli_s / 1000.0 / np.minimum(1.0, cores)
        able = capacity > 0
        return cls(
            capacity=capacity,
            bound=capacity * (1.0 + 1e-9),
            able=able,
            divisor=np.where(able, capacity, 1.0),
            alone=alone,
            built_up=2.0 / 3.0 * np.sqrt(2.0 * alone * step_s / np.pi),
            longest=np.where(facts.max_queue > 0, facts.max_queue, np.inf),
        )


def settle(
    facts: ServiceFacts,
    serving: ServingCapacity,
    *,
    offered: Float64Vector,
    peak: Float64Vector,
    queue: Float64Vector,
    granted: Float64Vector,
    asked: Float64Vector,
    ready: NDArray[np.int64],
    existing: NDArray[np.int64],
    step_s: float,
) -> ServiceStep:
    """Return what became of the requests of one step.

    Args:
        facts: The services.
        serving: What their pods can do.
        offered: Requests/s that arrived.
        peak: The highest requests/s at the trace's own step; the very same column where it has none.
        queue: Requests that waited at the beginning.
        granted: Requests/s for which the ready pods got CPU.
        asked: Requests/s that their CPU requests are for.
        ready: Pods that serve.
        existing: Pods that exist.
        step_s: Length of the step.
    """
    served = np.minimum(granted, offered + queue / step_s)
    # A request that would wait longer than allowed is dropped; without capacity all that is
    # younger than the longest wait stays.
    most = np.where(serving.able, serving.capacity, offered) * facts.max_queue
    waiting = np.maximum(queue + (offered - served) * step_s, 0.0)
    # What rounding leaves over of a step that was served is not a queue.
    waiting[waiting < 1e-6] = 0.0
    left = np.minimum(waiting, most)
    latency = response(facts, serving, served=served, queue=left)
    violated = (offered > serving.bound) | ((latency > facts.slo_latency) & (offered > 0))
    return ServiceStep(
        offered=offered,
        capacity=serving.capacity,
        asked=asked,
        served=served,
        dropped=(waiting - left) / step_s,
        queue=left,
        latency=latency,
        ready=ready,
        existing=existing,
        violated=violated,
        violated_own_step=violated if peak is offered else violated | (peak > serving.bound),
    )


def response(
    facts: ServiceFacts, serving: ServingCapacity, *, served: Float64Vector, queue: Float64Vector
) -> Float64Vector:
    """Mean time of a request in seconds: base + S + wait.

    S is the time one request takes alone on a pod (CPU time over min(1 core, limit)), rho the
    share of the capacity in use. The wait is the larger of two, so that it is counted once:

    - below capacity, what sharing the pod adds: S * rho / (1 - rho), the mean of an M/G/1
      processor-sharing queue for any spread of request sizes (Kleinrock, Queueing Systems II, 4.4).
      That is the steady state, which is infinite at rho = 1 and which no step lasts long enough to
      come to there; so it is at most the mean that a backlog of chance builds up within one step at
      rho = 1: work at full load is a reflected Brownian motion of variance S a second, with mean
      sqrt(2 * S * t / pi) after t, and two thirds of that over a whole step (Harrison, Brownian
      Motion and Stochastic Flow Systems, 1.9);
    - above capacity, queue / capacity: what a request waits behind the queue at the step's end,
      which is worked off at full capacity (fluid limit).

    Where a longest wait is stated the wait does not pass it, as what waits longer is dropped.
    Without capacity a request waits as long as it may.
    """
    busy = np.minimum(served / serving.divisor, 1.0)
    steady = serving.alone * busy / np.maximum(1.0 - busy, 1e-9)
    wait = np.maximum(np.minimum(steady, serving.built_up), queue / serving.divisor)
    own = serving.alone + np.minimum(wait, serving.longest)
    return facts.base_latency + np.where(serving.able, own, facts.max_queue)
