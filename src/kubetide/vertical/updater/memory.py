"""What the updater remembers between two loops; a restart forgets it, as upstream does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from kubetide.objects.meta import Key
from kubetide.plan.board import Replacement
from kubetide.units.time import Duration, Instant, after, between, hours, minutes

_A_MINUTE = minutes(1)
_A_DAY = hours(24)

Targets = dict[str, dict[str, str]]
"""Container to resource to quantity."""


class Limiter(msgspec.Struct):
    """A token bucket as golang.org/x/time/rate keeps it: tokens come with time, and a wait reserves one.

    Attributes:
        tokens: At ``last``; less than 0 when waits are reserved.
        last: When they were counted; None before the first use, with a full bucket.
    """

    tokens: float = 0.0
    last: Instant | None = None

    def take(self, now: Instant, rate: float, burst: int, deadline: Instant) -> Instant | None:
        """Return when the next action may happen, None when that is after ``deadline``: then nothing is taken.

        Args:
            rate: Actions a second; 0 or less limits nothing but the loop's own time: none begins at its end or later.
            burst: How many may happen at once; with 0 and a rate none ever may.
        """
        if now >= deadline:
            return None
        if rate <= 0:
            return now
        if burst < 1:
            return None
        if self.last is None:
            tokens = float(burst)
        else:
            # A clock that is set back gives no tokens and takes none.
            tokens = min(float(burst), self.tokens + max(now - self.last, 0) / 1e9 * rate)
        tokens -= 1.0
        wait = Duration(int(-tokens / rate * 1e9)) if tokens < 0 else Duration(0)
        due = after(now, wait)
        if due > deadline:
            return None
        self.tokens, self.last = tokens, now
        return due


class Memory(msgspec.Struct):
    """What must outlive a loop.

    Attributes:
        attempts: Namespace and name of a pod to when a resize of one of that name was first seen under way. Neither a
            later resize renews it, nor another pod of the name, as a StatefulSet makes it.
        infeasible: Pod UID to the targets in the VPA's status that its node could not hold (mode InPlace).
        evictions, resizes: The two rate limits.
        recent: Evictions of the last minute, time and namespace, where they are limited.
        served: The last VPA whose pods were changed in a loop that ran out of time; None after a whole loop.
        replacements: What was announced after the last loop.
        refused: UIDs of pods whose change was refused in such loops, the last ones last; none after a whole loop.
    """

    attempts: dict[str, Instant] = msgspec.field(default_factory=dict)
    infeasible: dict[str, Targets] = msgspec.field(default_factory=dict)
    evictions: Limiter = msgspec.field(default_factory=Limiter)
    resizes: Limiter = msgspec.field(default_factory=Limiter)
    recent: list[tuple[Instant, str]] = msgspec.field(default_factory=list)
    served: Key | None = None
    refused: list[str] = msgspec.field(default_factory=list)
    replacements: tuple[Replacement, ...] = ()

    def note_refused(self, uids: Iterable[str]) -> None:
        """Put pods behind all others of their VPA: where the rate limit ends each loop they must not keep the others."""
        new = dict.fromkeys(uids)
        self.refused = [*(uid for uid in self.refused if uid not in new), *new]

    def turns(self) -> dict[str, int]:
        """Return the places of pods that come after all others, by UID."""
        return {uid: place for place, uid in enumerate(self.refused, start=1)}

    def evicted_lately(self, now: Instant) -> Counter[str]:
        """Return how many were evicted within the last minute, by namespace; forget older ones."""
        # What lies ahead by more than a minute was noted before the clock was set back.
        self.recent = [one for one in self.recent if abs(between(one[0], now)) < _A_MINUTE]
        return Counter(namespace for _, namespace in self.recent)

    def keep_only(self, uids: Iterable[str], names: Iterable[str], now: Instant) -> None:
        """Forget pods that are gone; a name only after a day, as it may come again (upstream never forgets one)."""
        if self.infeasible or self.refused:
            live = set(uids)
            self.infeasible = {uid: one for uid, one in self.infeasible.items() if uid in live}
            self.refused = [uid for uid in self.refused if uid in live]
        old = {name for name, since in self.attempts.items() if between(since, now) > _A_DAY}
        if old:
            for name in old - set(names):
                del self.attempts[name]
