"""A run from Prometheus: everything is asked, put on one grid of times, and given the form of records."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from kubetide.experiments.capture.cluster import Cluster
from kubetide.experiments.capture.errors import CaptureError
from kubetide.experiments.capture.prometheus import questions
from kubetide.experiments.capture.prometheus.building import Notes, Numbers, cluster_of, services_of
from kubetide.experiments.capture.prometheus.questions import FACTS, WORKLOADS
from kubetide.experiments.capture.prometheus.reading import Asking, Facts, Floats, Grid
from kubetide.experiments.capture.prometheus.workloads import owners_of
from kubetide.experiments.capture.services import Services, Workload
from kubetide.objects.meta import Key
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339, seconds

_INTERVAL = seconds(30)
"""Between two samples, where there are none to tell it."""
_SAMPLES = 4
"""So many samples' time is what a rate is taken over."""
_SHORTEST_STEP = seconds(15)
"""The HPA loop's period: nothing happens more often."""


_BLIND = (
    "From Prometheus: no series tells the flags of the loops; the scenario has the defaults unless --set says otherwise. "
    "Nor does one tell affinity, node selectors, spreading, volumes and priorities of pods: they are left out."
)
K = TypeVar("K")


class History(NamedTuple):
    """What Prometheus knows of a cluster, and what it does not."""

    cluster: Cluster
    services: Services
    notes: Notes


class Span(NamedTuple):
    """Which time is asked for; a step of None is the time between two samples, and at least 15 s."""

    start: Instant
    end: Instant
    step: Duration | None = None


async def read_history(asking: Asking, span: Span, tell: Callable[[str], None]) -> History:
    """Return what Prometheus knows of a cluster within a time.

    Args:
        tell: Takes a sentence on how far it is.
    Raises: CaptureError for a server that does not answer or has no series of nodes.
    """
    interval = await asking.interval(span.end) or await asking.interval(_middle(span))
    step = span.step or max(interval or _INTERVAL, _SHORTEST_STEP)
    if span.end - span.start < step:
        raise CaptureError(
            f"from {format_rfc3339(span.start)} to {format_rfc3339(span.end)} there is not one step of "
            f"{format_duration(step)}; ask for a longer time (--since, --until)"
        )
    window = Duration(max(_SAMPLES * (interval or _INTERVAL), step))
    grid = Grid(span.start, step, (span.end - span.start) // step + 1)
    found = _Found(grid)
    parts = list(grid.parts())
    for number, part in enumerate(parts):
        tell(f"asking Prometheus, part {number + 1} of {len(parts)}")
        await found.ask(asking, part, window)
    covered = found.covered()
    if not covered.any():
        raise CaptureError(
            f"Prometheus has no kube_node_created from {format_rfc3339(span.start)} to {format_rfc3339(span.end)}: does it "
            "scrape kube-state-metrics, and is the time right (--since, --until)?"
        )
    notes = Notes(_about(found, covered, interval, window, asking.odd), [_BLIND])
    numbers = found.numbers(covered, window)
    cluster = cluster_of(numbers, notes)
    return History(cluster, services_of(numbers, cluster, notes), notes)


def _middle(span: Span) -> Instant:
    return Instant((span.start + span.end) // 2)


class _Found:
    """What has been asked for."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.facts: dict[str, Facts] = {name: {} for name in FACTS}
        self.nodes: dict[str, Floats] = {}
        self.replicas: dict[Workload, Floats] = {}
        self.ready: dict[Workload, Floats] = {}
        self.used: dict[Workload, Floats] = {}
        self.measured: dict[Workload, Floats] = {}
        self.orders = np.full(grid.size, math.nan)
        self.unowned: set[Key] = set()
        self.guessed = 0

    async def ask(self, asking: Asking, part: tuple[int, int], window: Duration) -> None:
        """Ask for a part of the grid. Raises: CaptureError."""
        first, end = part
        for name, fact in FACTS.items():
            if first == 0:
                await asking.facts(fact, self.grid.at(0), None, self.facts[name])
            length = Duration((end - max(first, 1)) * self.grid.step)
            if length:
                await asking.facts(fact, self.grid.at(end - 1), length, self.facts[name])
        for row, values in await asking.numbers(questions.NODES, ("node",), self.grid, part):
            self._put(self.nodes, row[0], part, values)
        for kind, (label, *_) in WORKLOADS.items():
            for into, query in (
                (self.replicas, questions.replicas(kind)),
                (self.ready, questions.ready(kind, window)),
            ):
                for row, values in await asking.numbers(query, ("namespace", label), self.grid, part):
                    self._put(into, (kind, row[0], row[1]), part, values)
        for _, values in await asking.numbers(questions.ORDERS, (), self.grid, part):
            self.orders[first:end] = values
        owners = owners_of(self.facts, (key[1:] for key in self.replicas if key[0] == "Deployment"))
        self.guessed = owners.guessed
        for row, values in await asking.numbers(
            questions.usage(window), ("namespace", "pod"), self.grid, part
        ):
            pod = row[0], row[1]
            workload = owners.of.get(pod)
            if workload in self.replicas:
                assert workload is not None
                self._add(self.used, workload, part, np.nan_to_num(values))
                self._add(self.measured, workload, part, (~np.isnan(values)).astype(np.float64))
            elif workload is None and pod not in owners.alone:
                self.unowned.add(pod)

    def _put(self, into: dict[K, Floats], key: K, part: tuple[int, int], values: Floats) -> None:
        whole = into.setdefault(key, np.full(self.grid.size, math.nan))
        whole[part[0] : part[1]] = values

    def _add(self, into: dict[K, Floats], key: K, part: tuple[int, int], values: Floats) -> None:
        whole = into.setdefault(key, np.zeros(self.grid.size))
        whole[part[0] : part[1]] += values

    def covered(self) -> np.ndarray:
        """Return at which times anything is known of the cluster."""
        there = np.zeros(self.grid.size, np.bool_)
        for values in self.nodes.values():
            there |= ~np.isnan(values)
        return there

    def numbers(self, covered: np.ndarray, window: Duration) -> Numbers:
        """Return all of it."""
        owners = owners_of(self.facts, (key[1:] for key in self.replicas if key[0] == "Deployment"))
        return Numbers(
            grid=self.grid,
            covered=covered,
            window=window,
            facts=self.facts,
            owners=owners,
            nodes=self.nodes,
            replicas=self.replicas,
            ready=self.ready,
            used=self.used,
            measured=self.measured,
            orders=self.orders,
        )


def _about(
    found: _Found, covered: np.ndarray, interval: Duration | None, window: Duration, odd: int
) -> list[str]:
    notes = []
    if interval is None:
        notes.append(
            "Prometheus has no container_cpu_usage_seconds_total: no workload has a load. Is cAdvisor scraped?"
        )
    else:
        notes.append(
            f"CPU usage is the mean over {format_duration(window)}; its samples are {format_duration(interval)} apart."
        )
    grid = found.grid
    for first, last in _holes(covered):
        # One missing scrape is no hole: Prometheus looks back for five minutes.
        notes.append(
            f"Prometheus has nothing of kube-state-metrics from {format_rfc3339(grid.at(first))} to "
            f"{format_rfc3339(grid.at(last))}; what was there before it is taken to have stayed."
        )
    if odd:
        notes.append(f"{odd} values of Prometheus' answers are infinite or no number; they are left out.")
    if found.unowned:
        notes.append(
            f"{len(found.unowned)} pods used CPU whose owner kube_pod_owner does not tell: their usage is no service's load."
        )
    if found.guessed:
        notes.append(
            f"{found.guessed} ReplicaSets have no kube_replicaset_owner: their Deployments are taken from their names."
        )
    return notes


def _holes(covered: np.ndarray) -> list[tuple[int, int]]:
    """Return the times without anything between those with something, each by its first and last."""
    there = np.flatnonzero(covered)
    gaps = np.flatnonzero(np.diff(there) > 1)
    return [(int(there[gap]) + 1, int(there[gap + 1]) - 1) for gap in gaps]
