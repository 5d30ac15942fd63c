from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.embedded.load import Burst, DailyTrace, SeriesTrace, TraceError, read_trace
from kubetide.units.time import ZERO, Instant, after, hours, minutes, parse_rfc3339, seconds

MIDNIGHT = parse_rfc3339("2026-03-02T00:00:00Z")


def write(tmp_path, text, name="load.csv"):
    path = tmp_path / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def series(*values, step=15):
    return SeriesTrace(values, step=seconds(step), start=MIDNIGHT, name="t")


def test_the_peak_is_the_highest_value_at_the_traces_own_step():
    """One second of a burst is the peak of its 15 s; of a longer step the peak is the value; outside it is 0."""
    second = series(*[1.0] * 14, 90.0, *[2.0] * 15, step=1)
    assert [second.highest(after(MIDNIGHT, seconds(t)), seconds(15)) for t in (-15, 0, 15, 30)] == [
        0,
        90,
        2,
        0,
    ]
    minute = series(120.0, 60.0, step=60)
    assert minute.highest(after(MIDNIGHT, seconds(45)), seconds(15)) == 120


def test_a_longer_step_holds_and_shorter_ones_are_averaged():
    """15 s of a minute's count are that count / 60; 15 s of one-second values are their mean."""
    minute = series(120.0, 60.0, step=60)
    assert [minute.rate(after(MIDNIGHT, seconds(t)), seconds(15)) for t in (0, 15, 45, 60)] == [
        120,
        120,
        120,
        60,
    ]
    second = series(*range(30), step=1)
    assert second.rate(MIDNIGHT, seconds(15)) == sum(range(15)) / 15
    assert second.rate(after(MIDNIGHT, seconds(15)), seconds(15)) == sum(range(15, 30)) / 15


def test_a_step_across_two_values_is_weighted():
    """10 s of one value and 5 s of the next."""
    assert series(3.0, 6.0, step=10).rate(MIDNIGHT, seconds(15)) == pytest.approx((3 * 10 + 6 * 5) / 15)


@given(
    values=st.lists(st.floats(0, 1e6), min_size=1, max_size=20),
    step=st.integers(1, 40),
    at=st.integers(-50, 500),
    length=st.integers(1, 120),
)
def test_a_mean_is_that_of_its_seconds(values, step, at, length):
    """Any interval is the mean of the one-second values under it, 0 outside of the series."""
    trace = series(*values, step=step)
    under = [values[t // step] if 0 <= t < step * len(values) else 0.0 for t in range(at, at + length)]
    got = trace.rate(Instant(MIDNIGHT + at * 10**9), seconds(length))
    assert got == pytest.approx(sum(under) / length, rel=1e-9, abs=1e-9)


def test_a_run_longer_than_its_trace_is_refused():
    """The error names the file, what it covers and what was asked."""
    trace = series(1.0, 2.0)
    trace.require(MIDNIGHT, after(MIDNIGHT, seconds(30)))
    with pytest.raises(
        TraceError, match=r"t: covers 2026-03-02T00:00:00Z to 2026-03-02T00:00:30Z, but the run goes"
    ):
        trace.require(MIDNIGHT, after(MIDNIGHT, seconds(31)))


def test_bare_values_and_pairs_are_read_alike(tmp_path):
    """Header or none, gzipped or not, times in each form: the same series."""
    texts = {
        "a.csv": "2026-03-02T00:00:00Z,1\n2026-03-02T00:01:00Z,2\n",
        "b.csv": "time,requests\n2026-03-02 00:00:00,1\n2026-03-02 00:01:00,2\n\n",
        "c.csv": f"{MIDNIGHT // 10**9},1\n{MIDNIGHT // 10**9 + 60}.0,2\n",
        "d.csv.gz": "t,v\n2026-03-02T01:00:00+01:00,1\n2026-03-02T01:01:00+01:00,2\n",
    }
    for name, text in texts.items():
        trace = read_trace(write(tmp_path, text, name))
        assert (trace.values.tolist(), trace.step, trace.start) == ([1, 2], minutes(1), MIDNIGHT), name
    bare = read_trace(write(tmp_path, "requests\n1\n2\n"), step=minutes(1), start=MIDNIGHT)
    assert (bare.values.tolist(), bare.step, bare.start) == ([1, 2], minutes(1), MIDNIGHT)


def test_counts_are_divided_by_the_step(tmp_path):
    """120 requests in a minute are 2 requests/s; the multiplier comes on top."""
    path = write(tmp_path, "2026-03-02T00:00:00Z,120\n2026-03-02T00:01:00Z,60\n")
    assert read_trace(path, unit="requests/step").values.tolist() == [2, 1]
    assert read_trace(path, unit="requests/step", multiplier=10).values.tolist() == [20, 10]


def test_a_window_is_cut_out_and_can_be_played_at_another_time(tmp_path):
    """The window is in the file's own time; ``start`` says when it is played."""
    path = write(tmp_path, "".join(f"{60 * i},{i}\n" for i in range(10)))
    window = (Instant(0 + minutes(2)), Instant(0 + minutes(5)))
    trace = read_trace(path, window=window, start=MIDNIGHT)
    assert (trace.values.tolist(), trace.start) == ([2, 3, 4], MIDNIGHT)
    with pytest.raises(TraceError, match="covers 1970-01-01T00:00:00Z to 1970-01-01T00:10:00Z"):
        read_trace(path, window=(Instant(0), Instant(0 + minutes(11))))
    with pytest.raises(TraceError, match="does not fall on whole steps of 60 s"):
        read_trace(path, window=(Instant(0), Instant(0 + seconds(90))))


def test_another_column_can_be_named(tmp_path):
    """The value is the column after the time unless the header's name of another one is given."""
    path = write(tmp_path, "time,a,b\n0,1,5\n60,2,6\n")
    assert read_trace(path).values.tolist() == [1, 2]
    assert read_trace(path, column="b").values.tolist() == [5, 6]
    with pytest.raises(TraceError, match=r"load.csv:1: no column 'c'; the header names time, a, b"):
        read_trace(path, column="c")


def test_gaps_are_errors_unless_they_are_held(tmp_path):
    """``hold`` lets the last value hold through the missing steps."""
    path = write(tmp_path, "0,1\n60,2\n240,3\n")
    with pytest.raises(
        TraceError, match=r"load.csv:3: 2 missing between .*; add the lines, or state `gaps: hold`"
    ):
        read_trace(path)
    assert read_trace(path, gaps="hold").values.tolist() == [1, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "load.csv: empty"),
        ("\n\n", {}, "load.csv: empty"),
        ("time,value\n", {}, "load.csv:1: a header and no value"),
        ("1\n2\n", {}, "bare values without times; state `step`"),
        ("0,1\n", {}, "a single value; state `step`"),
        (
            "0,1\n60,2\n30,3\n",
            {},
            "load.csv:3: time 1970-01-01T00:00:30Z does not come after 1970-01-01T00:01:00Z",
        ),
        ("60,1\n0,2\n", {}, "load.csv:2: time 1970-01-01T00:00:00Z does not come after"),
        ("0,1\n60,2\n60,3\n", {}, "load.csv:3: .* does not come after"),
        ("0,1\n60,2\n130,3\n", {}, "load.csv:3: .* does not fall on a step of 1m0s"),
        ("0,1\n60,-2\n", {}, "load.csv:2: -2 is negative"),
        ("0,1\n60,NaN\n", {}, "load.csv:2: NaN is not a finite number"),
        ("NaN\n1\n", {"step": seconds(1)}, "load.csv:1: NaN is not a finite number"),
        ("0,1\n60,inf\n", {}, "load.csv:2: inf is not a finite number"),
        ("0,1\n60,many\n", {}, "load.csv:2: 'many' is not a number"),
        ("0,1\n60\n", {}, "load.csv:2: '60' has 1 columns, not 2"),
        ("0,1\nsoon,2\n", {}, "load.csv:2: 'soon' is not a time"),
        ("0,1\n60,2\n", {"unit": "rps"}, "unknown unit 'rps'; write one of requests/s, requests/step"),
        ("0,1\n60,2\n", {"gaps": "fill"}, "unknown treatment of gaps 'fill'"),
        ("0,1\n60,2\n", {"multiplier": 0.0}, "multiplier 0.0 must be"),
        ("0,1\n60,2\n", {"step": ZERO}, "step 0s is not positive"),
        ("0,1\n1,2\n9000000000,3\n", {"gaps": "hold"}, "load.csv:3: .* too many to hold"),
    ],
)
def test_bad_files_are_refused_with_place_and_fix(tmp_path, text, options, message):
    """Each error names the file, the line where there is one, and what to do."""
    with pytest.raises(TraceError, match=message):
        read_trace(write(tmp_path, text), **options)


def test_files_that_cannot_be_read_are_named(tmp_path):
    """A missing, a torn and a binary file are errors with the file's name."""
    with pytest.raises(TraceError, match=r"none.csv: cannot be read"):
        read_trace(tmp_path / "none.csv")
    torn = tmp_path / "torn.csv.gz"
    torn.write_bytes(gzip.compress(b"0,1\n60,2\n" * 100)[:-20])
    with pytest.raises(TraceError, match=r"torn.csv.gz: not a complete gzip file"):
        read_trace(torn)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"0,1\n\xff\xfe")
    with pytest.raises(TraceError, match=r"binary.csv: not UTF-8 text"):
        read_trace(binary)


def test_a_day_has_its_peak_and_its_low():
    """The cosine is highest at the stated time of day and lowest twelve hours off, each day."""
    day = DailyTrace(low=10, peak=110, peak_at=hours(14))
    for days in (0, 3):
        base = after(MIDNIGHT, hours(24 * days))
        assert day.rate(after(base, hours(14)), seconds(1)) == pytest.approx(110)
        assert day.rate(after(base, hours(2)), seconds(1)) == pytest.approx(10)
        assert day.rate(after(base, hours(8)), seconds(1)) == pytest.approx(60, abs=0.1)


def test_a_burst_rises_holds_and_falls():
    """The factor goes in a line from 1 to the height and back, over midnight too."""
    burst = Burst(at=hours(23), height=3.0, rise=minutes(30), hold=minutes(60), fall=minutes(60))
    day = DailyTrace(low=100, peak=100, peak_at=ZERO, burst=burst)
    rates = {
        t: day.rate(after(MIDNIGHT, minutes(t)), minutes(1)) for t in (0, 15, 60, 91, 22 * 60, 23 * 60 + 14.5)
    }
    assert rates == {
        0: pytest.approx(300),
        15: pytest.approx(300),
        60: pytest.approx(200, abs=2),
        91: pytest.approx(100),
        22 * 60: pytest.approx(100),
        23 * 60 + 14.5: pytest.approx(200),
    }


def test_noise_is_a_function_of_seed_name_and_minute():
    """The same minute has the same noise however it is cut; other seeds and names have other noise."""
    day = DailyTrace(low=100, peak=100, peak_at=ZERO, noise=0.1, seed=1, name="web")
    same = [day.rate(after(MIDNIGHT, seconds(t)), seconds(15)) for t in (0, 15, 30, 45)]
    assert len(set(same)) == 1
    other = DailyTrace(low=100, peak=100, peak_at=ZERO, noise=0.1, seed=1, name="api")
    assert other.rate(MIDNIGHT, seconds(15)) != same[0]
    many = np.array([day.rate(after(MIDNIGHT, minutes(t)), minutes(1)) for t in range(1440)])
    assert many.mean() == pytest.approx(100, abs=1)
    assert many.std() == pytest.approx(10, abs=1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"low": 5.0, "peak": 1.0}, "low 5.0 must lie between 0 and peak 1.0"),
        ({"noise": -0.1}, "noise -0.1 is negative"),
        (
            {"burst": Burst(at=ZERO, height=0.0, rise=ZERO, hold=ZERO, fall=ZERO)},
            "burst height 0.0 must be greater",
        ),
    ],
)
def test_impossible_days_are_refused(fields, message):
    """A day that cannot be names itself and the field."""
    with pytest.raises(TraceError, match=f"daily load web: {message}"):
        DailyTrace(**({"low": 0.0, "peak": 1.0, "peak_at": ZERO, "name": "web"} | fields))
