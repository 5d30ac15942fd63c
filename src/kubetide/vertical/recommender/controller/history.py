"""History from Prometheus, queried once at the start."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.ports.clock import Clock
from kubetide.ports.metrics import SeriesQuery, SeriesSource
from kubetide.vertical.recommender.facts.history import HistoryBuilder, HistorySettings, queries
from kubetide.vertical.recommender.facts.views import History


class HistoryReader:
    """Queries Prometheus for the past usage of containers.

    Args:
        namespace: Only this one; empty for all.
    """

    def __init__(
        self, source: SeriesSource, clock: Clock, settings: HistorySettings, namespace: str = ""
    ) -> None:
        self._source = source
        self._clock = clock
        self._settings = settings
        self._namespace = namespace

    async def read(self) -> Sequence[History]:
        """Return the history of all pods.

        Raises: MetricsError where a question has no answer; HistoryError where an answer cannot be read.
        """
        cpu, memory, labels = queries(self._settings, self._namespace, self._clock.now())
        builder = await self._usage(cpu, memory)
        await self._source.each_series(labels, builder.add_labels)
        return builder.pods()

    async def read_usage(self) -> Sequence[History]:
        """Return the history of all pods without their labels. Raises: as ``read``."""
        cpu, memory, _ = queries(self._settings, self._namespace, self._clock.now())
        return (await self._usage(cpu, memory)).pods()

    async def _usage(self, cpu: SeriesQuery, memory: SeriesQuery) -> HistoryBuilder:
        builder = HistoryBuilder(self._settings)
        # One after another: Prometheus holds an answer as a whole.
        await self._source.each_series(cpu, builder.add_cpu)
        await self._source.each_series(memory, builder.add_memory)
        return builder
