"""The index of records: it says what the records say, and an answer does without it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.runtime.recording.index_lines import checksum, index_of
from kubetide.runtime.recording.indexed_records import entries, read_entries, read_reasons
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import RecordError, read_records, segments
from kubetide.units.time import Instant

LOOP = "nodes"


def written(folder, subjects, *, ends=True):
    """Write a record for each tuple of subjects, every third of them whole."""
    writer = RecordWriter(folder, warn=pytest.fail, full_every=3)
    writer.start()
    for tick, some in enumerate(subjects, start=1):
        reasons = tuple(Reason("Done", subject, {"group": f"g-{subject}"}) for subject in some)
        writer.write(Record(LOOP, tick, Instant(tick * 10), full=writer.wants_full(LOOP), reasons=reasons))
    if ends:
        writer.close()
    return folder


def plain(found):
    return [(one.offset, one.length, one.now, one.tick, one.full, sorted(one.about.split())) for one in found]


def read_from(folder):
    return list(read_entries(entries(folder, LOOP)))


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path, [("a/b",), (), ("a/b/c", "x"), ("y",), ("a/b",)])


def test_it_leads_to_the_records(folder):
    """Every record is found by its entry, and those about a subject by its checksum; a container's too by its object."""
    records = list(read_records(folder, LOOP))
    assert read_from(folder) == records
    about = [one.tick for one in entries(folder, LOOP) if checksum("a/b") in one.about]
    assert about == [1, 3, 5]
    assert [one.tick for one in entries(folder, LOOP) if checksum("g-x") in one.about] == [3]
    assert [one.full for one in entries(folder, LOOP)] == [record.full for record in records]


@given(length=st.integers(0, 400), junk=st.binary(max_size=30))
def test_without_an_index_that_fits_the_records_speak(tmp_path_factory, length, junk):
    """An index that is missing, cut, torn or something else gives the same entries as a whole one."""
    folder = written(tmp_path_factory.mktemp("index"), [("a/b",), (), ("a/b/c", "x"), ("y",), ("a/b",)])
    whole = plain(entries(folder, LOOP))
    index = index_of(segments(folder, LOOP)[0])
    data = index.read_bytes()
    index.write_bytes(data[:length] + junk)
    found = plain(entries(folder, LOOP))
    assert [one[:5] for one in found] == [one[:5] for one in whole]
    index.unlink()
    assert plain(entries(folder, LOOP)) == whole


def test_records_behind_the_index_count(folder):
    """Records after the last line of the index are read from the records themselves."""
    whole = plain(entries(folder, LOOP))
    index = index_of(segments(folder, LOOP)[0])
    lines = index.read_bytes().splitlines(keepends=True)
    for count in range(len(lines)):
        index.write_bytes(b"".join(lines[:count]))
        assert plain(entries(folder, LOOP)) == whole


def test_records_that_were_changed_are_reported_as_ever(folder):
    """Lines that somebody took away are missed, though an index is there."""
    (segment,) = segments(folder, LOOP)
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(RecordError, match="lines are missing"):
        list(entries(folder, LOOP))


def test_an_index_that_cannot_be_written_harms_nothing(tmp_path):
    """Where the index cannot be written the records are written all the same, and no warning comes."""
    (tmp_path / "records" / "nodes-0001.index").mkdir(parents=True)
    written(tmp_path, [("a/b",), ("x",)])
    assert [one.tick for one in entries(tmp_path, LOOP)] == [1, 2]


def test_it_goes_with_its_segment(tmp_path):
    """A new run leaves no index of an old one."""
    written(written(tmp_path, [("a",)] * 9), [])
    assert sorted((tmp_path / "records").iterdir()) == []


LONG = "x" * 5_000


@given(
    subjects=st.lists(
        st.lists(st.sampled_from(["a", "b/c", 'q","reasons":[', LONG]), max_size=4), min_size=1, max_size=5
    ),
    result=st.sampled_from(
        [
            b"{}",
            b'{"a":1,"reasons":[]}',
            b'{"a":1,"reasons":[{"code":"C","subject":"s"}],"repeated":2}',
            b'{"text":",\\"reasons\\":["}',
        ]
    ),
)
def test_reasons_are_read_from_the_end(tmp_path_factory, subjects, result):
    """Reasons read alone are those of the whole record, however long they are and whatever precedes them."""
    folder = tmp_path_factory.mktemp("reasons")
    writer = RecordWriter(folder, warn=pytest.fail)
    writer.start()
    for tick, some in enumerate(subjects, start=1):
        reasons = tuple(Reason("Done", subject, {"reasons": subject}) for subject in some)
        writer.write(
            Record(LOOP, tick, Instant(tick), full=tick == 1, result=msgspec.Raw(result), reasons=reasons)
        )
    writer.close()
    whole = list(read_records(folder, LOOP))
    found = list(read_reasons(LOOP, entries(folder, LOOP)))
    assert [(one.tick, one.now, one.reasons) for one in found] == [
        (one.tick, one.now, one.reasons) for one in whole
    ]
