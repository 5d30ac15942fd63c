"""What the loop decides from: everything it has gathered, and what it remembers.

``State.apply(delta)`` is the only way in, so a record of the deltas is a record of the state. Pods
and samples are held in columns; the HPAs by key.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from kubetide.horizontal.memory import Memory, MemoryEntry, Recommendation, ScaleEvent
from kubetide.horizontal.metrics.types import Metric, SampleKey
from kubetide.horizontal.pods import PodTable
from kubetide.horizontal.samples import Answer, SampleTable
from kubetide.horizontal.settings import FeatureGates, Settings
from kubetide.horizontal.specs import Autoscaler, read_spec
from kubetide.horizontal.views import HpaView, Key, PodView, ScaleView, StatusView
from kubetide.objects.hpa import HpaStatus
from kubetide.ports.metrics import Int64Vector
from kubetide.units.selectors import Selector, SelectorError

__all__ = [
    "Delta",
    "FeatureGates",
    "Key",
    "Memory",
    "MemoryEntry",
    "Recommendation",
    "ScaleEvent",
    "Segments",
    "Settings",
    "State",
]


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was gathered since the last tick; a full one also holds memory and settings.

    Attributes:
        settings: Only in a full delta.
        hpas: New and changed specs.
        gone_hpas: Deleted HPAs.
        statuses: Statuses that are not the ones that the loop wrote last.
        pods: New and changed pods.
        gone_pods: Deleted pods.
        scales: Scales that have changed since they were last read.
        answers: This tick's samples.
        memory: Only in a full delta.
        sample_pods: Only in a full delta: namespaces and names of the last answer for the whole cluster.
    """

    settings: Settings | None = None
    hpas: Sequence[HpaView] = ()
    gone_hpas: Sequence[Key] = ()
    statuses: Sequence[StatusView] = ()
    pods: Sequence[PodView] = ()
    gone_pods: Sequence[Key] = ()
    scales: Sequence[ScaleView] = ()
    answers: Sequence[Answer] = ()
    memory: Sequence[MemoryEntry] = ()
    sample_pods: tuple[Sequence[str], Sequence[str]] | None = None


class Segments(msgspec.Struct, frozen=True):
    """The pods of several HPAs end to end, for one resource.

    Attributes:
        hpas: (H,) keys, ordered.
        rows: (M,) rows of the pod table; HPA i has ``rows[starts[i]:starts[i + 1]]``.
        starts: (H + 1,) offsets.
    """

    hpas: tuple[Key, ...]
    rows: Int64Vector
    starts: Int64Vector


class State:
    """Everything that decisions are made from. Only ``apply`` and ``absorb`` change it."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.table = PodTable()
        self.samples = SampleTable()
        self.views: dict[Key, HpaView] = {}
        self.specs: dict[Key, Autoscaler] = {}
        self.statuses: dict[Key, HpaStatus] = {}
        self.scales: dict[Key, ScaleView] = {}
        self.memory: dict[Key, Memory] = {}
        self._order: tuple[Key, ...] | None = ()
        self._specs_version = 0
        self._segments: dict[SampleKey, Segments] = {}
        self._segments_version = (-1, -1)

    # ── the only way in ──

    @classmethod
    def from_full(cls, delta: Delta) -> State:
        """Makes the state that a full delta holds."""
        state = cls(delta.settings)
        state.apply(delta)
        return state

    def apply(self, delta: Delta) -> None:
        """Takes over what was gathered since the last tick."""
        for view in delta.hpas:
            self._put_hpa(view)
        for key in delta.gone_hpas:
            self._forget_hpa(key)
        for status in delta.statuses:
            self.statuses[status.namespace, status.name] = status.status
        for pod in delta.pods:
            self.table.put(pod)
        for key in delta.gone_pods:
            self.table.remove(key)
        for entry in delta.memory:
            key = entry.namespace, entry.name
            self.memory[key] = entry.memory
            if entry.selector:
                self._claim(key, entry.selector)
        for scale in delta.scales:
            self._put_scale(scale)
        if delta.sample_pods is not None:
            self.samples.remember_pods(delta.sample_pods)
        self.samples.take(delta.answers, self.table)

    def _put_hpa(self, view: HpaView) -> None:
        key = view.namespace, view.name
        if key not in self.views:
            self._order = None
        self.views[key] = view
        self.specs[key] = read_spec(view, self.settings)
        self.statuses.setdefault(key, HpaStatus())
        self._specs_version += 1

    def _forget_hpa(self, key: Key) -> None:
        """Drops an HPA with its memory."""
        for known in (self.views, self.specs, self.statuses, self.scales, self.memory):
            known.pop(key, None)
        self.table.members.release(key)
        self._order = None
        self._specs_version += 1

    def _put_scale(self, scale: ScaleView) -> None:
        key = scale.namespace, scale.name
        self.scales[key] = scale
        if scale.selector and not scale.error:
            self._claim(key, scale.selector)

    def _claim(self, key: Key, text: str) -> None:
        try:
            selector = Selector.parse(text)
        except SelectorError:
            return  # the decision says so when it reads the scale
        self.table.members.claim(key, text, selector)

    # ── reading ──

    @property
    def hpas(self) -> tuple[Key, ...]:
        """All HPAs, ordered."""
        if self._order is None:
            self._order = tuple(sorted(self.views))
        return self._order

    def sample_keys(self) -> tuple[SampleKey, ...]:
        """Gives the resources (and containers) that any HPA asks for, ordered."""
        return tuple(
            sorted(
                {
                    metric.sample_key
                    for spec in self.specs.values()
                    for metric in spec.metrics
                    if metric.resource
                }
            )
        )

    def segments(self, key: SampleKey) -> Segments:
        """Gives the pods of the HPAs that ask for this resource."""
        version = (self.table.members.version, self._specs_version)
        if version != self._segments_version:
            self._segments, self._segments_version = {}, version
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = self._lay_out(key)
        return found

    def _lay_out(self, key: SampleKey) -> Segments:
        hpas = tuple(
            hpa for hpa in self.hpas if any(_asks(metric, key) for metric in self.specs[hpa].metrics)
        )
        pieces = [self.table.members_of(hpa) for hpa in hpas]
        starts = np.zeros(len(hpas) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=starts[1:])
        rows = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
        return Segments(hpas=hpas, rows=rows, starts=starts)

    # ── a full record ──

    def dump(self) -> Delta:
        """Gives everything as one full delta: applied to a new state, it decides the same."""
        selectors = self.table.members.selectors()
        return Delta(
            settings=self.settings,
            hpas=[self.views[key] for key in self.hpas],
            statuses=[StatusView(*key, self.statuses[key]) for key in self.hpas],
            pods=[self.table.view(self.table.rows[key]) for key in sorted(self.table.rows)],
            scales=[self.scales[key] for key in sorted(self.scales)],
            memory=[
                MemoryEntry(*key, self.memory.get(key, Memory()), selectors.get(key, ""))
                for key in sorted({*self.memory, *selectors})
            ],
            sample_pods=self.samples.pods(),
        )


def _asks(metric: Metric, key: SampleKey) -> bool:
    return bool(metric.resource) and metric.sample_key == key
