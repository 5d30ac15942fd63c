"""The report: requests, usage and recommended requests of each container, their cost, and the confidence.

What it should ask for is the target of the VPA recommender, by the same code: one imagined VPA object a workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from kubetide.advise.prices import Prices
from kubetide.advise.usage import UsageLog, Used
from kubetide.advise.workloads import WorkloadKey, Workloads
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.pod import Container, Pod
from kubetide.units.quantity import Quantity, QuantityError, bytes_to_text, milli_to_text
from kubetide.units.time import Duration, Instant, format_duration, hours, whole_seconds
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.hpas import LeftResource, hpa_view, left_by_target
from kubetide.vertical.recommender.facts.views import History, VpaView
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets.statuses import recommendations
from kubetide.vertical.targets import Target

Risk = Literal["low", "medium", "high"]
_RANK: Final[Mapping[Risk, int]] = {"low": 0, "medium": 1, "high": 2}
_LABEL: Final = "workload"
_HOUR, _DAY, _WEEK = hours(1), hours(23), hours((7 * 24) - 1)
"""A little less than their names say: the last sample of a day is not at its end."""
_BURST: Final = 2.0
"""A greatest use of CPU above so many times the recommendation is a burst worth reporting."""


class Amounts(msgspec.Struct, frozen=True):
    """One resource of a container, in millicores or bytes; None where there is none.

    Attributes:
        request: The average of its pods that set one.
        recommended: None where it is left as it is.
    """

    request: int | None
    p50: int | None
    p95: int | None
    max: int | None
    recommended: int | None


class Row(msgspec.Struct, frozen=True):
    """One container of one workload.

    Attributes:
        pods: How many there were on average.
        samples: Of CPU; ``history_s`` is the time that they span, in seconds.
        cost, cost_then: Of all pods in a month, as it is and as recommended.
        because: What the risk is made of, a sentence each.
    """

    namespace: str
    kind: str
    workload: str
    container: str
    pods: float
    cpu: Amounts
    memory: Amounts
    samples: int
    history_s: int
    cost: float
    cost_then: float
    saving: float
    risk: Risk
    because: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """The rows, the largest saving first, and their sums.

    Attributes:
        source: Where usage comes from.
        notices: What is left out, a sentence each.
    """

    source: str
    currency: str
    cost: float
    cost_then: float
    saving: float
    rows: tuple[Row, ...]
    notices: tuple[str, ...] = ()


class _Facts(NamedTuple):
    key: WorkloadKey
    container: str
    pods: Sequence[Pod]
    used: Used
    target: Mapping[str, str]
    left: Sequence[LeftResource]


def report(
    workloads: Workloads,
    log: UsageLog,
    hpas: Iterable[HorizontalPodAutoscaler],
    *,
    settings: Settings,
    prices: Prices,
    now: Instant,
    source: str,
    notices: Sequence[str] = (),
) -> Report:
    """Return the report of all workloads that used something."""
    used = log.by_container(workloads.of)
    left = left_by_target(map(hpa_view, hpas))
    targets = _targets(workloads, log, settings, now)
    rows = [
        _row(
            _Facts(
                key,
                container,
                workloads.pods.get(key, ()),
                one,
                targets.get(key, {}).get(container, {}),
                _left(left, key),
            ),
            prices,
        )
        for key, containers in used.items()
        for container, one in containers.items()
    ]
    # What has no pods any more costs nothing and saves nothing.
    rows = [row for row in rows if row.pods > 0]
    rows.sort(key=lambda row: (-row.saving, row.namespace, row.workload, row.container))
    return Report(
        source,
        prices.currency,
        sum(row.cost for row in rows),
        sum(row.cost_then for row in rows),
        sum(row.saving for row in rows),
        tuple(rows),
        tuple(notices),
    )


def _left(
    left: Mapping[tuple[str, str, str, str], Sequence[LeftResource]], key: WorkloadKey
) -> Sequence[LeftResource]:
    return [
        one
        for (namespace, _, kind, name), found in left.items()
        if (namespace, kind, name) == tuple(key)
        for one in found
    ]


def _targets(
    workloads: Workloads, log: UsageLog, settings: Settings, now: Instant
) -> dict[WorkloadKey, dict[str, Mapping[str, str]]]:
    """Return what the recommender gives each container of each workload, as texts by resource."""
    numbers: dict[WorkloadKey, str] = {}
    pods: dict[tuple[str, str], History] = {}
    for namespace, pod, container, usage in log.history():
        key = workloads.of(namespace, pod)
        if key is None:
            continue
        number = numbers.setdefault(key, f"w{len(numbers)}")
        one = pods.setdefault((namespace, pod), History(namespace, pod, {_LABEL: number}, {}))
        one.containers[container] = usage
    views = [
        VpaView(key.namespace, number, Target(f"{_LABEL}={number}", matches=True))
        for key, number in numbers.items()
    ]
    state = State(settings)
    state.apply(Delta(at=now, vpas=views, history=[pods[key] for key in sorted(pods)]))
    keys = {(key.namespace, number): key for key, number in numbers.items()}
    vpas = [state.vpas[name] for name in keys]
    return {
        keys[vpa.key]: {
            one.container_name: {name: str(text) for name, text in (one.target or {}).items()}
            for one in found.container_recommendations or ()
        }
        for vpa, found in zip(vpas, recommendations(state, vpas), strict=True)
    }


def _row(facts: _Facts, prices: Prices) -> Row:
    key, used = facts.key, facts.used
    containers = [
        one for pod in facts.pods for one in pod.spec.containers or () if one.name == facts.container
    ]
    cpu = _amounts(facts, "cpu", used.cpu, containers)
    memory = _amounts(facts, "memory", used.memory, containers)
    pods = used.pods if facts.pods else 0.0
    cost = pods * prices.month(cpu.request or 0, memory.request or 0)
    then = pods * prices.month(_or(cpu.recommended, cpu.request), _or(memory.recommended, memory.request))
    risk, because = _risk(facts, cpu, memory)
    return Row(
        key.namespace,
        key.kind,
        key.name,
        facts.container,
        round(pods, 2),
        cpu,
        memory,
        len(used.cpu),
        used.span // 10**9,
        cost,
        then,
        cost - then,
        risk,
        because,
    )


def _or(recommended: int | None, request: int | None) -> int:
    return (request or 0) if recommended is None else recommended


def _amounts(facts: _Facts, resource: str, used: Int64Vector, containers: Sequence[Container]) -> Amounts:
    asked = [found for one in containers if (found := _request(one, resource)) is not None]
    left = any(one.concerns(facts.container, resource) for one in facts.left)
    target = None if left else facts.target.get(resource)
    p50, p95 = np.percentile(used, (50, 95), method="higher").tolist() if len(used) else (None, None)
    return Amounts(
        sum(asked) // len(asked) if asked else None,
        p50,
        p95,
        int(used.max()) if len(used) else None,
        None if target is None else _amount(str(target), resource),
    )


def _request(container: Container, resource: str) -> int | None:
    text = (container.resources.requests or {}).get(resource)
    if text is None:
        return None
    try:
        return _amount(str(text), resource)
    except QuantityError:
        return None


def _amount(text: str, resource: str) -> int:
    quantity = Quantity.parse(text)
    return quantity.milli_value() if resource == "cpu" else quantity.value()


def _risk(facts: _Facts, cpu: Amounts, memory: Amounts) -> tuple[Risk, tuple[str, ...]]:
    """Return how risky it is to follow the recommendation: the highest of what speaks against it."""
    found: list[tuple[Risk, str]] = []
    span = facts.used.span
    lowers = any(
        one.recommended is not None and one.recommended < (one.request or 0) for one in (cpu, memory)
    )
    if span < _DAY:
        said = f"only {format_duration(whole_seconds(Duration(span)))} of history, less than a day"
        found.append(("high" if lowers and span < _HOUR else "medium", said))
    elif span < _WEEK:
        found.append(("medium", f"{round(span / hours(24))}d of history, less than a week"))
    if memory.recommended is not None and memory.max is not None and memory.recommended < memory.max:
        found.append(("high", f"memory has been at {_memory(memory.max)}, above the recommendation"))
    if cpu.recommended and cpu.max is not None and cpu.max > _BURST * cpu.recommended:
        found.append(
            ("medium", f"CPU has been at {milli_to_text(cpu.max)}, more than twice the recommendation")
        )
    if any(_was_killed(pod, facts.container) for pod in facts.pods):
        found.append(("high" if lowers else "medium", "a pod was killed for its memory"))
    found += [
        (
            "low",
            f"{one.resource} is left to HorizontalPodAutoscaler {one.hpa}, which scales on its utilization",
        )
        for one in facts.left
        if one.container in {"", facts.container}
    ]
    risk: Risk = max((one for one, _ in found), key=_RANK.__getitem__, default="low")
    return risk, tuple(text for _, text in found)


def _was_killed(pod: Pod, container: str) -> bool:
    for one in pod.status.container_statuses or ():
        last = one.last_state.terminated if one.last_state is not None else None
        if one.name == container and last is not None and last.reason == "OOMKilled":
            return True
    return False


def _memory(amount: int) -> str:
    return bytes_to_text(amount >> 20 << 20)
