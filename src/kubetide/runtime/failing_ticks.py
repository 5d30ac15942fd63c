"""What is said of a loop whose ticks fail: a line a cause, and one when they have ended well for a while."""

from __future__ import annotations

import re
from typing import Final

from kubetide.loop import Health
from kubetide.units.time import Instant, before, minutes

_CALM: Final = minutes(1)
"""Ticks that fail now and then are one failure: its end is said once none has failed for so long."""
_MOST_CAUSES: Final = 10
"""Causes of one failure that are said."""
_CHANGING: Final = re.compile(r"[0-9A-Fa-f][0-9A-Fa-f:.TZ-]{6,}[0-9A-Fa-fZ]")
"""Times and ids of requests: each error of a cloud has others."""


class FailingTicks:
    """Remembers what was said of the failed ticks of one loop."""

    def __init__(self, loop: str) -> None:
        self._loop = loop
        self._failures = 0
        self._failed: Instant | None = None
        """When a tick was last seen to have failed; None once the end was said."""
        self._causes: set[str] = set()

    def sentence(self, health: Health, failure: str, now: Instant) -> str:
        """Return what is new: a cause, or the end; empty for nothing. ``failure`` is the text of the last failure."""
        if health.failures != self._failures:
            self._failures, self._failed = health.failures, now
            cause = _CHANGING.sub("", failure)
            if cause in self._causes or len(self._causes) >= _MOST_CAUSES:
                return ""
            self._causes.add(cause)
            return f"a tick of the {self._loop} loop failed: {failure}"
        if self._failed is None or health.last_tick is None or self._failed > before(now, _CALM):
            return ""
        if health.last_tick <= self._failed:
            return ""
        self._failed = None
        self._causes.clear()
        return f"ticks of the {self._loop} loop end well again"
