"""Gathers what a tick decides from: changes of HPAs and pods, scales, samples, and values of other metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from kubetide.acting import in_parallel
from kubetide.horizontal.controller.targets import Targets, view_of_workload
from kubetide.horizontal.controller.values import ValueReader
from kubetide.horizontal.samples import Answer, answer_of
from kubetide.horizontal.specs import Autoscaler, read_spec
from kubetide.horizontal.state import Delta, State
from kubetide.horizontal.values import shortened
from kubetide.horizontal.views import (
    HpaView,
    Key,
    PodView,
    ScaleView,
    StatusView,
    view_of_hpa,
    view_of_pod,
)
from kubetide.objects.hpa import HorizontalPodAutoscaler, HpaStatus
from kubetide.objects.pod import Pod
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import MetricSource

T_co = TypeVar("T_co", covariant=True)


class Changes(Protocol[T_co]):
    """Where changed objects come from; a ``watching.Feed``."""

    def drain(self) -> Mapping[Key, T_co | None]:
        """Gives each changed object, None for a deleted one, and starts anew."""
        ...


class Gatherer:
    """Makes the delta of a tick. Remembers only what it has handed over already."""

    def __init__(
        self,
        hpas: Changes[HorizontalPodAutoscaler],
        pods: Changes[Pod],
        targets: Targets,
        metrics: MetricSource,
        values: ValueReader,
    ) -> None:
        self._hpas = hpas
        self._pods = pods
        self._targets = targets
        self._metrics = metrics
        self._values = values
        self._statuses: dict[Key, HpaStatus] = {}
        self._workloads: dict[Key, tuple[Autoscaler, object]] = {}
        self._sampled: tuple[Sequence[str], Sequence[str]] | None = None
        self._suspect: dict[Key, None] = {}

    def suspect(self, key: Key) -> None:
        """Notes that the status of an HPA may not be what the loop wrote: it is compared again."""
        self._suspect[key] = None

    async def gather(self, state: State) -> Delta:
        """Gives what has changed since the state was last given a delta."""
        hpas, gone_hpas, statuses = self._take_hpas(state)
        pods, gone_pods = self._take_pods()
        specs = dict(state.specs)
        for key in gone_hpas:
            specs.pop(key, None)
        for view in hpas:
            specs[view.namespace, view.name] = read_spec(view, state.settings)
        scales = await self._read_scales(state, specs)
        answers = await self._read_samples(state, specs, scales)
        values = await self._values.read(specs, scales, limit=state.settings.concurrent_syncs)
        return Delta(
            hpas=tuple(hpas),
            gone_hpas=tuple(gone_hpas),
            statuses=tuple(statuses),
            pods=tuple(pods),
            gone_pods=tuple(gone_pods),
            scales=tuple(scale for key, scale in scales.items() if state.scales.get(key) != scale),
            answers=tuple(answers),
            values=tuple(shortened(reply, state.values) for reply in values),
        )

    # ── objects ──

    def _take_hpas(self, state: State) -> tuple[list[HpaView], list[Key], list[StatusView]]:
        hpas: list[HpaView] = []
        gone: list[Key] = []
        to_compare = self._suspect
        self._suspect = {}
        for key, hpa in sorted(self._hpas.drain().items()):
            if hpa is None:
                self._statuses.pop(key, None)
                self._workloads.pop(key, None)
                if key in state.views:
                    gone.append(key)
                continue
            self._statuses[key] = hpa.status
            to_compare[key] = None
            view = view_of_hpa(hpa)
            if state.views.get(key) != view:
                hpas.append(view)
        statuses = [
            StatusView(*key, self._statuses[key])
            for key in sorted(to_compare)
            if key in self._statuses and state.statuses.get(key) != self._statuses[key]
        ]
        return hpas, gone, statuses

    def _take_pods(self) -> tuple[list[PodView], list[Key]]:
        changed = sorted(self._pods.drain().items())
        return (
            [view_of_pod(pod) for _, pod in changed if pod is not None],
            [key for key, pod in changed if pod is None],
        )

    # ── scales ──

    async def _read_scales(self, state: State, specs: Mapping[Key, Autoscaler]) -> dict[Key, ScaleView]:
        """Gives the scale of every target: from a cache where there is one, else by asking."""
        scales: dict[Key, ScaleView] = {}
        to_ask: list[Autoscaler] = []
        for key in sorted(specs):
            spec = specs[key]
            workload: Any = self._targets.cached(spec)
            if workload is None:
                to_ask.append(spec)
                continue
            known = self._workloads.get(key)
            if known is not None and known[0] is spec and known[1] is workload and key in state.scales:
                scales[key] = state.scales[key]
                continue
            scales[key] = view_of_workload(spec, workload)
            self._workloads[key] = (spec, workload)
        await self._targets.learn(to_ask)
        limit = state.settings.concurrent_syncs
        for scale in await in_parallel(to_ask, self._targets.read, limit=limit):
            scales[scale.namespace, scale.name] = scale
        return scales

    # ── samples ──

    async def _read_samples(
        self, state: State, specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView]
    ) -> list[Answer]:
        """Asks once for the whole cluster; where that is refused, once for each HPA as upstream does."""
        wanted = {key: spec for key, spec in sorted(specs.items()) if any(m.resource for m in spec.metrics)}
        if not wanted:
            return []
        keys = sorted({m.sample_key for spec in wanted.values() for m in spec.metrics if m.resource})
        try:
            samples = await self._metrics.pod_samples()
        except MetricsError:
            return await self._read_samples_of_each(wanted, scales, state.settings.concurrent_syncs)
        last = self._sampled
        same = last is not None and last[0] is samples.namespaces and last[1] is samples.names
        self._sampled = (samples.namespaces, samples.names)
        return [answer_of(samples, keys, hpa=None, same_pods=same)]

    async def _read_samples_of_each(
        self, specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView], limit: int
    ) -> list[Answer]:
        async def ask(spec: Autoscaler) -> Answer:
            keys = sorted({m.sample_key for m in spec.metrics if m.resource})
            try:
                samples = await self._metrics.pod_samples(spec.key[0], scales[spec.key].selector)
            except MetricsError as error:
                return Answer(hpa=spec.key, error=str(error))
            return answer_of(samples, keys, hpa=spec.key, same_pods=False)

        readable = [spec for key, spec in specs.items() if scales[key].selector and not scales[key].error]
        return await in_parallel(readable, ask, limit=limit)
