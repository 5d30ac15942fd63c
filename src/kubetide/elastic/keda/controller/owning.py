"""ScaledObjects as owners of the HPAs that represent them, and the external metrics of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kubetide.elastic.controller.shown import Shown
from kubetide.elastic.keda.hpas import LABEL, TriggerMetric, hpa_of
from kubetide.elastic.keda.servers import Servers
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.triggers import Trigger
from kubetide.objects.base import Json
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.kinds import HPAS, SCALED_OBJECTS, Kind
from kubetide.objects.meta import Key
from kubetide.objects.timetables import ScaledObject
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError, NoSeries
from kubetide.ports.metrics import ExternalMetricSource, ExternalValues
from kubetide.units.patch import merge_patch
from kubetide.watching import Informer


class QueueHpas:
    """Keeps the shown HPAs equal to the followed ScaledObjects. Holds the statuses of these HPAs."""

    kind = SCALED_OBJECTS

    def __init__(self, source: Informer[ScaledObject]) -> None:
        self.source = source
        self.shown = Shown((HPAS,))
        self.sources: dict[Key, Source] = {}
        self.asked: dict[Key, Mapping[str, TriggerMetric]] = {}
        self.fallbacks: dict[Key, Mapping[str, int]] = {}
        """Of each object, the values of metrics whose servers fail, in thousandths."""

    def show(self, source: Source, metrics: Sequence[TriggerMetric]) -> None:
        """Show the HPA of an object, with these external metrics; without any metric it cannot scale."""
        if not metrics and not source.resources:
            return
        known = self.sources.get(source.key)
        same = known is not None and known.hpa == source.hpa
        if known is not None and not same:
            self.hide(source.key)
        self.sources[source.key] = source
        self.asked[source.key] = {one.metric: one for one in metrics}
        place = source.namespace, source.hpa
        status = self.shown.by_resource[HPAS.resource][place].status if same else HpaStatus()
        self.shown.show(HPAS, place, hpa_of(source, metrics, status))

    def known(self, source: Source, trigger: Trigger) -> tuple[TriggerMetric, ...]:
        """Return the metrics of a trigger as they are shown; none for one that is new or has been edited."""
        shown = self.sources.get(source.key)
        if shown is None or shown.uid != source.uid or trigger not in shown.triggers:
            return ()
        return tuple(one for one in self.asked[source.key].values() if one.place == trigger.place)

    def hide(self, key: Key) -> None:
        """Show no HPA for an object."""
        source = self.sources.pop(key)
        del self.asked[key]
        self.fallbacks.pop(key, None)
        place = source.namespace, source.hpa
        if all((one.namespace, one.hpa) != place for one in self.sources.values()):
            self.shown.show(HPAS, place, None)

    def name_of(self, shown: Key) -> str:
        """Return the name of the ScaledObject of an HPA."""
        return next(one.name for one in self.sources.values() if (one.namespace, one.hpa) == shown)

    async def put_status(self, kind: Kind[Any], key: Key, patch: Json | Sequence[Json]) -> Any:
        """Hold the status of a shown HPA."""
        known = self.shown.by_resource[kind.resource][key]
        assert isinstance(patch, dict)
        status = merge_patch(msgspec.to_builtins(known.status), patch["status"])
        new = msgspec.structs.replace(known, status=msgspec.convert(status, HpaStatus))
        self.shown.show(kind, key, new)
        return new


class QueueMetrics:
    """External metrics: those of ScaledObjects from their servers, all others from ``inner``."""

    def __init__(
        self, inner: ExternalMetricSource | None, hpas: QueueHpas, servers: Servers, clock: Clock
    ) -> None:
        self._inner = inner
        self._hpas = hpas
        self._servers = servers
        self._clock = clock

    async def external_values(self, metric: str, *, namespace: str, selector: str = "") -> ExternalValues:
        """Return the series of a metric that the selector matches. Raises MetricsError, NoSeries."""
        key = namespace, selector.removeprefix(f"{LABEL}=")
        asked = self._hpas.asked.get(key, {}).get(metric)
        if not selector.startswith(f"{LABEL}=") or asked is None:
            if self._inner is None:
                raise MetricsError(f"no server of external metrics is asked for {metric}")
            return await self._inner.external_values(metric, namespace=namespace, selector=selector)
        source = self._hpas.sources[key]
        trigger = next(one for one in source.triggers if one.place == asked.place)
        if asked.target is None:
            raise MetricsError(f"the server at {trigger.address} has not named its metrics yet")
        try:
            values = await self._servers.metrics(source, trigger, asked.name)
        except MetricsError:
            fallback = self._hpas.fallbacks.get(key, {}).get(metric)
            if fallback is None:
                raise
            values = [fallback]
        if not values:
            raise NoSeries(metric)
        return ExternalValues(values, int(self._clock.now()))
