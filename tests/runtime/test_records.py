"""Decision records on disk."""

from __future__ import annotations

import errno
import os
import stat

import msgspec
import pytest

from kubetide.explain.records import Record
from kubetide.runtime.records import (
    Ending,
    RecordError,
    RecordWriter,
    ending,
    read_records,
    recorded_loops,
    segments,
)
from kubetide.units.time import Instant


def record(tick: int, *, full: bool, size: int = 10) -> Record:
    return Record("nodes", tick, Instant(tick), full=full, state=msgspec.Raw(b'"' + b"x" * size + b'"'))


def write(writer: RecordWriter, tick: int, size: int = 10) -> None:
    writer.write(record(tick, full=writer.wants_full("nodes"), size=size))


def test_records_come_back_in_order(tmp_path):
    """What was written is read back, one line a record, and the first holds the whole state."""
    writer = RecordWriter(tmp_path, warn=pytest.fail, full_every=3)
    writer.start()
    for tick in range(1, 8):
        write(writer, tick)
    read = list(read_records(tmp_path, "nodes"))
    assert [r.tick for r in read] == [1, 2, 3, 4, 5, 6, 7]
    assert [r.tick for r in read if r.full] == [1, 4, 7]
    assert recorded_loops(tmp_path) == ["nodes"]


def test_records_are_private(tmp_path):
    """Nobody but the owner may read a record file."""
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    write(writer, 1)
    assert stat.S_IMODE(segments(tmp_path, "nodes")[0].stat().st_mode) == 0o600


def test_size_is_capped_and_each_segment_replays_alone(tmp_path):
    """The oldest segments go, and the first record of each that stays holds the whole state."""
    writer = RecordWriter(tmp_path, warn=pytest.fail, max_bytes=80_000)
    writer.start()
    for tick in range(1, 500):
        write(writer, tick, size=1000)
    files = segments(tmp_path, "nodes")
    assert sum(path.stat().st_size for path in files) < 100_000
    firsts = [path.read_bytes().splitlines()[1] for path in files]
    assert all(msgspec.json.decode(line, type=Record).full for line in firsts)


def test_a_full_disk_is_told_once_and_survived(tmp_path, monkeypatch):
    """Records that cannot be written are dropped with one sentence; after that a whole state starts anew."""
    said: list[str] = []
    writer = RecordWriter(tmp_path, warn=said.append, full_every=100)
    writer.start()
    write(writer, 1)
    real = os.write

    def full(_file, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for tick in (2, 3, 4):
        write(writer, tick)
    monkeypatch.setattr(os, "write", real)
    for tick in (5, 6):
        write(writer, tick)
    assert len(said) == 2
    assert "No space left on device" in said[0]
    assert "--out" in said[0]
    read = list(read_records(tmp_path, "nodes"))
    assert [(r.tick, r.full) for r in read] == [(1, True), (5, True), (6, False)]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    """A path through a file is refused at the start, with the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="--out"):
        RecordWriter(tmp_path / "file" / "deep", warn=pytest.fail).start()


def test_a_line_still_being_written_is_left_out(tmp_path):
    """A reader of a running writer sees whole records only."""
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    write(writer, 1)
    path = segments(tmp_path, "nodes")[0]
    with path.open("ab") as file:
        file.write(b'{"loop": "nodes", "ti')
    assert [r.tick for r in read_records(tmp_path, "nodes")] == [1]


def test_a_broken_line_is_named(tmp_path):
    """A line that is no record is an error with file and line."""
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    write(writer, 1)
    with segments(tmp_path, "nodes")[0].open("ab") as file:
        file.write(b"nonsense\n")
    with pytest.raises(RecordError, match=r"nodes-0001\.jsonl line 3"):
        list(read_records(tmp_path, "nodes"))


def test_an_empty_folder_is_an_error(tmp_path):
    """A folder without records says which folder is meant."""
    with pytest.raises(RecordError, match="no records"):
        recorded_loops(tmp_path)


def test_a_clean_end_is_told_from_a_cut_one(tmp_path):
    """Only closing writes the last line; reading gives the same records before and after it."""
    writer = RecordWriter(tmp_path, warn=pytest.fail, full_every=2, max_bytes=1000)
    writer.start()
    for tick in range(1, 6):
        write(writer, tick)
    assert ending(tmp_path, "nodes") is Ending.OPEN
    before = [record.tick for record in read_records(tmp_path, "nodes")]
    writer.close()
    assert ending(tmp_path, "nodes") is Ending.WHOLE
    assert [record.tick for record in read_records(tmp_path, "nodes")] == before
    path = segments(tmp_path, "nodes")[-1]
    path.write_bytes(path.read_bytes()[:-3])
    assert ending(tmp_path, "nodes") is Ending.TORN


def test_missing_lines_are_found(tmp_path):
    """The last line counts the records of its segment."""
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    for tick in range(1, 5):
        write(writer, tick)
    writer.close()
    path = segments(tmp_path, "nodes")[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(RecordError, match="there are 3 records where the run wrote 4"):
        list(read_records(tmp_path, "nodes"))
