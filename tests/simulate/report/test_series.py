"""The data of the report against the timeline it is made from."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulate import made

from kubetide.simulate.report.series import (
    MOST_MARKS,
    MOST_POINTS,
    bucket_size,
    lasts,
    lost_minutes,
    peaks,
    report_data,
)
from kubetide.simulate.timeline import minutes_lost, summarize

COUNTS = st.lists(st.integers(0, 50), max_size=200)


@given(COUNTS, st.integers(1, 30))
@settings(max_examples=100)
def test_no_peak_is_lost(values, size):
    """The largest value of a series is the largest of its buckets."""
    assert max(peaks(values, size), default=0) == max(values, default=0)


@given(COUNTS, st.integers(1, 30))
@settings(max_examples=100)
def test_counts_end_where_they_ended(values, size):
    """A bucket of counts shows the value of its last step, the final one that of the run."""
    found = lasts(values, size)
    assert found[-1:] == values[-1:]
    assert found[:-1] == values[size - 1 :: size][: len(found) - 1]


@given(st.integers(0, 3_000_000), st.integers(1, 5000))
@settings(max_examples=100)
def test_points_are_few(steps, series):
    """However long the run, a series has at most five thousand points."""
    size = bucket_size(steps, series=series)
    assert -(-steps // size) <= MOST_POINTS


@given(st.lists(st.booleans(), max_size=300), st.sampled_from([5.0, 15.0, 45.0, 60.0, 90.0]))
@settings(max_examples=100)
def test_minutes_lost_add_up_to_the_summary(violated, step_s):
    """The curve of lost minutes ends at the number of the summary and never falls."""
    curve = lost_minutes(violated, step_s)
    assert (curve or [0])[-1] == minutes_lost(violated, step_s)
    assert curve == sorted(curve)


def test_columns_share_the_time_axis():
    """Every column has a value for each point of time, also where the last bucket is short."""
    timeline = made.timeline(steps=10_001, services=("a", "b", "c"))
    data = report_data("long", timeline, summarize("long", timeline))
    columns = [*data["cpu"].values(), data["pending"], data["cost"]]
    columns += [group["nodes"] for group in data["groups"]]
    columns += [
        column for service in data["services"] for column in service.values() if isinstance(column, list)
    ]
    assert data["bucketSteps"] == 3
    assert {len(column) for column in columns} == {len(data["time"])}
    assert data["time"][-1] - data["time"][0] == (10_001 - 1 - 2) * 15


def test_summary_is_inline_as_it_is():
    """The inline summary is the summary, field by field."""
    timeline = made.timeline()
    summary = summarize("shop", timeline)
    data = report_data("shop", timeline, summary)
    assert msgspec.convert(data["summary"], type(summary)) == summary


def test_too_many_decisions_are_left_out_aloud():
    """A report holds a bounded number of decisions and counts those it lacks."""
    timeline = made.timeline()
    timeline.marks = timeline.marks[:1] * (MOST_MARKS + 7)
    data = report_data("many", timeline, summarize("many", timeline))
    assert (len(data["marks"]), data["marksLeftOut"]) == (MOST_MARKS, 7)


def test_an_empty_run_has_data():
    """A run that was stopped before its first step has a report too."""
    timeline = made.timeline(steps=0)
    assert report_data("none", timeline, summarize("none", timeline))["time"] == []
