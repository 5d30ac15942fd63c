"""Reads chosen records by their index; where there is none that fits, all are looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubetide.explain.records import Record
from kubetide.runtime.index_lines import Entry, entry_of, read_index
from kubetide.runtime.records import Header, RecordError, checked_header, located_records, segments

_BEGIN = b'{"loop":'


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
