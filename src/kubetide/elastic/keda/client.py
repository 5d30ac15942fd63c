"""Calls external scalers. Source: KEDA 2.21, scalers/external: one channel per address, names without the trigger's index."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final

from grpc import aio

from kubetide.acting import in_parallel
from kubetide.clouds.externalgrpc.messages import encode
from kubetide.elastic.keda.messages import MESSAGES, METHODS, SERVICE
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.triggers import LARGEST, Trigger
from kubetide.ports.errors import MetricsError

_TIMEOUT_S: Final = 4.0
"""Longer than anybody waits: it tells the server when an answer is of no use any more."""
_GRACE_S: Final = _TIMEOUT_S + 1
"""A channel that is closed lets what was asked before come to its end, so that nobody who waits is cancelled."""


class ExternalScalers:
    """Channels to the servers that triggers name; each is opened on first use."""

    def __init__(self) -> None:
        self._channels: dict[str, aio.Channel] = {}

    @property
    def addresses(self) -> frozenset[str]:
        """The servers to which a channel is open."""
        return frozenset(self._channels)

    async def is_active(self, source: Source, trigger: Trigger) -> bool:
        """Return whether there is work. Raises MetricsError."""
        return bool((await self._ask(trigger, "IsActive", _reference(source, trigger))).result)

    async def metric_specs(self, source: Source, trigger: Trigger) -> tuple[tuple[str, int], ...]:
        """Return the metrics of a trigger: names, and targets in thousandths. Raises MetricsError."""
        found = await self._ask(trigger, "GetMetricSpec", _reference(source, trigger))
        specs = tuple(
            (one.metricName, _milli(one.metricName, one.targetSizeFloat or one.targetSize))
            for one in found.metricSpecs
        )
        for name, target in specs:
            if not target:
                raise MetricsError(
                    f"the target of {name} is 0 at {trigger.address}; it must be at least 0.001"
                )
        return specs

    async def metrics(self, source: Source, trigger: Trigger, name: str) -> list[int]:
        """Return the values of a metric, in thousandths. Raises MetricsError."""
        request = MESSAGES["GetMetricsRequest"](scaledObjectRef=_reference(source, trigger), metricName=name)
        found = await self._ask(trigger, "GetMetrics", request)
        if not found.metricValues:
            raise MetricsError(f"the scaler at {trigger.address} has no value of {name}")
        return [_milli(name, one.metricValueFloat or one.metricValue) for one in found.metricValues]

    async def _ask(self, trigger: Trigger, method: str, request: Any) -> Any:
        if trigger.address not in self._channels:
            try:
                self._channels[trigger.address] = aio.insecure_channel(trigger.address)
            except OSError as error:
                raise MetricsError(f"the scaler at {trigger.address} cannot be asked: {error}") from error
        call = self._channels[trigger.address].unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=encode,
            response_deserializer=MESSAGES[METHODS[method][1]].FromString,
        )
        try:
            return await call(request, timeout=_TIMEOUT_S)
        except aio.AioRpcError as error:
            said = f"{error.code().name}: {error.details() or ''}"
            raise MetricsError(f"the scaler at {trigger.address} does not answer {method}: {said}") from error

    async def keep(self, addresses: Collection[str]) -> None:
        """Close the channels to all other addresses at once; what was asked before has until its time-out."""
        await self._close([one for one in self._channels if one not in addresses], _GRACE_S)

    async def close(self) -> None:
        """Close all channels at once, and wait for no answer."""
        await self._close([*self._channels], None)

    async def _close(self, addresses: Sequence[str], grace_s: float | None) -> None:
        # First all are let go: nobody asks over one that is to be closed.
        channels = [self._channels.pop(one) for one in addresses]
        await in_parallel(channels, lambda one: one.close(grace_s), limit=max(len(channels), 1))


def _reference(source: Source, trigger: Trigger) -> Any:
    return MESSAGES["ScaledObjectRef"](
        name=source.name, namespace=source.namespace, scalerMetadata=trigger.metadata
    )


def _milli(name: str, value: float) -> int:
    if not math.isfinite(value) or not 0 <= value < LARGEST:
        raise MetricsError(f"{name} is {value}, which is no number of things")
    return round(value * 1000)
