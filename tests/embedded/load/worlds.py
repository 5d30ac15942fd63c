"""Pods and nodes put straight into a load model, without a cluster between."""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.embedded.load import ConstantTrace, EmbeddedMetrics, Service, ServiceLoad
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Node, NodeStatus
from kubetide.objects.pod import (
    Container,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from kubetide.units.selectors import Selector
from kubetide.units.time import ZERO, Duration, Instant, format_rfc3339, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
LONG_AGO = "2026-03-01T00:00:00Z"


class Objects:
    """The part of an informer that a load model needs: objects and their changes."""

    def __init__(self):
        self.objects = {}
        self.handlers = []

    def on_change(self, handler):
        self.handlers.append(handler)

    def put(self, key, new):
        old = self.objects.get(key)
        if new is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = new
        for handler in self.handlers:
            handler(key, old, new)


class HandClock:
    """A clock that a test moves."""

    def __init__(self):
        self.time = START

    def now(self):
        return self.time

    def monotonic(self):
        return Duration(self.time - START)

    async def sleep(self, duration):
        raise AssertionError("nothing here sleeps")


class World:
    """A load model whose pods and time are moved by hand."""

    def __init__(self, *services, nodes=("n1",), cpu="64", scrape_delay=ZERO, **options):
        self.clock = HandClock()
        self.pods, self.nodes = Objects(), Objects()
        for name in nodes:
            self.nodes.put(("", name), make_node(name, cpu))
        self.model = ServiceLoad(
            services,
            clock=self.clock,
            pods=self.pods,
            nodes=self.nodes,
            start=START,
            **options,
        )
        self.history = []
        self.model.on_step(lambda _end, step: self.history.append(step))
        self.metrics = EmbeddedMetrics(self.model, self.clock, scrape_delay=scrape_delay)

    def put(self, pod):
        self.pods.put((pod.metadata.namespace, pod.metadata.name), pod)
        return self

    def remove(self, name, namespace="default"):
        self.pods.put((namespace, name), None)

    def to(self, second):
        self.clock.time = Instant(START + seconds(second))
        self.model.advance(self.clock.time)
        return self.history[-1] if self.history else None


def make_node(name="n1", cpu="64", ready="True"):
    return Node(
        metadata=ObjectMeta(name=name),
        status=NodeStatus(allocatable={"cpu": cpu}, conditions=(Condition(type="Ready", status=ready),)),
    )


def make_pod(
    name="p",
    *,
    namespace="default",
    app="web",
    node="n1",
    ready=True,
    phase="Running",
    started=LONG_AGO,
    deleting=False,
    cpu="1",
    limit="1",
    memory="100Mi",
    memory_limit=None,
    sidecar=False,
):
    limits = ({"cpu": limit} if limit else {}) | ({"memory": memory_limit} if memory_limit else {})
    resources = ResourceRequirements(requests={"cpu": cpu, "memory": memory}, limits=limits)
    containers = [Container(name="main", resources=resources)]
    if sidecar:
        extra = ResourceRequirements(requests={"cpu": "100m", "memory": "10Mi"})
        containers.append(Container(name="side", resources=extra))
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels={"app": app} if app else None,
            deletion_timestamp="2026-03-02T00:00:00Z" if deleting else None,
        ),
        spec=PodSpec(node_name=node, containers=tuple(containers)),
        status=PodStatus(
            phase=phase,
            start_time=started if isinstance(started, str) or started is None else format_rfc3339(started),
            conditions=(Condition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def make_service(rate=10.0, **fields):
    trace = fields.pop("trace", ConstantTrace(rate))
    defaults = {"name": "web", "namespace": "default", "selector": Selector.parse("app=web")}
    return Service(trace=trace, **({"cpu_seconds_per_request": 0.02} | defaults | fields))


def answer(coroutine):
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")


MI = 1 << 20


def usage(world):
    """Return milli-CPU and bytes by pod, of the newest step."""
    found = world.model.usage(world.clock.time)
    return {
        name: (cpu / 1e6, memory)
        for name, cpu, memory in zip(found.layout.names, found.cpu_nano, found.memory, strict=True)
    }


def running_since(pod, at, *, image="", state=None):
    """Return the pod with an image and a status of its container: running since then, or ``state``."""
    state = state or ContainerState(running=ContainerRunning(started_at=at))
    (main,) = pod.spec.containers
    spec = replace(pod.spec, containers=(replace(main, image=image),))
    statuses = (ContainerStatus(name="main", state=state),)
    status = replace(pod.status, container_statuses=statuses)
    return replace(pod, spec=spec, status=status)
