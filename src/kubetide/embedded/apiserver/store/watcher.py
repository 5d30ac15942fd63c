"""One open watch: a backlog that is handed over whole, and a flag that says there is one."""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from kubetide.embedded.apiserver.store.revision import Change, Revision
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.wake import Wake
from kubetide.ports.cluster import EventType
from kubetide.ports.errors import ApiError, Expired


class Entry(msgspec.Struct, frozen=True):
    """An event as the store hands it over; a bookmark has no revision."""

    type: EventType
    revision: Revision | None
    version: int


class Watcher:
    """Changes of one kind that match a selection, in order, from the moment it was opened."""

    __slots__ = (
        "_backlog",
        "_limit",
        "_on_close",
        "_show",
        "_spare",
        "_wake",
        "closed",
        "error",
        "selection",
    )

    def __init__(self, selection: Selection, limit: int, on_close: Callable[[Watcher], None]) -> None:
        self.selection = selection
        self.closed = False
        self.error: ApiError | None = None
        """Why the store closed it; None when it merely ended."""
        self._backlog: list[Entry] = []
        self._spare = limit
        self._limit = sys.maxsize
        self._on_close = on_close
        self._show: Callable[[Revision], Revision] | None = None
        self._wake = Wake()

    def offer(self, change: Change) -> None:
        """Take in a change, as the selection sees it: by whether the old and the new state match."""
        selection = self.selection
        if selection.namespace and change.last.key[0] != selection.namespace:
            return
        old, new = change.old, change.new
        if not selection.everything:
            old = old if old is not None and selection.matches(old) else None
            new = new if new is not None and selection.matches(new) else None
            if old is None and new is None:
                return
        kind: EventType = "ADDED" if old is None else "DELETED" if new is None else "MODIFIED"
        self._push(Entry(kind, change.last, change.last.version))

    def show(self, revision: Revision, version: int) -> None:
        """Take in an object that was there before the watch began, as an ADDED event at ``version``."""
        self._push(Entry("ADDED", revision, version))

    def opened(self) -> None:
        """Begin to count what is left unread: what a watch begins with may be long."""
        self._limit = self._spare + len(self._backlog)

    def bookmark(self, version: int) -> None:
        """Say that everything up to ``version`` has been handed over, unless something waits to be read."""
        if not self._backlog:
            self._push(Entry("BOOKMARK", None, version))

    def take(self) -> list[Entry]:
        """Return what has come since the last call."""
        backlog, self._backlog = self._backlog, []
        self._limit = self._spare
        show = self._show
        if show is None:
            return backlog
        return [
            entry if entry.revision is None else replace(entry, revision=show(entry.revision))
            for entry in backlog
        ]

    def show_as(self, show: Callable[[Revision], Revision]) -> None:
        """Hand every object over as ``show`` gives it, as another version of its kind does."""
        self._show = show

    async def wait(self) -> None:
        """Return when there is something to take or the watch is closed."""
        if self._backlog or self.closed:
            return
        self._wake.clear()
        await self._wake.wait()

    def close(self, error: ApiError | None = None) -> None:
        """End the watch; what is in the backlog can still be taken."""
        if self.closed:
            return
        self.closed, self.error = True, error
        self._on_close(self)
        self._wake.set()

    def _push(self, entry: Entry) -> None:
        self._backlog.append(entry)
        if len(self._backlog) > self._limit:
            # A reader that has stopped must not pin every revision there ever was.
            self._backlog.clear()
            self.close(Expired(f"the watch fell more than {self._spare} events behind: list again"))
            return
        self._wake.set()
