"""What pieces of messages say, by their bytes: what many objects bear is read once and is one object in memory.

Pods of one owner have most of their labels, resources, tolerations, volumes and times in common, byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import TypeVar

Pieces = tuple[bytes, ...]

K = TypeVar("K", bound=bytes | Pieces)
T = TypeVar("T")

ABSENT = b"\xff"
"""Stands for a piece that is not there. It is no piece: no text, and no message, begins with it."""

_MOST = 8_192
_MOST_WHOLE = 1_024
_LONGEST = 1_024


class Shared(dict[K, T]):
    """What was read last, by the bytes that it was read from; ``shared[piece]`` reads what is not there yet.

    It holds pieces of up to 1 KiB, and begins anew after so many of them.

    Args:
        read: Reads a piece. What it gives is shared by many objects, so nobody may change it.
        length: Gives the bytes of a piece.
        most: How many pieces are held.
    """

    def __init__(
        self, read: Callable[[K], T], *, length: Callable[[K], int] = len, most: int = _MOST
    ) -> None:
        super().__init__()
        self._read = read
        self._length = length
        self._most = most

    def __missing__(self, piece: K) -> T:
        found = self._read(piece)
        if self._length(piece) <= _LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[piece] = found
        return found


def shared_whole(read: Callable[[Pieces], T]) -> Shared[Pieces, T]:
    """Return what holds lists and maps: ``shared[tuple(pieces)]``."""
    return Shared(read, length=lambda pieces: sum(map(len, pieces)), most=_MOST_WHOLE)


def read_text(piece: bytes) -> str | None:
    """Return a text, None for ABSENT. Raises UnicodeDecodeError."""
    return None if piece == ABSENT else intern(piece.decode())
