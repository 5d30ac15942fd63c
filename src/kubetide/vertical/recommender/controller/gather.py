"""Gathers the input of a pass: VPAs and their targets, pods, OOMs, checkpoints, samples."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from kubetide.objects.cluster import Event
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import MetricSource
from kubetide.units.time import to_seconds
from kubetide.vertical.recommender.controller.advised import stand_ins
from kubetide.vertical.recommender.controller.external import ExternalUsage
from kubetide.vertical.recommender.controller.notices import UsageHealth
from kubetide.vertical.recommender.controller.slimming import slim_checkpoint
from kubetide.vertical.recommender.controller.targets import TargetReader
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.hpas import HpaView, hpa_view, left_by_target, target_key
from kubetide.vertical.recommender.facts.members import Stored
from kubetide.vertical.recommender.facts.ooms import ooms_of_event, ooms_of_update
from kubetide.vertical.recommender.facts.views import (
    CheckpointView,
    History,
    Oom,
    Samples,
    StatusView,
    VpaView,
    pod_view,
    samples_view,
    vpa_view,
)
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets.fitting import sizes_to_fit
from kubetide.vertical.series import Steps
from kubetide.watching import Informer

_MOST_OOMS = 5000
"""So many are held between two passes, as upstream's; more of them are lost, and counted."""


class Gatherer:
    """Builds the delta of a pass. Remembers only what it has returned already."""

    def __init__(
        self,
        vpas: Informer[VerticalPodAutoscaler],
        pods: Informer[Pod],
        events: Informer[Event],
        checkpoints: Informer[VerticalPodAutoscalerCheckpoint | CheckpointView] | None,
        targets: TargetReader,
        metrics: MetricSource,
        clock: Clock,
        hpas: Informer[HorizontalPodAutoscaler | HpaView] | None = None,
        board: Board | None = None,
        external: ExternalUsage | None = None,
    ) -> None:
        """Prepare the gatherer.

        Args:
            hpas: Those that a VPA leaves resources to; None where it does not.
            board: Where the node loop says what new nodes have left; None where targets need not fit them.
            external: Where samples come from in place of ``metrics``.
        """
        self._board = board
        self._external = external
        self._hpas = hpas
        self._vpas = vpas
        self._changed_vpas = vpas.feed()
        self._all_pods, self._pods = pods, pods.feed()
        self._checkpoints = None if checkpoints is None else checkpoints.feed()
        self._targets = targets
        self._metrics = metrics
        self._clock = clock
        self._ooms: list[Oom] = []
        self.lost_ooms = 0
        self.metrics_error = ""
        """Why the last pass lacked samples; empty where it had all."""
        self.usage = UsageHealth()
        pods.on_change(self._pod_changed)
        events.on_change(self._event_changed)

    def _pod_changed(self, _: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None:
            self._note(list(ooms_of_update(old, new)))

    def _event_changed(self, _: Key, old: Event | None, new: Event | None) -> None:
        if old is None and new is not None:
            self._note(list(ooms_of_event(new)))

    def _note(self, ooms: Sequence[Oom]) -> None:
        left = _MOST_OOMS - len(self._ooms)
        self._ooms += ooms[:left]
        self.lost_ooms += max(len(ooms) - left, 0)

    async def gather(
        self,
        state: State,
        steps: Steps,
        *,
        load: Sequence[CheckpointView] = (),
        history: Sequence[History] = (),
    ) -> Delta:
        """Return the changes since the last delta; ``steps`` measures the parts."""
        vpas, statuses, gone_vpas = await self._take_vpas(state)
        steps.done("LoadVPAs")
        checkpoints = {} if self._checkpoints is None else self._checkpoints.drain()
        pods = self._pods.drain()
        steps.done("LoadPods")
        gone = set(gone_vpas)
        served = {(one.namespace, one.name): one for one in vpas}
        served |= {key: one for key, one in state.views.items() if key not in served and key not in gone}
        samples = await self._sample(state, served.values())
        self.usage.note(self.metrics_error, self._clock.now(), has_samples=samples is not None)
        ooms, self._ooms = self._ooms, []
        steps.done("LoadMetrics")
        return Delta(
            at=self._clock.now(),
            vpas=vpas,
            gone_vpas=gone_vpas,
            statuses=statuses,
            checkpoints=[_slim(one) for _, one in sorted(checkpoints.items()) if one is not None],
            gone_checkpoints=[key for key, one in sorted(checkpoints.items()) if one is None],
            load=load,
            history=history,
            pods=[
                pod_view(pod, resources=state.settings.needs_requests)
                for _, pod in sorted(pods.items())
                if pod is not None
            ],
            gone_pods=[key for key, pod in sorted(pods.items()) if pod is None],
            samples=samples,
            ooms=ooms,
            sizes=sizes_to_fit(self._board) if state.settings.fit_node_groups else (),
        )

    async def _take_vpas(self, state: State) -> tuple[list[VpaView], list[StatusView], list[Key]]:
        """Return changed VPAs and statuses; a VPA changes with its target, too."""
        # Both of one moment: what changes while scales are read is for the next pass, status included.
        objects, changed = dict(sorted(self._vpas.objects.items())), self._changed_vpas.drain()
        advised: dict[Key, VerticalPodAutoscaler] = {}
        if (selector := state.settings.advised()) is not None:
            advised = stand_ins(selector, self._targets.caches, objects.values())
            objects |= advised
        served = {
            key
            for key, vpa in objects.items()
            if state.settings.serves(key[0], tuple(one.name for one in vpa.spec.recommenders or ()))
        }
        targets = await self._targets.read(objects.values(), served)
        left = {} if self._hpas is None else left_by_target(map(_hpa, self._hpas.objects.values()))
        views: list[VpaView] = []
        statuses: list[StatusView] = []
        for key, vpa in objects.items():
            ref = vpa.spec.target_ref
            view = vpa_view(
                vpa,
                targets[key],
                () if ref is None or not left else left.get(target_key(key[0], ref), ()),
                advised=key in advised,
            )
            if state.views.get(key) != view:
                views.append(view)
        for key in sorted(changed):
            known = state.vpas.get(key)
            if key in objects:
                status = objects[key].status
                if known is None or known.stored.encoded != Stored.of(status).encoded:
                    statuses.append(StatusView(*key, status))
        return views, statuses, sorted(state.views.keys() - objects.keys())

    async def _sample(self, state: State, vpas: Iterable[VpaView]) -> Samples | None:
        # An answer for all pods of a large cluster takes its time. Upstream waits without end.
        patience = state.settings.recommender_interval
        if self._external is not None:
            pods = self._all_pods.objects.values()
            found = await self._external.samples(vpas, pods, patience=patience)
            self.metrics_error = self._external.problem
            return found
        self.metrics_error = ""
        try:
            async with asyncio.timeout(to_seconds(patience)):
                return samples_view(await self._metrics.pod_samples(state.settings.vpa_object_namespace))
        except MetricsError as error:
            self.metrics_error = str(error)
        except TimeoutError:
            self.metrics_error = f"the source of metrics did not answer within {to_seconds(patience):g}s"
        return None


def _hpa(hpa: HorizontalPodAutoscaler | HpaView) -> HpaView:
    return hpa if isinstance(hpa, HpaView) else hpa_view(hpa)


def _slim(checkpoint: VerticalPodAutoscalerCheckpoint | CheckpointView) -> CheckpointView:
    # A cluster of the same process gives whole objects.
    return checkpoint if isinstance(checkpoint, CheckpointView) else slim_checkpoint(checkpoint)
