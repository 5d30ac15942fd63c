"""What a pass of the horizontal loop costs, as JSON lines.

``python bench/horizontal.py``. Times are CPU time of the process, the least of several rounds; each
line has the ratio to a plain Python loop over pods that is measured in the same run.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from kubetide.horizontal.core import encode_delta, encode_result
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.samples import Answer, answer_of
from kubetide.horizontal.state import Delta, State
from kubetide.horizontal.views import ContainerView, HpaView, PodView, ScaleView
from kubetide.objects.hpa import HpaSpec
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.time import Instant, minutes, parse_rfc3339, seconds

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


def fleet(hpas: int, pods_each: int) -> Fleet:
    state = State()
    delta = Delta(
        hpas=[_hpa(index) for index in range(hpas)],
        pods=[_pod(index, number) for index in range(hpas) for number in range(pods_each)],
        scales=[_scale(index, pods_each) for index in range(hpas)],
    )
    state.apply(delta)
    pods: dict[str, list[PodView]] = {}
    for pod in delta.pods:
        pods.setdefault(pod.labels["app"], []).append(pod)
    names = tuple(pod.name for pod in delta.pods)
    return Fleet(state, pods, names, tuple(pod.namespace for pod in delta.pods), np.random.default_rng(1))


def _namespace(index: int) -> str:
    return f"team-{index % NAMESPACES}"


def _hpa(index: int) -> HpaView:
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
    return HpaView(_namespace(index), f"app-{index}", "", msgspec.convert(body, HpaSpec))


def _policy(kind: str, value: int) -> dict[str, str | int]:
    return {"type": kind, "value": value, "periodSeconds": 15}


def _pod(index: int, number: int) -> PodView:
    young = number == 0
    return PodView(
        namespace=_namespace(index),
        name=f"app-{index}-{number}",
        labels={"app": f"app-{index}"},
        phase="Pending" if number == 1 and not index % 5 else "Running",
        ready="True",
        ready_since=NOW - (seconds(100) if young else minutes(59)),
        started=Instant(NOW - (seconds(120) if young else minutes(60))),
        containers=(ContainerView("app", {"cpu": 500}),),
    )


def _scale(index: int, replicas: int) -> ScaleView:
    return ScaleView(
        _namespace(index),
        f"app-{index}",
        spec_replicas=replicas,
        status_replicas=replicas,
        selector=f"app=app-{index}",
    )


def answer(made: Fleet, *, same_pods: bool) -> Answer:
    """One sample a pod, around the target."""
    count = len(made.names)
    samples = PodSamples(
        namespaces=made.namespaces,
        names=made.names,
        timestamp_ns=np.full(count, NOW, np.int64),
        window_ns=np.full(count, seconds(15), np.int64),
        first=np.arange(count + 1),
        containers=("app",) * count,
        usage={"cpu": ResourceUsage(made.rng.integers(250, 350, count), np.ones(count, np.bool_))},
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


def cpu_ms(work: Callable[[], object], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def measure(name: str, hpas: int, pods_each: int, rounds: int) -> None:
    made = fleet(hpas, pods_each)
    state = made.state
    usage = dict.fromkeys(made.names, 300)
    state.apply(Delta(answers=[answer(made, same_pods=False)]))
    clock = [NOW]

    def tick(*, record: bool) -> None:
        clock[0] = Instant(clock[0] + seconds(15))
        delta = Delta(answers=[answer(made, same_pods=True)])
        state.apply(delta)
        commands = decide(state, clock[0])
        result = absorb(
            state, commands, [ScaleOutcome(w.namespace, w.name, clock[0]) for w in commands.writes]
        )
        if record:
            encode_delta(delta)
            encode_result(result)

    for _ in range(25):  # fill the windows
        tick(record=False)
    floor = cpu_ms(lambda: plain_loop(made, usage), rounds)
    whole = cpu_ms(lambda: tick(record=True), rounds)
    decided = cpu_ms(lambda: decide(state, clock[0]), rounds)
    line = {
        "name": name,
        "hpas": hpas,
        "pods": hpas * pods_each,
        "tick_with_record_ms": round(whole, 2),
        "decide_ms": round(decided, 2),
        "plain_loop_ms": round(floor, 2),
        "decide_to_plain_loop": round(decided / floor, 2),
        "tick_to_plain_loop": round(whole / floor, 2),
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    measure("horizontal/day", 50, 60, rounds=40)
    measure("horizontal/large", 10_000, 10, rounds=7)
    measure("horizontal/one", 1, 10_000, rounds=20)
    measure("horizontal/small", 1, 10, rounds=100)
