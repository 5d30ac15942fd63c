"""Decision records on disk: JSON Lines, one file per loop and segment, mode 0600, capped in size.

``records/nodes-0001.jsonl`` and so on. Each segment starts with a record that holds the whole
state, so that any segment can be replayed by itself; the oldest go when the cap is passed. A disk
that fails never stops a loop: the writer says so once, drops, and begins a new segment when
writing works again. The last line of a process that ended cleanly is ``{"end":N}``, N the records of
its segment: without it the process is still going on, or was cut. A process may go on behind the
segments of an earlier one that recorded the same thing; its ticks count from 1 again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubetide.explain.records import SCHEMA, Record
from kubetide.ports.errors import KubetideError
from kubetide.ports.plugins import Plugin
from kubetide.runtime.recording.index_lines import IndexWriter, drop_beside
from kubetide.runtime.recording.whole_states import WholeStates

FULL_EVERY = 360
"""Records between two whole states at most: an hour of node ticks, an hour and a half of HPA ticks."""

MAX_BYTES = 4 << 30
"""Cap on the size of all segments of one loop together."""

_SEGMENTS = "*-[0-9]*.jsonl"
_SEGMENTS_KEPT = 8
_MOST_SEGMENTS = 1000
"""However small they are: a process that is started again and again begins one each time."""
_END = re.compile(rb'\{"end":\d+\}\n')
_TAIL = 64
"""Bytes that hold the line before last's end and any last line ``{"end":N}``."""

_encoder = msgspec.json.Encoder()

_PLACE = b'"state":null'
"""Stands for a state that comes in pieces; what a record says before it, its loop and its time, cannot hold it."""


class RecordError(KubetideError):
    """A record folder or a line in it cannot be read."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line of each segment."""

    schema: str
    loop: str
    segment: int
    origin: str = ""
    """What was recorded, where another process may go on behind it; empty for a run that is by itself."""
    plugins: tuple[Plugin, ...] = ()
    """What other packages put into the run, by name and version; those that decide must be there for a replay."""


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line of a run's last segment."""

    end: int


class Ending(Enum):
    """How the records of a loop end."""

    WHOLE = "whole"
    OPEN = "open"
    """Without the last line of a run that ended cleanly."""
    TORN = "torn"
    """Within a line."""


class RecordWriter:
    """Writes records under ``folder/records``; implements ``explain.records.Recorder``.

    Args:
        folder: Where a run puts what it makes.
        warn: Called with one sentence when writing fails and when it works again.
        max_bytes: Cap on the size of all segments of one loop together.
        full_every: Records between two whole states at most.
    """

    def __init__(
        self,
        folder: Path,
        *,
        warn: Callable[[str], None],
        max_bytes: int = MAX_BYTES,
        full_every: int = FULL_EVERY,
    ) -> None:
        self._folder = folder / "records"
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
            for old in sorted(self._folder.glob(_SEGMENTS)):
                if not (origin and _origin_of(old) == origin):
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
            or segment.bytes >= self._segment_bytes
        )

    def write(self, record: Record, state: Iterable[bytes] | None = None) -> None:
        """Append one record; never raises."""
        try:
            self._append(record, state)
        except OSError as error:
            self.dropped += 1
            # What follows makes no sense without this record: wait for the next whole state.
            segment = self._loops.get(record.loop)
            if segment is not None:
                segment.close()
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
            segment.close()

    def _append(self, record: Record, state: Iterable[bytes] | None) -> None:
        segment = self._loops.get(record.loop)
        if segment is None:
            segment = self._loops[record.loop] = _Segment(
                self._folder, record.loop, self._origin, self._plugins, self._full_every
            )
        if segment.file < 0 or (record.full and segment.bytes >= self._segment_bytes):
            if not record.full:
                self.dropped += 1
                return
            segment.open_next(self._max_bytes - self._segment_bytes)
        offset = segment.bytes
        segment.write(_line(replace(record, figures=()) if record.figures else record, state))
        segment.index.add(record, offset, segment.bytes - offset)
        segment.records += 1
        segment.states.count(segment.bytes - offset, full=record.full)


def _line(record: Record, state: Iterable[bytes] | None) -> Iterator[bytes | bytearray]:
    if state is None:
        # In place: the line of a whole state has tens of megabytes.
        line = bytearray()
        _encoder.encode_into(record, line)
        line += b"\n"
        yield line
        return
    begin, _, rest = _encoder.encode(replace(record, state=msgspec.Raw(b"null"))).partition(_PLACE)
    yield begin + _PLACE.removesuffix(b"null")
    yield from state
    yield rest + b"\n"


class _Segment:
    """The file that a loop writes at present."""

    def __init__(
        self, folder: Path, loop: str, origin: str, plugins: tuple[Plugin, ...], full_every: int
    ) -> None:
        self._folder = folder
        self._loop = loop
        self._origin = origin
        self._plugins = plugins
        self.file = -1
        self.index: IndexWriter
        self.bytes = self.records = 0
        self.states = WholeStates(full_every)

    def open_next(self, most_before: int) -> None:
        """Begin the next segment; of those before it so many bytes stay, the newest."""
        self.close()
        there = _files(self._folder, self._loop)
        number = _number_of(there[-1]) + 1 if there else 1
        _delete_oldest(there, most_before)
        path = self._folder / f"{self._loop}-{number:04d}.jsonl"
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self.bytes = self.records = 0
        header = Header(SCHEMA, self._loop, number, self._origin, self._plugins)
        try:
            self.write((msgspec.json.encode(header) + b"\n",))
        except OSError:
            os.close(self.file)  # there is no index yet
            self.file = -1
            path.unlink(missing_ok=True)
            raise
        self.index = IndexWriter(path)

    def write(self, line: Iterable[bytes | bytearray]) -> None:
        """Write the pieces of a line, all or none."""
        start = self.bytes
        try:
            for piece in line:
                rest: bytes | bytearray | memoryview = piece
                while rest:
                    written = os.write(self.file, rest)
                    rest = memoryview(rest)[written:] if written < len(rest) else b""
                    self.bytes += written
        except BaseException:
            # A torn line would make the segment unreadable.
            os.ftruncate(self.file, start)
            self.bytes = start
            raise

    def end(self) -> None:
        """Write the last line, where a segment is open."""
        if self.file >= 0:
            self.write((msgspec.json.encode(End(self.records)) + b"\n",))

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


def _files(folder: Path, loop: str) -> list[Path]:
    """Return the segments of a loop, oldest first."""
    return sorted(folder.glob(f"{loop}-[0-9]*.jsonl"), key=_number_of)


def _number_of(path: Path) -> int:
    digits = path.stem.rsplit("-", 1)[1]
    return int(digits) if digits.isdecimal() else 0


def _origin_of(path: Path) -> str:
    """Return what a segment that this version can read is of; empty where it cannot tell."""
    try:
        with path.open("rb") as file:
            header = msgspec.json.decode(file.readline(), type=Header)
    except (OSError, msgspec.DecodeError):
        return ""
    return header.origin if header.schema == SCHEMA else ""


def read_records(
    folder: Path, loop: str, *, on_segment: Callable[[Header], None] = lambda _: None, last: int | None = None
) -> Iterator[Record]:
    """Yield the records of one loop in order; an incomplete last line is left out.

    ``on_segment`` hears the header of each segment before the first of its records, which holds a whole state.
    ``last``: only so many segments, the newest ones; None for all.
    Behind a process that was cut those of the next one follow, ticks from 1 on. ``ending`` tells whether they are all. Raises RecordError naming the file and line.
    """
    for path in segments(folder, loop)[-(last or 0) :]:
        for record, _, _ in located_records(path, on_segment=on_segment):
            yield record


def located_records(
    path: Path, *, on_segment: Callable[[Header], None] = lambda _: None, offset: int = 0, before: int = 0
) -> Iterator[tuple[Record, int, int]]:
    """Yield the records of a segment with the offset and the length of their lines, as ``read_records``.

    Args:
        offset: Where to begin, behind the first ``before`` records; 0 for the header.
    """
    decoder = msgspec.json.Decoder(Record)
    with path.open("rb") as lines:
        header = lines.readline()
        on_segment(checked_header(path, header))
        at = max(offset, len(header))
        lines.seek(at)
        for number, line in enumerate(lines, start=2 + before):
            if not line.endswith(b"\n"):
                break
            if is_end(line):
                _check_end(path, number, msgspec.json.decode(line, type=End))
                if lines.read(1):
                    raise RecordError(f"{path.name} line {number + 1}: follows the end of its run; delete it")
                break
            try:
                yield decoder.decode(line), at, len(line)
            except msgspec.DecodeError as error:
                raise RecordError(f"{path.name} line {number}: not a decision record: {error}") from error
            at += len(line)


def _check_end(path: Path, number: int, end: End) -> None:
    there = number - 2  # the header is the first line, the end the last
    if there != end.end:
        raise RecordError(
            f"{path.name} line {number}: there are {there} records where the run wrote {end.end}; lines are missing"
        )


def ending(folder: Path, loop: str) -> Ending:
    """Return how the records of a loop end. Raises RecordError if there are none."""
    with segments(folder, loop)[-1].open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        *_, last = file.read().splitlines(keepends=True) or [b""]
    if not last.endswith(b"\n"):
        return Ending.TORN
    return Ending.WHOLE if is_end(last) else Ending.OPEN


def is_end(line: bytes) -> bool:
    """Return whether it is the last line of a process that ended cleanly."""
    return _END.fullmatch(line) is not None


def segments(folder: Path, loop: str) -> list[Path]:
    """Return the segment files of a loop, oldest first. Raises RecordError if there is none."""
    found = _files(folder / "records", loop)
    if not found:
        others = ", ".join(recorded_loops(folder))
        raise RecordError(f"no records of the {loop} loop under {folder}, whose run had the loops {others}")
    return found


def recorded_loops(folder: Path) -> list[str]:
    """Return the names of the loops that have records in a folder. Raises RecordError if there is none."""
    names = sorted({path.stem.rsplit("-", 1)[0] for path in (folder / "records").glob(_SEGMENTS)})
    if not names:
        raise RecordError(f"no records under {folder}; name the folder that a run wrote with --out")
    return names


def checked_header(path: Path, line: bytes) -> Header:
    """Return the header in the first line of a segment. Raises RecordError for none or another version."""
    try:
        header = msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path.name} line 1: not a record file of kubetide") from error
    if header.schema != SCHEMA:
        raise RecordError(f"{path.name}: written as {header.schema}, this version reads {SCHEMA}")
    return header


class NullRecorder:
    """Records nothing."""

    def wants_full(self, loop: str) -> bool:  # noqa: ARG002  the protocol's name
        """Return False."""
        return False

    def write(self, record: Record, state: Iterable[bytes] | None = None) -> None:
        """Ignore the record."""
