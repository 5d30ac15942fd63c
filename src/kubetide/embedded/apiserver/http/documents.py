"""What the server publishes of itself, discovery and OpenAPI, encoded once for as long as it serves the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from kubetide.embedded.apiserver.http.discovery import Entry
from kubetide.objects.kinds import Kind


class Documents:
    """Encoded answers by what was asked, forgotten when the kinds or the metrics that are served change.

    Kinds are compared by identity: a definition that changes makes new ones, though they may be equal.
    """

    def __init__(self) -> None:
        self._kinds: tuple[Kind[Any], ...] = ()
        self._entries: list[Entry] = []
        self._made: dict[Hashable, bytes] = {}

    def renew(self, kinds: tuple[Kind[Any], ...], entries: Sequence[Entry]) -> None:
        """Say what is served now."""
        same = len(kinds) == len(self._kinds) and all(
            one is other for one, other in zip(kinds, self._kinds, strict=True)
        )
        if not same or list(entries) != self._entries:
            self._kinds, self._entries = kinds, list(entries)
            self._made.clear()

    def get(self, asked: Hashable, make: Callable[[], bytes | None]) -> bytes | None:
        """Return the answer, made when it is first asked for; None where there is none.

        What is not there is not cached, so that nobody fills the memory by asking for it.
        """
        found = self._made.get(asked)
        if found is None:
            found = make()
            if found is not None:
                self._made[asked] = found
        return found
