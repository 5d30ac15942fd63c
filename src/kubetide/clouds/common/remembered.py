"""Answers of a cloud that serve for a while, and longer when asking again fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from kubetide.ports.errors import CloudError
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, Instant, after

EVER: Final = Instant((1 << 63) - 1)
"""The end of what never changes."""


class Remembered:
    """Answers by key, each with an end."""

    def __init__(self, life: Duration, early: tuple[Duration, Duration]) -> None:
        """``life`` is how long an answer serves; it ends earlier by between the two of ``early``."""
        self._life = life
        self._least_early, self._most_early = early
        self._held: dict[str, tuple[Instant, Any]] = {}
        self._asked: set[str] = set()

    async def get(
        self, key: str, now: Instant, ask: Callable[[], Awaitable[Any]], *, ever: bool = False
    ) -> Any:
        """Return the remembered answer, or ask; when asking fails, an old answer serves. Raises CloudError."""
        self._asked.add(key)
        held = self._held.get(key)
        if held is not None and now < held[0]:
            return held[1]
        try:
            answer = await ask()
        except CloudError:
            if held is None:
                raise
            return held[1]
        early = self._least_early + int(
            (self._most_early - self._least_early) * unit_interval(0, "early", key)
        )
        end = EVER if ever else after(now, Duration(self._life - early))
        self._held[key] = end, answer
        return answer

    def __contains__(self, key: str) -> bool:
        """Return whether there is an answer of this key, fresh or old."""
        return key in self._held

    def sweep(self) -> None:
        """Forget every answer that nobody has asked for since the last sweep."""
        for key in self._held.keys() - self._asked:
            del self._held[key]
        self._asked.clear()
