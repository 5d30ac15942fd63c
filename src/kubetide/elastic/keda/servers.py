"""The server of a trigger, by the trigger's type."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final, Protocol, TypeVar

from kubetide.elastic.keda.client import ExternalScalers
from kubetide.elastic.keda.prometheus import PrometheusQueries
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.triggers import EXTERNAL, PROMETHEUS, Trigger
from kubetide.elastic.keda.windows import CronScaler
from kubetide.horizontal.controller.sources import GuardedSource
from kubetide.objects.scaled_objects import CRON
from kubetide.ports.clock import Clock
from kubetide.units.time import seconds

A = TypeVar("A")

_PATIENCE: Final = seconds(3)


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
    """The servers of all types: a new one is a line here, and its parsing in ``triggers``.

    An address that does not answer in time is left alone for a while, so that it makes no other objects late.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_type: dict[str, Server] = {
            EXTERNAL: ExternalScalers(),
            PROMETHEUS: PrometheusQueries(clock),
            CRON: CronScaler(clock),
        }
        self._guards: dict[str, GuardedSource] = {}

    async def is_active(self, source: Source, trigger: Trigger) -> bool:
        """Return whether there is work. Raises MetricsError."""
        asked = partial(self._by_type[trigger.type].is_active, source, trigger)
        return await self._ask(source, trigger, asked)

    async def metric_specs(self, source: Source, trigger: Trigger) -> tuple[tuple[str, int], ...]:
        """Return the metrics of a trigger: names, and targets in thousandths. Raises MetricsError."""
        asked = partial(self._by_type[trigger.type].metric_specs, source, trigger)
        return await self._ask(source, trigger, asked)

    async def metrics(self, source: Source, trigger: Trigger, name: str) -> list[int]:
        """Return the values of a metric, in thousandths. Raises MetricsError."""
        asked = partial(self._by_type[trigger.type].metrics, source, trigger, name)
        return await self._ask(source, trigger, asked)

    async def _ask(self, source: Source, trigger: Trigger, question: Callable[[], Awaitable[A]]) -> A:
        address = trigger.address
        if not address:
            return await question()
        if address not in self._guards:
            self._guards[address] = GuardedSource(f"metrics at {address}", self._clock, _PATIENCE)
        # Of a Prometheus that answers others, a query may hang for all objects that have it.
        about = trigger.metadata.get("query") or f"{source.namespace}/{source.name}"
        return await self._guards[address].ask(question, about)

    async def keep(self, addresses: Collection[str]) -> None:
        """Close the connections to all other addresses."""
        for address in [one for one in self._guards if one not in addresses]:
            del self._guards[address]
        for one in self._by_type.values():
            await one.keep(addresses)

    async def close(self) -> None:
        """Close all connections."""
        for one in self._by_type.values():
            await one.close()
