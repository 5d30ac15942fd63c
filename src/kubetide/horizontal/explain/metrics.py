"""The metrics of one HPA: values, proposals, and which pods count."""

from __future__ import annotations

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decision import Verdict
from kubetide.horizontal.explain.calculation import proposal_reason, short_name, target_text, value_text
from kubetide.horizontal.explain.ways_out import way_out_of_metric, way_out_of_pods
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.metrics.types import Known, Metric, MetricFailure, Proposal, Tally
from kubetide.horizontal.reasons import CLASS_WORDS, VOCABULARY
from kubetide.horizontal.rules.grouping import CLASS_NAMES, classify
from kubetide.horizontal.rules.metric_facts import pods_of, samples_of
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.quantity import bytes_to_text, milli_to_text, readable
from kubetide.units.time import Duration, Instant, between, format_duration


class MetricExplanation(msgspec.Struct, frozen=True):
    """One metric: its value and its proposal.

    Attributes:
        target: As in the spec, ``80%`` or ``250m``.
        value: The same for what was measured; empty when the metric failed.
        working: From the value to the replicas; None when the metric failed.
        tolerance: The ratios within which the number stays, inclusive.
        ratio: Value over target; ``filled_ratio`` with missing and unready pods filled in, if any were.
        pods: Names by class: ready, unready, missing, ignored; empty for metrics of other things.
        unplaced: Those of the unready that are Pending without a start time, which no node has taken.
        proposed: Replicas; None when the metric failed, then ``problem`` says why.
        age: Of the oldest value, where its source says when it was measured.
        way_out: What a person can do where it failed; empty where nothing is known.
        use: What its pods use of what they request, in words; empty where the target is no share of requests.
    """

    name: str
    target: str
    value: str
    working: Reason | None
    tolerance: tuple[float, float]
    ratio: float | None
    filled_ratio: float | None
    pods: dict[str, tuple[str, ...]]
    unplaced: tuple[str, ...]
    proposed: int | None
    problem: str
    age: Duration | None = None
    way_out: str = ""
    use: str = ""


def explain_metrics(
    state: State, spec: Autoscaler, verdict: Verdict, now: Instant
) -> tuple[MetricExplanation, ...]:
    """Return each metric of a verdict in the order of the spec; none where metrics were not asked."""
    if verdict.grounds is None:
        return ()
    asked = zip(spec.metrics, *verdict.grounds(), strict=True)
    return tuple(
        msgspec.structs.replace(
            _metric(state, spec, metric, found, known, verdict.current, now),
            age=_age(state, spec, metric, now),
        )
        for metric, found, known in asked
    )


def unplaced_pods(state: State, spec: Autoscaler) -> tuple[str, ...]:
    """Return the names of the HPA's pods that no node has taken; none where its scale cannot be read."""
    scale = state.scales.get(spec.key)
    if scale is None:
        return ()
    namespace = spec.key[0]
    return tuple(
        pod.name for pod in pods_of(state, spec, scale) if _is_unplaced(state, (namespace, pod.name))
    )


def _age(state: State, spec: Autoscaler, metric: Metric, now: Instant) -> Duration | None:
    question = metric.question(state.scales[spec.key].selector)
    reply = state.values.get(question) if question else None
    return between(Instant(reply.measured), now) if reply is not None and reply.measured > 0 else None


def _metric(
    state: State,
    spec: Autoscaler,
    metric: Metric,
    found: Proposal | MetricFailure,
    known: Known,
    current: int,
    now: Instant,
) -> MetricExplanation:
    tolerance = 1.0 - spec.tolerance.down, 1.0 + spec.tolerance.up
    name, target = short_name(metric), target_text(metric)
    of_pods = isinstance(known, Tally)
    pods = _pods_by_class(state, spec, metric, now) if of_pods else {}
    unplaced = tuple(pod for pod in pods.get("unready", ()) if _is_unplaced(state, (spec.key[0], pod)))
    if isinstance(found, MetricFailure):
        everyone = sum(map(len, pods.values()))
        unmeasurable = way_out_of_pods(spec, state.scales[spec.key], everyone, unplaced) if of_pods else ""
        way_out = unmeasurable or way_out_of_metric(found.reason, found.text)
        return MetricExplanation(
            name, target, "", None, tolerance, None, None, pods, unplaced, None, found.text, way_out=way_out
        )
    numbers = found.arithmetic
    return MetricExplanation(
        name=name,
        target=target,
        value=value_text(found),
        working=proposal_reason(
            metric, found, known, spec.tolerance, current, "/".join(spec.key), VOCABULARY
        ),
        tolerance=tolerance,
        ratio=numbers.ratio,
        filled_ratio=numbers.filled_ratio,
        pods=pods,
        unplaced=unplaced,
        proposed=found.replicas,
        problem="",
        use=_use_text(metric, known) if isinstance(known, Tally) else "",
    )


def _use_text(metric: Metric, tally: Tally) -> str:
    """Return what the pods with a sample use of their requests, each on average and all together."""
    if metric.utilization is None or not tally.matched or not tally.requests:
        return ""

    def text(milli: int) -> str:
        return milli_to_text(milli) if metric.resource == "cpu" else readable(bytes_to_text(milli // 1000))

    used, requested, pods = tally.matched_usage, tally.requests, tally.matched
    each = f"{text(used // pods)} of {text(requested // pods)} requested"
    return f"{each} a pod, {text(used)} of {text(requested)} in all" if pods > 1 else each


def _is_unplaced(state: State, key: Key) -> bool:
    """A kubelet gives a pod its start time as soon as it sees the pod on its node (Pod API, status.startTime)."""
    pod = state.table.view(state.table.rows[key])
    return pod.phase == "Pending" and pod.started is None


def _pods_by_class(
    state: State, spec: Autoscaler, metric: Metric, now: Instant
) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {name: [] for name in reversed(CLASS_NAMES)}
    scale = state.scales[spec.key]
    samples = samples_of(state, spec, metric, scale)
    for pod in pods_of(state, spec, scale):
        sample = samples.get(pod.name)
        code = classify(pod, sample, cpu=metric.resource == "cpu", now=now, settings=state.settings)
        found[CLASS_NAMES[code]].append(pod.name)
    return {name: tuple(pods) for name, pods in found.items()}


def metric_lines(metric: MetricExplanation) -> list[str]:
    """Return the metric as text, and its pods by class."""
    opening = VOCABULARY.text(metric.working) if metric.working else f"{metric.name}: {metric.problem}"
    if metric.age is not None:
        opening += f" (measured {format_duration(metric.age)} before)"
    lines = [opening, *(_pod_lines(metric) if metric.pods else ())]
    return [*lines, f"  use: {metric.use}"] if metric.use else lines


def _pod_lines(metric: MetricExplanation) -> list[str]:
    """Count the pods by class, and names those that do not count in full."""
    everyone = sum(len(names) for names in metric.pods.values())
    counts = [f"{len(metric.pods['ready'])} of {everyone} count"]
    lines = []
    for name, words in CLASS_WORDS.items():
        pods = metric.pods[name]
        if not pods:
            continue
        unplaced = metric.unplaced if name == "unready" else ()
        of_these = f" (of these {len(unplaced)} without a node)" if unplaced else ""
        counts.append(f"{len(pods)} {words}{of_these}")
        placed = [pod for pod in pods if pod not in unplaced]
        if placed:
            lines.append(f"  {words}: {', '.join(placed)}")
        if unplaced:
            lines.append(f"  {words}, without a node: {', '.join(unplaced)}")
    return [f"  pods: {', '.join(counts)}", *lines]
