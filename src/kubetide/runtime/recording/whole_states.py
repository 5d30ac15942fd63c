"""When a record holds the whole state: replays for answers begin there."""

from __future__ import annotations

_LEAST = 24
_DELTAS = 8


class WholeStates:
    """Counts the records of a segment since the last whole state, and their size.

    A whole state comes after ``every`` records; and after 24 already where these together have eight times its size, so
    that it adds little to them, and whoever explains decides fewer ticks again.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._since = 0
        self._full_bytes = self._delta_bytes = 0

    @property
    def is_due(self) -> bool:
        """Whether the next record must hold the whole state."""
        if self._since >= self._every:
            return True
        return self._since >= _LEAST and self._delta_bytes >= _DELTAS * self._full_bytes

    def count(self, size: int, *, full: bool) -> None:
        """Count a written record."""
        if full:
            self._since, self._full_bytes, self._delta_bytes = 1, size, 0
        else:
            self._since += 1
            self._delta_bytes += size
