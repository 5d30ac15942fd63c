"""What a cloud was asked for and may not have done yet: machines that are to come, and machines that are to go.

For minutes a list may show a group as it was before the last orders, and an order may get no answer. A provider
makes each order through its ledger, and asks it how far a group may shrink.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, Instant, minutes

T = TypeVar("T")
_REMOVAL_LASTS = minutes(15)


class Ledger:
    """The open orders of all groups.

    An instance that is still there a quarter of an hour after its removal may be removed again: the cloud can have
    given up. So may one that the cloud has not answered about.

    Args:
        clock: Time.
        doubt: Called with a group if nobody knows whether an order of it was carried out: it must be read again.
    """

    def __init__(self, clock: Clock, doubt: Callable[[str], None] = lambda _: None) -> None:
        self._clock, self._doubt = clock, doubt
        self._growing: dict[str, Instant] = {}
        self._resized: dict[str, Instant] = {}
        self._removed_at: dict[str, Duration] = {}
        self._unanswered: set[str] = set()
        self._shrunk: dict[str, tuple[int, frozenset[str]]] = {}

    # ── orders ──────────────────────────────────────────────────────────────────────────────────

    async def resize(self, group: str, delta: int, call: Awaitable[T]) -> T:
        """Return the answer of a call that changes a group's size by ``delta``, and note it. Raises its CloudError."""
        # An activity may have begun, and failed, before the cloud answers.
        asked_at = self._clock.now()
        try:
            answer = await self._answer(group, call)
        except CloudError as error:
            if error.may_be_done:
                self._note_size(group, delta, asked_at)
            raise
        self._note_size(group, delta, asked_at)
        if group in self._shrunk:
            size, removed = self._shrunk[group]
            self._shrunk[group] = size + delta, removed
        return answer

    async def remove(self, group: str, size: int, instances: Sequence[str], call: Awaitable[T]) -> T:
        """Return the answer of a call that removes instances of a group of that size, and note what it does, or may do.

        Raises its CloudError.
        """
        try:
            answer = await self._answer(group, call)
        except CloudError as error:
            if error.may_be_done:
                self._note_removal(group, size, instances, is_answered=False)
            raise
        self._note_removal(group, size, instances, is_answered=True)
        return answer

    async def _answer(self, group: str, call: Awaitable[T]) -> T:
        try:
            return await call
        except CloudError as error:
            if error.may_be_done:
                self._doubt(group)
            raise

    def _note_size(self, group: str, delta: int, asked_at: Instant) -> None:
        self._resized[group] = asked_at
        if delta > 0:
            self._growing[group] = asked_at

    def _note_removal(self, group: str, size: int, instances: Iterable[str], *, is_answered: bool) -> None:
        removed = frozenset(instances)
        others = frozenset(one for one in self._going(group) - removed if self._is_going(one))
        size = self.size_at_most(group, size, removed)
        self._shrunk[group] = size + len(others), others | removed
        self._removed_at |= dict.fromkeys(removed, self._clock.monotonic())
        self._unanswered = self._unanswered - removed if is_answered else self._unanswered | removed

    # ── what follows from them ──────────────────────────────────────────────────────────────────

    def size_at_most(self, group: str, listed: int, doomed: Iterable[str] = ()) -> int:
        """Return the largest size that a group may have now; it decides how far the group may shrink.

        The listed size may be older than the last removals, and some clouds lower it only when these are done.

        Args:
            group: The group.
            listed: Its size, as the cloud says.
            doomed: Instances that are now to be removed; they count as there.
        """
        if not self._going(group):
            return listed
        before, removed = self._shrunk[group]
        return min(listed, before - len(removed - {*doomed}))

    def growing_since(self, group: str) -> Instant | None:
        """Return when a group was last asked for more machines, answered or not; None once all were there."""
        return self._growing.get(group)

    def resized_at(self, group: str) -> Instant | None:
        """Return when a group was last asked for another size, answered or not; None for never. Removals are no resize."""
        return self._resized.get(group)

    def __contains__(self, instance: str) -> bool:
        """Return whether the cloud has agreed to remove an instance, which may be there still."""
        return instance not in self._unanswered and self._is_going(instance)

    # ── what has come of them ───────────────────────────────────────────────────────────────────

    def complete(self, group: str) -> None:
        """Note that all machines are there that a group was asked for."""
        self._growing.pop(group, None)

    def withdraw(self, group: str) -> None:
        """Note that a group was not made smaller after all."""
        self._shrunk.pop(group, None)

    def keep(self, listed: Iterable[str]) -> None:
        """Forget the removals of all instances but those that are still listed."""
        for one in self._removed_at.keys() - {*listed}:
            del self._removed_at[one]
            self._unanswered.discard(one)

    def _going(self, group: str) -> frozenset[str]:
        """Return the instances of a group that were removed and may be there still; if any is, all."""
        removed = self._shrunk.get(group, (0, frozenset[str]()))[1]
        if any(self._is_going(one) for one in removed):
            return removed
        self._shrunk.pop(group, None)
        return frozenset()

    def _is_going(self, instance: str) -> bool:
        at = self._removed_at.get(instance)
        return at is not None and self._clock.monotonic() - at < _REMOVAL_LASTS
