"""History from Prometheus, asked for once at the start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from kubetide.ports.clock import Clock
from kubetide.vertical.recommender.history import HistorySettings, Query, Series, queries, read_history
from kubetide.vertical.recommender.views import History

Ask = Callable[[Query], Awaitable[Sequence[Series]]]
"""Puts one question to Prometheus; raises MetricsError where it has no answer."""


class HistoryReader:
    """Asks Prometheus what containers have used before.

    Args:
        namespace: Only this one; empty for all.
    """

    def __init__(self, ask: Ask, clock: Clock, settings: HistorySettings, namespace: str = "") -> None:
        self._ask = ask
        self._clock = clock
        self._settings = settings
        self._namespace = namespace

    async def read(self) -> Sequence[History]:
        """Return the history of all pods.

        Raises: MetricsError where a question has no answer; HistoryError where an answer cannot be read.
        """
        cpu, memory, labels = queries(self._settings, self._namespace, self._clock.now())
        # One after another: an answer may be hundreds of megabytes.
        answers = [await self._ask(cpu), await self._ask(memory), await self._ask(labels)]
        return read_history(self._settings, *answers)
