"""What the VPA's records tell: VPAs, what the pods of their targets used, and what was recommended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from kubetide.experiments.capture.reading import Records
from kubetide.experiments.capture.ticks import Tick
from kubetide.objects.base import Json
from kubetide.objects.meta import Key
from kubetide.units.quantity import milli
from kubetide.units.selectors import NOTHING, Selector
from kubetide.units.time import Instant
from kubetide.vertical.recommender.facts.views import PodView, StatusView, VpaView
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings
from kubetide.vertical.updater.settings import Settings as UpdaterSettings
from kubetide.vertical.updater.state import Delta as UpdaterDelta

RECOMMENDER, UPDATER = "recommender", "updater"
Targets = list[tuple[Instant, int]]
"""A recommendation over time: milli-CPU, or bytes in thousandths."""


class Vertical(msgspec.Struct):
    """The VPA loops of a run.

    Attributes:
        updater: None where only recommendations were made.
        specs: Specs of the VPAs that were there at the start and that the updater saw, as manifests have them.
        views: As the recommender saw them first.
        later: Names of those that came later.
        ticks: Of each VPA's target, its load.
        memory: Of each VPA's target, bytes of each pod at each pass.
        targets: Of each VPA, container and resource what was recommended, where it changed.
    """

    recommender: RecommenderSettings
    updater: UpdaterSettings | None = None
    specs: dict[Key, Json] = msgspec.field(default_factory=dict)
    views: dict[Key, VpaView] = msgspec.field(default_factory=dict)
    later: list[str] = msgspec.field(default_factory=list)
    ticks: dict[Key, list[Tick]] = msgspec.field(default_factory=dict)
    memory: dict[Key, list[int]] = msgspec.field(default_factory=dict)
    targets: dict[tuple[str, str, str, str], Targets] = msgspec.field(default_factory=dict)


class _Samples(msgspec.Struct):
    namespaces: list[str]
    names: list[str]
    times: list[int]
    first: list[int]
    cpu: list[int]
    memory: list[int]


class _Delta(msgspec.Struct):
    """Of the recommender's delta what a capture reads."""

    settings: RecommenderSettings | None = None
    vpas: list[VpaView] = []
    pods: list[PodView] = []
    gone_pods: list[Key] = []
    samples: _Samples | None = None


class _Commands(msgspec.Struct):
    statuses: list[StatusView] = []


class _Pods:
    """The pods, and which VPAs they are of."""

    def __init__(self) -> None:
        self.selectors: dict[Key, Selector] = {}
        self._all: dict[Key, PodView] = {}
        self._of: dict[Key, list[Key]] = {}

    def apply(self, delta: _Delta, *, full: bool) -> None:
        if full:
            self._all.clear()
            self.selectors.clear()
        for view in delta.vpas:
            self.selectors[view.namespace, view.name] = view.target.read() if view.target.matches else NOTHING
        for pod in delta.pods:
            self._all[pod.namespace, pod.name] = pod
        for key in delta.gone_pods:
            self._all.pop((key[0], key[1]), None)
        again = self._all.values() if delta.vpas else delta.pods
        for pod in again:
            self._of[pod.namespace, pod.name] = [
                vpa
                for vpa, selector in self.selectors.items()
                if vpa[0] == pod.namespace and selector.matches(pod.labels)
            ]

    def of(self, pod: Key) -> list[Key]:
        """Return the VPAs of a pod; none of one that does not run."""
        view = self._all.get(pod)
        return self._of[pod] if view is not None and view.phase == "Running" else []

    def running(self) -> dict[Key, int]:
        """Return how many pods of each VPA run."""
        counts = dict.fromkeys(self.selectors, 0)
        for pod in self._all:
            for vpa in self.of(pod):
                counts[vpa] += 1
        return counts


def read_vertical(records: Records, loops: Sequence[str]) -> Vertical:
    """Read the records of the recommender, and of the updater where it ran. Raises: RecordError."""
    found = Vertical(RecommenderSettings())
    pods = _Pods()
    deltas, commands = msgspec.json.Decoder(_Delta), msgspec.json.Decoder(_Commands)
    for number, record in enumerate(records(RECOMMENDER)):
        delta = deltas.decode(record.state)
        pods.apply(delta, full=record.full)
        found.recommender = delta.settings or found.recommender
        for view in delta.vpas:
            _take_view(found, view, at_start=number == 0)
        if delta.samples is not None:
            _take_samples(found, delta.samples, pods, record.now)
        for status in commands.decode(record.commands).statuses:
            for name, amount in _recommended(status):
                there = found.targets.setdefault((status.namespace, status.name, *name), [])
                if not there or there[-1][1] != amount:
                    there.append((record.now, amount))
    if UPDATER in loops:
        _read_updater(records, found)
    return found


def _take_view(found: Vertical, view: VpaView, *, at_start: bool) -> None:
    key = view.namespace, view.name
    if view.advised or key in found.views:
        return
    if at_start:
        found.views[key] = view
    elif "/".join(key) not in found.later:
        found.later.append("/".join(key))


def _take_samples(found: Vertical, samples: _Samples, pods: _Pods, now: Instant) -> None:
    used: dict[Key, list[int]] = {}
    for place, pod in enumerate(zip(samples.namespaces, samples.names, strict=True)):
        parts = slice(samples.first[place], samples.first[place + 1])
        for vpa in pods.of(pod):
            used.setdefault(vpa, []).append(sum(samples.cpu[parts]))
            found.memory.setdefault(vpa, []).append(sum(samples.memory[parts]))
    end = Instant(int(np.median(samples.times))) if samples.times else now
    for vpa, count in pods.running().items():
        there = used.get(vpa)
        # Pods that run and have no sample used what the others did.
        milli_cpu = None if not there else sum(there) * max(count / len(there), 1.0)
        found.ticks.setdefault(vpa, []).append(Tick(now, None, count, milli_cpu, end))


def _recommended(status: StatusView) -> Iterator[tuple[tuple[str, str], int]]:
    recommendation = status.status.recommendation
    for one in (recommendation.container_recommendations or ()) if recommendation else ():
        for resource, amount in sorted((one.target or {}).items()):
            yield (one.container_name, resource), milli(str(amount))


def _read_updater(records: Records, found: Vertical) -> None:
    deltas = msgspec.json.Decoder(UpdaterDelta)
    for number, record in enumerate(records(UPDATER)):
        delta = deltas.decode(record.state)
        found.updater = delta.settings or found.updater
        if number == 0:
            for vpa in delta.vpas:
                found.specs[vpa.metadata.namespace, vpa.metadata.name] = msgspec.to_builtins(vpa.spec)
            return
