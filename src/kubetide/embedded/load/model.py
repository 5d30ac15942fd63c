"""The load model: from requests to CPU, memory, queue and latency, step by step.

Time is cut into steps from ``start`` on. A step is published once it has ended, with the pods as
they were at its end: a change that comes later first lets all ended steps be published, so the
outcome does not depend on who asks, or when. While pods stay as they are several steps are worked out
ahead (``steps``); a change drops those that have not ended.
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
from kubetide.embedded.load.service import Service, ServiceFacts, ServiceStep, ServingCapacity
from kubetide.embedded.load.steps import Float64Matrix, Steps, work_out
from kubetide.embedded.load.traces import Trace
from kubetide.embedded.load.unchanged import Unchanged
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.units.time import Duration, Instant, seconds
from kubetide.units.vectors import Float64Vector, Int64Vector
from kubetide.watching import Informer

DEFAULT_STEP = seconds(15)

_NANO_PER_MILLI = 1_000_000
_MOST_STEPS = 32
_MOST_VALUES = 1 << 14
"""So many steps, and values in a column of pods, are worked out together at most; more would save no time."""


class Usage(msgspec.Struct, frozen=True, eq=False):
    """What the visible pods used in one step.

    Attributes:
        end: When the step ended.
        layout: Which pods, and how their containers lie.
        cpu_nano: (pods,) nano-CPU of the working container, as a kubelet reports it.
        memory: (pods,) its bytes.
        service: (pods,) number of the service that a pod belongs to; the number of services for none.
        serving: (pods,) whether the pod takes requests.
        requests: (pods,) requests/s that the pod served.
        services: What became of the services' requests.
    """

    end: Instant
    layout: Layout
    cpu_nano: Int64Vector
    memory: Int64Vector
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
        self._steps: Steps | None = None
        self._next = 0
        """Which of them is the next one, while pods stay as they are."""
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
        self._steps = None

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
        """Publish one step."""
        pods = self._pods_now()
        steps, at = self._steps, self._next
        if steps is None or steps.pods is not pods or at == len(steps.services):
            steps, at = self._work_out(begin, pods), 0
        self._next = at + 1
        result = steps.services[at]
        self._queue = result.queue
        self.cpu_used_milli = steps.cpu_used[at]
        end = Instant(begin + self.step)
        rows = self._rows
        for row in steps.over[at]:
            for handler in self._oom_handlers:
                handler((rows.namespaces[row], rows.names[row]), rows.containers[row][rows.worker[row]])
        self._publish(end, steps, at)
        for on_step in self._step_handlers:
            on_step(end, result)

    def _work_out(self, begin: Instant, pods: Unchanged) -> Steps:
        """Work out the step that begins then; as long as pods stay as they are and nothing queues up, ever more with it."""
        before, most = self._steps, max(1, _MOST_VALUES // max(self._rows.n, 1))
        if self._starts or before is None or before.pods is not pods or self._queue.any():
            count = 1
        else:
            count = min(2 * len(before.services), _MOST_STEPS, most)
        begins = [Instant(begin + self.step * number) for number in range(count)]
        rates = [[s.trace.rate(one, self.step) for s in self.services] for one in begins]
        peak = offered = np.array(rates, np.float64).reshape(count, len(self.services))
        if self._bursts:
            for one, row in zip(begins, rates, strict=True):
                for number in self._bursts:
                    row[number] = self.services[number].trace.highest(one, self.step)
            peak = np.array(rates, np.float64)
        self._steps = work_out(
            begin,
            self.step,
            self._rows,
            pods,
            self._facts,
            self._serving_capacity,
            offered=offered,
            peak=peak,
            queue=self._queue,
            startup_milli=self._startup_milli if self._starts else None,
        )
        return self._steps

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

    def _publish(self, end: Instant, steps: Steps, at: int) -> None:
        """Keep what metrics readers may see of a step."""
        rows = self._rows
        layout = self._layout
        if layout is None or layout.version != rows.version or layout.some_young:
            layout = self._layout = lay_out(rows, Instant(end - self.step), layout)
        visible = self._visible
        if visible is None or visible.layout is not layout or visible.steps is not steps:
            service = rows.service[layout.rows]
            visible = self._visible = _Visible(
                layout,
                steps,
                service,
                steps.pods.serving[layout.rows],
                _whole(steps.cpu.take(layout.rows, axis=1) * _NANO_PER_MILLI),
                _whole(steps.memory.take(layout.rows, axis=1)),
                steps.worked.take(layout.rows, axis=1) / self._request_milli_s[service],
            )
        self._recent.append(
            Usage(
                end=end,
                layout=layout,
                cpu_nano=visible.cpu_nano[at],
                memory=visible.memory[at],
                service=visible.service,
                serving=visible.serving,
                requests=visible.requests[at],
                services=steps.services[at],
            )
        )


class _Visible(NamedTuple):
    """The pods that metrics readers see in steps that were worked out together: as ``Usage``, by step."""

    layout: Layout
    steps: Steps
    service: NDArray[np.int64]
    serving: NDArray[np.bool_]
    cpu_nano: NDArray[np.int64]
    memory: NDArray[np.int64]
    requests: Float64Matrix


def _whole(values: Float64Matrix) -> NDArray[np.int64]:
    return np.rint(values).astype(np.int64)


def _bursts_of(services: Sequence[Service]) -> list[int]:
    """Return the numbers of the services whose load has steps of its own."""
    return [number for number, service in enumerate(services) if service.trace.has_steps]
