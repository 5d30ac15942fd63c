"""The pages of a cloud's list: a list that never ends, or ends too early, is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from typing import TypeVar

from kubetide.ports.errors import CloudError

T = TypeVar("T")
List = TypeVar("List", bound=Sized)


class PageTokens:
    """The tokens of a list's next pages: each must be new, else the list would never end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: set[str] = set()

    def check(self, token: str) -> None:
        """Note the token of the next page. Raises CloudError for one that the list had before."""
        if token in self._seen:
            raise CloudError(f"{self._what}: the list has no end: the page {token[:100]!r} came before")
        self._seen.add(token)


def known_total(total: int | None, what: str) -> int:
    """Return how long a list says that it is. Raises CloudError where it does not: more may follow."""
    if total is None:
        raise CloudError(f"the list of {what} does not say how long it is")
    return total


def check_whole(found: List, total: int | None, what: str) -> List:
    """Return a list that is as long as it says. Raises CloudError: what it leaves out must not count as gone."""
    if len(found) < known_total(total, what):
        raise CloudError(f"the list of {what} ends after {len(found)} of {total}")
    return found


def each_once(found: Iterable[T], id_of: Callable[[T], str]) -> list[T]:
    """Return the entries in order, of those with the same id the last; those without an id all."""
    return list({id_of(one) or number: one for number, one in enumerate(found)}.values())
