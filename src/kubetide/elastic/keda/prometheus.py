"""Prometheus triggers: a query, its threshold, and its activation threshold.

Source: KEDA 2.21, scalers/prometheus: one series or none, and none is 0 unless ``ignoreNullValues`` is false.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import Final

from kubetide.cluster import Connection
from kubetide.cluster.metric_ports.prometheus import PrometheusClient
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.triggers import LARGEST, Trigger
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError
from kubetide.units.time import seconds

METRIC: Final = "prometheus"
_PATIENCE: Final = seconds(4)
"""Longer than anybody waits."""


class PrometheusQueries:
    """Clients of the servers that triggers name; each is opened on first use."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clients: dict[str, tuple[PrometheusClient, AsyncExitStack]] = {}

    async def is_active(self, source: Source, trigger: Trigger) -> bool:
        """Return whether the value is above the activation threshold. Raises MetricsError."""
        del source
        return await self._value(trigger) > float(trigger.metadata.get("activationThreshold", "0"))

    async def metric_specs(self, source: Source, trigger: Trigger) -> tuple[tuple[str, int], ...]:
        """Return the metric of a trigger with its threshold, in thousandths."""
        del source
        return ((METRIC, round(float(trigger.metadata["threshold"]) * 1000)),)

    async def metrics(self, source: Source, trigger: Trigger, name: str) -> list[int]:
        """Return the value in thousandths. Raises MetricsError."""
        del source, name
        value = await self._value(trigger)
        if not 0 <= value < LARGEST:
            raise MetricsError(f"{trigger.metadata['query']} is {value:g}, which is no number of things")
        return [round(value * 1000)]

    async def _value(self, trigger: Trigger) -> float:
        if trigger.address not in self._clients:
            client = PrometheusClient(Connection(trigger.address), self._clock, patience=_PATIENCE)
            stack = AsyncExitStack()
            self._clients[trigger.address] = await stack.enter_async_context(client), stack
        query = trigger.metadata["query"]
        client, _ = self._clients[trigger.address]
        found = await client.instant(query, self._clock.now())
        if len(found) > 1:
            raise MetricsError(f"{query} has {len(found)} series at {trigger.address}; sum them")
        value = float(found[0].values[0]) if found and found[0].values else math.nan
        if math.isfinite(value):
            return value
        if trigger.metadata.get("ignoreNullValues", "true").lower() in {"false", "f", "0"}:
            raise MetricsError(f"{query} has no value at {trigger.address}")
        return 0.0

    async def keep(self, addresses: Collection[str]) -> None:
        """Close the clients of all other addresses."""
        for address in [one for one in self._clients if one not in addresses]:
            _, stack = self._clients.pop(address)
            await stack.aclose()

    async def close(self) -> None:
        """Close the clients."""
        await self.keep(())
