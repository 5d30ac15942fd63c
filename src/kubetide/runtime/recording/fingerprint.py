"""Whether a growing file is still the one that was read: a new run reuses the names of the last one."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO
from zlib import crc32

_SAMPLE = 1 << 12
"""Bytes at the beginning, and before the place up to which a file was read."""


class Fingerprint:
    """How far a file was read, and a checksum of that content.

    A file that has become shorter, or holds something else there, is that of another run. One that holds the same may be
    read on from that place, whoever wrote it.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._sum = 0

    def note(self, file: BinaryIO, offset: int) -> None:
        """Note that a file was read up to an offset."""
        self.offset, self._sum = offset, _checksum(file, offset)

    def is_in(self, path: Path) -> bool:
        """Return whether a file exists and still has the content that was read."""
        try:
            with path.open("rb") as file:
                return _checksum(file, self.offset) == self._sum
        except OSError:
            return False


def _checksum(file: BinaryIO, offset: int) -> int:
    """Return a checksum of the bytes at both ends of what was read; -1 where the file is shorter."""
    file.seek(0)
    begin = file.read(min(_SAMPLE, offset))
    file.seek(max(offset - _SAMPLE, 0))
    end = file.read(min(_SAMPLE, offset))
    if len(begin) < min(_SAMPLE, offset) or len(end) < min(_SAMPLE, offset):
        return -1
    return crc32(end, crc32(begin))
