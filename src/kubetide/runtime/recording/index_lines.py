"""An index beside each segment of records: the offset, time and subjects of each record.

A line of ``records/nodes-0001.index`` is ``OFFSET LENGTH NOW TICK HOLDS`` and a checksum of each subject, all decimal; HOLDS
is 1 for a whole state, 2 for changes with the loop's memory, 0 for changes alone. The
writer appends it behind the record, a few lines at a time, so an answer reads the records that it needs out of hundreds of
megabytes. The figures of the records are beside it, in a file of their own (``runtime.figures``).
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, overload
from zlib import crc32

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.ports.errors import KubetideError
from kubetide.units.time import Instant, seconds

if TYPE_CHECKING:
    from kubetide.runtime.figures.writing import FiguresWriter


_CHANGES, _WHOLE, _MEMORY = b"0", b"1", b"2"
_TOGETHER, _AT_ONCE = seconds(45), 32
"""Lines of so long are written together, so many at most: readers take what is behind the index from the records.

In virtual time, where a day passes in seconds, only their number counts."""


class Entry(NamedTuple):
    """The position of a record; ``about`` has a space before and after each checksum."""

    path: Path
    offset: int
    length: int
    now: Instant
    tick: int
    full: bool
    about: bytes
    has_memory: bool = False


def index_of(segment: Path) -> Path:
    """Return the path of a segment's index."""
    return segment.with_suffix(".index")


def figures_of(segment: Path) -> Path:
    """Return the path of a segment's figures."""
    return segment.with_suffix(".figures")


def drop_beside(segment: Path) -> None:
    """Delete the index and the figures of a segment. Raises OSError."""
    index_of(segment).unlink(missing_ok=True)
    figures_of(segment).unlink(missing_ok=True)


def checksum(subject: str) -> bytes:
    """Return the text that represents a subject in ``about``."""
    return b" %d " % crc32(subject.encode())


def entry_of(record: Record, path: Path, offset: int, length: int) -> Entry:
    """Return the entry of a record. For a subject within another (a container of a VPA) it holds both."""
    about = b"".join(_checksums(record.reasons))
    return Entry(path, offset, length, record.now, record.tick, record.full, about, record.has_memory)


def _checksums(reasons: Iterable[Reason]) -> list[bytes]:
    subjects: set[str] = set()
    for reason in reasons:
        subjects.add(reason.subject)
        if reason.subject.count("/") > 1:
            subjects.add("/".join(reason.subject.split("/", 2)[:2]))
        for field in ("group", "pod"):
            named = reason.fields.get(field)
            if isinstance(named, str):
                subjects.add(named)
    return sorted(map(checksum, subjects))


class Entries(Sequence[Entry]):
    """Entries in order, each parsed on demand: a day has tens of thousands, and an answer needs few."""

    def __init__(self, lines: list[bytes], paths: list[Path], named: list[int] | None = None) -> None:
        """Args: the lines of indexes, each with a space at its end, the segment of each, and ``named`` where it is known."""
        self._lines = lines
        self._paths = paths
        self._named = named

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Return these entries."""
        there = list(entries)
        lines = [_line(one, one.offset, one.length, one.about.split()) + b" " for one in there]
        return cls(lines, [one.path for one in there])

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Self:
        """Return the entries of all parts, one after another."""
        return cls(
            [line for part in parts for line in part._lines],  # noqa: SLF001  of the same class
            [path for part in parts for path in part._paths],  # noqa: SLF001
        )

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> Entry | Self:
        """Return an entry, or some. Raises KubetideError for a line that is none."""
        if isinstance(at, slice):
            begin, end, step = at.indices(len(self._lines))
            named = None
            if self._named is not None and step == 1:
                inside = self._named[bisect_left(self._named, begin) : bisect_left(self._named, end)]
                named = [index - begin for index in inside]
            return type(self)(self._lines[at], self._paths[at], named)
        path = self._paths[at]
        try:
            offset, length, now, tick, holds, about = self._lines[at].split(b" ", 5)
            return Entry(
                path,
                int(offset),
                int(length),
                Instant(int(now)),
                int(tick),
                holds == _WHOLE,
                b" " + about,
                holds == _MEMORY,
            )
        except ValueError as error:
            raise KubetideError(
                f"{index_of(path)} has a line that is no entry; delete the file, and the records are read without it"
            ) from error

    def about(self, subject: str) -> list[Entry]:
        """Return the entries of the records that are about a subject."""
        key, lines = checksum(subject), self._lines
        found = (self[index] for index in self.named() if key in lines[index])
        return [entry for entry in found if key in entry.about]

    def named(self) -> Sequence[int]:
        """Return which entries have subjects, in order: a small part of them."""
        if self._named is None:
            # Behind what a record holds two blanks end the line then.
            lines = self._lines
            self._named = [index for index, line in enumerate(lines) if not line.endswith(b"  ")]
        return self._named


def read_index(segment: Path) -> Entries:
    """Return the entries of a segment's index; none without an index."""
    try:
        data = index_of(segment).read_bytes()
    except OSError:
        data = b""
    lines = data[: data.rfind(b"\n") + 1].replace(b"\n", b" \n").splitlines()
    return Entries(lines, [segment] * len(lines))


def _line(one: Entry | Record, offset: int, length: int, checksums: Sequence[bytes]) -> bytes:
    holds = _WHOLE if one.full else _MEMORY if one.has_memory else _CHANGES
    return b"%d %d %d %d %s %s" % (offset, length, one.now, one.tick, holds, b" ".join(checksums))


class IndexWriter:
    """Appends to the index of one segment, and to its figures; on failure it deletes its file, and never raises."""

    def __init__(self, segment: Path, *, at_once: bool) -> None:
        """``at_once``: whether figures come with each record, and lines soon after; else more are held."""
        self._segment = segment
        self._at_once = at_once
        self._file = -1
        self._figures: FiguresWriter | None = None
        self._lines: list[bytes] = []
        self._since = Instant(0)
        try:
            self._file = os.open(
                index_of(segment), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600
            )
        except OSError:
            self._give_up()

    def add(self, record: Record, offset: int, length: int) -> None:
        """Take the entry of a record, and append its figures, or take them too."""
        if record.figures:
            self._add_figures(record)
        if not self._lines:
            self._since = record.now
        checksums = [one.strip() for one in _checksums(record.reasons)] if record.reasons else ()
        self._lines.append(_line(record, offset, length, checksums))

    def is_due(self, record: Record) -> bool:
        """Return whether what was taken is to be written now, behind the last record."""
        if record.full or len(self._lines) >= _AT_ONCE:
            return True
        return self._at_once and record.now - self._since >= _TOGETHER

    def forget(self, size: int) -> None:
        """Drop what was taken of records behind that size of the segment: they could not be written."""
        self._lines = [line for line in self._lines if int(line.split(b" ", 1)[0]) < size]
        if self._figures is not None:
            self._figures.forget()

    def close(self) -> None:
        self.write()
        if self._figures is not None:
            self._figures.close()
        self._close_index()

    def write(self) -> None:
        """Append what was taken."""
        if self._figures is not None:
            self._figures.write()
        lines, self._lines = self._lines, []
        if self._file < 0 or not lines:
            return
        data = b"\n".join(lines) + b"\n"
        try:
            if os.write(self._file, data) != len(data):
                self._give_up()
        except OSError:
            self._give_up()

    def _add_figures(self, record: Record) -> None:
        if self._figures is None:
            from kubetide.runtime.figures.writing import FiguresWriter  # noqa: PLC0415  # readers need no numpy

            self._figures = FiguresWriter(figures_of(self._segment))
        self._figures.add(record.now, record.figures)
        if self._at_once:
            self._figures.write()

    def _close_index(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _give_up(self) -> None:
        self._close_index()
        try:
            index_of(self._segment).unlink(missing_ok=True)
        except OSError:
            return
