"""The history of figures: readers plot the written values, also of a file that grows, is cut or broken."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.explain.figures import FigureTable
from kubetide.explain.records import Record
from kubetide.runtime.figures import reading
from kubetide.runtime.figures.blocks import SeriesKey
from kubetide.runtime.figures.reading import Column, FigureHistory
from kubetide.runtime.figures.thinning import thinned
from kubetide.runtime.recording.index_lines import figures_of
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import RecordError, read_records, segments
from kubetide.units.time import Instant, minutes

LOOP = "nodes"
NODES = "nodegroup"
A = SeriesKey(NODES, "a", "ready")
STEP = 10 * 10**9


def table(**ready):
    return FigureTable(NODES, list(ready), {"ready": list(ready.values())})


def record(tick, now, *tables, full=False):
    return Record(LOOP, tick, Instant(now), full=full, figures=tables)


def written(folder, ticks, *, origin="", full_every=1000):
    """Write a record with each of these tables, ten seconds apart; returns the writer, still open."""
    writer = RecordWriter(folder, warn=pytest.fail, full_every=full_every)
    writer.start(origin)
    for tick, one in enumerate(ticks, start=1):
        writer.write(record(tick, tick * STEP, *one, full=writer.wants_full(LOOP)))
    return writer


def read(folder):
    history = FigureHistory(folder)
    history.follow()
    return history


def points(history, key=A):
    times, values = history.column(key)
    return [(time // STEP, value) for time, value in zip(times.tolist(), values.tolist(), strict=True)]


def test_a_series_has_a_point_where_it_changes(tmp_path):
    """Unchanged values take no space; an object that goes ends with a value that is none."""
    ticks = [
        (table(a=1, b=2),),
        (table(a=1, b=2),),
        (table(a=3, b=2),),
        (),
        (table(b=2),),
        (table(a=3, b=5),),
    ]
    written(tmp_path, ticks).close()
    history = read(tmp_path)
    assert points(history)[:2] == [(1, 1.0), (3, 3.0)]
    assert points(history)[3] == (6, 3.0)
    last, value = points(history)[2]
    assert last == 5
    assert math.isnan(value)
    assert points(history, SeriesKey(NODES, "b", "ready")) == [(1, 2.0), (6, 5.0)]
    assert history.span() == (STEP, 6 * STEP)
    assert history.at(A, Instant(4 * STEP)) == 3.0
    assert math.isnan(history.at(A, Instant(0)))


tables = st.dictionaries(st.sampled_from("abcde"), st.integers(-3, 3) | st.just(math.nan), max_size=5)


@given(ticks=st.lists(tables, min_size=1, max_size=12), cut=st.integers(1, 12))
def test_what_is_read_is_what_was_given(tmp_path_factory, ticks, cut):
    """At each tick every object has the value that it was given; a reader that follows sees what a new one sees."""
    folder = tmp_path_factory.mktemp("figures")
    writer = RecordWriter(folder, warn=pytest.fail)
    writer.start()
    follower = FigureHistory(folder)
    for tick, one in enumerate(ticks, start=1):
        writer.write(record(tick, tick * STEP, table(**one), full=writer.wants_full(LOOP)))
        if tick == cut:
            follower.follow()
    writer.close()
    follower.follow()
    for history in (follower, read(folder)):
        for key in history.series():
            for tick, one in enumerate(ticks, start=1):
                given = one.get(key.name, math.nan)
                np.testing.assert_equal(history.at(key, Instant(tick * STEP)), given)
        named = {name for one in ticks for name, value in one.items() if not math.isnan(value)}
        assert {key.name for key in history.series()} >= named


@pytest.mark.parametrize("new", [[5, 5, 9], [8] * 4 + [2, 3] * 40], ids=["shorter", "longer"])
def test_a_new_run_is_read_from_its_beginning(tmp_path, new):
    """When another run rewrites a file, nothing of the old content is left."""
    written(tmp_path, [(table(a=value),) for value in [1, 2] * 20]).close()
    follower = read(tmp_path)
    written(tmp_path, [(table(a=value),) for value in new]).close()
    follower.follow()
    assert points(follower) == points(read(tmp_path))


def test_records_do_not_hold_them(tmp_path):
    """A line of a record is the same with figures and without."""
    written(tmp_path / "with", [(table(a=1),)]).close()
    written(tmp_path / "without", [()]).close()
    one, other = (segments(tmp_path / name, LOOP)[0].read_bytes() for name in ("with", "without"))
    assert one == other
    assert not figures_of(segments(tmp_path / "without", LOOP)[0]).exists()
    assert not read(tmp_path / "without").is_there


@given(length=st.integers(0, 400), junk=st.binary(max_size=40))
def test_a_file_that_is_cut_or_broken_ends_there(tmp_path_factory, length, junk):
    """Values before the damage are read, and nothing else; records are not touched by it."""
    folder = tmp_path_factory.mktemp("figures")
    written(folder, [(table(a=tick),) for tick in range(1, 8)]).close()
    whole = points(read(folder))
    file = figures_of(segments(folder, LOOP)[0])
    data = file.read_bytes()
    file.write_bytes(data[:length] + junk)
    history = read(folder)
    found = points(history) if A in history.series() else []
    if data[:length] + junk != data:
        assert found == whole[: len(found)]
    assert len(list(read_records(folder, LOOP))) == 7


def test_a_disk_that_fails_leaves_no_half_history(tmp_path):
    """A file that cannot be written is removed, records go on, and the next segment has figures again."""
    writer = RecordWriter(tmp_path, warn=pytest.fail, max_bytes=1)
    writer.start()
    (tmp_path / "records" / f"{LOOP}-0001.figures").symlink_to("/dev/full")
    writer.write(record(1, STEP, table(a=1), full=True))
    assert not read(tmp_path).is_there
    writer.write(record(2, 2 * STEP, table(a=2), full=True))
    writer.close()
    assert points(read(tmp_path)) == [(2, 2.0)]


def test_the_time_between_two_processes_is_not_known(tmp_path):
    """A restart within minutes goes on; after a longer time there is a gap from the last record on."""
    writer = written(tmp_path, [(table(a=1),), (table(a=1),)], origin="here")
    writer.close()
    soon, late = 3 * STEP, 3 * STEP + 10 * minutes(1)
    for tick, now in ((1, soon), (1, late)):
        again = RecordWriter(tmp_path, warn=pytest.fail)
        again.start("here")
        again.write(record(tick, now, table(a=now == soon), full=True))
        again.close()
    found = points(read(tmp_path))
    assert [(at, value) for at, value in found if not math.isnan(value)] == [(1, 1.0), (late // STEP, 0.0)]
    assert [at for at, value in found if math.isnan(value)] == [3]


def test_the_oldest_go_with_their_segments(tmp_path):
    """No file of figures outlives the records beside it."""
    writer = RecordWriter(tmp_path, warn=pytest.fail, max_bytes=2_000)
    writer.start()
    history = FigureHistory(tmp_path)
    for tick in range(1, 60):
        writer.write(record(tick, tick * STEP, table(a=tick), full=writer.wants_full(LOOP)))
        history.follow()
    writer.close()
    there = {path.stem for path in (tmp_path / "records").glob("*.jsonl")}
    assert {path.stem for path in (tmp_path / "records").glob("*.figures")} == there
    assert len(there) < 20
    assert points(history) == points(read(tmp_path))
    assert points(history)[-1] == (59, 59.0)


def test_without_records_there_is_nothing_to_follow(tmp_path):
    """A folder without records is reported as one."""
    with pytest.raises(RecordError, match="no records"):
        FigureHistory(tmp_path).follow()


@given(
    values=st.lists(st.integers(-5, 5) | st.just(math.nan), min_size=1, max_size=200),
    since=st.integers(0, 210),
    length=st.integers(0, 210),
    limit=st.integers(4, 40),
)
def test_thinning_keeps_the_extremes(values, since, length, limit):
    """Points are those of the series; least and greatest, beginning and end stay; no more come than requested."""
    column = Column(np.arange(1, len(values) + 1) * 10, np.array(values, float))
    until = since + length
    found = thinned(column, Instant(since * 10), Instant(until * 10), limit)
    inside = {at: value for at, value in enumerate(values, start=1) if since < at <= until}
    before = [value for at, value in enumerate(values, start=1) if at <= since]
    if before and since <= until:
        inside[since] = before[-1]
    times = (found.times / 10).tolist()
    assert len(times) <= max(limit, 4)
    assert times == sorted(set(times))
    for at, value in zip(times, found.values.tolist(), strict=True):
        np.testing.assert_equal(value, float(inside[at]))
    known = [value for value in inside.values() if not math.isnan(value)]
    assert bool(times) == bool(inside)
    if known:
        assert np.nanmin(found.values) == min(known)
        assert np.nanmax(found.values) == max(known)


def test_many_series_are_read_as_few(tmp_path, monkeypatch):
    """Many series read together have the same points as each series read alone, also in a file that grows."""
    names = [f"n{number}" for number in range(reading._MANY + 50)]
    ticks = [(table(**{name: (at * index) % 7 for index, name in enumerate(names)}),) for at in range(6)]
    written(tmp_path, ticks[:3]).close()
    history = read(tmp_path)
    keys = [SeriesKey(NODES, name, "ready") for name in names]
    early = [points(history, key) for key in keys]
    written(tmp_path, ticks).close()
    ordered = [points(read(tmp_path), key) for key in keys[::50]]
    monkeypatch.setattr(reading, "_MANY", 10**6)
    assert [points(history, key) for key in keys] == early
    assert [points(read(tmp_path), key) for key in keys[::50]] == ordered
    assert any(len(one) > 3 for one in ordered)
