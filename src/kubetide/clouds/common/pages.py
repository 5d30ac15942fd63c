"""The pages of a cloud's list: a list that never ends is an error."""

from __future__ import annotations

from kubetide.ports.errors import CloudError


class Pages:
    """The marks of a list's next pages: each must be new, else the list would never end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: set[str] = set()

    def check(self, mark: str) -> None:
        """Note the mark of the next page. Raises CloudError for one that the list had before."""
        if mark in self._seen:
            raise CloudError(f"{self._what}: the list has no end: the page {mark[:100]!r} came before")
        self._seen.add(mark)
