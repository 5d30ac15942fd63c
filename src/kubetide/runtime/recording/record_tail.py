"""Reads decision records while a run writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubetide.explain.records import Record
from kubetide.runtime.recording.fingerprint import Fingerprint
from kubetide.runtime.recording.records import RecordError, checked_header, is_end, segments


class RecordTail:
    """Reads the records of one loop as they are written, each once.

    Segments that the writer took away before they were read are passed over.
    """

    def __init__(self, folder: Path, loop: str) -> None:
        self._folder = folder
        self._loop = loop
        self._decoder = msgspec.json.Decoder(Record)
        self._segment: Path | None = None
        self._offset = 0
        self._before = Fingerprint()

    def skip_to(self, segment: Path, offset: int) -> None:
        """Skip what was read otherwise: up to a record's end in a segment."""
        self._segment, self._offset = segment, offset
        with segment.open("rb") as file:
            self._before.note(file, offset)

    def is_of_another_run(self) -> bool:
        """Return whether the files belong to a new run in the folder, not to the one that was read.

        Raises RecordError where there are none.
        """
        there = segments(self._folder, self._loop)
        if self._segment is None:
            return False
        if self._segment in there:
            return not self._before.is_in(self._segment)
        # The writer takes the oldest away; that of the newest one is the work of a new run.
        return there[-1].name < self._segment.name

    def read(self) -> Iterator[Record]:
        """Yield the records since the last call. Raises RecordError naming the file."""
        for path in segments(self._folder, self._loop):
            if self._segment is not None and path.name < self._segment.name:
                continue
            if path != self._segment:
                self._segment, self._offset = path, 0
            with path.open("rb") as file:
                yield from self._lines(path, file)
                self._before.note(file, self._offset)

    def _lines(self, path: Path, file: BinaryIO) -> Iterator[Record]:
        if self._offset == 0:
            header = file.readline()
            if not header.endswith(b"\n"):
                return
            checked_header(path, header)
            self._offset = len(header)
        file.seek(self._offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            self._offset += len(line)
            if is_end(line):
                return
            try:
                yield self._decoder.decode(line)
            except msgspec.DecodeError as error:
                raise RecordError(
                    f"{path.name} byte {self._offset}: not a decision record: {error}"
                ) from error
