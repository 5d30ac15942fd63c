"""The HPA algorithm in its plainest form, object by object: what the loop's passes are held against.

Written from the rules (Kubernetes documentation "Horizontal Pod Autoscaling", horizontal controller v1.36), without
columns, caches or slots, and without any of the loop's own functions. Numbers are plain: nothing here
is large enough to overflow. Times are ns, amounts thousandths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

SECOND = 1_000_000_000
INITIALIZATION, READINESS_DELAY, WINDOW = 300 * SECOND, 30 * SECOND, 300 * SECOND
TOLERANCE = 0.1


class Failed(Exception):
    """A metric that proposes nothing; the argument is the reason of its event."""


class Sampled(NamedTuple):
    """What one pod used: thousandths by (resource, container); a resource without an entry was not reported."""

    used: dict
    at: int
    window: int


class Answers(NamedTuple):
    """What the metrics APIs answer; a text is an error."""

    samples: dict  # (namespace, pod) -> Sampled
    error: str
    external: dict  # (namespace, metric) -> values, or a text
    objects: dict  # likewise
    pods: dict  # (namespace, selector, metric) -> value by pod, or a text


@dataclass
class Outcome:
    """The result for one HPA in one tick."""

    desired: int
    able: str = ""
    active: str = ""
    limited: str = ""
    failures: list = field(default_factory=list)
    shown: list = field(default_factory=list)  # (utilization, average) by metric, None for one that failed
    raw: int | None = None


@dataclass
class Memory:
    """The memory of one HPA: (time, replicas) of proposals, (time, change) of changes."""

    proposals: list = field(default_factory=list)
    ups: list = field(default_factory=list)
    downs: list = field(default_factory=list)


def toward_zero(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# ── pods ──


def class_of(pod, sample, *, cpu, now):
    if pod.deleting or pod.phase == "Failed":
        return "ignored"
    if pod.phase == "Pending":
        return "unready"
    if sample is None:
        return "missing"
    if not cpu:
        return "ready"
    if not pod.ready or pod.started is None:
        return "unready"
    if now < pod.started + INITIALIZATION:
        fresh = sample.at >= pod.ready_since + sample.window
        return "ready" if pod.ready != "False" and fresh else "unready"
    if pod.ready == "False" and pod.started + READINESS_DELAY > pod.ready_since:
        return "unready"
    return "ready"


def request_of(pod, resource, container):
    """Thousandths, or Failed where a container that counts has no request."""
    if not container and pod.pod_level is not None:
        if resource not in pod.pod_level:
            raise Failed
        return pod.pod_level[resource]
    chosen = [one for one in pod.containers if container in ("", one.name)]
    if not chosen or any(resource not in one.requests for one in chosen):
        raise Failed
    return sum(one.requests[resource] for one in chosen)


# ── metrics: each gives replicas, and what the status shows ──


def of_pods(pods, sample_of, *, cpu, now, current, strays, target, percent, requests):
    """A metric that is measured by pod; ``percent`` of its request, or an average."""
    ready, unready, missing = [], [], []
    for pod in pods:
        where = {"ready": ready, "unready": unready, "missing": missing}.get(
            class_of(pod, sample_of(pod), cpu=cpu, now=now)
        )
        if where is not None:
            where.append(pod)
    if not pods or not ready + strays:
        raise Failed
    used = sum(sample_of(pod).used_milli for pod in ready)
    if percent:
        asked = {pod.name: requests(pod) for pod in pods}  # any pod without a request spoils the metric
        total = sum(asked[pod.name] for pod in ready)
        if not total:
            raise Failed
        measured = toward_zero(used * 100, total)
        shown = (measured, toward_zero(used, len(ready)))
    else:
        used += sum(strays)
        measured = toward_zero(used, len(ready) + len(strays))
        shown = (None, measured)
    ratio = measured / target
    pessimist = ratio > 1 and unready
    count = len(ready)
    if not pessimist and not missing:
        return (current if within(ratio) else math.ceil(ratio * count)), shown
    count += 0 if percent else len(strays)
    if missing and ratio != 1:
        count += len(missing)
        if percent:
            total += sum(asked[pod.name] for pod in missing)
        if ratio < 1:
            # A pod without a sample counts with its whole request, or with the target.
            used += sum(asked[pod.name] * max(100, target) // 100 if percent else target for pod in missing)
    if pessimist:
        count += len(unready)
        total = total + sum(asked[pod.name] for pod in unready) if percent else 0
    if percent and not total:
        raise Failed
    filled = (toward_zero(used * 100, total) if percent else toward_zero(used, count)) / target
    if within(filled) or (ratio < 1 < filled) or (ratio > 1 > filled):
        return current, shown
    desired = math.ceil(filled * count)
    if (filled < 1 and desired > current) or (filled > 1 and desired < current):
        return current, shown
    return desired, shown


class One(NamedTuple):
    used_milli: int
    at: int
    window: int


def within(ratio):
    return 1.0 - TOLERANCE <= ratio <= 1.0 + TOLERANCE


def of_resource(source, kind, pods, key, reported, now, current):
    resource, container = source.name, getattr(source, "container", "")
    if reported.error:
        raise Failed

    def sample_of(pod):
        sample = reported.samples.get((pod.namespace, pod.name))
        if sample is None or (resource, container) not in sample.used:
            return None
        return One(sample.used[resource, container], sample.at, sample.window)

    if not any((pod.namespace, pod.name) in reported.samples for pod in pods):
        raise Failed
    percent = source.target.average_value is None
    return of_pods(
        pods,
        sample_of,
        cpu=resource == "cpu",
        now=now,
        current=current,
        strays=[],
        target=source.target.average_utilization if percent else milli(source.target.average_value),
        percent=percent,
        requests=lambda pod: request_of(pod, resource, container),
    )


def milli(text):
    return int(text[:-1]) if text.endswith("m") else 1000 * int(text)


def of_custom_pods(source, pods, key, selector, reported, now, current):
    values = reported.pods.get((key[0], selector, source.metric.name), "not there")
    if isinstance(values, str) or not values:
        raise Failed
    known = {pod.name for pod in pods}
    return of_pods(
        pods,
        lambda pod: One(values[pod.name], 0, 0) if pod.name in values else None,
        cpu=False,
        now=now,
        current=current,
        strays=[value for name, value in values.items() if name not in known],
        target=milli(source.target.average_value),
        percent=False,
        requests=None,
    )


def of_value(target, values, pods, current, there):
    """The sum of some values: in all by the ready pods, or a share for each existing replica."""
    if isinstance(values, str):
        raise Failed
    value = sum(values)
    if target.average_value is None:
        ratio = value / milli(target.value)
        if within(ratio):
            return current, (None, value)
        if not pods:
            raise Failed
        ready = sum(pod.phase == "Running" and pod.ready == "True" for pod in pods)
        return math.ceil(ratio * ready), (None, value)
    each = milli(target.average_value)
    desired = there if there and within(value / (each * there)) else math.ceil(value / each)
    return desired, (None, math.ceil(value / there) if there else None)


REASONS = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}


def proposal(metric, pods, key, scale, reported, now):
    """Return replicas and what is shown. Raises Failed with the reason."""
    current = scale.spec_replicas
    try:
        if metric.type == "Resource":
            return of_resource(metric.resource, metric.type, pods, key, reported, now, current)
        if metric.type == "ContainerResource":
            return of_resource(metric.container_resource, metric.type, pods, key, reported, now, current)
        if metric.type == "Pods":
            return of_custom_pods(metric.pods, pods, key, scale.selector, reported, now, current)
        source, answers = (
            (metric.object, reported.objects)
            if metric.type == "Object"
            else (metric.external, reported.external)
        )
        return of_value(
            source.target, answers[key[0], source.metric.name], pods, current, scale.status_replicas
        )
    except Failed:
        raise Failed(REASONS[metric.type]) from None


# ── from proposals to the number ──


def decide(view, pods, scale, reported, memory, now, *, ambiguous=False):
    """Return the result for one HPA in one tick, and note it in its memory.

    Args:
        view: Its spec as the API has it.
        pods: Those that its target's selector matches.
        ambiguous: Whether another HPA's selector matches any of them.
    """
    spec, current = view.spec, scale.spec_replicas
    low, high = 1 if spec.min_replicas is None else spec.min_replicas, spec.max_replicas
    first = not memory.proposals
    if first:
        memory.proposals.append((now, current))
    found = Outcome(current)
    if current == 0:
        found.active = "ScalingDisabled"
        return Outcome(0, able="SucceededGetScale", active="ScalingDisabled")
    if current > high or current < low:
        found.desired = high if current > high else low
    elif ambiguous:
        return Outcome(current, able="SucceededGetScale", active="AmbiguousSelector")
    else:
        proposals = []
        for metric in spec.metrics:
            try:
                desired, shown = proposal(metric, pods, (view.namespace, view.name), scale, reported, now)
            except Failed as failed:
                found.failures.append(failed.args[0])
                found.shown.append(None)
            else:
                proposals.append(desired)
                found.shown.append(shown)
        best = max(proposals, default=0)
        if found.failures and (not proposals or best < current):
            found.able, found.active = "SucceededGetScale", found.failures[0]
            return found
        found.active, found.raw = "ValidMetricFound", max(best, 0)
        held = stabilized(spec.behavior, memory, found.raw, current, now)
        behaving = spec.behavior is not None
        if held == found.raw:
            found.able = "ReadyForNewScale"
        else:
            up = behaving and found.raw >= current
            found.able = "ScaleUpStabilized" if up else "ScaleDownStabilized"
        found.desired, found.limited = limits(spec.behavior, memory, held, current, low, high, now)
        memory.proposals.append((now, found.raw))
    if found.desired != current:
        found.able = "SucceededRescale"
        if spec.behavior is not None:
            change = found.desired - current
            (memory.ups if change > 0 else memory.downs).append((now, abs(change)))
    elif not found.able:
        found.able = "SucceededGetScale"
    return found


def stabilized(behavior, memory, raw, current, now):
    if behavior is None:
        return max([raw, *(n for at, n in memory.proposals if at >= now - WINDOW)])
    up = window_of(behavior.scale_up, 0)
    down = window_of(behavior.scale_down, WINDOW)
    lowest = min([raw, *(n for at, n in memory.proposals if at > now - up)])
    highest = max([raw, *(n for at, n in memory.proposals if at > now - down)])
    return min(max(current, lowest), highest)


def window_of(rules, default):
    stated = rules.stabilization_window_seconds if rules else None
    return default if stated is None else stated * SECOND


def limits(behavior, memory, held, current, low, high, now):
    if behavior is None:
        most = max(2 * current, 4)
        if held < low:
            return low, "TooFewReplicas"
        if held > min(high, most):
            return min(high, most), "ScaleUpLimit" if high > most else "TooManyReplicas"
        return held, "DesiredWithinRange"
    if held > current:
        most = max(current, *allowed(behavior.scale_up, memory, current, now, up=True))
        bound, why = (most, "ScaleUpLimit") if high > most else (high, "TooManyReplicas")
        return (bound, why) if held > bound else (held, "DesiredWithinRange")
    if held < current:
        least = min(current, *allowed(behavior.scale_down, memory, current, now, up=False))
        bound, why = (least, "ScaleDownLimit") if low < least else (low, "TooFewReplicas")
        return (bound, why) if held < bound else (held, "DesiredWithinRange")
    return held, "DesiredWithinRange"


def allowed(rules, memory, current, now, *, up):
    """Return the one number that the policies allow, in a list."""
    select = (rules.select_policy if rules else None) or "Max"
    if select == "Disabled":
        return [current]
    policies = [(p.type, p.value, p.period_seconds) for p in (rules.policies if rules else None) or ()]
    if not policies:
        policies = [("Percent", 100, 15), *([("Pods", 4, 15)] if up else [])]
    numbers = []
    for kind, value, period in policies:
        since = now - period * SECOND
        start = current - sum(n for at, n in memory.ups if at > since)
        start += sum(n for at, n in memory.downs if at > since)
        if kind == "Pods":
            numbers.append(start + value if up else start - value)
        elif up:
            numbers.append(math.ceil(start * (1 + value / 100)))
        else:
            numbers.append(int(start * (1 - value / 100)))
    largest = select == "Max"
    return [(max if largest == up else min)(numbers)]
