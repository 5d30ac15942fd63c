"""Bounds on what is read of a server: an answer that never ends must not take the process with it.

Bytes are counted as they come out of decompression. What would be more than the bound is not read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from kubetide.ports.errors import InternalError
from kubetide.units.quantity import bytes_to_text

LONGEST_LINE = 16 << 20
"""Bytes of one event of a watch; etcd stores no object of over 1.5 MiB unless its flags allow it."""

ERROR_BYTES = 1 << 20
"""Bytes that are read of a refusal; a Status is a few hundred."""


class Content(Protocol):
    """The body of an answer."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Return the bytes as they come."""
        ...


class TooMuch(Exception):
    """There are more bytes than the bound allows; ``begun`` are those that were read."""

    def __init__(self, begun: bytes) -> None:
        super().__init__()
        self.begun = begun


async def read_bounded(content: Content, most: int) -> bytes:
    """Return a body of so many bytes at most. Raises: TooMuch; what the connection raises."""
    pieces: list[bytes] = []
    length = 0
    async for piece in content.iter_any():
        length += len(piece)
        if length > most:
            raise TooMuch(b"".join(pieces))
        pieces.append(piece)
    return b"".join(pieces)


class Cut(Protocol):
    """Cuts a stream into events."""

    def take(self, piece: bytes) -> Sequence[bytes]:
        """Take the next bytes; return the events that end in them. Raises: InternalError for one that is too long."""
        ...


class Frames:
    """Cuts a stream by a function of what is left and what comes, which has a bound of its own."""

    def __init__(self, cut: Callable[[bytes, bytes], tuple[Sequence[bytes], bytes]]) -> None:
        self._cut = cut
        self._rest = b""

    def take(self, piece: bytes) -> Sequence[bytes]:
        """Take the next bytes; return the frames that end in them."""
        frames, self._rest = self._cut(self._rest, piece)
        return frames


class Lines:
    """Cuts a stream into whole lines.

    Args:
        about: What is read, for the error.
        longest: Bytes of a line.
    """

    def __init__(self, about: str, longest: int = LONGEST_LINE) -> None:
        self._about = about
        self._longest = longest
        self._begun: list[bytes] = []
        self._length = 0

    def take(self, piece: bytes) -> Sequence[bytes]:
        """Take the next bytes; return the lines that end in them, those that are empty left out.

        Raises: InternalError for a line that does not end.
        """
        first, *more = piece.split(b"\n")
        self._begun.append(first)
        self._length += len(first)
        if self._length > self._longest:
            raise InternalError(
                f"an event of the watch of {self._about} is longer than {bytes_to_text(self._longest)} and is not read; "
                "find the object that is so large, and make it smaller"
            )
        if not more:
            return ()
        lines = [b"".join(self._begun), *more[:-1]]
        self._begun, self._length = [more[-1]], len(more[-1])
        return [line for line in lines if line]
