"""What pieces of messages say, by their bytes: what many objects bear is read once and is one object in memory.

Pods of one owner have most of their labels, resources, tolerations, volumes and times in common, byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import TypeVar

T = TypeVar("T")

ABSENT = b"\xff"
"""Stands for a piece that is not there. It is no piece: no text, and no message, begins with it."""

_MOST = 8_192
_LONGEST = 1_024


class Shared(dict[bytes, T]):
    """What was read last, by the bytes that it was read from; ``shared[piece]`` reads what is not there yet.

    It holds pieces of up to 1 KiB, and begins anew after 8,192 of them.

    Args:
        read: Reads a piece. What it gives is shared by many objects, so nobody may change it.
    """

    def __init__(self, read: Callable[[bytes], T]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, piece: bytes) -> T:
        found = self._read(piece)
        if len(piece) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[piece] = found
        return found


def read_text(piece: bytes) -> str | None:
    """Gives a text, None for ABSENT. Raises UnicodeDecodeError."""
    return None if piece == ABSENT else intern(piece.decode())
