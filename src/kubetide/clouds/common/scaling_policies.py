"""What of a cloud changes the sizes of node groups by itself: what is alike in all providers that can say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kubetide.ports.errors import CloudError


def by_group(found: Iterable[tuple[str, str]], problems: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what changes the sizes of groups, by group, both ordered.

    Args:
        found: Ids of groups, and what changes their sizes.
        problems: Why other entries of the cloud's lists cannot be read.

    Raises:
        CloudError: With the first problem, unless something is found, which it must not hide.
    """
    texts: dict[str, list[str]] = {}
    for group, text in sorted(found):
        texts.setdefault(group, []).append(text)
    if not texts:
        for problem in problems:
            raise CloudError(problem)
    return {group: tuple(each) for group, each in texts.items()}


@contextmanager
def needs_right(right: str) -> Iterator[None]:
    """Within this context a refusal for lack of permission names the right that is to be allowed."""
    try:
        yield
    except CloudError as error:
        if error.cause != "Permission":
            raise
        raise CloudError(f"{error}; allow {right}", error_code=error.error_code, cause=error.cause) from error
