"""Decision records on disk."""

from __future__ import annotations

import errno
import os
import stat
from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.runtime.recording import record_writer
from kubetide.runtime.recording.indexed_records import entries
from kubetide.runtime.recording.record_writer import FULL_EVERY, RecordWriter
from kubetide.runtime.recording.records import (
    Ending,
    RecordError,
    ending,
    read_records,
    recorded_loops,
    segments,
)
from kubetide.units.steps import finish
from kubetide.units.time import Instant


def record(tick: int, *, full: bool, size: int = 10) -> Record:
    return Record("nodes", tick, Instant(tick), full=full, state=msgspec.Raw(b'"' + b"x" * size + b'"'))


def write(writer: RecordWriter, tick: int, size: int = 10) -> None:
    writer.write(record(tick, full=writer.wants_full("nodes"), size=size))


def test_records_come_back_in_order(tmp_path):
    """Written records read back, one line a record, and the first holds the whole state."""
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


@pytest.mark.parametrize("whole", [6_000, 15_000])
def test_a_whole_state_as_large_as_a_segment_is_not_in_every_record(tmp_path, whole):
    """It comes when it is due, or when the changes since weigh as much; and the cap holds."""
    writer = RecordWriter(tmp_path, warn=pytest.fail, full_every=100, max_bytes=80_000)
    writer.start()
    fulls = []
    for tick in range(1, 500):
        full = writer.wants_full("nodes")
        fulls += [tick] if full else []
        writer.write(record(tick, full=full, size=whole if full else 50))
    assert min(later - one for one, later in pairwise(fulls)) >= 60
    assert sum(path.stat().st_size for path in segments(tmp_path, "nodes")) <= 80_000
    firsts = [path.read_bytes().splitlines()[1] for path in segments(tmp_path, "nodes")]
    assert all(msgspec.json.decode(line, type=Record).full for line in firsts)


def test_a_full_disk_is_reported_once_and_survived(tmp_path, monkeypatch):
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


@pytest.mark.parametrize("name", ["nodes", '"state":null'])
def test_a_state_in_pieces_reads_as_one(tmp_path, name):
    """The line is that of the same record in one piece, whatever else the record says."""
    reason = Reason("Rescaled", '"state":null', fields={"text": ',"state":null,'})
    whole = Record(
        name, 7, Instant(8), full=True, state=msgspec.Raw(b'{"a":[1,2]}'), reasons=(reason,), repeated=2
    )
    lines = []
    for folder in ("pieces", "whole"):
        writer = RecordWriter(tmp_path / folder, warn=pytest.fail)
        writer.start()
        if folder == "pieces":
            pieces = iter([b'{"a":[', b"1,2", b"]}"])
            finish(writer.write_in_pieces(replace(whole, state=msgspec.Raw(b"{}")), pieces))
        else:
            writer.write(whole)
        lines.append((tmp_path / folder / "records" / f"{name}-0001.jsonl").read_bytes())
    assert lines[0] == lines[1]


def test_held_records_are_whole_lines_and_the_same_bytes(tmp_path):
    """Records that are written together are always whole lines, not behind their index, and in the end the same files."""
    for name, at_once in (("each", True), ("some", False)):
        writer = RecordWriter(
            tmp_path / name, warn=pytest.fail, full_every=150, max_bytes=40_000, at_once=at_once
        )
        writer.start()
        behind = 0
        for tick in range(1, 500):
            write(writer, tick)
            last = segments(tmp_path / name, "nodes")[-1]
            there = last.read_bytes()
            assert there.endswith(b"\n")
            index = [line.split() for line in last.with_suffix(".index").read_bytes().splitlines()]
            assert all(int(offset) + int(length) <= len(there) for offset, length, *_ in index)
            behind += [one.tick for one in read_records(tmp_path / name, "nodes")][-1] < tick
        assert behind == 0 if at_once else behind > 400
        writer.close()
    for one in sorted((tmp_path / "each" / "records").iterdir()):
        assert one.read_bytes() == (tmp_path / "some" / "records" / one.name).read_bytes(), one.name


def test_held_records_that_cannot_be_written_are_all_counted(tmp_path, monkeypatch):
    """A disk that is full when some are written together drops all of these, and their lines in the index."""
    said: list[str] = []
    writer = RecordWriter(tmp_path, warn=said.append, full_every=100, at_once=False)
    writer.start()
    write(writer, 1)
    for tick in range(2, 11):
        write(writer, tick)
    real = os.write

    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    while not said:
        tick += 1
        write(writer, tick)
    monkeypatch.setattr(os, "write", real)
    assert writer.dropped == tick - 1
    write(writer, tick + 1)
    writer.close()
    assert [one.tick for one in read_records(tmp_path, "nodes")] == [1, tick + 1]
    assert [entry.tick for entry in entries(tmp_path, "nodes")] == [1, tick + 1]
    assert said[1].endswith(f"({tick - 1} lost)")


def test_a_disk_that_fails_between_two_pieces_leaves_no_torn_line(tmp_path, monkeypatch):
    """The part of the record that was written before the failure is removed."""
    said = []
    writer = RecordWriter(tmp_path, warn=said.append, full_every=2)
    writer.start()
    write(writer, 1)
    before = segments(tmp_path, "nodes")[0].read_bytes()
    real = os.write

    def full(file, data):
        if bytes(data) == b"2":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data)

    monkeypatch.setattr(os, "write", full)
    finish(writer.write_in_pieces(record(2, full=True), iter([b"[1,", b"2", b"]"])))
    assert segments(tmp_path, "nodes")[0].read_bytes() == before
    assert len(said) == 1


def test_a_large_state_is_written_with_pauses(tmp_path):
    """One that is given up at a pause, as the process ends, leaves no torn line behind; what follows is written as ever."""
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    write(writer, 1)
    before = segments(tmp_path, "nodes")[0].read_bytes()
    steps = writer.write_in_pieces(record(2, full=True), iter([b"[1,", b"2", b"]"]))
    for _ in range(3):
        next(steps)
    assert segments(tmp_path, "nodes")[0].read_bytes() != before
    steps.close()
    assert segments(tmp_path, "nodes")[0].read_bytes() == before
    write(writer, 3)
    writer.close()
    assert [one.tick for one in read_records(tmp_path, "nodes")] == [1, 3]
    assert ending(tmp_path, "nodes") is Ending.WHOLE


def test_only_records_are_deleted(tmp_path):
    """A new run takes the segments of an earlier one away, and no file of somebody else's."""
    (tmp_path / "records").mkdir()
    for name in ("nodes-0001.jsonl", "measured.jsonl", "notes-0001.txt"):
        (tmp_path / "records" / name).touch()
    RecordWriter(tmp_path, warn=pytest.fail).start()
    assert {path.name for path in (tmp_path / "records").iterdir()} == {"measured.jsonl", "notes-0001.txt"}


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


def test_a_clean_end_is_reported_from_a_cut_one(tmp_path):
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


def test_what_follows_the_end_of_a_run_is_named(tmp_path):
    """A line that somebody appended is no sign that the run was cut."""
    process(tmp_path, 2)
    path = segments(tmp_path, "nodes")[0]
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines(keepends=True)[2])
    with pytest.raises(RecordError, match=r"nodes-0001\.jsonl line 5: follows the end of its run"):
        list(read_records(tmp_path, "nodes"))


HERE = "run on https://10.0.0.1:6443"


def process(folder, ticks, *, origin=HERE, size=10, clean=True, **more):
    """Write the records of one process; ticks count from 1."""
    writer = RecordWriter(folder, warn=pytest.fail, **more)
    writer.start(origin)
    for tick in range(1, ticks + 1):
        write(writer, tick, size)
    if clean:
        writer.close()


def ticks_of(folder):
    return [(one.tick, one.full) for one in read_records(folder, "nodes")]


@pytest.mark.parametrize("clean", [True, False])
def test_a_process_goes_on_behind_an_earlier_one(tmp_path, clean):
    """After a clean end or a kill: all records are there, and those of each process begin with the whole state."""
    process(tmp_path, 3, clean=clean)
    process(tmp_path, 2)
    assert ticks_of(tmp_path) == [(1, True), (2, False), (3, False), (1, True), (2, False)]
    assert ending(tmp_path, "nodes") is Ending.WHOLE


def test_a_line_that_was_cut_ends_its_process_only(tmp_path):
    """A machine that lost its power leaves part of a line; what the next process wrote is read."""
    process(tmp_path, 3, clean=False)
    path = segments(tmp_path, "nodes")[0]
    path.write_bytes(path.read_bytes()[:-5])
    process(tmp_path, 1)
    assert ticks_of(tmp_path) == [(1, True), (2, False), (1, True)]


@pytest.mark.parametrize(
    ("before", "after"), [("", HERE), (HERE, ""), ("run on https://elsewhere", HERE), ("", "")]
)
def test_records_of_something_else_are_not_mixed_in(tmp_path, before, after):
    """A simulation, or another cluster, in the same folder."""
    process(tmp_path, 3, origin=before)
    process(tmp_path, 1, origin=after)
    assert ticks_of(tmp_path) == [(1, True)]


def test_records_of_another_version_are_cleared(tmp_path):
    """Records that this version cannot read do not prevent it from writing."""
    process(tmp_path, 3)
    path = segments(tmp_path, "nodes")[0]
    path.write_bytes(path.read_bytes().replace(b"kubetide-record/", b"kubetide-record/old-"))
    process(tmp_path, 1)
    assert ticks_of(tmp_path) == [(1, True)]


def test_the_cap_holds_over_restarts_and_small_segments_stay(tmp_path):
    """The oldest go by bytes, not by number: many short processes do not evict a day's records."""
    process(tmp_path, 40, size=1000, max_bytes=80_000)
    for _ in range(20):
        process(tmp_path, 1, max_bytes=80_000)
    found = ticks_of(tmp_path)
    assert len(found) == 60
    for _ in range(20):
        process(tmp_path, 10, size=1000, max_bytes=80_000)
        assert sum(path.stat().st_size for path in segments(tmp_path, "nodes")) <= 80_000
    assert ticks_of(tmp_path)[-10:] == [(tick, tick == 1) for tick in range(1, 11)]


def test_a_process_that_never_stays_up_does_not_fill_the_folder(tmp_path, monkeypatch):
    """The maximum number of segments stays, however small they are."""
    monkeypatch.setattr(record_writer, "_MOST_SEGMENTS", 12)
    for _ in range(30):
        process(tmp_path, 1)
    names = [path.name for path in segments(tmp_path, "nodes")]
    assert names == [f"nodes-{number:04d}.jsonl" for number in range(19, 31)]


def test_segments_are_in_order_past_their_digits(tmp_path):
    """After 9999 comes 10000."""
    process(tmp_path, 2)
    segments(tmp_path, "nodes")[0].rename(tmp_path / "records" / "nodes-9999.jsonl")
    process(tmp_path, 1)
    assert [path.stem for path in segments(tmp_path, "nodes")] == ["nodes-9999", "nodes-10000"]
    assert ticks_of(tmp_path) == [(1, True), (2, False), (1, True)]


def test_whole_states_come_sooner_where_they_are_small(tmp_path):
    """After 24 records that hold eight times the last whole state; where it is large beside them, after a full period only."""

    def between(folder, whole, delta):
        writer = RecordWriter(tmp_path / folder, warn=pytest.fail)
        writer.start()
        found = []
        for tick in range(1, 500):
            full = writer.wants_full("nodes")
            state = msgspec.Raw(b'"%s"' % (b"x" * (whole if full else delta)))
            writer.write(Record("nodes", tick, Instant(tick), full=full, state=state))
            found += [tick] if full else []
        writer.close()
        return found[1] - found[0]

    assert between("small", 1_000, 1_000) == 24
    assert between("middling", 100_000, 8_000) in range(95, 105)
    assert between("large", 1_000_000, 100) == FULL_EVERY
