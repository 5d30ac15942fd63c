"""Decision records on disk: JSON Lines, one file per loop and segment, mode 0600, capped in size.

``records/nodes-0001.jsonl`` and so on. Each segment starts with a record that holds the whole
state, so that any segment can be replayed by itself; the oldest go when the cap is passed. The last
line of a process that ended cleanly is ``{"end":N}``, N the records of its segment: without it the
process is still going on, or was cut. A process may go on behind the segments of an earlier one that
recorded the same thing; its ticks count from 1 again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path

import msgspec

from kubetide.explain.records import SCHEMA, Record
from kubetide.ports.errors import KubetideError
from kubetide.ports.plugins import Plugin
from kubetide.units.steps import Steps

SEGMENTS = "*-[0-9]*.jsonl"
_END = re.compile(rb'\{"end":\d+\}\n')
_TAIL = 64
"""Bytes that hold the line before last's end and any last line ``{"end":N}``."""


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


def files_of(folder: Path, loop: str) -> list[Path]:
    """Return the segments of a loop, oldest first."""
    return sorted(folder.glob(f"{loop}-[0-9]*.jsonl"), key=number_of)


def number_of(path: Path) -> int:
    digits = path.stem.rsplit("-", 1)[1]
    return int(digits) if digits.isdecimal() else 0


def origin_of(path: Path) -> str:
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
    found = files_of(folder / "records", loop)
    if not found:
        others = ", ".join(recorded_loops(folder))
        raise RecordError(f"no records of the {loop} loop under {folder}, whose run had the loops {others}")
    return found


def recorded_loops(folder: Path) -> list[str]:
    """Return the names of the loops that have records in a folder. Raises RecordError if there is none."""
    names = sorted({path.stem.rsplit("-", 1)[0] for path in (folder / "records").glob(SEGMENTS)})
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

    def write(self, record: Record) -> None:
        """Ignore the record."""

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:  # noqa: ARG002  as above
        """Ignore the record."""
        yield from ()
