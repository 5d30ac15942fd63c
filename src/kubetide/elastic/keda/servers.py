"""The server of a trigger, by the trigger's type."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from kubetide.elastic.keda.client import ExternalScalers
from kubetide.elastic.keda.prometheus import PrometheusQueries
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.triggers import EXTERNAL, PROMETHEUS, Trigger
from kubetide.elastic.keda.windows import CronScaler
from kubetide.objects.scaled_objects import CRON
from kubetide.ports.clock import Clock


class Server(Protocol):
    """Answers triggers of one type; all methods but ``keep`` and ``close`` raise MetricsError."""

    async def is_active(self, source: Source, trigger: Trigger) -> bool:
        """Return whether there is work."""
        ...

    async def metric_specs(self, source: Source, trigger: Trigger) -> tuple[tuple[str, int], ...]:
        """Return the metrics of a trigger: names, and targets in thousandths."""
        ...

    async def metrics(self, source: Source, trigger: Trigger, name: str) -> list[int]:
        """Return the values of a metric, in thousandths."""
        ...

    async def keep(self, addresses: Collection[str]) -> None:
        """Close the connections to all other addresses."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Servers:
    """The servers of all types: a new one is a line here, and its parsing in ``triggers``."""

    def __init__(self, clock: Clock) -> None:
        self._by_type: dict[str, Server] = {
            EXTERNAL: ExternalScalers(),
            PROMETHEUS: PrometheusQueries(clock),
            CRON: CronScaler(clock),
        }

    def of(self, trigger: Trigger) -> Server:
        """Return the server of a trigger."""
        return self._by_type[trigger.type]

    async def keep(self, addresses: Collection[str]) -> None:
        """Close the connections to all other addresses."""
        for one in self._by_type.values():
            await one.keep(addresses)

    async def close(self) -> None:
        """Close all connections."""
        for one in self._by_type.values():
            await one.close()
