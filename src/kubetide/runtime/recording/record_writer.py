"""Writes decision records: JSON Lines, one file per loop and segment, mode 0600, capped in size.

Of a live run each record is in its file when it is written; in virtual time, where thousands come in a second, some are
held and written together, always whole lines, and each before its line in the index. A disk that fails never stops a
loop: the writer says so once, drops, and begins a new segment when writing works again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubetide.explain.records import SCHEMA, Record
from kubetide.ports.plugins import Plugin
from kubetide.runtime.recording.index_lines import IndexWriter, drop_beside
from kubetide.runtime.recording.records import (
    SEGMENTS,
    End,
    Header,
    RecordError,
    files_of,
    number_of,
    origin_of,
)
from kubetide.runtime.recording.whole_states import WholeStates
from kubetide.units.steps import Steps, finish

FULL_EVERY = 360
"""Records between two whole states at most: an hour of node ticks, an hour and a half of HPA ticks."""

MAX_BYTES = 4 << 30
"""Cap on the size of all segments of one loop together."""

_SEGMENTS_KEPT = 8
_MOST_SEGMENTS = 1000
"""However small they are: a process that is started again and again begins one each time."""

_encoder = msgspec.json.Encoder()

_PLACE = b'"state":null'
"""Stands for a state that comes in pieces; what a record says before it, its loop and its time, cannot hold it."""


class RecordWriter:
    """Writes records under ``folder/records``; implements ``explain.records.Recorder``.

    Args:
        folder: Where a run puts what it makes.
        warn: Called with one sentence when writing fails and when it works again.
        max_bytes: Cap on the size of all segments of one loop together.
        full_every: Records between two whole states at most.
        at_once: Whether each record is written by itself.
    """

    def __init__(
        self,
        folder: Path,
        *,
        warn: Callable[[str], None],
        max_bytes: int = MAX_BYTES,
        full_every: int = FULL_EVERY,
        at_once: bool = True,
    ) -> None:
        self._folder = folder / "records"
        self._at_once = at_once
        self._warn = warn
        self._max_bytes = max_bytes
        self._segment_bytes = max(1, max_bytes // _SEGMENTS_KEPT)
        self._origin = ""
        self._plugins: tuple[Plugin, ...] = ()
        self._full_every = full_every
        self._loops: dict[str, _Segment] = {}
        self._broken = False
        self.dropped = 0
        """Records that could not be written."""

    def start(self, origin: str = "", plugins: Sequence[Plugin] = ()) -> None:
        """Create the folder, and delete the records of an earlier run unless this one continues it.

        Args:
            origin: What is recorded; segments that name the same one stay. With an empty one none do.
            plugins: Of other packages, that take part.
        Raises: RecordError if it cannot.
        """
        self._origin = origin
        self._plugins = tuple(plugins)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for old in sorted(self._folder.glob(SEGMENTS)):
                if not (origin and origin_of(old) == origin):
                    old.unlink()
                    drop_beside(old)
        except OSError as error:
            raise RecordError(
                f"cannot write records under {self._folder}: {error.strerror}; choose another folder with --out"
            ) from error

    def wants_full(self, loop: str) -> bool:
        """Return whether the next record of the loop must hold the whole state."""
        segment = self._loops.get(loop)
        return (
            segment is None
            or segment.file < 0
            or segment.states.is_due
            or segment.states.is_outgrown(segment.size, self._segment_bytes)
        )

    def write(self, record: Record) -> None:
        """Append one record; never raises."""
        finish(self._write(record, None))

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:
        """Append one record with a large state; never raises. Pauses after each piece."""
        return self._write(record, state)

    def _write(self, record: Record, state: Iterable[bytes] | None) -> Steps[None]:
        try:
            yield from self._append(record, state)
        except OSError as error:
            # What follows makes no sense without this record: wait for the next whole state.
            segment = self._loops[record.loop]
            self.dropped += segment.give_up()
            if not self._broken:
                self._broken = True
                self._warn(
                    f"decision records cannot be written: {self._folder}: {error.strerror}; "
                    "free space there or choose another folder with --out"
                )
        else:
            if self._broken and record.full:
                self._broken = False
                self._warn(f"decision records are written again ({self.dropped} lost)")

    def close(self) -> None:
        """End the records of each loop and close the files; never raises."""
        for segment in self._loops.values():
            try:
                segment.end()
            except OSError as error:
                self._warn(f"decision records end without their last line: {self._folder}: {error.strerror}")
            self.dropped += segment.give_up()

    def _append(self, record: Record, state: Iterable[bytes] | None) -> Steps[None]:
        segment = self._loops.get(record.loop)
        if segment is None:
            segment = self._loops[record.loop] = _Segment(
                self._folder,
                record.loop,
                self._origin,
                self._plugins,
                self._full_every,
                at_once=self._at_once,
            )
        states, usual = segment.states, self._segment_bytes
        if segment.file < 0 or (record.full and states.ends_segment(segment.size, usual)):
            if not record.full:
                self.dropped += 1
                return
            segment.unwritten += 1
            segment.open_next(self._max_bytes - states.segment_size(usual))
        else:
            segment.unwritten += 1
        offset = segment.size
        plain = replace(record, figures=()) if record.figures else record
        if state is None:
            segment.hold(plain)
            if self._at_once:
                segment.write()
        else:
            yield from segment.writing(_pieces(plain, state))
        length = segment.size - offset
        segment.index.add(record, offset, length)
        segment.records += 1
        segment.states.count(length, full=record.full)
        if segment.index.is_due(record):
            segment.write()
            segment.index.write()


def _pieces(record: Record, state: Iterable[bytes]) -> Iterator[bytes]:
    begin, _, rest = _encoder.encode(replace(record, state=msgspec.Raw(b"null"))).partition(_PLACE)
    yield begin + _PLACE.removesuffix(b"null")
    yield from state
    yield rest + b"\n"


class _Segment:
    """The file that a loop writes at present."""

    def __init__(
        self,
        folder: Path,
        loop: str,
        origin: str,
        plugins: tuple[Plugin, ...],
        full_every: int,
        *,
        at_once: bool,
    ) -> None:
        self._at_once = at_once
        self._folder = folder
        self._loop = loop
        self._origin = origin
        self._plugins = plugins
        self.file = -1
        self.index: IndexWriter
        self.records = self.unwritten = 0
        """All of the segment, and those that are not in the file yet."""
        self.states = WholeStates(full_every)
        self._written = 0
        self._held = bytearray()

    @property
    def size(self) -> int:
        """The size of the file, once all is written."""
        return self._written + len(self._held)

    def open_next(self, most_before: int) -> None:
        """Begin the next segment; of those before it so many bytes stay, the newest."""
        if self.file >= 0:
            self.write()
        self.close()
        there = files_of(self._folder, self._loop)
        number = number_of(there[-1]) + 1 if there else 1
        _delete_oldest(there, most_before)
        path = self._folder / f"{self._loop}-{number:04d}.jsonl"
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._written = self.records = 0
        header = Header(SCHEMA, self._loop, number, self._origin, self._plugins)
        try:
            finish(self._put((msgspec.json.encode(header) + b"\n",)))
        except OSError:
            os.close(self.file)  # there is no index yet
            self.file = -1
            path.unlink(missing_ok=True)
            raise
        self.index = IndexWriter(path, at_once=self._at_once)

    def hold(self, record: Record) -> None:
        """Take a record, to be written with others."""
        _encoder.encode_into(record, self._held, len(self._held))
        self._held += b"\n"

    def write(self) -> None:
        """Write what is held."""
        finish(self.writing(()))

    def writing(self, line: Iterable[bytes]) -> Steps[None]:
        """Write what is held, and a line that comes in pieces, with a pause after each."""
        held, self._held = self._held, bytearray()
        try:
            yield from self._put((held,))
            yield from self._put(line)
        except OSError:
            self.index.forget(self._written)
            raise
        self.unwritten = 0

    def _put(self, pieces: Iterable[bytes | bytearray]) -> Steps[None]:
        """Write lines, all or none."""
        start = self._written
        try:
            for piece in pieces:
                rest: bytes | bytearray | memoryview = piece
                while rest:
                    written = os.write(self.file, rest)
                    rest = memoryview(rest)[written:] if written < len(rest) else b""
                    self._written += written
                yield
        except BaseException:
            # A torn line would make the segment unreadable.
            os.ftruncate(self.file, start)
            self._written = start
            raise

    def end(self) -> None:
        """Write what is held, and the last line, where a segment is open."""
        if self.file >= 0:
            self.write()
            finish(self._put((msgspec.json.encode(End(self.records)) + b"\n",)))

    def give_up(self) -> int:
        """Close after a failure, and return how many records are lost."""
        lost, self.unwritten = self.unwritten, 0
        self._held.clear()
        self.close()
        return lost

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
            self.index.close()


def _delete_oldest(there: Sequence[Path], most: int) -> None:
    """Delete the oldest of these files, until those that stay have so many bytes at most."""
    sizes = [path.stat().st_size for path in there]
    total = sum(sizes)
    for number, (path, size) in enumerate(zip(there, sizes, strict=True)):
        if total <= most and len(there) - number < _MOST_SEGMENTS:
            return
        path.unlink(missing_ok=True)
        drop_beside(path)
        total -= size
