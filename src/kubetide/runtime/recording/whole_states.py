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

    def segment_size(self, usual: int) -> int:
        """Return the size that a segment should have at most: twice that of a whole state that fills most of ``usual``."""
        return usual if self._is_small(usual) else 2 * self._full_bytes

    def ends_segment(self, size: int, usual: int) -> bool:
        """Return whether the next whole state begins a segment; ``size`` is that of the present one."""
        return size >= usual or not self._is_small(usual)

    def is_outgrown(self, size: int, usual: int) -> bool:
        """Return whether a segment of this size is large enough for the next to begin, with a whole state.

        Else every record would be a whole state where one alone is as large as a segment.
        """
        return size >= usual and (self._is_small(usual) or self._delta_bytes >= self._full_bytes)

    def _is_small(self, usual: int) -> bool:
        return 2 * self._full_bytes <= usual

    def count(self, size: int, *, full: bool) -> None:
        """Count a written record."""
        if full:
            self._since, self._full_bytes, self._delta_bytes = 1, size, 0
        else:
            self._since += 1
            self._delta_bytes += size
