"""Reads chosen records by their index; where there is none that fits, all are looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.runtime.index_lines import Entry, entry_of, read_index
from kubetide.runtime.records import Header, RecordError, checked_header, located_records, segments

_BEGIN = b'{"loop":'

_REASONS = b',"reasons":['
_TAIL = 1 << 12
"""Bytes at the end of a record that mostly hold its reasons: they come last, behind states of megabytes."""


class _End(msgspec.Struct, frozen=True):
    """What comes last in a record."""

    reasons: tuple[Reason, ...]
    repeated: int = 0


def entries(folder: Path, loop: str) -> Iterator[Entry]:
    """Return where the records of a loop are, in order. Raises RecordError as ``read_records`` does."""
    for path in segments(folder, loop):
        known = read_index(path)
        if known and not _fits(path, known):
            known = []
        yield from known
        end = known[-1].offset + known[-1].length if known else 0
        for record, offset, length in located_records(path, offset=end, before=len(known)):
            yield entry_of(record, path, offset, length)


def header_of(path: Path) -> Header:
    """Return the header of a segment. Raises RecordError."""
    with path.open("rb") as file:
        return checked_header(path, file.readline())


def read_entries(chosen: Iterable[Entry]) -> Iterator[Record]:
    """Return the records at these places. Raises RecordError."""
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


def read_reasons(loop: str, chosen: Iterable[Entry]) -> Iterator[Record]:
    """Return of the records at these places time, tick and reasons, and nothing else. Raises RecordError.

    Only the ends of the records are read, as long as they can be: a day is looked through in no time.
    """
    decoder = msgspec.json.Decoder(_End)
    files: dict[Path, BinaryIO] = {}
    with ExitStack() as stack:
        for entry in chosen:
            if not entry.about.strip():
                yield Record(loop, entry.tick, entry.now, full=entry.full)
                continue
            file = files.get(entry.path)
            if file is None:
                file = files[entry.path] = stack.enter_context(entry.path.open("rb"))
            reasons = _reasons_at(file, entry, decoder)
            if reasons is None:
                (whole,) = read_entries((entry,))
                reasons = whole.reasons
            yield Record(loop, entry.tick, entry.now, full=entry.full, reasons=reasons)


def _reasons_at(
    file: BinaryIO, entry: Entry, decoder: msgspec.json.Decoder[_End]
) -> tuple[Reason, ...] | None:
    """Return the reasons at the end of a record; None where they do not stand alone there."""
    length = min(_TAIL, entry.length)
    while True:
        file.seek(entry.offset + entry.length - length)
        data = file.read(length)
        begin = data.find(_REASONS)
        if begin >= 0:
            try:
                return decoder.decode(b"{" + data[begin + 1 :]).reasons
            except msgspec.DecodeError:
                return None  # the words stand in what comes before
        if length == entry.length:
            return None
        length = min(4 * length, entry.length)


def _fits(path: Path, known: list[Entry]) -> bool:
    """Return whether an index is that of the segment as it is: its first and last record are where it says."""
    with path.open("rb") as file:
        header = file.readline()
        checked_header(path, header)
        if known[0].offset != len(header):
            return False
        for entry in (known[0], known[-1]):
            file.seek(entry.offset)
            line = file.read(entry.length)
            tick = b'"tick":%d,"now":%d' % (entry.tick, entry.now)
            if not (line.startswith(_BEGIN) and line.endswith(b"\n") and tick in line[:200]):
                return False
    return all(one.offset + one.length == two.offset for one, two in pairwise(known))
