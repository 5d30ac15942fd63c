"""What a pass of the horizontal loop costs, as JSON lines.

``python -m bench horizontal``. Times are CPU time of the process, the least of several runs; each line
has ratios to a floor that is measured in the same run: a plain Python loop over pods, or plain JSON.
``evaluate`` is everything from the samples in columns to a decision, a status and reasons for every HPA.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kubetide.cluster.metric_ports.usage import HttpMetrics
from kubetide.horizontal.core import encode_delta, encode_result
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import Result, ScaleOutcome
from kubetide.horizontal.explain.changes import ChangedReasons
from kubetide.horizontal.facts.samples import Answer, answer_of
from kubetide.horizontal.facts.views import ContainerView, HpaView, PodView, ScaleView
from kubetide.horizontal.state import Delta, State
from kubetide.objects.hpa import HpaSpec
from kubetide.ports.clock import Clock
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.runtime.process import tune_gc
from kubetide.runtime.timing.clock import run_real
from kubetide.units.steps import finish
from kubetide.units.time import Instant, minutes, parse_rfc3339, seconds
from kubetide.units.vectors import Int64Vector

NOW = parse_rfc3339("2026-03-02T08:00:00Z")
KEYS = [("cpu", "")]
NAMESPACES = 20


class Fleet(NamedTuple):
    """A state, its pods by HPA, and what its samples are made of."""

    state: State
    pods: dict[str, list[PodView]]
    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    rng: np.random.Generator


def fleet(hpas: int, pods_each: int, namespaces: int) -> Fleet:
    def space(index: int) -> str:
        return f"team-{index % namespaces}"

    state = State()
    delta = Delta(
        hpas=[_hpa(index, space(index)) for index in range(hpas)],
        pods=[_pod(index, number, space(index)) for index in range(hpas) for number in range(pods_each)],
        scales=[_scale(index, pods_each, space(index)) for index in range(hpas)],
    )
    state.apply(delta)
    pods: dict[str, list[PodView]] = {}
    for pod in delta.pods:
        pods.setdefault(pod.labels["app"], []).append(pod)
    names = tuple(pod.name for pod in delta.pods)
    return Fleet(state, pods, names, tuple(pod.namespace for pod in delta.pods), np.random.default_rng(1))


def _hpa(index: int, namespace: str) -> HpaView:
    target = {"type": "Utilization", "averageUtilization": 60}
    rules = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [_policy("Percent", 100), _policy("Pods", 4)],
    }
    body = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"app-{index}"},
        "minReplicas": 1,
        "maxReplicas": 20_000,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {"scaleUp": rules, "scaleDown": {**rules, "stabilizationWindowSeconds": 300}},
    }
    return HpaView(namespace, f"app-{index}", "", msgspec.convert(body, HpaSpec))


def _policy(kind: str, value: int) -> dict[str, str | int]:
    return {"type": kind, "value": value, "periodSeconds": 15}


def _pod(index: int, number: int, namespace: str) -> PodView:
    young = number == 0
    return PodView(
        namespace=namespace,
        name=f"app-{index}-{number}",
        labels={"app": f"app-{index}"},
        phase="Pending" if number == 1 and not index % 5 else "Running",
        ready="True",
        ready_since=NOW - (seconds(100) if young else minutes(59)),
        started=Instant(NOW - (seconds(120) if young else minutes(60))),
        containers=(ContainerView("app", {"cpu": 500}),),
    )


def _scale(index: int, replicas: int, namespace: str) -> ScaleView:
    return ScaleView(
        namespace,
        f"app-{index}",
        spec_replicas=replicas,
        status_replicas=replicas,
        selector=f"app=app-{index}",
    )


def answer(made: Fleet, milli: Int64Vector, *, same_pods: bool) -> Answer:
    """One sample a pod; ``milli`` (pods,) is what each uses."""
    count = len(made.names)
    samples = PodSamples(
        namespaces=made.namespaces,
        names=made.names,
        timestamp_ns=np.full(count, NOW, np.int64),
        window_ns=np.full(count, seconds(15), np.int64),
        first=np.arange(count + 1),
        containers=("app",) * count,
        usage={"cpu": ResourceUsage(milli, np.ones(count, np.bool_))},
    )
    return answer_of(samples, KEYS, hpa=None, same_pods=same_pods)


def plain_loop(made: Fleet, usage: dict[str, int]) -> int:
    """The arithmetic of one tick pod by pod, in the plainest form: what columns are measured against."""
    total = 0
    for pods in made.pods.values():
        used = requests = ready = 0
        for pod in pods:
            if pod.deleting or pod.phase in {"Failed", "Pending"} or pod.name not in usage:
                continue
            ready += 1
            used += usage[pod.name]
            requests += pod.containers[0].requests["cpu"]
        total += math.ceil(used * 100 // requests / 60 * ready)
    return total


def cpu_ms(
    work: Callable[[], object], repeats: int = 7, *, before: Callable[[], object] = lambda: None
) -> float:
    times = []
    for _ in range(repeats):
        before()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1000 * min(times)


class Loop:
    """Ticks of a fleet: all but what a controller asks and writes.

    Args:
        share: Of the HPAs, whose pods use something else than in the tick before.
    """

    def __init__(self, made: Fleet, share: float) -> None:
        self._made = made
        self._share = share
        self._changed_reasons = ChangedReasons()
        self._each = len(made.names) // len(made.state.hpas)
        self._usage = made.rng.integers(250, 350, len(made.names))
        self._now = NOW
        self.state = made.state
        self.delta = Delta(answers=[answer(made, self._usage, same_pods=False)])
        self.result = Result(())
        self.state.apply(self.delta)

    def gather(self) -> None:
        """Put new usage into the place of some of the old."""
        made = self._made
        self._now = Instant(self._now + seconds(15))
        hpas = made.rng.random(len(made.state.hpas)) < self._share
        changed = np.repeat(hpas, self._each)
        self._usage = np.where(changed, made.rng.integers(250, 350, len(changed)), self._usage)
        self.delta = Delta(answers=[answer(made, self._usage, same_pods=True)])

    def evaluate(self) -> None:
        """Decide, and make a status and reasons, for every HPA."""
        self.state.apply(self.delta)
        commands = decide(self.state, self._now)
        outcomes = [ScaleOutcome(w.namespace, w.name, self._now) for w in commands.writes]
        self.result = absorb(self.state, commands, outcomes)
        finish(self._changed_reasons.of(self.result, self.state.specs, (), full=False))

    def record(self) -> None:
        encode_delta(self.delta)
        encode_result(self.result)


def measure(name: str, hpas: int, pods_each: int, repeats: int, *, namespaces: int = NAMESPACES) -> None:
    made = fleet(hpas, pods_each, namespaces)
    usage = dict.fromkeys(made.names, 300)
    line: dict[str, object] = {"name": name, "hpas": hpas, "pods": hpas * pods_each}
    floor = cpu_ms(lambda: plain_loop(made, usage), repeats)
    for share, word in ((1.0, "all"), (0.01, "1_percent")):
        loop = Loop(made, share)
        for _ in range(25):  # fill the windows
            loop.gather()
            loop.evaluate()
        times = cpu_ms(loop.evaluate, repeats, before=loop.gather)
        line[f"evaluate_{word}_ms"] = round(times, 2)
        line[f"evaluate_{word}_to_plain_loop"] = round(times / floor, 2)
        if share == 1.0:
            line["record_ms"] = round(cpu_ms(loop.record, repeats), 2)
    line["plain_loop_ms"] = round(floor, 2)
    print(json.dumps(line), flush=True)


def metrics_list(made: Fleet, order: Sequence[int]) -> bytes:
    """A PodMetricsList as metrics-server sends it."""
    items = [
        {
            "metadata": {
                "name": made.names[at],
                "namespace": made.namespaces[at],
                "creationTimestamp": "2026-03-02T08:00:00Z",
                "labels": {"app": made.names[at].rpartition("-")[0], "pod-template-hash": "7f9c5d8b6"},
            },
            "timestamp": f"2026-03-02T07:59:{at % 60:02d}Z",
            "window": f"15.{at % 1000:03d}s",
            "containers": [
                {"name": "app", "usage": {"cpu": f"{at * 7919 % 10**9}n", "memory": f"{at * 31 % 10**6}Ki"}}
            ],
        }
        for at in order
    ]
    return msgspec.json.encode(
        {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}
    )


class _Sent:
    """A server that has one answer ready."""

    def __init__(self) -> None:
        self.body = b""

    async def get_raw(self, *_: object, **__: object) -> bytes:
        return self.body


async def measure_ingest(clock: Clock) -> None:
    """From the bytes of an answer to the columns that are decided from; twice in one order, and in another."""
    made = fleet(10_000, 10, NAMESPACES)
    server = _Sent()
    source = HttpMetrics(server, clock)
    last: list[Sequence[str]] = [()]

    async def ingest() -> None:
        samples = await source.pod_samples()
        found = answer_of(samples, KEYS, hpa=None, same_pods=samples.names is last[0])
        last[0] = samples.names
        made.state.apply(Delta(answers=[found]))

    order = np.arange(len(made.names))
    bodies = [metrics_list(made, order.tolist())]
    for _ in range(2):
        made.rng.shuffle(order)
        bodies.append(metrics_list(made, order.tolist()))
    same: list[float] = []
    other: list[float] = []
    for number in range(10):
        server.body = bodies[1 + number // 2 % 2]
        start = time.process_time()
        await ingest()
        (same if number % 2 else other).append(1000 * (time.process_time() - start))
    floor = cpu_ms(lambda: msgspec.json.decode(bodies[0]), 5)
    line = {
        "name": "horizontal/ingest",
        "pods": len(made.names),
        "mb": round(len(bodies[0]) / 1e6, 1),
        "same_order_ms": round(min(same), 1),
        "other_order_ms": round(min(other), 1),
        "plain_json_ms": round(floor, 1),
        "same_order_to_plain_json": round(min(same) / floor, 2),
        "other_order_to_plain_json": round(min(other) / floor, 2),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    tune_gc()
    measure("horizontal/day", 50, 60, repeats=40)
    measure("horizontal/large", 10_000, 10, repeats=7)
    measure("horizontal/one_namespace", 10_000, 10, repeats=7, namespaces=1)
    measure("horizontal/one", 1, 10_000, repeats=20)
    measure("horizontal/small", 1, 10, repeats=100)
    run_real(measure_ingest)


if __name__ == "__main__":
    main()
