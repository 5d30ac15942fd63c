"""What a person must hear of: usage that cannot be read, checkpoints that cannot be loaded, writes that fail again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubetide.units.time import Instant
from kubetide.vertical.recommender.controller.act import NO_TIME
from kubetide.vertical.recommender.decision import Failure, Outcomes
from kubetide.vertical.recommender.usage.checkpoints import UNLOADED

_MOST_NAMED = 3


class UsageHealth:
    """The health of the source of usage; it fails once two passes in a row had no sample from it."""

    name = "usage samples for the recommender"

    def __init__(self) -> None:
        self.last_error = ""
        self.failing_since: Instant | None = None
        self.problem = ""
        self._first: Instant | None = None

    def note(self, error: str, now: Instant, *, has_samples: bool) -> None:
        """Note what a pass had; ``error`` is what it lacked, empty for nothing."""
        if error:
            self.last_error = error
        if has_samples or not error:
            self.failing_since = self._first = None
        elif self._first is None:
            self._first, self.problem = now, error
        else:
            self.failing_since = self._first


class Notices:
    """Tells of checkpoints and writes, each kind of trouble once until it is over."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._failed: set[tuple[str, str, str]] = set()
        self._is_told = False

    def of_checkpoints(self, problems: Sequence[str]) -> None:
        """Tell of the checkpoints among these problems that could not be loaded: their containers begin without history."""
        broken = [one for one in problems if one.startswith(UNLOADED)]
        if broken:
            more = f", and {len(broken) - _MOST_NAMED} more" if len(broken) > _MOST_NAMED else ""
            self._warn(f"recommender: {'; '.join(broken[:_MOST_NAMED])}{more}. Usage is counted from now on")

    def of_writes(self, outcomes: Outcomes) -> None:
        """Tell of writes that failed in two passes in a row."""
        failures = {
            (one.kind, one.namespace, one.name): one for one in outcomes.failures if one.error != NO_TIME
        }
        again = sorted(self._failed & failures.keys())
        if again and not self._is_told:
            self._warn(_failing(failures[again[0]], len(again)))
        self._is_told = bool(failures) and (self._is_told or bool(again))
        self._failed = set(failures)


def _failing(first: Failure, count: int) -> str:
    more = f" (and {count - 1} more)" if count > 1 else ""
    place = f"{first.kind} of {first.namespace}/{first.name}"
    return (
        f"recommender: the {place}{more} failed in two passes: {first.error}; it is tried again in each pass"
    )
