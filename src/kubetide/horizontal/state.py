"""The loop's state: everything it has gathered, and its memory.

``State.apply(delta)`` is the only way in, so a record of the deltas is a record of the state. Pods
and samples are held in columns; the HPAs by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kubetide.forecast.forecaster import load_forecaster
from kubetide.forecast.forecasts import Forecasts
from kubetide.forecast.headroom import NAME as HEADROOM
from kubetide.horizontal.batch.hpas import HpaColumns, Segments, cells_of
from kubetide.horizontal.cached_results import LastPass, SteadyTally, Unchanged
from kubetide.horizontal.decision import LateScale
from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.samples import Answer, SampleTable
from kubetide.horizontal.facts.specs import Autoscaler, read_spec
from kubetide.horizontal.facts.values import Reply, taken_over
from kubetide.horizontal.facts.views import (
    CapacityView,
    HpaView,
    LeftAloneView,
    PodView,
    ScaleView,
    StatusView,
)
from kubetide.horizontal.memory import MemoryEntry, OptionMemory, Recommendations, ScaleEvents
from kubetide.horizontal.metrics.types import Question, SampleKey
from kubetide.horizontal.options.emptiest_node import pods_by_node
from kubetide.horizontal.settings import Settings
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.meta import Key
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.steps import Steps, finish, is_pause


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes gathered since the last tick; a full one also holds memory and settings.

    Attributes:
        settings: Only in a full delta.
        hpas: New and changed specs.
        gone_hpas: Deleted HPAs.
        statuses: Statuses that are not the ones that the loop wrote last.
        pods: New and changed pods.
        gone_pods: Deleted pods.
        scales: Scales that have changed since they were last read.
        nodes: What the node loop says now of replicas without a node, where that has changed.
        answers: This tick's samples.
        values: This tick's answers of the custom and external metrics APIs.
        early: Only of a tick between two others: the HPAs that it is for. The others wait, and keep samples and values.
        left_alone: All HPAs that are left alone, ordered, as another controller may serve them; None where they are the same as before.
        holds: Why nothing may be scaled down (a cache too old ...), as sentences; always the whole list.
        memory: In a full delta all; else what changes by others, and late outcomes, have made of it.
        late: Outcomes of earlier writes that have come since.
        sample_pods: Only in a full delta: namespaces and names of the last answer for the whole cluster.
    """

    settings: Settings | None = None
    hpas: Sequence[HpaView] = ()
    gone_hpas: Sequence[Key] = ()
    statuses: Sequence[StatusView] = ()
    pods: Sequence[PodView] = ()
    gone_pods: Sequence[Key] = ()
    scales: Sequence[ScaleView] = ()
    nodes: Sequence[CapacityView] = ()
    answers: Sequence[Answer] = ()
    values: Sequence[Reply] = ()
    early: Sequence[Key] | None = None
    left_alone: Sequence[LeftAloneView] | None = None
    holds: Sequence[str] = ()
    memory: Sequence[MemoryEntry] = ()
    late: Sequence[LateScale] = ()
    sample_pods: tuple[Sequence[str], Sequence[str]] | None = None


class State:
    """All input of decisions. Only ``apply`` and ``absorb`` change it."""

    def __init__(self, settings: Settings | None = None, *, only: Key | None = None) -> None:
        self.settings = settings or Settings()
        self.table = PodTable()
        self.samples = SampleTable(only)
        self.values: dict[Question, Reply] = {}
        self.views: dict[Key, HpaView] = {}
        self.specs: dict[Key, Autoscaler] = {}
        self.left_alone: dict[Key, str] = {}
        """HPAs that are left alone, as another controller may serve them, and why each is."""
        self.statuses: dict[Key, HpaStatus] = {}
        self.scales: dict[Key, ScaleView] = {}
        self.nodes: dict[Key, CapacityView] = {}
        """Of the HPAs some of whose replicas have no node, where a node loop of the process says so."""
        self.recommendations = Recommendations()
        self.events: dict[Key, ScaleEvents] = {}
        self.options: dict[Key, OptionMemory] = {}
        self.forecasts: Forecasts[Key] = Forecasts(
            self.settings.forecast_budget,
            load_forecaster(self.settings.forecaster)
            if self.settings.forecaster not in {"", HEADROOM}
            else None,
            headroom=self.settings.forecaster == HEADROOM,
        )
        self.early: frozenset[Key] | None = None
        """The HPAs that a tick between two others is for; None in any other tick."""
        self.late: dict[Key, LateScale] = {}
        """Outcomes of earlier writes that have come since the last tick."""
        self.holds: tuple[str, ...] = ()
        self.unread_selectors: dict[Key, None] = {}
        """HPAs whose targets' selectors have never been read for a decision (``rules.ambiguous_selectors``)."""
        self.written: dict[Key, int] = {}
        """When each status was last written, ns; only with ``Settings.metrics_status_period``."""
        self.last_pass: LastPass | None = None
        self.unchanged: dict[Key, Unchanged] = {}
        """Verdicts that may be reused (``rules.unchanged``)."""
        self.steady: dict[Key, dict[SampleKey, SteadyTally]] = {}
        """Tallies of which only the usage may differ while pods are the same (``rules.tally``)."""
        self._by_node: Mapping[str, int] | None = None
        self._order: tuple[Key, ...] | None = ()
        self._columns: HpaColumns | None = None
        self._cells: list[tuple[int, SampleKey]] = []
        self._segments: dict[tuple[int, SampleKey], Segments] = {}
        self._segments_version = -1

    # ── the only way in ──

    @classmethod
    def from_full(cls, delta: Delta, *, only: Key | None = None) -> State:
        """Return the state of a full delta; ``only``: to decide about this HPA alone."""
        state = cls(delta.settings, only=only)
        state.apply(delta)
        return state

    def apply(self, delta: Delta) -> None:
        """Apply what was gathered since the last tick."""
        finish(self.applying(delta))

    def applying(self, delta: Delta) -> Steps[None]:
        """Apply what was gathered since the last tick, in steps; nothing may read the state in between."""
        self.early = None if delta.early is None else frozenset(delta.early)
        self.holds = tuple(delta.holds)
        self.late = {(one.namespace, one.name): one for one in delta.late}
        self._by_node = None
        for number, view in enumerate(delta.hpas):
            self._put_hpa(view)
            if is_pause(number):
                yield
        for key in delta.gone_hpas:
            self._forget_hpa(key)
        if delta.left_alone is not None:
            self.left_alone = {(one.namespace, one.name): one.why for one in delta.left_alone}
        for status in delta.statuses:
            self._put_status(status)
        for number, pod in enumerate(delta.pods):
            self.table.put(pod)
            if is_pause(number):
                yield
        for key in delta.gone_pods:
            self.table.remove(key)
        for nodes in delta.nodes:
            self._put_nodes(nodes)
        for entry in delta.memory:
            key = entry.namespace, entry.name
            self.recommendations.put(key, entry.recommendations)
            self.events[key] = entry.events.copy()
            if entry.options is not None:
                self.options[key] = entry.options
            if entry.status_written is not None:
                self.written[key] = entry.status_written
            spec = self.specs.get(key)
            # After a failed tick memory comes before the specs do.
            if entry.forecast is not None and (spec is None or spec.options.forecasts):
                self.forecasts.put(key, entry.forecast)
            if entry.selector:
                self._claim(key, entry.selector)
                self.unread_selectors.pop(key, None)
                if entry.selector_unread:
                    self.unread_selectors[key] = None
        for number, scale in enumerate(delta.scales):
            self._put_scale(scale)
            if is_pause(number):
                yield
        if delta.sample_pods is not None:
            self.samples.remember_pods(delta.sample_pods)
        values = taken_over(delta.values, self.values)
        if self.early is None:
            self.samples.take(delta.answers, self.table)
            self.values = values
        else:
            self.samples.take_beside(delta.answers, self.table)
            self.values |= values

    def _put_hpa(self, view: HpaView) -> None:
        key = view.namespace, view.name
        if key not in self.views:
            self._order = None
            if not self.table.members.has_claim(key):
                self.unread_selectors[key] = None
        self.views[key] = view
        self.specs[key] = read_spec(view, self.settings)
        options = self.specs[key].options
        if options.forecasts:
            self.forecasts.put_zone(key, options.forecast_zone)
        else:
            self.forecasts.forget(key)
        self.statuses.setdefault(key, HpaStatus())
        self._columns = None

    def _put_status(self, view: StatusView) -> None:
        key = view.namespace, view.name
        self.statuses[key] = view.status
        self.written.pop(key, None)  # it is somebody else's, or the write has failed
        self._settle_anew(key)

    def _put_nodes(self, view: CapacityView) -> None:
        key = view.namespace, view.name
        if view.missing:
            self.nodes[key] = view
        else:
            self.nodes.pop(key, None)
        self.unchanged.pop(key, None)
        self._settle_anew(key)

    def _settle_anew(self, key: Key) -> None:
        """Note that what came of the last pass for an HPA may not come of the next one, though nothing else changes."""
        last = self.last_pass
        if last is not None and len(last.quiet) and key in last.columns.position:
            last.quiet[last.columns.position[key]] = False

    def _forget_hpa(self, key: Key) -> None:
        """Drop an HPA with its memory."""
        for known in (
            self.views,
            self.specs,
            self.statuses,
            self.scales,
            self.nodes,
            self.events,
            self.options,
            self.written,
            self.unchanged,
            self.steady,
            self.unread_selectors,
        ):
            known.pop(key, None)
        self.recommendations.forget(key)
        self.forecasts.forget(key)
        self.table.members.release(key)
        self._order = None
        self._columns = None

    def _put_scale(self, scale: ScaleView) -> None:
        key = scale.namespace, scale.name
        self.scales[key] = scale
        if self._columns is not None:
            self._columns.put_scale(scale)
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

    def pods_by_node(self) -> Mapping[str, int]:
        """Return the number of movable pods per node, counted once per tick."""
        if self._by_node is None:
            table = self.table
            self._by_node = pods_by_node(table.view(row) for row in table.rows.values())
        return self._by_node

    def columns(self) -> HpaColumns:
        """Return the HPAs in columns, in the order of ``hpas``."""
        if self._columns is None:
            specs = [self.specs[key] for key in self.hpas]
            window = self.settings.downscale_stabilization
            self._columns = HpaColumns(specs, self.scales, self.recommendations, window)
            self._cells = cells_of(specs)
            self._segments = {}
        return self._columns

    def cells(self) -> Sequence[tuple[int, SampleKey]]:
        """Return the positions of metrics in the specs and the samples that they need, ordered."""
        self.columns()
        return self._cells

    def segments(self, cell: tuple[int, SampleKey]) -> Segments:
        """Return the pods of the HPAs that ask for this resource at this position."""
        columns = self.columns()
        if self.table.members.version != self._segments_version:
            self._segments, self._segments_version = {}, self.table.members.version
        found = self._segments.get(cell)
        if found is None:
            at, key = cell
            hpas = [hpa for hpa in self.hpas if self._asks(hpa, at, key)]
            positions = [columns.position[hpa] for hpa in hpas]
            metrics = [self.specs[hpa].metrics[at] for hpa in hpas]
            found = self._segments[cell] = Segments(key, hpas, positions, metrics, self.table)
        return found

    def _asks(self, hpa: Key, at: int, key: SampleKey) -> bool:
        metrics = self.specs[hpa].metrics
        return at < len(metrics) and metrics[at].sample_key == key

    # ── a full record ──

    def remembered(self) -> set[Key]:
        """Return the HPAs of which there is any memory."""
        return {
            *self.recommendations.keys(),
            *self.events,
            *self.options,
            *self.written,
            *self.table.members.selectors(),
            *self.forecasts.keys(),
        }

    def memories(self) -> list[MemoryEntry]:
        """Return the memory of each HPA, ordered."""
        selectors = self.table.members.selectors()
        return [
            MemoryEntry(
                *key,
                self.recommendations.of(key),
                self.events.get(key, ScaleEvents()).copy(),
                selectors.get(key, ""),
                self.options.get(key),
                self.forecasts.dump(key),
                self.written.get(key),
                key in self.unread_selectors,
            )
            for key in sorted(self.remembered())
        ]

    def dump(self) -> Delta:
        """Return everything as one full delta: a new state with it decides the same."""
        return Delta(
            settings=self.settings,
            hpas=[self.views[key] for key in self.hpas],
            statuses=[StatusView(*key, self.statuses[key]) for key in self.hpas],
            pods=[self.table.view(row) for row in self.table.rows.ordered()],
            scales=[self.scales[key] for key in sorted(self.scales)],
            nodes=[self.nodes[key] for key in sorted(self.nodes)],
            left_alone=[LeftAloneView(*key, why) for key, why in self.left_alone.items()] or None,
            holds=self.holds,
            memory=self.memories(),
            late=tuple(self.late.values()),
            sample_pods=self.samples.pods(),
        )
