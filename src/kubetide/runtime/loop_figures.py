"""Figures of the process itself beside the records of its loops: how long ticks take, requests, how old caches are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from kubetide.explain.figures import FigureTable
from kubetide.explain.records import Record, Recorder
from kubetide.loop.wiring import RunningLoop
from kubetide.ports.clock import Clock
from kubetide.units.steps import Steps
from kubetide.units.time import Duration, Instant, between, to_seconds
from kubetide.watching import Informer


class HealthRecorder:
    """Adds what the runner observed of a loop to its records; to those of the first loop also what all loops share.

    Args:
        inner: Takes the records.
        clock: Says how old caches are.
        requests: Returns how many requests the process has sent to API servers; None where nobody counts.
        caches: Returns the caches that the loops cannot do without.
    """

    def __init__(
        self,
        inner: Recorder,
        clock: Clock,
        requests: Callable[[], int] | None,
        caches: Callable[[], Sequence[Informer[Any]]],
    ) -> None:
        self._inner, self._clock, self._requests, self._caches = inner, clock, requests, caches
        self._loops: dict[str, RunningLoop] = {}
        self._counted: tuple[Duration, int] | None = None

    def observe(self, loops: Iterable[RunningLoop]) -> None:
        """Set the loops whose records come."""
        self._loops = {one.entry.name: one for one in loops}

    def wants_full(self, loop: str) -> bool:
        """Return the answer of the recorder behind."""
        return self._inner.wants_full(loop)

    def write(self, record: Record) -> None:
        """Pass the record on with its figures."""
        self._inner.write(self._with_figures(record))

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:
        """Pass the record on with its figures."""
        yield from self._inner.write_in_pieces(self._with_figures(record), state)

    def _with_figures(self, record: Record) -> Record:
        return replace(record, figures=(*record.figures, *self._tables(record.loop)))

    def _tables(self, name: str) -> list[FigureTable]:
        found = self._loops.get(name)
        if found is None:
            return []
        health = found.loop.health
        # Hundredths of a second: a number that stands still takes no place on disk.
        seconds = None if health.took is None else round(to_seconds(health.took), 2)
        tables = [FigureTable("loop", (name,), {"seconds": (seconds,), "failures": (health.failures,)})]
        if name == next(iter(self._loops)):
            process = {"requests": (self._requests_a_second(),), "cacheAge": (self._oldest_cache(),)}
            tables.append(FigureTable("process", ("",), process))
        return tables

    def _requests_a_second(self) -> float | None:
        """Return how many requests were sent a second since the last time; None the first time."""
        if self._requests is None:
            return None
        at, count = self._clock.monotonic(), self._requests()
        before, self._counted = self._counted, (at, count)
        if before is None or at <= before[0]:
            return None
        return round((count - before[1]) / to_seconds(Duration(at - before[0])), 1)

    def _oldest_cache(self) -> float | None:
        """Return how long ago the API server last spoke of the kind that it has been silent about longest, in seconds."""
        now = self._clock.now()
        received: list[Instant] = [
            one.last_received for one in self._caches() if one.last_received is not None
        ]
        return round(to_seconds(between(min(received), now)), -1) if received else None
