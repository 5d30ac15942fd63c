"""Columns that are drawn, and figures that are stored, against the timeline they are made from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulate import made
from tests.simulate.made import START

from kubetide.simulate.outcome.run_figures import RunFigures
from kubetide.simulate.outcome.series import MOST_POINTS, bucket_size, lasts, lost_minutes, peaks, times_of
from kubetide.simulate.outcome.summary import minutes_lost
from kubetide.simulate.outcome.timeline import ServiceSeries, Timeline

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
    timeline = made.timeline(steps=10_001)
    size = bucket_size(10_001, series=8)
    times = times_of(timeline, 10_001, size)
    assert size == 3
    assert {len(times)} == {len(lasts(timeline.cost, size)), len(peaks(timeline.pending, size))}
    assert times[-1] - times[0] == (10_001 - 1 - 2) * 15
    assert times_of(made.timeline(steps=0), 0, 1) == []


@given(
    st.lists(st.booleans(), max_size=300),
    st.sampled_from([5.0, 15.0, 45.0, 60.0, 90.0]),
    st.lists(st.integers(1, 40), max_size=20),
)
@settings(max_examples=100)
def test_figures_follow_the_timeline(violated, step_s, looks):
    """However often they are read, the figures of a run have its peaks and end at its sums."""
    timeline = Timeline(START, step_s)
    service = timeline.services["web"] = ServiceSeries("web")
    figures, tables = RunFigures(), []
    for bad in violated:
        step = len(timeline.pending)
        timeline.pending.append(0)
        for column, value in (
            (service.offered, 7 * step % 11),
            (service.capacity, step),
            (service.violated, bad),
        ):
            column.append(value)
        for column in (service.existing, service.ready, service.desired):
            column.append(step)
        service.violated_own_step.append(not bad)
        for column in (timeline.cpu_used, timeline.cpu_requested, timeline.cpu_allocatable, timeline.cost):
            column.append(float(step))
        if looks and step % looks[step % len(looks)] == 0:
            tables += figures.of(timeline)
    tables += figures.of(timeline)
    assert figures.of(timeline) == ()
    services = [one.columns for one in tables if one.kind == "service"]
    assert max((one["offered"][0] for one in services), default=0) == max(service.offered, default=0)
    assert any(one["missed"][0] for one in services) == any(violated)
    if services:
        assert services[-1]["lost"][0] == minutes_lost(violated, step_s)
        assert services[-1]["lostOwnStep"][0] == minutes_lost([not bad for bad in violated], step_s)
        assert tables[-2].columns["spent"] == [len(violated) - 1]
