"""Gathers the input of a tick: changed HPAs and pods, scales, samples, and values of other metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from kubetide.acting import both, in_parallel
from kubetide.horizontal.controller.past import PastChanges
from kubetide.horizontal.controller.sources import GuardedSource
from kubetide.horizontal.controller.targets import Targets, view_of_workload
from kubetide.horizontal.controller.values import ValueReader, questions_of
from kubetide.horizontal.facts.samples import Answer, answer_of, checked
from kubetide.horizontal.facts.specs import Autoscaler, read_spec
from kubetide.horizontal.facts.values import Reply, shortened
from kubetide.horizontal.facts.views import (
    HpaView,
    LeftAloneView,
    PodView,
    ScaleView,
    StatusView,
    view_of_hpa,
    view_of_pod,
)
from kubetide.horizontal.metrics.types import SampleKey
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta, State
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import MetricSource
from kubetide.units.steps import is_pause
from kubetide.units.time import ZERO
from kubetide.watching import Feed, Informer

T_co = TypeVar("T_co", covariant=True)

# Samples of whole namespaces name their pods in each record, those of the whole cluster only where these have changed:
# a tenth of the pods takes as much with their names as all of them without.
_SMALL_PART = 0.1
_FEW_NAMESPACES = 10
"""At most so many requests take the place of one."""


class Changes(Protocol[T_co]):
    """A source of changed objects; a ``watching.Feed``."""

    def drain(self) -> Mapping[Key, T_co | None]:
        """Return each changed object since the last call, None for a deleted one."""
        ...


class HpaChanges(Changes[HorizontalPodAutoscaler], Protocol):
    """A source of changed HPAs."""

    def latest(self, key: Key) -> HorizontalPodAutoscaler | None:
        """Return the latest version of an HPA, None for an unknown one."""
        ...

    def start_anew(self, hpas: Informer[HorizontalPodAutoscaler]) -> None:
        """Make the next ``drain`` return all HPAs."""
        ...


class Gatherer:
    """Builds the delta of a tick. Remembers only what it has returned already."""

    def __init__(
        self,
        hpas: HpaChanges,
        pods: Changes[Pod | PodView],
        targets: Targets,
        metrics: MetricSource,
        values: ValueReader,
        clock: Clock,
        holds: Callable[[Settings], Sequence[str]] = lambda _: (),
        past: PastChanges | None = None,
        left_alone: Callable[[], Mapping[Key, str]] = dict,
    ) -> None:
        """``holds`` returns why nothing may be scaled down now; ``past`` follows the changes of others, for advice.

        ``left_alone`` returns the HPAs that are left alone, ordered, and why each is; it is asked after ``hpas``.
        """
        self._left_alone = left_alone
        self._past = past
        self._hpas = hpas
        self._pods = pods
        self._targets = targets
        self._clock = clock
        self._metrics = metrics
        self._values = values
        self._guard = GuardedSource("resource metrics", clock)
        self._holds = holds
        self._workloads: dict[Key, tuple[Autoscaler, object]] = {}
        self._sampling: tuple[Mapping[Key, Autoscaler], Sequence[SampleKey]] | None = None
        self._sampled: tuple[Sequence[str], Sequence[str]] | None = None
        self._suspect: dict[Key, None] = {}
        self._begins_anew = False

    @property
    def sources(self) -> tuple[GuardedSource, ...]:
        """The guards of the metric sources."""
        return (self._guard, *self._values.guards)

    def start_anew(self, hpas: Informer[HorizontalPodAutoscaler], pods: Feed[Pod | PodView]) -> None:
        """Read everything again: the state that received the changes so far was dropped."""
        self._hpas.start_anew(hpas)
        self._pods = pods
        self._workloads.clear()
        self._sampling = self._sampled = None
        self._suspect = {}
        self._begins_anew = True

    def suspect(self, key: Key) -> None:
        """Note that an HPA's status may differ from what the loop wrote: it is compared again."""
        self._suspect[key] = None

    async def gather(self, state: State, *, early: bool = False) -> Delta:
        """Return the changes since the last delta; an early one measures only for HPAs that are new or have a new spec."""
        hpas, gone_hpas, statuses = await self._take_hpas(state)
        others = self._left_alone()
        left_alone = (
            [LeftAloneView(*key, why) for key, why in others.items()] if others != state.left_alone else None
        )
        pods, gone_pods = await self._take_pods()
        specs: Mapping[Key, Autoscaler] = state.specs
        if hpas or gone_hpas:
            specs = await self._new_specs(state, hpas, gone_hpas)
            self._sampling = None
        asking = [(view.namespace, view.name) for view in hpas if _is_early(view, state)] if early else None
        if asking is not None:
            specs = {key: specs[key] for key in asking}
        scales = await self._read_scales(state, specs)
        answers, values = await self._measure(state, specs, scales, early=early)
        memory = () if self._past is None else await self._past.memory(state, specs, scales)
        return Delta(
            hpas=tuple(hpas),
            gone_hpas=tuple(gone_hpas),
            statuses=tuple(statuses),
            pods=tuple(pods),
            gone_pods=tuple(gone_pods),
            scales=tuple(scale for key, scale in scales.items() if state.scales.get(key) != scale),
            answers=tuple(answers),
            values=tuple(shortened(reply, state.values) for reply in values),
            early=asking,
            left_alone=left_alone,
            holds=self._holds(state.settings),
            memory=memory,
        )

    async def _new_specs(
        self, state: State, hpas: Sequence[HpaView], gone: Sequence[Key]
    ) -> Mapping[Key, Autoscaler]:
        """Return the specs as they are with what has changed."""
        specs = dict(state.specs)
        for key in gone:
            specs.pop(key, None)
        for number, view in enumerate(hpas):
            specs[view.namespace, view.name] = read_spec(view, state.settings)
            if is_pause(number):
                await self._clock.sleep(ZERO)
        return specs

    # ── objects ──

    async def _take_hpas(self, state: State) -> tuple[list[HpaView], list[Key], list[StatusView]]:
        hpas: list[HpaView] = []
        gone: list[Key] = []
        found = {key: hpa.status for key in self._suspect if (hpa := self._hpas.latest(key)) is not None}
        self._suspect = {}
        for number, (key, hpa) in enumerate(sorted(self._hpas.drain().items())):
            if hpa is None:
                found.pop(key, None)
                self._workloads.pop(key, None)
                if key in state.views:
                    gone.append(key)
            else:
                found[key] = hpa.status
                view = view_of_hpa(hpa)
                if state.views.get(key) != view:
                    hpas.append(view)
            if is_pause(number):
                await self._clock.sleep(ZERO)
        if self._begins_anew:
            # Memory of an HPA that is not there is of one that went in the failed tick.
            self._begins_anew = False
            gone.extend(sorted(state.remembered().difference((view.namespace, view.name) for view in hpas)))
        statuses = [
            StatusView(*key, status)
            for key, status in sorted(found.items())
            if state.statuses.get(key) != status
        ]
        return hpas, gone, statuses

    async def _take_pods(self) -> tuple[list[PodView], list[Key]]:
        pods: list[PodView] = []
        gone: list[Key] = []
        changed = self._pods.drain()
        for number, key in enumerate(sorted(changed)):
            pod = changed[key]
            if pod is None:
                gone.append(key)
            else:
                # A cluster of the same process gives whole pods.
                pods.append(pod if isinstance(pod, PodView) else view_of_pod(pod))
            if is_pause(number):
                await self._clock.sleep(ZERO)
        return pods, gone

    # ── scales ──

    async def _read_scales(self, state: State, specs: Mapping[Key, Autoscaler]) -> dict[Key, ScaleView]:
        """Return the scale of every target: from a cache where there is one, else by asking."""
        scales: dict[Key, ScaleView] = {}
        to_ask: list[Autoscaler] = []
        for number, (key, spec) in enumerate(sorted(specs.items(), key=_first)):
            workload: Any = self._targets.cached(spec)
            known = self._workloads.get(key)
            if workload is None:
                to_ask.append(spec)
            elif known is not None and known[0] is spec and known[1] is workload and key in state.scales:
                scales[key] = state.scales[key]
            else:
                scales[key] = view_of_workload(spec, workload)
                self._workloads[key] = (spec, workload)
            if is_pause(number):
                await self._clock.sleep(ZERO)
        if to_ask:
            await self._targets.learn(to_ask)
            limit = state.settings.concurrent_syncs
            for scale in await in_parallel(to_ask, self._targets.read, limit=limit):
                scales[scale.namespace, scale.name] = scale
        return {key: self._targets.with_owners(specs[key], scale) for key, scale in scales.items()}

    # ── samples ──

    async def _read_samples(
        self, state: State, specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView]
    ) -> list[Answer]:
        """Ask once for the whole cluster; where that fails, or most pods are in other namespaces, once for each namespace.

        An HPA that is alone in its namespace is asked for by its selector, as upstream does: that is
        the smaller answer.
        """
        if self._sampling is None:
            asking = {
                key: spec for key, spec in sorted(specs.items()) if any(m.resource for m in spec.metrics)
            }
            self._sampling = asking, _sample_keys(asking.values())
        sampled, keys = self._sampling
        if not sampled:
            return []
        if not _is_small_part(state, {namespace for namespace, _ in sampled}):
            with suppress(MetricsError):
                return [await self._guard.ask(lambda: self._all_samples(keys))]
        self._sampled = None
        by_namespace: dict[str, list[Autoscaler]] = {}
        for spec in _readable(sampled, scales):
            by_namespace.setdefault(spec.key[0], []).append(spec)
        return await self._ask_for(list(by_namespace.values()), scales, state.settings.concurrent_syncs)

    async def _read_own_samples(
        self, state: State, specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView]
    ) -> list[Answer]:
        """Ask for the pods of each HPA."""
        alone = [[spec] for spec in _readable(specs, scales) if any(m.resource for m in spec.metrics)]
        return await self._ask_for(alone, scales, state.settings.concurrent_syncs)

    async def _measure(
        self, state: State, specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView], *, early: bool
    ) -> tuple[list[Answer], list[Reply]]:
        """Ask for samples and values at the same time, where both are needed."""
        questions = questions_of(specs, scales, from_zero=state.settings.scales_from_zero)
        read = self._read_own_samples if early else self._read_samples
        samples = read(state, specs, scales)
        if not questions:
            return await samples, []
        values = self._values.read(questions, limit=state.settings.concurrent_syncs)
        return await both(samples, values)

    async def _all_samples(self, keys: Sequence[SampleKey]) -> Answer:
        samples = checked(await self._metrics.pod_samples())
        last = self._sampled
        same = last is not None and last[0] is samples.namespaces and last[1] is samples.names
        answer = answer_of(samples, keys, hpa=None, same_pods=same)
        self._sampled = (samples.namespaces, samples.names)
        return answer

    async def _ask_for(
        self, groups: Sequence[Sequence[Autoscaler]], scales: Mapping[Key, ScaleView], limit: int
    ) -> list[Answer]:
        """Ask for each group, the HPAs of a namespace or one alone; a question that fails harms only its own HPAs."""

        async def ask(specs: Sequence[Autoscaler]) -> list[Answer]:
            alone = specs[0].key if len(specs) == 1 else None
            labels = scales[alone].selector if alone else ""

            async def samples() -> Answer:
                found = checked(await self._metrics.pod_samples(specs[0].key[0], labels))
                return answer_of(found, _sample_keys(specs), hpa=alone, same_pods=False)

            try:
                return [await self._guard.ask(samples)]
            except MetricsError as error:
                return [Answer(hpa=spec.key, error=str(error)) for spec in specs]

        answers = await in_parallel(groups, ask, limit=limit)
        return [answer for found in answers for answer in found]


def _is_small_part(state: State, namespaces: Collection[str]) -> bool:
    """Return whether the namespaces are few and have few of the pods: their own samples are a smaller answer."""
    rows = state.table.rows
    return len(namespaces) <= _FEW_NAMESPACES and rows.number_in(namespaces) < _SMALL_PART * len(rows)


def _sample_keys(specs: Iterable[Autoscaler]) -> list[SampleKey]:
    return sorted({m.sample_key for spec in specs for m in spec.metrics if m.resource})


def _readable(specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView]) -> Iterable[Autoscaler]:
    return (spec for key, spec in specs.items() if scales[key].selector and not scales[key].error)


def _is_early(view: HpaView, state: State) -> bool:
    """Return whether the HPA need not wait for the next tick: it is new, or its spec is.

    Source: horizontal controller v1.37; servers before it count no generations of HPAs.
    """
    known = state.views.get((view.namespace, view.name))
    if known is None or known.uid != view.uid:
        return True
    return known.generation != view.generation or known.spec != view.spec


def _first(item: tuple[Key, Autoscaler]) -> Key:
    return item[0]
