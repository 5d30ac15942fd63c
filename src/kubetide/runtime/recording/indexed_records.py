"""Reads chosen records by their index; without a valid index it reads all once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.ports.errors import KubetideError
from kubetide.runtime.recording.index_lines import Entries, Entry, entry_of, read_index
from kubetide.runtime.recording.records import Header, RecordError, checked_header, located_records, segments
from kubetide.units.time import Instant

_BEGIN = b'{"loop":'
_TIME = re.compile(rb'\{"loop":"\w+","tick":\d+,"now":(\d+),')
_HEAD = 200
"""Bytes at the beginning of a record that hold its time."""

_REASONS = b',"reasons":['
_TAIL = 1 << 12
"""Bytes at the end of a record that mostly hold its reasons: they come last, behind states of megabytes."""


class _End(msgspec.Struct, frozen=True):
    """What comes last in a record."""

    reasons: tuple[Reason, ...]
    repeated: int = 0


class _RawEnd(msgspec.Struct, frozen=True):
    """The same, each reason as its JSON."""

    reasons: tuple[msgspec.Raw, ...]
    repeated: int = 0


Picks = Callable[[Sequence[bytes]], tuple[Reason, ...]]
"""Returns those reasons of a record, each given as its JSON, that are of use. Raises msgspec.DecodeError."""


_Version = tuple[int, int, int]
"""Size, time and number of a file: another run may have written one of the same name."""


def _version_of(path: Path) -> _Version:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


class LoopIndex:
    """The positions of one loop's records, also while they are written. One caller at a time."""

    def __init__(self, folder: Path, loop: str) -> None:
        self._folder = folder
        self._loop = loop
        self._segments: dict[Path, tuple[_Version, Entries]] = {}
        """The entries of each segment, and what it was when they were read."""
        self._all: Entries | None = None

    def entries(self) -> Entries:
        """Return all entries, in order. Raises RecordError as ``read_records`` does."""
        found = {path: _version_of(path) for path in segments(self._folder, self._loop)}
        if self._all is None or {path: version for path, (version, _) in self._segments.items()} != found:
            before, self._segments = self._segments, {}
            for path, version in found.items():
                known = before.get(path)
                self._segments[path] = (
                    known if known and known[0] == version else (version, _entries_of(path))
                )
            self._all = Entries.joined([part for _, part in self._segments.values()])
            self._all.named()  # once for all parts that answers look at
        return self._all


def entries(folder: Path, loop: str) -> Entries:
    """Return the positions of a loop's records, in order. Raises RecordError as ``read_records`` does."""
    return LoopIndex(folder, loop).entries()


def _entries_of(path: Path) -> Entries:
    known = read_index(path)
    if not _fits(path, known):
        known = known[:0]
    end = known[-1].offset + known[-1].length if known else 0
    rest = located_records(path, offset=end, before=len(known))
    return Entries.joined([known, Entries.of(entry_of(record, path, *place) for record, *place in rest)])


def first_time(folder: Path, loop: str) -> Instant | None:
    """Return the time of a loop's first record; None without records. Raises RecordError."""
    for path in segments(folder, loop):
        with path.open("rb") as file:
            checked_header(path, file.readline())
            begin = _TIME.match(file.read(_HEAD))
        if begin:
            return Instant(int(begin[1]))
        for record, _, _ in located_records(path):
            return record.now
    return None


def header_of(path: Path) -> Header:
    """Return the header of a segment. Raises RecordError."""
    with path.open("rb") as file:
        return checked_header(path, file.readline())


def read_entries(chosen: Iterable[Entry]) -> Iterator[Record]:
    """Yield the records at these positions. Raises RecordError."""
    decoder = msgspec.json.Decoder(Record)
    files: dict[Path, BinaryIO] = {}
    with ExitStack() as stack:
        for entry in chosen:
            file = files.get(entry.path)
            if file is None:
                file = files[entry.path] = stack.enter_context(entry.path.open("rb"))
            file.seek(entry.offset)
            try:
                yield decoder.decode(file.read(entry.length))
            except msgspec.DecodeError as error:
                raise RecordError(
                    f"{entry.path.name} byte {entry.offset}: not a decision record: {error}"
                ) from error


def read_reasons(loop: str, chosen: Iterable[Entry], picks: Picks | None = None) -> Iterator[Record]:
    """Yield only time, tick and reasons of the records at these positions. Raises RecordError.

    ``picks``: of the reasons only these; a record of a tick has those of all its objects.

    Only the ends of the records are read, as long as they can be: a day is looked through in no time.
    """
    read = msgspec.json.Decoder(_End).decode if picks is None else _picking(picks)
    with ExitStack() as stack:
        files: dict[Path, FileIO] = {}
        for entry in chosen:
            if not entry.about.strip():
                yield Record(loop, entry.tick, entry.now, full=entry.full)
                continue
            file = files.get(entry.path)
            if file is None:
                # Unbuffered: of each record only its end is read.
                file = files[entry.path] = stack.enter_context(entry.path.open("rb", buffering=0))
            reasons = _reasons_at(file, entry, read)
            if reasons is None:
                (whole,) = read_entries((entry,))
                reasons = whole.reasons
            yield Record(loop, entry.tick, entry.now, full=entry.full, reasons=reasons)


def _picking(picks: Picks) -> Callable[[bytes], _End]:
    decoder = msgspec.json.Decoder(_RawEnd)
    return lambda data: _End(picks(list(map(bytes, decoder.decode(data).reasons))))


def _reasons_at(file: FileIO, entry: Entry, read: Callable[[bytes], _End]) -> tuple[Reason, ...] | None:
    """Return the reasons at the end of a record; None where they do not stand alone there."""
    length = min(_TAIL, entry.length)
    while True:
        file.seek(entry.offset + entry.length - length)
        data = file.read(length)
        begin = data.find(_REASONS)
        if begin >= 0:
            try:
                return read(b"{" + data[begin + 1 :]).reasons
            except msgspec.DecodeError:
                return None  # the words stand in what comes before
        if length == entry.length:
            return None
        length = min(4 * length, entry.length)


def _fits(path: Path, known: Entries) -> bool:
    """Return whether an index is that of the segment as it is: its first and last record are where it says."""
    if not known:
        return True
    try:
        first, last = known[0], known[-1]
    except KubetideError:
        return False
    with path.open("rb") as file:
        header = file.readline()
        checked_header(path, header)
        if first.offset != len(header):
            return False
        for entry in (first, last):
            file.seek(entry.offset)
            line = file.read(entry.length)
            tick = b'"tick":%d,"now":%d' % (entry.tick, entry.now)
            if not (line.startswith(_BEGIN) and line.endswith(b"\n") and tick in line[:_HEAD]):
                return False
    return True
