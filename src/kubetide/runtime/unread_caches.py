"""What is said of caches that cannot be read, and of those that can be read again: a line a cause, not a line a kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_NAMED: Final = 3
"""Kinds that a line names."""
_REQUEST: Final = re.compile(r"[A-Z]+ https?://\S+: ")
"""Which request failed, which is another one for each kind."""


class UnreadCaches:
    """Remembers what was said, so that each cause and its end are said once."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def sentences(self, errors: Iterable[tuple[str, str]]) -> list[str]:
        """Return what is new of the caches, given each kind's name with why it cannot be read, or with nothing."""
        begun: dict[str, dict[str, str]] = {}
        ended = []
        for kind, error in errors:
            cause = _REQUEST.sub("", error, count=1)
            if cause == self._told.get(kind, ""):
                continue
            self._told[kind] = cause
            if cause:
                begun.setdefault(cause, {})[kind] = error
            else:
                ended.append(kind)
        # The error of one kind alone says also which request it was.
        found = [
            f"cannot read {_some(list(kinds))}: {cause if len(kinds) > 1 else next(iter(kinds.values()))}"
            for cause, kinds in begun.items()
        ]
        return found + ([f"{_some(ended)} can be read again"] if ended else [])


def _some(kinds: list[str]) -> str:
    if len(kinds) > _NAMED + 1:
        return f"{', '.join(kinds[:_NAMED])} and {len(kinds) - _NAMED} more kinds"
    *first, last = kinds
    return f"{', '.join(first)} and {last}" if first else last
