"""The summary of a run, for table and report.

Definitions (one sampling step is ``step_s`` seconds):
- pod-minutes: sum of the pods that exist times the step, in minutes; a pod is billed while it starts.
- SLO minute lost: a minute with at least one step in which the service broke its objective.
- the same at the load's own step: the load of each value of the trace against the capacity of the step, so that
  a second of a burst counts which the mean of the step hides.
- unserved share: requests offered above the ready capacity over all requests offered.
- slack: share of the CPU that the ready pods asked for and that no request needed.
- turns: changes of the replicas asked for that go against the one before; many of them are an oscillation.
- CPU slack, memory slack: share of what the running containers ask for and do not use.
- throttled share: CPU that containers had work for and that their limits withheld, over all that they had work for.
- cost without scaling: every node group at the largest size that it had, from the beginning to the end. A machine counts
  from its order, whether its node is Ready or not.
- cost of minimum sizes: of each group's ready nodes, as many as its minimum size says; no decision of the loop could save it.
- lower bound of the cost: step by step, for each resource what pods on nodes asked for at the cheapest price per unit of
  all groups (CPU, memory, GPUs, places for pods), and of these the most expensive; no packing of the same pods can cost less.
- wait: from a pod's creation, or from the start of the run, to its binding. A pod that still waits at the end counts with the time until then, and none
  of a DaemonSet counts.
- churn: nodes that lived less than 15 minutes, and nodes bought within 15 minutes after their group lost one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from kubetide.simulate.outcome.churn import bought_back, short_lived
from kubetide.simulate.outcome.timeline import ServiceSeries, Timeline
from kubetide.units.time import Instant, between, to_seconds


class ServiceSummary(msgspec.Struct, frozen=True):
    """One line of the table; see the module for the definitions."""

    name: str
    requests: float
    peak_rps: float
    replicas_min: int
    replicas_max: int
    pod_minutes: float
    slo_minutes_lost: int
    slo_minutes_own_step: int
    unserved_share: float
    slack: float
    rescales: int
    cpu_slack: float = 0.0
    memory_slack: float = 0.0
    throttled_share: float = 0.0
    oom_kills: int = 0
    turns: int = 0


class GroupSummary(msgspec.Struct, frozen=True):
    name: str
    nodes_min: int
    nodes_max: int
    node_hours: float


class Summary(msgspec.Struct, frozen=True):
    """The result of a run.

    Attributes:
        start: When the run began.
        cost_unscaled: What the groups at their largest sizes would have cost.
        cost_bound: What the same pods cost at least.
        cost_over_bound: The cost over that; None where the bound is 0.
        cost_of_minimums: What of the cost the groups' minimum sizes are.
        wait_p50_s, wait_p95_s, wait_max_s: Seconds that pods waited for a node: the median, the 95th percentile, the longest.
        left_pending: Pods that wait for a node at the end.
        evictions: Pods that were asked to go by the Eviction API.
        preemptions, taint_evictions: Pods that the scheduler deleted for others, and that were deleted for NoExecute taints.
        nodes_added, nodes_removed: Nodes that came and that went after the start.
        nodes_short_lived: Nodes that lived less than 15 minutes.
        nodes_bought_back: Nodes that a group bought within 15 minutes after it lost as many.
        notices: What the run left out of its manifests and what could not scale, a sentence each.
        vpa_evictions, resizes: Pods that the VPA's updater replaced, and resized in place.
    """

    name: str
    start: Instant
    hours: float
    services: tuple[ServiceSummary, ...]
    groups: tuple[GroupSummary, ...]
    cost: float
    pod_starts: int
    pending_max: int
    pending_pod_minutes: float
    decisions: int
    currency: str = "USD"
    cost_unscaled: float = 0.0
    cost_bound: float = 0.0
    cost_over_bound: float | None = None
    evictions: int = 0
    nodes_added: int = 0
    nodes_removed: int = 0
    warm_up_s: float = 0.0
    notices: tuple[str, ...] = ()
    vpa_evictions: int = 0
    resizes: int = 0
    cost_of_minimums: float = 0.0
    wait_p50_s: float = 0.0
    wait_p95_s: float = 0.0
    wait_max_s: float = 0.0
    left_pending: int = 0
    nodes_short_lived: int = 0
    nodes_bought_back: int = 0
    preemptions: int = 0
    taint_evictions: int = 0


def summarize(name: str, timeline: Timeline) -> Summary:
    """Return the summary of a run."""
    step_s = timeline.step_s
    steps = len(timeline.pending)
    start = Instant(timeline.start - round(step_s * 1e9))
    cost, bound = (timeline.cost[-1] if timeline.cost else 0.0), _cost_bound(timeline)
    median, late, longest = _waits(timeline, Instant(start + round(steps * step_s * 1e9)))
    return Summary(
        name=name,
        start=start,
        hours=round(steps * step_s / 3600, 4),
        services=tuple(_service(series, step_s) for _, series in sorted(timeline.services.items())),
        groups=tuple(
            GroupSummary(
                name=group,
                nodes_min=min(counts, default=0),
                nodes_max=max(counts, default=0),
                node_hours=round(sum(counts) * step_s / 3600, 4),
            )
            for group, counts in sorted(timeline.nodes.items())
        ),
        cost=round(cost, 4),
        pod_starts=timeline.pod_starts,
        pending_max=max(timeline.pending, default=0),
        pending_pod_minutes=round(sum(timeline.pending) * step_s / 60, 2),
        decisions=len(timeline.marks),
        currency=timeline.currency,
        cost_unscaled=round(_cost_unscaled(timeline), 4),
        cost_bound=round(bound, 4),
        cost_over_bound=round(cost / bound, 4) if bound else None,
        evictions=timeline.evictions,
        nodes_added=sum(life.created >= start for life in timeline.node_lives),
        nodes_removed=sum(life.deleted is not None and life.deleted >= start for life in timeline.node_lives),
        warm_up_s=timeline.warm_up_s,
        notices=timeline.notices,
        vpa_evictions=_updates(timeline, "Evicted"),
        resizes=_updates(timeline, "Resized"),
        cost_of_minimums=round(_cost_of_minimums(timeline), 4),
        wait_p50_s=median,
        wait_p95_s=late,
        wait_max_s=longest,
        left_pending=len(timeline.waiting_since),
        nodes_short_lived=short_lived(timeline),
        nodes_bought_back=bought_back(timeline)[1],
        preemptions=timeline.preemptions,
        taint_evictions=timeline.taint_evictions,
    )


def _updates(timeline: Timeline, code: str) -> int:
    return sum(mark.loop == "updater" and mark.code == code and not mark.fruitless for mark in timeline.marks)


def _cost_unscaled(timeline: Timeline) -> float:
    hours = len(timeline.pending) * timeline.step_s / 3600
    largest = timeline.largest
    return sum(
        max(largest.get(group, 0), *timeline.nodes.get(group, ()), 0) * price.per_hour * hours
        for group, price in timeline.prices.items()
    )


def _cost_of_minimums(timeline: Timeline) -> float:
    per_hour = sum(
        price.per_hour * sum(min(count, price.min_size) for count in timeline.nodes.get(group, ()))
        for group, price in timeline.prices.items()
        if price.min_size
    )
    return per_hour * timeline.step_s / 3600


def _waits(timeline: Timeline, end: Instant) -> tuple[float, float, float]:
    """Return the median, the 95th percentile and the longest of the waits, in seconds."""
    still = (to_seconds(between(since, end)) for since in timeline.waiting_since.values())
    waits = [*timeline.waits, *still]
    if not waits:
        return 0.0, 0.0, 0.0
    median, late, longest = np.percentile(waits, [50, 95, 100]).tolist()
    return round(median, 3), round(late, 3), round(longest, 3)


def _cost_bound(timeline: Timeline) -> float:
    least = [0.0] * len(timeline.cpu_requested)
    columns: dict[str, Sequence[float]] = {"cpu": timeline.cpu_requested, **timeline.requested}
    prices = timeline.prices.values()
    for resource, column in columns.items():
        per_unit = [one.per_hour / one.offers[resource] for one in prices if one.offers.get(resource)]
        if per_unit:
            cheapest = min(per_unit)
            least = [max(before, amount * cheapest) for before, amount in zip(least, column, strict=True)]
    return sum(least) * timeline.step_s / 3600


def _service(series: ServiceSeries, step_s: float) -> ServiceSummary:
    offered = sum(series.offered)
    asked = sum(series.asked)
    needed = sum(min(o, a) for o, a in zip(series.offered, series.asked, strict=False))
    served = sum(min(o, c) for o, c in zip(series.offered, series.capacity, strict=True))
    totals = series.resources
    return ServiceSummary(
        name=series.name,
        requests=round(offered * step_s, 2),
        peak_rps=round(max(series.offered, default=0.0), 2),
        replicas_min=min(series.existing, default=0),
        replicas_max=max(series.existing, default=0),
        pod_minutes=round(sum(series.existing) * step_s / 60, 2),
        slo_minutes_lost=minutes_lost(series.violated, step_s),
        slo_minutes_own_step=minutes_lost(series.violated_own_step, step_s),
        unserved_share=round(1 - served / offered, 6) if offered else 0.0,
        slack=round(1 - needed / asked, 4) if asked else 0.0,
        rescales=sum(1 for a, b in zip(series.desired, series.desired[1:], strict=False) if a != b),
        cpu_slack=_share(totals.unused_cpu, totals.requested_cpu),
        memory_slack=_share(totals.unused_memory, totals.requested_memory),
        throttled_share=_share(totals.withheld_cpu, totals.demanded_cpu),
        oom_kills=totals.oom_kills,
        turns=turns(series.desired),
    )


def turns(counts: Sequence[int]) -> int:
    """Return the number of changes that reverse the one before."""
    changes = [b - a for a, b in pairwise(counts) if a != b]
    return sum((a > 0) != (b > 0) for a, b in pairwise(changes))


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def minutes_lost(violated: Sequence[bool], step_s: float) -> int:
    """Return the number of minutes, counted from the start, with at least one violated step."""
    return len({int(index * step_s // 60) for index, bad in enumerate(violated) if bad})
