"""The log of a snapshot: what was changed since a fork, so that it can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubetide.scheduling.snapshot.verdicts import Lineage


class _Mark(NamedTuple):
    log_length: int
    version: int
    lineage: Lineage


class SnapshotLog:
    """Forks, and how each change since then is undone.

    Attributes:
        version: Another number after every change; after ``revert`` the number of before the fork.
    """

    def __init__(self) -> None:
        self.version = 0
        self._lineage = Lineage(0, ())
        self._stamps = 0
        self._log: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._marks: list[_Mark] = []

    def fork(self) -> None:
        """Starts trying out; forks nest."""
        self._marks.append(_Mark(len(self._log), self.version, self._lineage))

    def revert(self) -> None:
        """Undoes everything since the last fork. Raises RuntimeError without one."""
        if not self._marks:
            raise RuntimeError(
                "revert without fork: call Snapshot.fork() before changing what is to be undone"
            )
        mark = self._marks.pop()
        log = self._log
        while len(log) > mark.log_length:
            undo, arguments = log.pop()
            undo(*arguments)
        self.version = mark.version
        self._lineage = mark.lineage

    def commit(self) -> None:
        """Keeps everything since the last fork. Raises RuntimeError without one."""
        if not self._marks:
            raise RuntimeError("commit without fork: call Snapshot.fork() first")
        self._marks.pop()
        if not self._marks:
            self._log.clear()

    def _check_no_fork(self, what: str) -> None:
        if self._marks:
            raise RuntimeError(
                f"{what} on a fork: facts cannot be tried out, set them before Snapshot.fork()"
            )

    def _stamp(self) -> int:
        """A number that was never used: versions of forks that were reverted do not come back."""
        self._stamps += 1
        return self._stamps

    def _record(self, undo: Callable[..., None], *arguments: Any) -> None:
        if self._marks:
            self._log.append((undo, arguments))
