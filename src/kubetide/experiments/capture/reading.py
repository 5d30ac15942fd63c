"""Reads the records of a run for a capture, which may be gigabytes: what was read is reported on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from kubetide.explain.records import Record
from kubetide.runtime.recording.records import located_records, segments

Records = Callable[[str], Iterator[Record]]
"""Yields the records of a loop in order, from the first to the last. Raises RecordError."""


def records_in(folder: Path, progress: Callable[[int], None]) -> Records:
    """Return what reads the records of a folder, and calls ``progress`` with the bytes of each."""
    return partial(_records, folder, progress)


def _records(folder: Path, progress: Callable[[int], None], loop: str) -> Iterator[Record]:
    for path in segments(folder, loop):
        for record, _, length in located_records(path):
            progress(length)
            yield record
