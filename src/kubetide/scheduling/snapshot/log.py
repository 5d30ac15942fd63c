"""The change log of a snapshot: its version, and how to undo each change since a fork."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubetide.scheduling.snapshot.lineage import Lineage

_Mark = tuple[int, int, Lineage]
"""Length of the log, version and lineage at a fork. A plain tuple: forks are made by the thousand."""


class ChangeLog:
    """Forks and reverts. Every change of the snapshot records how to undo it.

    Attributes:
        version: Another number after every change; after ``revert`` the number of before the fork.
        lineage: How the nodes came to be what they are; after ``revert`` that of before the fork.
    """

    __slots__ = ("_log", "_marks", "_stamps", "lineage", "version")

    def __init__(self) -> None:
        self.version = 0
        self.lineage = Lineage(0, ())
        self._stamps = 0
        self._log: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._marks: list[_Mark] = []

    @property
    def is_forked(self) -> bool:
        """Whether there is a fork that was neither reverted nor committed."""
        return bool(self._marks)

    def fork(self) -> None:
        """Begin a fork; forks nest."""
        self._marks.append((len(self._log), self.version, self.lineage))

    def revert(self) -> None:
        """Undo everything since the last fork. Raises RuntimeError without one."""
        if not self._marks:
            raise RuntimeError(
                "revert without fork: call Snapshot.fork() before changing what is to be undone"
            )
        length, version, lineage = self._marks.pop()
        log = self._log
        while len(log) > length:
            undo, arguments = log.pop()
            undo(*arguments)
        self.version = version
        self.lineage = lineage

    def commit(self) -> None:
        """Keep everything since the last fork. Raises RuntimeError without one."""
        if not self._marks:
            raise RuntimeError("commit without fork: call Snapshot.fork() first")
        self._marks.pop()
        if not self._marks:
            self._log.clear()

    def check_no_fork(self, what: str) -> None:
        """Raise RuntimeError, which names the caller, if there is a fork."""
        if self._marks:
            raise RuntimeError(
                f"{what} on a fork: facts cannot be tried out, set them before Snapshot.fork()"
            )

    def stamp(self) -> int:
        """Return a number that was never used: versions of reverted forks are not reused."""
        self._stamps += 1
        return self._stamps

    def touch(self) -> None:
        """Note a change: the version becomes another number."""
        self._stamps += 1
        self.version = self._stamps

    def record(self, undo: Callable[..., None], *arguments: Any) -> None:
        """Record how to undo a change; ignored without a fork."""
        if self._marks:
            self._log.append((undo, arguments))
