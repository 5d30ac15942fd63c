"""The load model: from requests to CPU, memory, queue and latency, step by step.

Time is cut into steps from ``start`` on. A step is worked out once it has ended, with the pods as
they were at its end: a change that comes later first lets all ended steps be worked out, so the
outcome does not depend on who asks, or when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.embedded.load.layout import Layout, lay_out
from kubetide.embedded.load.rows import PodRows
from kubetide.embedded.load.service import Service, ServiceFacts, ServiceStep, ServingCapacity, settle
from kubetide.embedded.load.traces import Trace
from kubetide.embedded.load.unchanged import Unchanged, mean_cores, requests_for, resources_of
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.units.time import Duration, Instant, seconds
from kubetide.units.vectors import Float64Vector
from kubetide.watching import Informer

DEFAULT_STEP = seconds(15)


class Usage(msgspec.Struct, frozen=True, eq=False):
    """What the visible pods used in one step.

    Attributes:
        end: When the step ended.
        layout: Which pods, and how their containers lie.
        cpu_milli: (pods,) milli-CPU of the working container.
        memory: (pods,) its bytes.
        service: (pods,) number of the service that a pod belongs to; the number of services for none.
        serving: (pods,) whether the pod takes requests.
        requests: (pods,) requests/s that the pod served.
        services: What became of the services' requests.
    """

    end: Instant
    layout: Layout
    cpu_milli: Float64Vector
    memory: Float64Vector
    service: NDArray[np.int64]
    serving: NDArray[np.bool_]
    requests: Float64Vector
    services: ServiceStep


class LoadModel(Protocol):
    """Where usage of pods comes from in a cluster without real containers."""

    @property
    def services(self) -> Sequence[Service]:
        """The services that get requests."""
        ...

    @property
    def step(self) -> Duration:
        """Length of a sampling step."""
        ...

    def advance(self, now: Instant) -> None:
        """Work out all steps that have ended by ``now``; asking again changes nothing."""
        ...

    def keep(self, back: Duration) -> None:
        """Let ``usage`` look at least so far back from now on."""
        ...

    def usage(self, at: Instant) -> Usage | None:
        """Return the newest step that had ended at ``at``; None before the first."""
        ...


class ServiceLoad:
    """Services whose ready pods share requests equally, and other pods with constant usage."""

    def __init__(
        self,
        services: Sequence[Service],
        *,
        clock: Clock,
        pods: Informer[Pod],
        nodes: Informer[Node],
        start: Instant,
        step: Duration = DEFAULT_STEP,
        idle_share: float = 0.5,
    ) -> None:
        """Follow the informers from now on.

        Args:
            services: Who gets requests; a pod belongs to the first whose selector matches.
            clock: The time of changes.
            pods: All pods.
            nodes: All nodes.
            start: When the first step begins.
            step: Length of a step.
            idle_share: Part of its requests that a container without work uses.
        """
        if step <= 0:
            raise ValueError(f"a sampling step of {step} ns is not positive")
        self.services = tuple(services)
        self.step = step
        self.start = start
        self._clock = clock
        self._bursts = _bursts_of(services)
        self._facts = ServiceFacts.of(services)
        # A pod without a service serves nothing, whatever a request would take.
        self._request_milli_s = np.append(self._facts.cpu_milli_s, np.inf)
        self._startup_milli = np.append([s.startup_cpu_milli for s in services], 0.0)
        self._starts = bool((self._startup_milli > 0).any())
        self._rows = PodRows(services, idle_share)
        self._queue = np.zeros(len(services))
        self._done = 0
        self._advancing = False
        self._layout: Layout | None = None
        self._unchanged: Unchanged | None = None
        self._serving: tuple[Float64Vector, ServingCapacity] | None = None
        self._visible: _Visible | None = None
        self._recent: deque[Usage] = deque(maxlen=2)
        self._oom_handlers: list[Callable[[Key, str], None]] = []
        self._step_handlers: list[Callable[[Instant, ServiceStep], None]] = []
        self.cpu_used_milli = 0.0
        """What all containers used together in the last step."""
        for pod_key, pod in pods.objects.items():
            self._pod_changed(pod_key, None, pod)
        for node_key, node in nodes.objects.items():
            self._node_changed(node_key, None, node)
        pods.on_change(self._pod_changed)
        nodes.on_change(self._node_changed)

    def keep(self, back: Duration) -> None:
        """Let ``usage`` look at least so far back from now on."""
        length = max(2 + back // self.step, self._recent.maxlen or 0)
        self._recent = deque(self._recent, maxlen=length)

    def set_trace(self, number: int, trace: Trace) -> None:
        """Give the service of that number another load, from the step on that is not worked out yet."""
        self.advance(self._clock.now())
        services = list(self.services)
        services[number] = replace(services[number], trace=trace)
        self.services = tuple(services)
        self._bursts = _bursts_of(services)

    def on_oom(self, handler: Callable[[Key, str], None]) -> None:
        """Call ``handler((namespace, name), container)`` for each that passes its memory limit in a step.

        It must not block.
        """
        self._oom_handlers.append(handler)

    def on_step(self, handler: Callable[[Instant, ServiceStep], None]) -> None:
        """Call ``handler(end, step)`` after each step. Must not block or raise."""
        self._step_handlers.append(handler)

    @property
    def done_until(self) -> Instant:
        """The end of the last step worked out."""
        return Instant(self.start + self._done * self.step)

    def advance(self, now: Instant) -> None:
        """Work out all steps that have ended by ``now``; asking again changes nothing.

        A handler of a step that asks gets what there is: the steps after it follow in their order.
        """
        if self._advancing:
            return
        self._advancing = True
        try:
            while self.done_until + self.step <= now:
                begin = self.done_until
                self._done += 1
                self._run(begin)
        finally:
            self._advancing = False

    def usage(self, at: Instant) -> Usage | None:
        """Return the newest step held that had ended at ``at``; None when there is none."""
        self.advance(self._clock.now())
        for usage in reversed(self._recent):
            if usage.end <= at:
                return usage
        return None

    def _pod_changed(self, key: Key, _old: Pod | None, new: Pod | None) -> None:
        self.advance(self._clock.now())
        try:
            if new is not None:
                self._rows.set_pod(key, new)
                return
        except ValueError:
            # A quantity or time that cannot be read: one bad pod must not stop the others.
            pass
        self._rows.remove_pod(key)

    def _node_changed(self, key: Key, _old: Node | None, new: Node | None) -> None:
        self.advance(self._clock.now())
        try:
            if new is not None:
                self._rows.set_node(new)
                return
        except ValueError:
            # As with pods: a node that cannot be read has no capacity.
            pass
        self._rows.remove_node(key[1])

    def _run(self, begin: Instant) -> None:
        """Work out one step."""
        facts, count = self._facts, len(self.services)
        rows, pods = self._rows, self._pods_now()
        service, serving, ready = pods.service, pods.serving, pods.ready
        step_s = self.step / 1e9
        rates = [s.trace.rate(begin, self.step) for s in self.services]
        offered = np.array(rates, np.float64)
        peak = offered
        if self._bursts:
            for number in self._bursts:
                rates[number] = self.services[number].trace.highest(begin, self.step)
            peak = np.array(rates, np.float64)

        # Requests are shared equally by the ready pods of a service.
        share = np.zeros(count + 1)
        np.divide(
            (offered + self._queue / step_s) * facts.cpu_milli_s,
            ready,
            out=share[:count],
            where=pods.any_ready,
        )
        base, n = pods.base, rows.n
        if self._starts:
            # What a container does after its start comes before its requests.
            base = base + np.minimum(self._startup_milli[service], rows.startup[:n] / step_s) * pods.running
        demand = base + share[service] * serving
        allowed = np.minimum(demand, pods.limit)
        granted, able = self._grant(allowed, pods)
        if self._starts:
            done = np.minimum(granted, base) - pods.base
            rows.startup[:n] = np.maximum(rows.startup[:n] - np.maximum(done, 0.0) * step_s, 0.0)

        worked = np.maximum(granted - base, 0.0) * serving
        as_ever = able is pods.able and not self._starts
        result = settle(
            facts,
            self._serving_capacity(
                pods.capacity if as_ever else requests_for(able, base, service, serving, facts),
                pods.cores if able is pods.able else mean_cores(service, able * serving, ready),
            ),
            offered=offered,
            peak=peak,
            queue=self._queue,
            granted=np.bincount(service, worked, count + 1)[:count] / facts.cpu_milli_s,
            asked=requests_for(rows.request[:n], base, service, serving, facts)
            if self._starts
            else pods.asked,
            ready=ready,
            existing=pods.existing,
            step_s=step_s,
        )
        self._queue = result.queue
        self.cpu_used_milli = float(granted.sum() + pods.side_milli)
        end = Instant(begin + self.step)
        memory = self._memory(result, pods, end)
        resources = resources_of(pods, demand, demand - allowed, granted, memory, count)
        result = msgspec.structs.replace(result, resources=resources)
        self._publish(end, granted, memory, worked, pods, result)
        for handler in self._step_handlers:
            handler(end, result)

    def _pods_now(self) -> Unchanged:
        if self._unchanged is None or self._unchanged.changes != self._rows.changes:
            self._unchanged = Unchanged.of(self._rows, self._facts)
        return self._unchanged

    def _serving_capacity(self, capacity: Float64Vector, cores: Float64Vector) -> ServingCapacity:
        """Return what services can do; that of the last step where it follows from the very same columns."""
        known = self._serving
        if known is None or known[0] is not cores or known[1].capacity is not capacity:
            found = ServingCapacity.of(self._facts, capacity=capacity, cores=cores, step_s=self.step / 1e9)
            known = self._serving = cores, found
        return known[1]

    def _grant(self, demand: Float64Vector, pods: Unchanged) -> tuple[Float64Vector, Float64Vector]:
        """Return the CPU that each pod gets, and the CPU that it could get.

        A pod on a node with free CPU gets its demand up to its limit. On a node whose demand exceeds
        its CPU, each pod gets its demand up to its request, and the rest is shared in proportion to
        the demand beyond the requests: CPU requests are guaranteed under contention
        (Kubernetes, "Resource Management for Pods and Containers"). So there a pod could get its
        request, or what it got if that is more.
        """
        rows, n = self._rows, self._rows.n
        node, nodes, side, able = pods.node, len(rows.node_cpu), pods.side, pods.able
        used = np.bincount(node, demand + side, nodes)
        capacity = rows.node_cpu
        crowded = used > capacity
        if not np.count_nonzero(crowded):
            return demand, able
        sure = np.minimum(demand, rows.request[:n])
        beyond = demand - sure
        spare = np.maximum(capacity - np.bincount(node, sure + side, nodes), 0.0)
        asked = np.bincount(node, beyond, nodes)
        factor = np.divide(spare, asked, out=np.ones(nodes), where=crowded & (asked > 0))
        granted = sure + beyond * np.minimum(factor, 1.0)[node]
        granted[(rows.node_cpu == 0.0)[node]] = 0.0
        guaranteed = np.maximum(granted, np.minimum(rows.request[:n], able))
        return granted, np.where(crowded[node] & pods.serving, guaranteed, able)

    def _memory(self, result: ServiceStep, pods: Unchanged, end: Instant) -> Float64Vector:
        """Bytes of each pod: its base, what it has leaked since its start, and its share of the requests in flight.

        Requests in flight are those served times their latency (Little's law), the queue included.
        """
        rows, n, count = self._rows, self._rows.n, len(self.services)
        held = np.zeros(count + 1)
        np.divide(
            result.served * result.latency * self._facts.memory_per_request,
            pods.ready,
            out=held[:count],
            where=pods.any_ready,
        )
        memory = rows.base_memory[:n] + held[pods.service] * pods.serving
        leaking = pods.leaking
        if len(leaking):
            memory[leaking] += rows.leak[leaking] * np.maximum(end - rows.started_ns[leaking], 0) / 1e9
        over = memory > rows.memory_limit[:n]
        if np.count_nonzero(over):
            # What was there when the kernel stepped in.
            memory = np.minimum(memory, rows.memory_limit[:n])
            for row in np.flatnonzero(over & pods.running).tolist():
                for handler in self._oom_handlers:
                    handler((rows.namespaces[row], rows.names[row]), rows.containers[row][rows.worker[row]])
        return memory

    def _publish(
        self,
        end: Instant,
        cpu: Float64Vector,
        memory: Float64Vector,
        worked: Float64Vector,
        pods: Unchanged,
        services: ServiceStep,
    ) -> None:
        """Keep what metrics readers may see of the step; ``worked`` is the milli-CPU spent on requests."""
        rows = self._rows
        layout = self._layout
        if layout is None or layout.version != rows.version or layout.some_young:
            layout = self._layout = lay_out(rows, Instant(end - self.step), layout)
        visible = self._visible
        if visible is None or visible.layout is not layout or visible.pods is not pods:
            service = rows.service[layout.rows]
            visible = self._visible = _Visible(
                layout, pods, service, pods.serving[layout.rows], self._request_milli_s[service]
            )
        self._recent.append(
            Usage(
                end=end,
                layout=layout,
                cpu_milli=cpu[layout.rows],
                memory=memory[layout.rows],
                service=visible.service,
                serving=visible.serving,
                requests=worked[layout.rows] / visible.request_milli_s,
                services=services,
            )
        )


class _Visible(NamedTuple):
    """Of the pods that metrics readers see, what does not change from step to step."""

    layout: Layout
    pods: Unchanged
    service: NDArray[np.int64]
    serving: NDArray[np.bool_]
    request_milli_s: Float64Vector


def _bursts_of(services: Sequence[Service]) -> list[int]:
    """Return the numbers of the services whose load has steps of its own."""
    return [number for number, service in enumerate(services) if service.trace.has_steps]
